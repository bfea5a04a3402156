/*
 * The input that the launcher `slurm` sends to all agents of a job step, and
 * this node's part of it (docs/PROTOCOL.md).
 */
#ifndef RF_WORKER_AGENT_STEP_INPUT_H
#define RF_WORKER_AGENT_STEP_INPUT_H

#include "common/err.h"
#include "transport/control/tls.h"

#define RF_STEP_LINE_MAX 8192

struct rf_step_input {
    char connect[RF_STEP_LINE_MAX]; /* "HOST:PORT,…" */
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES]; /* the caller wipes it */
};

/* Reads up to the line "end" and keeps the entry of `node`. NULL is an error:
 * Slurm did not start this process. Wipes other nodes' keys. Waits at most a
 * minute. */
enum rf_status rf_step_input_read(int fd, const char *node,
                                  struct rf_step_input *out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
