/*
 * One node: its agent is started, says HELLO, is kept alive by leases, and is
 * reported lost once, with the best known reason.
 *
 * Happy path: launcher start → on_stream → BOOT on it, banner awaited → HELLO
 * on that stream or on a connection that has proved the node's key → accepted
 * by the user of the events → leases, messages → stop: connections closed, the
 * agent ends, on_exit.
 *
 * When a stream or process ends unasked, the node collects causes for a moment
 * (exit status, last lines of standard error), then it is lost.
 *
 * Callbacks come from the loop or from rf_node_tick(), never from inside
 * another call. After a node is reported lost, nothing more comes from it.
 */
#ifndef RF_COORDINATOR_CLUSTER_NODE_H
#define RF_COORDINATOR_CLUSTER_NODE_H

#include "coordinator/cluster/events.h"
#include "coordinator/cluster/lease.h"
#include "coordinator/config/config.h"
#include "coordinator/launch/launch.h"
#include "transport/control/conn.h"
#include "transport/control/shared_payload.h"

struct rf_node;

/* Services that a node needs from its owner. */
struct rf_node_ops {
    /* The port for its agent to connect back to `address`; 0: none. */
    uint32_t (*open_port)(const char *address, void *data);
    /* The node has joined or is lost: no one else may have its identity. Also
     * called inside rf_node_drop(). */
    void (*on_settled)(uint32_t node, void *data);
    /* Its launch or its stream has ended; perhaps both. */
    void (*on_close)(void *data);
};

/* Identity and key are copied; everything else is borrowed for the node's
 * life. */
struct rf_node_options {
    uv_loop_t *loop;
    const struct rf_config *config;
    uint32_t index; /* in config's nodes */
    const char *run_id, *identity;
    const uint8_t *psk;
    const struct rf_launcher_ops *launcher;
    struct rf_launch_gate *gate;  /* or NULL */
    struct rf_launch_step *step;  /* or NULL */
    const char *local_worker;     /* or NULL */
    struct rf_msg_shared *shared; /* for BOOT, or NULL */
    const char *reach_key;        /* for BOOT, or NULL */
    int64_t (*now)(void);         /* rf_now_ns, or a test's */
    const struct rf_node_events *events;
    void *events_data;
};

struct rf_node *rf_node_create(const struct rf_node_options *options,
                               const struct rf_node_ops *ops, void *data);

/* `join` ("HOST:PORT,…") is where an agent that gets no BOOT on a stream must
 * connect; NULL: nowhere. */
void rf_node_launch(struct rf_node *node, const char *join);

/* A connection that has proved the node's key; its frames; its end. */
void rf_node_take_conn(struct rf_node *node, struct rf_conn *conn);
void rf_node_take_frame(struct rf_node *node, struct rf_conn *conn,
                        const struct rf_frame *frame);
void rf_node_end_conn(struct rf_node *node, const struct rf_conn *conn,
                      const struct rf_err *why);

/* `message` is borrowed. No effect if the node is gone. */
void rf_node_send(struct rf_node *node, const struct rf_msg *message);
/* The same for a message that also goes to other nodes. */
void rf_node_send_payload(struct rf_node *node,
                          struct rf_shared_payload *payload);
/* Cuts the node off silently: it is not reported lost. */
void rf_node_drop(struct rf_node *node);
/* Stops the node in order; call again with force to hurry. */
void rf_node_stop(struct rf_node *node, bool force);
/* Leases and deadlines. Call several times a second. */
void rf_node_tick(struct rf_node *node, const struct rf_pauses *pauses);

/* Whether its launch and its stream have ended. A connection that it took does
 * not count: the connection's owner closes it. */
bool rf_node_is_closed(const struct rf_node *node);
/* See rf_cluster_waits_for(). */
const char *rf_node_waits_for(const struct rf_node *node);
/* round_trip_ns 0: not yet known. */
struct rf_clock_sample rf_node_clock(const struct rf_node *node);
struct rf_node_start rf_node_start(const struct rf_node *node);
/* Whether control runs over TCP, not over the launcher's stream. */
bool rf_node_over_tcp(const struct rf_node *node);

/* Call only once all is closed. */
void rf_node_destroy(struct rf_node *node);

#endif
