/*
 * Connects the agent to the coordinator: tries candidate addresses over TCP
 * with TLS. Runs on the agent's loop.
 */
#ifndef RF_WORKER_AGENT_JOIN_H
#define RF_WORKER_AGENT_JOIN_H

#include "transport/control/conn.h"
#include "worker/agent/boot.h"

struct rf_join;

/* Called once. On success `conn` is ready; its frames and close go to the `ops`
 * given at the start (on_ready is not called); `candidate` is the remote end's
 * "ADDRESS:PORT", `local` this side's address. On failure `conn` is NULL and
 * `why` gives the error of each address. Texts are valid during the call. */
typedef void (*rf_join_done_fn)(struct rf_conn *conn, const char *candidate,
                                const char *local, const char *why, void *data);

struct rf_join_how {
    const struct rf_msg_candidate *candidates;
    size_t n_candidates;
    const char *identity;
    const uint8_t *psk; /* RF_PSK_BYTES */
    uint32_t total_ms;
    bool retry; /* retry refused addresses until the time is up */
};

/*
 * Tries all candidates, and all addresses of names, for `total_ms`. TCP
 * connections start 250 ms apart; TLS handshakes run one at a time, because an
 * identity can join only once. A handshake that the other end cuts is tried
 * again, twice. Copies what `how` points at; wipes the copy of
 * the key at the end. The object frees itself after `done`.
 */
struct rf_join *rf_join_start(uv_loop_t *loop, const struct rf_join_how *how,
                              const struct rf_conn_ops *ops,
                              rf_join_done_fn done, void *data);

/* Cancels; `done` is not called. Only valid before `done`. */
void rf_join_cancel(struct rf_join *join);

#endif
