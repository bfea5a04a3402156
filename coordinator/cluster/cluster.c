/* Connects nodes and listener: the listener hands connections to nodes; nodes
 * make it open ports and settle identities. See cluster.h. */
#include "coordinator/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/fd_limit.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "coordinator/cluster/launchers.h"
#include "coordinator/cluster/listener.h"
#include "coordinator/cluster/node.h"
#include "coordinator/config/shared_folders.h"
#include "coordinator/launch/program.h"
#include "transport/net/loop.h"

#define TICK_MS 100
#define TOKEN_BYTES 8

/* Descriptors besides those of nodes: results, ports, starting a process. */
#define OWN_DESCRIPTORS (RF_LOOP_DESCRIPTORS + 10)

/* Connections that have not proved a key; see listener.h. */
#define UNAUTHENTICATED_PEERS 128

/* Descriptors that a rank of method host needs, for itself and for each rank of
 * its node: streams, arenas, the probes' shared memory and, for the refit and
 * for its yardstick, a loop and the others' arenas. */
#define RANK_DESCRIPTORS 20
#define RANK_DESCRIPTORS_EACH 4

/* Descriptors of the whole run in this process. */
static uint32_t descriptors_of(const struct rf_config *config)
{
    const struct rf_launcher_ops *launcher =
        rf_launcher_find(config->launch.method);
    uint32_t each = launcher != NULL ? launcher->descriptors : 0;
    each += strcmp(config->control.address, "stdio") != 0;
    return OWN_DESCRIPTORS + config->n_nodes * each;
}

/* Smallest sufficient limit for the processes that inherit it from this one. */
static uint32_t least_limit(const struct rf_config *config)
{
    const struct rf_launcher_ops *launcher =
        rf_launcher_find(config->launch.method);
    uint32_t slots = 0;
    if (launcher == NULL || !launcher->here) {
        return 0;
    }
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        slots = RF_MAX(slots, config->nodes[i].slots);
    }
    return RANK_DESCRIPTORS + RANK_DESCRIPTORS_EACH * slots;
}

enum rf_status rf_cluster_check_limits(const struct rf_config *config,
                                       struct rf_err *err)
{
    return rf_fd_limit_need(descriptors_of(config), least_limit(config), err);
}

/* As many as the limit leaves beside the run's own; every node starts as
 * one. */
static uint32_t max_unauthenticated_peers(const struct rf_config *config)
{
    uint32_t most = RF_MAX(UNAUTHENTICATED_PEERS, 2 * config->n_nodes);
    uint32_t own = descriptors_of(config);
    uint32_t left = rf_fd_limit_free(own + most);
    left = RF_MAX(left, own) - own;
    return RF_MIN(most, config->n_nodes + left);
}

struct rf_cluster {
    const struct rf_config *config;
    const struct rf_launcher_ops *launcher;
    struct rf_cluster_ops ops;
    void *data;
    struct rf_launch_gate *gate;
    struct rf_launch_step *step;
    char *local_worker;
    struct rf_msg_shared *shared; /* BOOT's, or NULL */
    struct rf_listener *listener;
    struct rf_node **nodes;
    uv_timer_t tick;
    struct rf_pauses pauses;
    bool stopping, told_stopped;
};

/* --- The end -------------------------------------------------------------- */

static bool is_closed(const struct rf_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        if (!rf_node_is_closed(cluster->nodes[i])) {
            return false;
        }
    }
    return rf_listener_is_closed(cluster->listener);
}

static void maybe_stopped(struct rf_cluster *cluster)
{
    if (cluster->stopping && !cluster->told_stopped && is_closed(cluster)) {
        cluster->told_stopped = true;
        cluster->ops.stopped(cluster->data);
    }
}

static void close_cb(void *data)
{
    maybe_stopped(data);
}

/* --- From the listener to the nodes --------------------------------------- */

static void proof_cb(uint32_t node, struct rf_conn *conn, void *data)
{
    const struct rf_cluster *cluster = data;
    rf_node_take_conn(cluster->nodes[node], conn);
}

static void frame_cb(uint32_t node, struct rf_conn *conn,
                     const struct rf_frame *frame, void *data)
{
    const struct rf_cluster *cluster = data;
    rf_node_take_frame(cluster->nodes[node], conn, frame);
}

static void end_cb(uint32_t node, struct rf_conn *conn,
                   const struct rf_err *why, void *data)
{
    const struct rf_cluster *cluster = data;
    rf_node_end_conn(cluster->nodes[node], conn, why);
}

static const struct rf_listener_ops listener_ops = {proof_cb, frame_cb, end_cb,
                                                    close_cb};

/* --- From the nodes to the listener --------------------------------------- */

static uint32_t open_port_cb(const char *address, void *data)
{
    const struct rf_cluster *cluster = data;
    return rf_listener_open(cluster->listener, address);
}

static void settled_cb(uint32_t node, void *data)
{
    const struct rf_cluster *cluster = data;
    rf_listener_settle(cluster->listener, node);
}

static const struct rf_node_ops node_ops = {open_port_cb, settled_cb, close_cb};

static void tick_cb(uv_timer_t *timer)
{
    struct rf_cluster *cluster = timer->data;
    int64_t pause = rf_pauses_note(&cluster->pauses, rf_now_ns());
    if (pause > 0) {
        rf_warn("was not running for %.1f s", (double)pause / 1e9);
    }
    rf_listener_tick(cluster->listener);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        rf_node_tick(cluster->nodes[i], &cluster->pauses);
    }
    maybe_stopped(cluster);
}

/* --- The object ----------------------------------------------------------- */

/* The path of refit-worker beside this program. */
static char *beside_us(void)
{
    char *self = rf_program_self(), *path = NULL;
    if (self != NULL) {
        path = rf_xasprintf("%.*s/refit-worker",
                            (int)(strrchr(self, '/') - self), self);
    }
    free(self);
    return path;
}

static void add_node(struct rf_cluster *cluster, uint32_t index,
                     const struct rf_cluster_options *options)
{
    uint8_t psk[RF_PSK_BYTES];
    char *identity = rf_xasprintf("%s/%u", options->run_id, index);
    struct rf_node_options with = {.loop = options->loop,
                                   .config = options->config,
                                   .index = index,
                                   .run_id = options->run_id,
                                   .identity = identity,
                                   .psk = psk,
                                   .launcher = cluster->launcher,
                                   .gate = cluster->gate,
                                   .step = cluster->step,
                                   .local_worker = cluster->local_worker,
                                   .shared = cluster->shared,
                                   .reach_key = options->reach_key,
                                   .now = rf_now_ns,
                                   .events = &cluster->ops.node,
                                   .events_data = cluster->data};
    rf_random_fill(psk, sizeof(psk));
    rf_listener_await(cluster->listener, index, identity, psk);
    cluster->nodes[index] = rf_node_create(&with, &node_ops, cluster);
    explicit_bzero(psk, sizeof(psk));
    free(identity);
}

enum rf_status rf_cluster_create(const struct rf_cluster_options *options,
                                 const struct rf_cluster_ops *ops, void *data,
                                 struct rf_cluster **out, struct rf_err *err)
{
    const struct rf_config *config = options->config;
    const struct rf_launcher_ops *launcher =
        rf_launcher_find(config->launch.method);
    struct rf_cluster *cluster;
    char token[2 * TOKEN_BYTES + 1];
    if (launcher == NULL) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "this build has no launcher \"%s\"",
                          config->launch.method);
    }
    cluster = rf_xcalloc(1, sizeof(*cluster));
    cluster->config = config;
    cluster->launcher = launcher;
    cluster->ops = *ops;
    cluster->data = data;
    cluster->gate = rf_launch_gate_create(config->launch.parallel);
    cluster->step = rf_launch_step_create();
    cluster->local_worker = beside_us();
    rf_random_hex(token, TOKEN_BYTES);
    cluster->shared = rf_shared_folders(config, token);
    cluster->listener = rf_listener_create(
        &(struct rf_listener_options){.loop = options->loop,
                                      .config = config,
                                      .max_unauthenticated_peers =
                                          max_unauthenticated_peers(config),
                                      .lends = launcher->by_hand,
                                      .now = rf_now_ns},
        &listener_ops, cluster);
    cluster->nodes = rf_xcalloc(config->n_nodes, sizeof(*cluster->nodes));
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        add_node(cluster, i, options);
    }
    rf_pauses_begin(&cluster->pauses, rf_now_ns());
    uv_timer_init(options->loop, &cluster->tick);
    cluster->tick.data = cluster;
    uv_timer_start(&cluster->tick, tick_cb, TICK_MS, TICK_MS);
    *out = cluster;
    return RF_OK;
}

void rf_cluster_launch(struct rf_cluster *cluster)
{
    char *join = cluster->launcher->connects
                     ? rf_listener_open_all(cluster->listener)
                     : NULL;
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        rf_node_launch(cluster->nodes[i], join);
    }
    free(join);
}

void rf_cluster_joined(struct rf_cluster *cluster)
{
    rf_listener_close(cluster->listener);
}

void rf_cluster_send(struct rf_cluster *cluster, uint32_t node,
                     const struct rf_msg *message)
{
    rf_node_send(cluster->nodes[node], message);
}

void rf_cluster_send_all(struct rf_cluster *cluster, const bool *to,
                         const struct rf_msg *message)
{
    struct rf_shared_payload *payload = rf_shared_payload_of(message);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        if (to[i]) {
            rf_node_send_payload(cluster->nodes[i], payload);
        }
    }
    rf_shared_payload_drop(payload);
}

void rf_cluster_drop(struct rf_cluster *cluster, uint32_t node)
{
    rf_node_drop(cluster->nodes[node]);
}

void rf_cluster_stop(struct rf_cluster *cluster, bool force)
{
    cluster->stopping = true;
    rf_listener_close(cluster->listener);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        rf_node_stop(cluster->nodes[i], force);
    }
}

const char *rf_cluster_waits_for(const struct rf_cluster *cluster,
                                 uint32_t node)
{
    return rf_node_waits_for(cluster->nodes[node]);
}

int64_t rf_cluster_round_trip_ns(const struct rf_cluster *cluster)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        longest =
            RF_MAX(longest, rf_node_clock(cluster->nodes[i]).round_trip_ns);
    }
    return longest;
}

struct rf_cluster_clock rf_cluster_clock(const struct rf_cluster *cluster,
                                         uint32_t index)
{
    const struct rf_node *node = cluster->nodes[index];
    return (struct rf_cluster_clock){.best = rf_node_clock(node),
                                     .start = rf_node_start(node),
                                     .tcp = rf_node_over_tcp(node)};
}

static void closed_cb(uv_handle_t *handle)
{
    free(handle->data);
}

void rf_cluster_destroy(struct rf_cluster *cluster)
{
    if (cluster == NULL) {
        return;
    }
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        rf_node_destroy(cluster->nodes[i]);
    }
    rf_listener_destroy(cluster->listener);
    rf_launch_gate_destroy(cluster->gate);
    rf_launch_step_destroy(cluster->step);
    rf_shared_folders_free(cluster->shared);
    free(cluster->local_worker);
    free(cluster->nodes);
    uv_close((uv_handle_t *)&cluster->tick, closed_cb);
}
