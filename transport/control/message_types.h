/*
 * All messages of the control plane, in one list. docs/PROTOCOL.md describes
 * each payload. Payloads are JSON objects except LOG, which is raw bytes.
 * C = coordinator, A = agent (one per node), R = rank.
 */
#ifndef RF_TRANSPORT_CONTROL_MESSAGE_TYPES_H
#define RF_TRANSPORT_CONTROL_MESSAGE_TYPES_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "transport/control/frame.h"
#include "transport/net/lease_times.h"

/* X(name, number, longest payload) */
#define RF_MSG_MAP(X)                                                          \
    X(BOOT, 1, 64 << 10)       /* C→A, first frame on stdin */               \
    X(HELLO, 2, 256 << 10)     /* A→C, and from a survey to A */             \
    X(WELCOME, 3, 4 << 10)     /* C→A */                                     \
    X(START, 4, 64 << 20)      /* C→A→R: one scenario attempt */           \
    X(STEP, 5, 64 << 10)       /* C→A→R: do one step */                    \
    X(DONE, 6, 16 << 20)       /* R→A→C: results of a step */              \
    X(EXCHANGE, 7, 16 << 20)   /* R→A→C: my part of an allgather */        \
    X(EXCHANGED, 8, 64 << 20)  /* C→A→R: all ranks' parts */               \
    X(LEASE, 9, 4 << 10)       /* both ways, every 2 s */                      \
    X(LOG, 10, 16 << 10)       /* A→C: a rank's stderr, raw */               \
    X(RANK_EXIT, 11, 16 << 10) /* A→C */                                     \
    X(ABORT, 12, 4 << 10)      /* C→A→R: end this attempt now */           \
    X(ABORTED, 13, 16 << 10)   /* A→C: all ranks of the attempt are gone */  \
    X(SHUTDOWN, 14, 512 << 10) /* C→A: the run is over */                    \
    X(ERROR, 15, 4 << 10)      /* both ways, then close */                     \
    X(INSPECT, 16, 8 << 10)    /* C→A: read a checkpoint's headers */        \
    X(HEADERS, 17, 64 << 20)   /* A→C: their content */                      \
    X(REACH, 18, 16 << 10)     /* C→A: connect to these nodes */             \
    X(REACHED, 19, 64 << 10)   /* A→C: the outcome */

enum rf_msg_type {
#define X(name, number, cap) RF_MSG_##name = (number),
    RF_MSG_MAP(X)
#undef X
};

#define RF_PROTOCOL_MIN 9
#define RF_PROTOCOL_MAX 9
#define RF_BANNER "REFIT-WORKER/1" /* then a space, the nonce, a newline */

#define RF_CONNECT_BACK_MS 5000
#define RF_ABORT_GRACE_MS 10000
#define RF_TERM_GRACE_MS 5000
#define RF_EXIT_STUCK 70 /* a rank whose abort took too long */

const char *rf_msg_name(uint8_t type); /* "HELLO"; "type 77" is NULL */
uint32_t rf_msg_cap(uint8_t type);     /* 0 for an unknown type */

/* Parses a JSON payload (not for LOG). The caller owns *out. */
enum rf_status rf_msg_parse(const struct rf_frame *frame, json_t **out,
                            struct rf_err *err) RF_MUST_CHECK;

#endif
