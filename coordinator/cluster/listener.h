/*
 * Connections from agents: unauthenticated peers until a TLS handshake proves
 * the key of an awaited node. An identity is used once or, where users start
 * agents by hand, lent to a connection until it has joined.
 *
 * Nodes must get in while others, even on a node's own address, open as many
 * connections as they can. So an unauthenticated peer costs little until it
 * sends something (no TLS object, no buffer); it has RF_CONN_HANDSHAKE_MS for
 * that and as long again for its handshake; and their number is limited. At the
 * limit, the oldest is closed to make room. A node sends the bytes that prove
 * its key at once on the connection that it tries (its other open connections
 * wait for that one to fail, and may be closed). A connection that has proved a
 * key is never closed for room.
 *
 * Callbacks come from the loop, never from inside a call.
 */
#ifndef RF_COORDINATOR_CLUSTER_LISTENER_H
#define RF_COORDINATOR_CLUSTER_LISTENER_H

#include "coordinator/config/config.h"
#include "transport/control/conn.h"

struct rf_listener;

struct rf_listener_ops {
    /* A connection has proved the key of `node` and now belongs to it. Its
     * frames follow, then its end. */
    void (*on_proof)(uint32_t node, struct rf_conn *conn, void *data);
    void (*on_frame)(uint32_t node, struct rf_conn *conn,
                     const struct rf_frame *frame, void *data);
    void (*on_end)(uint32_t node, struct rf_conn *conn,
                   const struct rf_err *why, void *data);
    /* A port or connection has closed; perhaps the last. */
    void (*on_close)(void *data);
};

struct rf_listener_options {
    uv_loop_t *loop;
    const struct rf_config *config; /* borrowed */
    unsigned max_unauthenticated_peers;
    bool lends;           /* lends identities until nodes have joined */
    int64_t (*now)(void); /* rf_now_ns, or a test's */
};

struct rf_listener *
rf_listener_create(const struct rf_listener_options *options,
                   const struct rf_listener_ops *ops, void *data);

/* Awaits a node, which must prove that it has the key. */
void rf_listener_await(struct rf_listener *listener, uint32_t node,
                       const char *identity, const uint8_t psk[RF_PSK_BYTES]);
/* The node has joined or is lost: forgets its key. */
void rf_listener_settle(struct rf_listener *listener, uint32_t node);

/* See rf_ports_open() and rf_ports_open_all(). */
uint32_t rf_listener_open(struct rf_listener *listener, const char *address);
char *rf_listener_open_all(struct rf_listener *listener);

/* Closes connections that have been silent too long. Call several times a
 * second. */
void rf_listener_tick(struct rf_listener *listener);

/* No more nodes are awaited: closes the ports and all unauthenticated peers.
 * Connections of nodes stay. */
void rf_listener_close(struct rf_listener *listener);
/* Whether all ports and connections have closed. */
bool rf_listener_is_closed(const struct rf_listener *listener);

/* Call only once all have closed; the loop must then run until idle. */
void rf_listener_destroy(struct rf_listener *listener);

#endif
