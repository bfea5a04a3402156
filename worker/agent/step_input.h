/*
 * What the launcher `slurm` writes to the standard input of all agents of a job
 * step, and what of it is this node's (docs/PROTOCOL.md).
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

/* Reads up to the line "end" and keeps what is said of `node` (NULL is an
 * error: this is no task of Slurm). Other nodes' keys are wiped. Waits a minute
 * at most. */
enum rf_status rf_step_input_read(int fd, const char *node,
                                  struct rf_step_input *out,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
