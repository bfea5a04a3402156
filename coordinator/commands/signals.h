/*
 * The signals that end a command: SIGINT, SIGTERM, SIGHUP. A command that they
 * end exits with 128 plus the signal's number, as in shells.
 */
#ifndef RF_COORDINATOR_COMMANDS_SIGNALS_H
#define RF_COORDINATOR_COMMANDS_SIGNALS_H

#include <stdbool.h>
#include <uv.h>

#define RF_N_SIGNALS 3

struct rf_signals {
    uv_signal_t handles[RF_N_SIGNALS];
};

/* Calls `on_signal` on `loop` for each of them that was not ignored at program
 * start; handle->data is `data`. */
void rf_signals_start(struct rf_signals *signals, uv_loop_t *loop,
                      uv_signal_cb on_signal, void *data);

/* Closes the handles; the loop must run once more. */
void rf_signals_close(struct rf_signals *signals);

#endif
