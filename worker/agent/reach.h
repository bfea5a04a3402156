/*
 * Tests whether nodes reach each other for data. `check` has each node connect
 * to others, as its ranks would, and send enough to fill packets there and
 * back. TLS with one key for all nodes keeps strangers out and identifies the
 * peer. Runs on the agent's loop.
 */
#ifndef RF_WORKER_AGENT_REACH_H
#define RF_WORKER_AGENT_REACH_H

#include <uv.h>

#include "transport/control/message_fields.h"
#include "transport/control/tls.h"

struct rf_reach;

/* Time limits to connect, and for the data's round trip. */
struct rf_reach_limits {
    uint32_t connect_ms, answer_ms;
};

/* Listens on a free port of the node's numeric address. NULL if that fails,
 * e.g. because the node does not have the address. */
struct rf_reach *rf_reach_listen(uv_loop_t *loop, const char *address,
                                 uint32_t node, const uint8_t key[RF_PSK_BYTES],
                                 struct rf_reach_limits limits,
                                 uint32_t *port_out);

/* Gets the answer, a REACHED, which is freed after the call. */
typedef void (*rf_reach_done_fn)(const struct rf_msg *reached, void *data);

/* Tries all peers at once. False if called before. */
bool rf_reach_try(struct rf_reach *reach, const struct rf_msg_reach *asked,
                  rf_reach_done_fn done, void *data);

/* Stops; `done` is not called any more. The object frees itself once its
 * handles are closed. NULL is fine. */
void rf_reach_end(struct rf_reach *reach);

#endif
