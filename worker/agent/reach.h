/*
 * Whether nodes reach each other for data: `check` has each connect to others,
 * as its ranks would, and send there and back what fills packets.
 * TLS with one key for all nodes keeps strangers out and shows who answers.
 * Lives on the agent's loop.
 */
#ifndef RF_WORKER_AGENT_REACH_H
#define RF_WORKER_AGENT_REACH_H

#include <uv.h>

#include "transport/control/message_fields.h"
#include "transport/control/tls.h"

struct rf_reach;

/* Milliseconds: for a connection, and for what goes over it. */
struct rf_reach_limits {
    uint32_t connect_ms, answer_ms;
};

/* Listens at a free port of the node's numeric address. NULL: that cannot be,
 * for instance because the node does not have the address. */
struct rf_reach *rf_reach_listen(uv_loop_t *loop, const char *address,
                                 uint32_t node, const uint8_t key[RF_PSK_BYTES],
                                 struct rf_reach_limits limits,
                                 uint32_t *port_out);

/* With the answer, a REACHED, which is freed after the call. */
typedef void (*rf_reach_done_fn)(const struct rf_msg *reached, void *data);

/* Tries all peers at once; false: it has been asked before. */
bool rf_reach_try(struct rf_reach *reach, const struct rf_msg_reach *asked,
                  rf_reach_done_fn done, void *data);

/* Ends everything; `done` is not called any more. Frees itself when its handles
 * are closed. NULL is fine. */
void rf_reach_end(struct rf_reach *reach);

#endif
