/*
 * The nodes of a run in the real world: launchers, the listener that agents
 * connect back to, one connection per node, leases and clocks. Whatever the
 * agents say goes to this object's user (run_cmd.c, check_cmd.c), which knows
 * what it means.
 *
 * All on one loop and thread. Callbacks come from the loop, never from inside a
 * call. Once a node has been reported lost, nothing more comes from it.
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
    /* After rf_cluster_stop(): all agents' launches and connections ended. */
    void (*stopped)(void *data);
};

/* All borrowed. */
struct rf_cluster_options {
    uv_loop_t *loop;
    const struct rf_config *config;
    const char *run_id;
    const char *reach_key; /* of BOOT, in hexadecimal; NULL: nodes need not try
                              to reach each other */
};

/* A node's clock and how it is reached. */
struct rf_cluster_clock {
    struct rf_clock_sample best; /* round_trip_ns 0: not yet */
    int64_t launch_ns;           /* from the start to HELLO */
    bool tcp; /* control over TCP, otherwise over the launcher */
};

/* Whether as many files can be open as these nodes need. Call it before opening
 * anything for them. */
enum rf_status rf_cluster_check_limits(const struct rf_config *config,
                                       struct rf_err *err) RF_MUST_CHECK;

enum rf_status rf_cluster_create(const struct rf_cluster_options *options,
                                 const struct rf_cluster_ops *ops, void *data,
                                 struct rf_cluster **out,
                                 struct rf_err *err) RF_MUST_CHECK;

void rf_cluster_launch(struct rf_cluster *cluster);
/* All nodes have joined: stops listening. */
void rf_cluster_joined(struct rf_cluster *cluster);
/* Borrowed. Nothing happens when the node is not there any more. */
void rf_cluster_send(struct rf_cluster *cluster, uint32_t node,
                     const struct rf_msg *message);
/* The same to each node that `to` says, encoded once for all of them. */
void rf_cluster_send_all(struct rf_cluster *cluster, const bool *to,
                         const struct rf_msg *message);
/* Cuts a node off silently: `lost` is not called for it. */
void rf_cluster_drop(struct rf_cluster *cluster, uint32_t node);
/* Ends everything; `stopped` follows. Again with force to hurry. */
void rf_cluster_stop(struct rf_cluster *cluster, bool force);

/* What a node that has not joined may be waiting for, as the end of a sentence
 * about it; "" when nothing is known. */
const char *rf_cluster_waits_for(const struct rf_cluster *cluster,
                                 uint32_t node);
/* The longest of the nodes' least round trips. */
int64_t rf_cluster_round_trip_ns(const struct rf_cluster *cluster);
struct rf_cluster_clock rf_cluster_clock(const struct rf_cluster *cluster,
                                         uint32_t node);

/* After `stopped`: closes what is left on the loop, which must then run until
 * it has nothing to do, and frees. NULL is fine. */
void rf_cluster_destroy(struct rf_cluster *cluster);

#endif
