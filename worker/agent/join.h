/*
 * The agent's way to the coordinator: tries candidate addresses over TCP with
 * TLS. Lives on the agent's loop.
 */
#ifndef RF_WORKER_AGENT_JOIN_H
#define RF_WORKER_AGENT_JOIN_H

#include "transport/control/conn.h"
#include "worker/agent/boot.h"

struct rf_join;

/* Called once. With a connection: it is ready, frames and its end go to the
 * `ops` given at the start (on_ready is not called), `candidate` is where it
 * leads, `local` this side's address. Without: `why` says what each address
 * answered. Texts are valid during the call. */
typedef void (*rf_join_done_fn)(struct rf_conn *conn, const char *candidate,
                                const char *local, const char *why, void *data);

struct rf_join_how {
    const struct rf_msg_candidate *candidates;
    size_t n_candidates;
    const char *identity;
    const uint8_t *psk; /* RF_PSK_BYTES */
    uint32_t total_ms;
    bool retry; /* tries refused addresses again until the time is over */
};

/*
 * Tries the candidates, and all addresses of those that are names, for
 * `total_ms`: TCP connections are begun 250 ms apart,
 * TLS is done on one at a time, because an identity joins only once. What `how`
 * points at is copied; the key's copy is wiped at the end. The object frees
 * itself after `done`.
 */
struct rf_join *rf_join_start(uv_loop_t *loop, const struct rf_join_how *how,
                              const struct rf_conn_ops *ops,
                              rf_join_done_fn done, void *data);

/* Stops it; `done` is not called. Only before it has been. */
void rf_join_cancel(struct rf_join *join);

#endif
