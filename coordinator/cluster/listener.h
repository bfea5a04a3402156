/*
 * Who connects back: an unauthenticated peer until a TLS handshake has proved
 * the key of a node that is awaited. An identity is used once, or, where users
 * start agents by hand, lent to a connection until that has joined.
 *
 * Nodes must get in while others, even on a node's own address, open as many
 * connections as they can. So an unauthenticated peer costs little until it has
 * sent something (no TLS object, no buffer), has RF_CONN_HANDSHAKE_MS to do so
 * and as long again for its handshake, and there is room for a limited number
 * of them. Where that is used up, the one that has been there longest makes
 * room. A node's first bytes prove its key and follow at once on the connection
 * that it tries (others that it has opened meanwhile wait for that one to fail,
 * and may be sent away); a connection that has proved a key is never sent away.
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
    /* Something has closed; perhaps it was the last. */
    void (*on_close)(void *data);
};

struct rf_listener_options {
    uv_loop_t *loop;
    const struct rf_config *config; /* borrowed */
    unsigned max_unauthenticated_peers;
    bool lends;           /* identities, until their nodes have joined */
    int64_t (*now)(void); /* rf_now_ns, or a test's */
};

struct rf_listener *
rf_listener_create(const struct rf_listener_options *options,
                   const struct rf_listener_ops *ops, void *data);

/* Awaits a node, which has to prove that it has the key. */
void rf_listener_await(struct rf_listener *listener, uint32_t node,
                       const char *identity, const uint8_t psk[RF_PSK_BYTES]);
/* It has joined or is lost: forgets the key. */
void rf_listener_settle(struct rf_listener *listener, uint32_t node);

/* See rf_ports_open() and rf_ports_open_all(). */
uint32_t rf_listener_open(struct rf_listener *listener, const char *address);
char *rf_listener_open_all(struct rf_listener *listener);

/* Closes connections that have been silent for too long. Call it several times
 * a second. */
void rf_listener_tick(struct rf_listener *listener);

/* No node is awaited any more: closes the ports and sends unauthenticated peers
 * away. Connections of nodes stay. */
void rf_listener_close(struct rf_listener *listener);
/* Whether all ports and connections have closed. */
bool rf_listener_is_closed(const struct rf_listener *listener);

/* Only once all have closed; the loop must then run until it has nothing to do.
 */
void rf_listener_destroy(struct rf_listener *listener);

#endif
