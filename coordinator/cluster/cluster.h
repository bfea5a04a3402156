/*
 * The nodes of a run in the real world: launchers, the listener that agents
 * connect back to, one connection a node, leases and clocks. What the agents
 * say goes to the user of this object (run_cmd.c, check.c), which knows what it
 * means.
 *
 * All on one loop and thread. Callbacks come from the loop, never from inside a
 * call. A node that was reported lost is not heard of again.
 */
#ifndef RF_COORDINATOR_CLUSTER_CLUSTER_H
#define RF_COORDINATOR_CLUSTER_CLUSTER_H

#include <jansson.h>
#include <uv.h>

#include "coordinator/config/config.h"
#include "transport/clock_offset.h"
#include "transport/msg.h"

struct rf_cluster;

struct rf_cluster_ops {
    /* A node's HELLO, borrowed; false refuses it (an ERROR may have been sent
     * before). */
    bool (*hello)(uint32_t node, const json_t *hello, void *data);
    /* It could not be started, went away or fell silent. */
    void (*lost)(uint32_t node, const struct rf_err *why, void *data);
    void (*message)(uint32_t node, enum rf_msg_type type, const json_t *payload,
                    void *data);
    /* A line of standard error of the agent (rank RF_NONE) or of a rank,
     * already fit to be shown. */
    void (*log)(uint32_t node, uint32_t rank, const char *line, void *data);
    /* After rf_cluster_stop(): all agents' launches and connections ended. */
    void (*stopped)(void *data);
};

/* What is known about a node's clock and way. */
struct rf_cluster_clock {
    struct rf_clock_sample best; /* round_trip_ns 0: not yet */
    int64_t launch_ns;           /* from the start to HELLO */
    bool tcp; /* control over TCP, otherwise over the launcher */
};

/* Whether as many files can be open as these nodes need: to be asked before
 * anything is opened for them. */
enum rf_status rf_cluster_check_limits(const struct rf_config *config,
                                       struct rf_err *err) RF_MUST_CHECK;

/* `config` and `run_id` are borrowed. */
enum rf_status rf_cluster_create(uv_loop_t *loop,
                                 const struct rf_config *config,
                                 const char *run_id,
                                 const struct rf_cluster_ops *ops, void *data,
                                 struct rf_cluster **out,
                                 struct rf_err *err) RF_MUST_CHECK;

void rf_cluster_launch(struct rf_cluster *cluster);
/* Everybody is in: closes the listeners. */
void rf_cluster_joined(struct rf_cluster *cluster);
/* `payload` is taken. Nothing happens when the node is not there any more. */
void rf_cluster_send(struct rf_cluster *cluster, uint32_t node,
                     enum rf_msg_type type, json_t *payload);
/* Cuts a node off without another word; `lost` is not called for it. */
void rf_cluster_drop(struct rf_cluster *cluster, uint32_t node);
/* Ends everything; `stopped` follows. Again with force to hurry. */
void rf_cluster_stop(struct rf_cluster *cluster, bool force);

/* What a node that has not joined may be waiting for, to be appended to what is
 * said of it; "" when nothing is known. */
const char *rf_cluster_waits_for(const struct rf_cluster *cluster,
                                 uint32_t node);
/* The longest of the nodes' least round trips. */
int64_t rf_cluster_round_trip_ns(const struct rf_cluster *cluster);
struct rf_cluster_clock rf_cluster_clock(const struct rf_cluster *cluster,
                                         uint32_t node);

/* After `stopped`: closes what is left on the loop, which must then run until
 * it has nothing to do, and frees. NULL is fine. */
void rf_cluster_destroy(struct rf_cluster *cluster);

/* Random bytes for keys; aborts the program when the system has none. */
void rf_cluster_random(void *out, size_t size);

#endif
