/*
 * Data connections between ranks: TCP sockets on which both ends have proved
 * the attempt's data key before the first payload byte (docs/PROTOCOL.md, "Data
 * connections"). The sending rank connects to the receiving one.
 */
#ifndef RF_TRANSPORT_TCP_DATALINK_H
#define RF_TRANSPORT_TCP_DATALINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transport/method/method.h"

#define RF_DATALINK_CONGESTION "cubic"

/* Why a rank's port may not be reached. */
extern const char rf_datalink_ports[];

/* Purpose of a connection; both ends must have the same. */
enum rf_datalink_purpose {
    RF_DATALINK_OPS,
    RF_DATALINK_PROBE,
    RF_DATALINK_LOAD
};

/* A requested connection, as seen from either end. */
struct rf_datalink_end {
    uint32_t from, to;   /* ranks: payload goes from → to */
    const char *address; /* of `to`; used by `from`, which connects */
    uint16_t port;
    int fd; /* out: connected, proved, non-blocking; -1 until then */
};

struct rf_datalink_sockets;

struct rf_datalink_how {
    const struct rf_datalink_sockets *sockets; /* NULL: rf_datalink_tcp */
    const uint8_t *key;                        /* RF_DATA_KEY_BYTES */
    uint32_t rank;                             /* ours */
    enum rf_datalink_purpose purpose;
    int64_t deadline_ns;
    const atomic_bool *abort;
};

/* Where the ranks of a node listen. */
struct rf_datalink_place {
    const char *address;        /* a node's */
    struct sockaddr_storage to; /* without a port */
    socklen_t size;
};

/* The sockets under the handshake. On failure nothing stays open. */
struct rf_datalink_sockets {
    /* Looks an address up, within how's limits; asked once per address. */
    enum rf_status (*locate)(const struct rf_datalink_how *how,
                             const char *address, struct rf_datalink_place *out,
                             struct rf_err *err);
    /* A connecting, non-blocking socket; -1 and errno on failure. */
    int (*connect)(const struct rf_datalink_place *place, uint16_t port);
    /* A listening, non-blocking socket, and the port, not 0, that the sending
     * ranks are told. */
    enum rf_status (*listen)(const struct rf_datalink_how *how,
                             const char *address, int *fd, uint16_t *port,
                             struct rf_err *err);
    /* Sets the options of an accepted socket; the others set their own. */
    void (*tune)(int fd);
};

extern const struct rf_datalink_sockets rf_datalink_tcp;

/* The status of a connection that failed with errno `why`, 0: end of stream.
 * RF_ERR_ABORTED if the peer has closed it (and reports its own reason), else
 * RF_ERR_PEER. */
enum rf_status rf_datalink_lost_status(int why);

/* Listens on a free port of `address`; `how` limits the look-up of the
 * address. */
enum rf_status rf_datalink_listen(const struct rf_datalink_how *how,
                                  const char *address, int *fd, uint16_t *port,
                                  struct rf_err *err) RF_MUST_CHECK;

/*
 * Makes all of `ends` at once: connects those with from = our rank, accepts the
 * others on `listener` (-1 if there are none). Strangers are dropped and do no
 * harm. RF_ERR_TIMEOUT names a missing rank and the number of strangers,
 * RF_ERR_AUTH a rank without our key, RF_ERR_PEER an unreachable one,
 * RF_ERR_ABORTED one that gave up. On failure all are closed.
 */
enum rf_status rf_datalink_join(const struct rf_datalink_how *how, int listener,
                                struct rf_datalink_end *ends, uint32_t n_ends,
                                struct rf_err *err) RF_MUST_CHECK;

#endif
