/*
 * Nodes: losing and stopping them; cluster_launch.c starts them. See cluster.h.
 *
 * Happy path of a node: launcher start → on_stream → BOOT on it, banner awaited
 * → HELLO on that stream or on a TCP connection → the user of the object
 * accepts it → leases, messages → stop: connections closed, the agent ends,
 * on_exit.
 *
 * When a stream or process ends by itself the node is in trouble: for a moment
 * more is collected (exit status, last lines of standard error), then it is
 * reported lost once, with the best reason there is.
 */
#include "coordinator/cluster/cluster.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/cluster/cluster_internal.h"
#include "coordinator/config/shared_folders.h"
#include "planner/world.h"
#include "transport/loop.h"

/* How long a better reason is waited for. Of a node that has joined, less than
 * the run settles for (run.c): its end must be known before the run decides
 * whether a rank that lost its peer is the cause or was the first to notice. */
#define VERDICT_NS (2 * RF_NS_PER_S)
#define JOINED_VERDICT_NS (RF_NS_PER_S / 4)

/* Beside those of nodes: results, listeners, what starts a process. */
#define OWN_DESCRIPTORS (RF_LOOP_DESCRIPTORS + 10)

/* Connections that have not proved a key; see cluster_accept.c. */
#define STRANGERS 128

/* The limit that a rank of method host needs for itself and, twice, for each
 * rank of its node: streams, loop, arenas, and the probes' shared memory. */
#define RANK_DESCRIPTORS 17
#define RANK_DESCRIPTORS_EACH 2

/* Of the whole run, in this process. */
static uint32_t descriptors_of(const struct rf_config *config)
{
    const struct rf_launcher_ops *launcher =
        rf_launcher_find(config->launch.method);
    uint32_t each = launcher != NULL ? launcher->descriptors : 0;
    each += strcmp(config->control.address, "stdio") != 0;
    return OWN_DESCRIPTORS + config->n_nodes * each;
}

/* Of the processes that inherit this one's limit. */
static uint32_t least_limit(const struct rf_config *config)
{
    uint32_t slots = 0;
    if (strcmp(config->launch.method, "local") != 0) {
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
    return rf_descriptors_need(descriptors_of(config), least_limit(config),
                               err);
}

/* Those that the limit leaves beside the run's own; a node is one at first. */
static uint32_t max_strangers(const struct rf_config *config)
{
    uint32_t most = RF_MAX(STRANGERS, 2 * config->n_nodes);
    uint32_t own = descriptors_of(config);
    uint32_t left = rf_descriptors_free(own + most);
    left = RF_MAX(left, own) - own;
    return RF_MIN(most, config->n_nodes + left);
}

void rf_cluster_random(void *out, size_t size)
{
    uint8_t *at = out;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got <= 0) {
            fputs("no random numbers from the system\n", stderr);
            abort();
        }
        at += got;
        size -= (size_t)got;
    }
}

const char *rf_cluster_name(const struct cluster_node *node)
{
    return node->config->name;
}

bool rf_cluster_by_hand(const struct rf_cluster *cluster)
{
    return strcmp(cluster->launcher->name, "manual") == 0;
}

/* Appends the last lines of standard error to `text`. */
static void add_last_lines(const struct cluster_node *node, char *text,
                           size_t size)
{
    size_t used = strlen(text);
    bool first = true;
    for (unsigned i = 0; i < CLUSTER_LAST_LINES && used + 1 < size; i++) {
        const char *line = node->last[(node->last_at + i) % CLUSTER_LAST_LINES];
        if (line == NULL) {
            continue;
        }
        snprintf(text + used, size - used, "%s%.160s",
                 first ? "; it said: " : " | ", line);
        used = strlen(text);
        first = false;
    }
}

void rf_cluster_lost(struct cluster_node *node, const char *text)
{
    struct rf_cluster *cluster = node->cluster;
    struct rf_err why = {.status = RF_ERR_LAUNCH};
    bool tell = !node->lost && !cluster->stopping;
    if (node->lost) {
        return;
    }
    node->lost = true;
    node->verdict_ns = INT64_MAX;
    node->hello_by_ns = INT64_MAX;
    if (node->joined) {
        why.status = RF_ERR_PEER;
    }
    snprintf(why.text, sizeof(why.text), "%s", text);
    if (!node->joined) {
        add_last_lines(node, why.text, sizeof(why.text));
    }
    if (node->tcp != NULL) {
        rf_conn_close(node->tcp);
    }
    if (node->stdio != NULL) {
        rf_conn_close(node->stdio);
    }
    if (node->launch != NULL) {
        cluster->launcher->stop(node->launch, false);
    }
    node->control = NULL;
    if (tell) {
        cluster->ops.lost(node->index, &why, cluster->data);
    }
}

static void await_verdict(struct cluster_node *node)
{
    if (node->verdict_ns == INT64_MAX) {
        node->verdict_ns =
            rf_now_ns() + (node->joined ? JOINED_VERDICT_NS : VERDICT_NS);
    }
}

void rf_cluster_trouble(struct cluster_node *node, const char *fmt, ...)
{
    size_t used = strlen(node->trouble);
    va_list args;
    if (node->lost || node->cluster->stopping || node->cause_known) {
        return;
    }
    if (used > 0 && used + 3 < sizeof(node->trouble)) {
        used += (size_t)snprintf(node->trouble + used,
                                 sizeof(node->trouble) - used, "; ");
    }
    va_start(args, fmt);
    vsnprintf(node->trouble + used, sizeof(node->trouble) - used, fmt, args);
    va_end(args);
    await_verdict(node);
}

void rf_cluster_ended(struct cluster_node *node, const char *fmt, ...)
{
    va_list args;
    if (node->lost || node->cluster->stopping) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(node->ended, sizeof(node->ended), fmt, args);
    va_end(args);
    await_verdict(node);
}

void rf_cluster_judge(struct cluster_node *node)
{
    if (node->ended[0] != '\0') {
        rf_cluster_trouble(node, "%s", node->ended);
    }
    rf_cluster_lost(node, node->trouble);
}

void rf_cluster_cause(struct cluster_node *node, const char *fmt, ...)
{
    va_list args;
    if (node->lost || node->cluster->stopping) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(node->trouble, sizeof(node->trouble), fmt, args);
    va_end(args);
    node->cause_known = true;
    await_verdict(node);
}

void rf_cluster_log(struct cluster_node *node, uint32_t rank, const char *text,
                    size_t size)
{
    struct rf_cluster *cluster = node->cluster;
    char line[1024];
    size = RF_MIN(size, sizeof(line) - 1);
    memcpy(line, text, size);
    line[size] = '\0';
    rf_text_redact(line, size);
    rf_text_clean(line, size);
    if (rank == RF_NONE) {
        free(node->last[node->last_at]);
        node->last[node->last_at] = rf_xstrdup(line);
        node->last_at = (node->last_at + 1) % CLUSTER_LAST_LINES;
    }
    if (!node->lost) {
        cluster->ops.log(node->index, rank, line, cluster->data);
    }
}

void rf_cluster_maybe_stopped(struct rf_cluster *cluster)
{
    if (!cluster->stopping || cluster->told_stopped ||
        cluster->open_handles > 0) {
        return;
    }
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        if (cluster->nodes[i].launch != NULL) {
            return;
        }
    }
    cluster->told_stopped = true;
    cluster->ops.stopped(cluster->data);
}

const char *rf_cluster_waits_for(const struct rf_cluster *cluster,
                                 uint32_t index)
{
    const struct cluster_node *node = &cluster->nodes[index];
    return strcmp(cluster->launcher->name, "ssh") == 0 && node->stdio != NULL &&
                   !node->answered
               ? ": SSH let us in but no word of the worker has come; has its "
                 "login shell slow start-up files (~/.bashrc, ~/.cshrc)? A "
                 "larger launch.timeout_s waits longer"
               : "";
}

static void hello_overdue(struct cluster_node *node)
{
    struct rf_err why = {.status = RF_ERR_TIMEOUT};
    rf_err_set(&why, RF_ERR_TIMEOUT,
               "its agent was started but did not answer within %u s "
               "(launch.timeout_s and %d)%s",
               node->cluster->config->launch.timeout_s + CLUSTER_HELLO_S,
               CLUSTER_HELLO_S,
               rf_cluster_waits_for(node->cluster, node->index));
    node->hello_by_ns = INT64_MAX;
    if (node->tcp != NULL && rf_cluster_by_hand(node->cluster)) {
        rf_conn_fail(node->tcp, &why);
    } else {
        rf_cluster_lost(node, why.text);
    }
}

static void check_node(struct cluster_node *node, int64_t now)
{
    if (node->lost) {
        return;
    }
    if (now >= node->verdict_ns) {
        rf_cluster_judge(node);
    } else if (now >= node->hello_by_ns) {
        hello_overdue(node);
    } else {
        rf_cluster_lease_tick(node, now);
    }
}

static void tick_cb(uv_timer_t *timer)
{
    struct rf_cluster *cluster = timer->data;
    int64_t now = rf_now_ns();
    if (now - cluster->last_tick_ns > 5 * RF_NS_PER_S) {
        /* This process was stopped, or the machine slept: what the nodes sent
         * meanwhile has not been read yet. */
        cluster->grace_until_ns =
            now + INT64_C(2) * RF_LEASE_PERIOD_MS * RF_NS_PER_MS;
        rf_warn("was not running for %.1f s",
                (double)(now - cluster->last_tick_ns) / 1e9);
    }
    cluster->last_tick_ns = now;
    rf_cluster_strangers_tick(cluster, now);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        check_node(&cluster->nodes[i], now);
    }
    rf_cluster_maybe_stopped(cluster);
}

static void turn_cb(uv_prepare_t *turn)
{
    rf_cluster_listen_turn(turn->data);
}

/* refit-worker beside this program. */
static char *beside_us(void)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;
    if (size <= 0) {
        return NULL;
    }
    path[size] = '\0';
    slash = strrchr(path, '/');
    return rf_xasprintf("%.*s/refit-worker", (int)(slash - path), path);
}

enum rf_status rf_cluster_create(uv_loop_t *loop,
                                 const struct rf_config *config,
                                 const char *run_id,
                                 const struct rf_cluster_ops *ops, void *data,
                                 struct rf_cluster **out, struct rf_err *err)
{
    const struct rf_launcher_ops *launcher =
        rf_launcher_find(config->launch.method);
    struct rf_cluster *cluster;
    uint8_t token[8];
    char token_text[2 * sizeof(token) + 1];
    if (launcher == NULL) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "this build has no launcher \"%s\"",
                          config->launch.method);
    }
    cluster = rf_xcalloc(1, sizeof(*cluster));
    cluster->loop = loop;
    cluster->config = config;
    cluster->run_id = run_id;
    cluster->ops = *ops;
    cluster->data = data;
    cluster->launcher = launcher;
    cluster->strangers_end = &cluster->strangers;
    cluster->waiting_end = &cluster->waiting;
    cluster->max_strangers = max_strangers(config);
    rf_cluster_random(token, sizeof(token));
    rf_hex_encode(token, sizeof(token), token_text);
    cluster->shared = rf_shared_folders(config, token_text);
    cluster->local_worker = beside_us();
    cluster->gate = rf_launch_gate_create(config->launch.parallel);
    cluster->nodes = rf_xcalloc(config->n_nodes, sizeof(*cluster->nodes));
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        node->cluster = cluster;
        node->index = i;
        node->config = &config->nodes[i];
        node->hello_by_ns = node->verdict_ns = INT64_MAX;
        rf_cluster_random(node->psk, sizeof(node->psk));
        snprintf(node->identity, sizeof(node->identity), "%s/%u", run_id, i);
    }
    cluster->last_tick_ns = rf_now_ns();
    uv_timer_init(loop, &cluster->tick);
    cluster->tick.data = cluster;
    uv_timer_start(&cluster->tick, tick_cb, CLUSTER_TICK_MS, CLUSTER_TICK_MS);
    uv_prepare_init(loop, &cluster->turn);
    cluster->turn.data = cluster;
    uv_prepare_start(&cluster->turn, turn_cb);
    cluster->own_handles = 2;
    *out = cluster;
    return RF_OK;
}

void rf_cluster_joined(struct rf_cluster *cluster)
{
    rf_cluster_stop_listening(cluster);
}

void rf_cluster_send(struct rf_cluster *cluster, uint32_t node,
                     enum rf_msg_type type, json_t *payload)
{
    struct rf_conn *conn = cluster->nodes[node].control;
    if (conn == NULL) {
        json_decref(payload);
        return;
    }
    rf_conn_send(conn, type, RF_FRAME_NO_RANK, payload);
}

void rf_cluster_drop(struct rf_cluster *cluster, uint32_t index)
{
    struct cluster_node *node = &cluster->nodes[index];
    bool stopping = cluster->stopping;
    cluster->stopping = true; /* nobody is told */
    rf_cluster_lost(node, "");
    cluster->stopping = stopping;
    if (node->launch != NULL) {
        cluster->launcher->stop(node->launch, true);
    }
}

void rf_cluster_stop(struct rf_cluster *cluster, bool force)
{
    cluster->stopping = true;
    rf_cluster_stop_listening(cluster);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        if (node->tcp != NULL) {
            rf_conn_close(node->tcp);
        }
        if (node->stdio != NULL) {
            rf_conn_close(node->stdio);
        }
        if (node->launch != NULL) {
            cluster->launcher->stop(node->launch, force);
        }
    }
}

int64_t rf_cluster_round_trip_ns(const struct rf_cluster *cluster)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        longest = RF_MAX(longest, cluster->nodes[i].clock.best.round_trip_ns);
    }
    return longest;
}

struct rf_cluster_clock rf_cluster_clock(const struct rf_cluster *cluster,
                                         uint32_t node)
{
    return cluster->nodes[node].clock;
}

static void closed_cb(uv_handle_t *handle)
{
    struct rf_cluster *cluster = handle->data;
    if (--cluster->own_handles > 0) {
        return;
    }
    rf_launch_gate_destroy(cluster->gate);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        explicit_bzero(node->psk, sizeof(node->psk));
        for (unsigned l = 0; l < CLUSTER_LAST_LINES; l++) {
            free(node->last[l]);
        }
    }
    free(cluster->local_worker);
    rf_shared_folders_free(cluster->shared);
    free(cluster->nodes);
    free(cluster);
}

void rf_cluster_destroy(struct rf_cluster *cluster)
{
    if (cluster != NULL) {
        uv_close((uv_handle_t *)&cluster->tick, closed_cb);
        uv_close((uv_handle_t *)&cluster->turn, closed_cb);
    }
}
