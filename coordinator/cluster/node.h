/*
 * One node: its agent is started, says HELLO, is kept alive by leases, and is
 * reported lost once, with the best reason there is.
 *
 * Happy path: launcher start → on_stream → BOOT on it, banner awaited → HELLO
 * on that stream or on a connection that has proved the node's key → the
 * events' user accepts it → leases, messages → stop: connections closed, the
 * agent ends, on_exit.
 *
 * When a stream or process ends by itself the node is in trouble: for a moment
 * more is collected (exit status, last lines of standard error), then it is
 * lost.
 *
 * Callbacks come from the loop or from rf_node_tick(), never from inside
 * another call. Once a node has been reported lost, nothing more comes from it.
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

/* What a node needs from its owner. */
struct rf_node_ops {
    /* The port at which its agent can connect back to `address`; 0: none. */
    uint32_t (*open_port)(const char *address, void *data);
    /* It has joined or is lost: nobody else may have its identity. Also comes
     * from inside rf_node_drop(). */
    void (*on_settled)(uint32_t node, void *data);
    /* Its launch or its stream is over; perhaps the last of the two. */
    void (*on_close)(void *data);
};

/* Identity and key are copied, everything else is borrowed for the node's life.
 */
struct rf_node_options {
    uv_loop_t *loop;
    const struct rf_config *config;
    uint32_t index; /* among its nodes */
    const char *run_id, *identity;
    const uint8_t *psk;
    const struct rf_launcher_ops *launcher;
    struct rf_launch_gate *gate;  /* or NULL */
    struct rf_launch_step *step;  /* or NULL */
    const char *local_worker;     /* or NULL */
    struct rf_msg_shared *shared; /* BOOT's, or NULL */
    const char *reach_key;        /* likewise */
    int64_t (*now)(void);         /* rf_now_ns, or a test's */
    const struct rf_node_events *events;
    void *events_data;
};

struct rf_node *rf_node_create(const struct rf_node_options *options,
                               const struct rf_node_ops *ops, void *data);

/* `join` ("HOST:PORT,…") is where an agent that gets no BOOT on a stream is
 * told to connect; NULL: nowhere. */
void rf_node_launch(struct rf_node *node, const char *join);

/* A connection that has proved the node's key, its frames, and its end. */
void rf_node_take_conn(struct rf_node *node, struct rf_conn *conn);
void rf_node_take_frame(struct rf_node *node, struct rf_conn *conn,
                        const struct rf_frame *frame);
void rf_node_end_conn(struct rf_node *node, const struct rf_conn *conn,
                      const struct rf_err *why);

/* Borrowed. Nothing happens when the node is not there any more. */
void rf_node_send(struct rf_node *node, const struct rf_msg *message);
/* The same for a message that other nodes get, too. */
void rf_node_send_payload(struct rf_node *node,
                          struct rf_shared_payload *payload);
/* Cuts it off silently: it is not reported lost. */
void rf_node_drop(struct rf_node *node);
/* Ends it in order; again with force to hurry. */
void rf_node_stop(struct rf_node *node, bool force);
/* Leases and deadlines. Call it several times a second. */
void rf_node_tick(struct rf_node *node, const struct rf_pauses *pauses);

/* Whether its launch and its stream are over. A connection that it took does
 * not count: its owner closes it. */
bool rf_node_is_closed(const struct rf_node *node);
/* See rf_cluster_waits_for(). */
const char *rf_node_waits_for(const struct rf_node *node);
/* round_trip_ns 0: not known yet. */
struct rf_clock_sample rf_node_clock(const struct rf_node *node);
int64_t rf_node_launch_ns(const struct rf_node *node); /* start to HELLO */
/* Whether it is controlled over TCP and not over the launcher's stream. */
bool rf_node_over_tcp(const struct rf_node *node);

/* Only once all is closed. */
void rf_node_destroy(struct rf_node *node);

#endif
