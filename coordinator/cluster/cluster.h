/*
 * The nodes of a run in the real world: launchers, the listener that agents
 * connect back to, one connection per node, leases and clocks. Agents' messages
 * go to this object's user (run_cmd.c, check_cmd.c), which interprets them.
 *
 * All on one loop and thread. Callbacks come from the loop, never from inside a
 * call. After a node is reported lost, nothing more comes from it.
 */
#ifndef RF_COORDINATOR_CLUSTER_CLUSTER_H
#define RF_COORDINATOR_CLUSTER_CLUSTER_H

#include <uv.h>

#include "coordinator/cluster/events.h"
#include "coordinator/config/config.h"
#include "transport/control/clock_offset.h"

struct rf_cluster;

struct rf_cluster_ops {
    struct rf_node_events node;
    /* After rf_cluster_stop(): all launches and connections have ended. */
    void (*stopped)(void *data);
};

/* All borrowed. */
struct rf_cluster_options {
    uv_loop_t *loop;
    const struct rf_config *config;
    const char *run_id;
    const char *reach_key; /* of BOOT, in hexadecimal; NULL: nodes do not
                              test whether they reach each other */
};

/* A node's clock and how it is reached. */
struct rf_cluster_clock {
    struct rf_clock_sample best; /* round_trip_ns 0: not yet known */
    struct rf_node_start start;
    bool tcp; /* control over TCP; false: over the launcher's stream */
};

/* Checks that the limit on open files suffices for these nodes. Call before
 * opening anything for them. */
enum rf_status rf_cluster_check_limits(const struct rf_config *config,
                                       struct rf_err *err) RF_MUST_CHECK;

enum rf_status rf_cluster_create(const struct rf_cluster_options *options,
                                 const struct rf_cluster_ops *ops, void *data,
                                 struct rf_cluster **out,
                                 struct rf_err *err) RF_MUST_CHECK;

void rf_cluster_launch(struct rf_cluster *cluster);
/* All nodes have joined: stops listening. */
void rf_cluster_joined(struct rf_cluster *cluster);
/* `message` is borrowed. No effect if the node is gone. */
void rf_cluster_send(struct rf_cluster *cluster, uint32_t node,
                     const struct rf_msg *message);
/* Sends to each node with `to` set; encodes the message only once. */
void rf_cluster_send_all(struct rf_cluster *cluster, const bool *to,
                         const struct rf_msg *message);
/* Cuts a node off silently: `lost` is not called. */
void rf_cluster_drop(struct rf_cluster *cluster, uint32_t node);
/* Ends everything; `stopped` follows. Call again with force to hurry. */
void rf_cluster_stop(struct rf_cluster *cluster, bool force);

/* What a node that has not joined may be waiting for, as the end of a sentence
 * about it; "": not known. */
const char *rf_cluster_waits_for(const struct rf_cluster *cluster,
                                 uint32_t node);
/* The longest of the nodes' minimum round trips. */
int64_t rf_cluster_round_trip_ns(const struct rf_cluster *cluster);
struct rf_cluster_clock rf_cluster_clock(const struct rf_cluster *cluster,
                                         uint32_t node);

/* After `stopped`: closes the rest on the loop, which must then run until idle,
 * and frees. NULL is fine. */
void rf_cluster_destroy(struct rf_cluster *cluster);

#endif
