/*
 * Nodes: starting, losing and stopping them. See cluster.h.
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
#include "coordinator/cluster.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster_internal.h"
#include "coordinator/redact.h"
#include "planner/world.h"

#define VERDICT_NS (2 * RF_NS_PER_S)
#define NONCE_BYTES 16

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

const char *cluster_name(const struct cluster_node *node)
{
    return node->config.name;
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

/* Reports a node lost, once, and cuts its connections. */
void cluster_lost(struct cluster_node *node, const char *text)
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

/* Notes why a node seems to be gone and reports it a little later; the first
 * note stays, an exit status is added to it. */
void cluster_trouble(struct cluster_node *node, const char *fmt, ...)
{
    size_t used = strlen(node->trouble);
    va_list args;
    if (node->lost || node->cluster->stopping) {
        return;
    }
    if (used > 0 && used + 3 < sizeof(node->trouble)) {
        used += (size_t)snprintf(node->trouble + used,
                                 sizeof(node->trouble) - used, "; ");
    }
    va_start(args, fmt);
    vsnprintf(node->trouble + used, sizeof(node->trouble) - used, fmt, args);
    va_end(args);
    if (node->verdict_ns == INT64_MAX) {
        node->verdict_ns = rf_now_ns() + VERDICT_NS;
    }
}

void cluster_log(struct cluster_node *node, uint32_t rank, const char *text,
                 size_t size)
{
    struct rf_cluster *cluster = node->cluster;
    char line[1024];
    rf_redact_line(text, size, line, sizeof(line));
    if (rank == RF_NONE) {
        free(node->last[node->last_at]);
        node->last[node->last_at] = rf_xstrdup(line);
        node->last_at = (node->last_at + 1) % CLUSTER_LAST_LINES;
    }
    if (!node->lost) {
        cluster->ops.log(node->index, rank, line, cluster->data);
    }
}

static json_t *candidates_of(struct cluster_node *node)
{
    struct rf_cluster *cluster = node->cluster;
    const char *address = cluster->config->control.address;
    struct cluster_listener *listener;
    json_t *list = json_array();
    if (strcmp(address, "stdio") == 0) {
        return list;
    }
    if (strcmp(address, "auto") == 0) {
        address = cluster->launcher->head_address(node->launch);
    }
    listener = address != NULL ? cluster_listen(cluster, address) : NULL;
    if (listener != NULL) {
        json_array_append_new(list, json_pack("{s:s, s:i}", "address",
                                              listener->address, "port",
                                              (int)listener->port));
    }
    return list;
}

void cluster_send_boot(struct cluster_node *node, struct rf_conn *conn,
                       bool manual)
{
    struct rf_cluster *cluster = node->cluster;
    uint8_t nonce[NONCE_BYTES];
    char nonce_text[2 * NONCE_BYTES + 1], psk_text[2 * RF_PSK_BYTES + 1];
    const json_t *env = cluster->config->env;
    json_t *boot;
    rf_cluster_random(nonce, sizeof(nonce));
    rf_hex_encode(nonce, sizeof(nonce), nonce_text);
    rf_hex_encode(node->psk, sizeof(node->psk), psk_text);
    if (!manual) {
        char banner[sizeof(RF_BANNER) + 2 * sizeof(nonce) + 1];
        snprintf(banner, sizeof(banner), "%s %s", RF_BANNER, nonce_text);
        rf_conn_expect_banner(conn, banner);
    }
    boot = json_pack(
        "{s:[ii], s:s, s:i, s:s, s:s?, s:s, s:o, s:s?, s:i, s:o}", "protocol",
        RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, "run_id", cluster->run_id, "node",
        (int)node->index, "nonce", nonce_text, "psk", manual ? NULL : psk_text,
        "identity", node->identity, "candidates",
        manual ? json_array() : candidates_of(node), "data_address",
        node->config.address, "log_level", (int)rf_log_level(), "env",
        env != NULL ? json_deep_copy(env) : json_object());
    rf_conn_send(conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, boot);
    explicit_bzero(psk_text, sizeof(psk_text));
}

/* --- The launcher's stream ------------------------------------------------ */

static void stdio_ready_cb(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data; /* the banner has come; HELLO follows, here or over TCP */
}

static void stdio_frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                           void *data)
{
    cluster_frame(data, conn, frame);
}

static void stdio_close_cb(struct rf_conn *conn, const struct rf_err *why,
                           void *data)
{
    struct cluster_node *node = data;
    struct rf_cluster *cluster = node->cluster;
    (void)conn;
    node->stdio = NULL;
    if (node->control == conn) {
        node->control = NULL;
    }
    cluster->open_handles--;
    if (why->status != RF_OK) {
        cluster_trouble(node, "%s", why->text);
    } else {
        cluster_trouble(node, "its agent closed the stream");
    }
    cluster_maybe_stopped(cluster);
}

static const struct rf_conn_ops stdio_ops = {stdio_ready_cb, stdio_frame_cb,
                                             stdio_close_cb};

static void stream_cb(struct rf_launch *launch, uv_pipe_t *pipe, void *data)
{
    struct cluster_node *node = data;
    struct rf_cluster *cluster = node->cluster;
    (void)launch;
    cluster->open_handles++;
    node->stdio = rf_conn_open((uv_stream_t *)pipe, NULL, &stdio_ops, node);
    if (cluster->stopping || node->lost) {
        rf_conn_close(node->stdio);
        return;
    }
    node->hello_by_ns =
        rf_now_ns() + (cluster->how.timeout_s + 10) * RF_NS_PER_S;
    cluster_send_boot(node, node->stdio, false);
}

static void stderr_cb(struct rf_launch *launch, const char *line, void *data)
{
    (void)launch;
    cluster_log(data, RF_NONE, line, strlen(line));
}

static void note_cb(struct rf_launch *launch, const char *line, void *data)
{
    const struct cluster_node *node = data;
    (void)launch;
    rf_info("%s: %s", cluster_name(node), line);
}

/* The launcher's last call for a node. */
static void launch_over(struct cluster_node *node, struct rf_launch *launch)
{
    struct rf_cluster *cluster = node->cluster;
    node->launch = NULL; /* nothing is left to stop */
    if (!node->lost && !cluster->stopping) {
        cluster_lost(node, node->trouble);
    }
    cluster->launcher->destroy(launch);
    cluster_maybe_stopped(cluster);
}

static void fail_cb(struct rf_launch *launch, const struct rf_err *why,
                    void *data)
{
    struct cluster_node *node = data;
    cluster_trouble(node, "%s", why->text);
    launch_over(node, launch);
}

static void exit_cb(struct rf_launch *launch, int status, const char *signal,
                    void *data)
{
    struct cluster_node *node = data;
    if (signal != NULL) {
        cluster_trouble(node, "its agent was killed by SIG%s", signal);
    } else if (status >= 0) {
        cluster_trouble(node, "its agent ended with status %d%s", status,
                        status == 127
                            ? " (the worker was not found: say where it is "
                              "with launch.worker, or use "
                              "launch.deploy)"
                        : status == 126 ? " (the worker cannot be executed)"
                                        : "");
    } else {
        cluster_trouble(node, "the connection to it ended");
    }
    launch_over(node, launch);
}

static const struct rf_launch_ops_cb launch_callbacks = {
    stream_cb, stderr_cb, fail_cb, exit_cb, note_cb};

/* --- Everything ------------------------------------------------------------
 */

void cluster_maybe_stopped(struct rf_cluster *cluster)
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

static void check_node(struct cluster_node *node, int64_t now)
{
    if (node->lost) {
        return;
    }
    if (now >= node->verdict_ns) {
        cluster_lost(node, node->trouble);
    } else if (now >= node->hello_by_ns) {
        cluster_lost(node, "its agent was started but did not answer in time");
    } else {
        cluster_lease_tick(node, now);
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
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        check_node(&cluster->nodes[i], now);
    }
    cluster_maybe_stopped(cluster);
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
    cluster->how = config->launch;
    cluster->local_worker = beside_us();
    cluster->how.local_worker = cluster->local_worker;
    cluster->how.gate = rf_launch_gate_create(config->launch.parallel);
    cluster->nodes = rf_xcalloc(config->n_nodes, sizeof(*cluster->nodes));
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        node->cluster = cluster;
        node->index = i;
        node->config = config->nodes[i];
        node->hello_by_ns = node->verdict_ns = INT64_MAX;
        rf_cluster_random(node->psk, sizeof(node->psk));
        snprintf(node->identity, sizeof(node->identity), "%s/%u", run_id, i);
    }
    cluster->last_tick_ns = rf_now_ns();
    uv_timer_init(loop, &cluster->tick);
    cluster->tick.data = cluster;
    uv_timer_start(&cluster->tick, tick_cb, CLUSTER_TICK_MS, CLUSTER_TICK_MS);
    *out = cluster;
    return RF_OK;
}

/* What the launcher `manual` tells the user to give to the worker. */
static void prepare_manual(struct rf_cluster *cluster)
{
    char *addresses;
    if (strcmp(cluster->launcher->name, "manual") != 0) {
        return;
    }
    addresses = cluster_listen_all(cluster);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        node->join_key = rf_xcalloc(1, 2 * RF_PSK_BYTES + 1);
        rf_hex_encode(node->psk, RF_PSK_BYTES, node->join_key);
        node->join_address = addresses != NULL ? rf_xstrdup(addresses) : NULL;
        node->config.join_address = node->join_address;
        node->config.join_identity = node->identity;
        node->config.join_key = node->join_key;
    }
    free(addresses);
}

void rf_cluster_launch(struct rf_cluster *cluster)
{
    prepare_manual(cluster);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        struct rf_err err = {0};
        node->launched_ns = rf_now_ns();
        if (cluster->launcher->start(cluster->loop, &cluster->how,
                                     &node->config, &launch_callbacks, node,
                                     &node->launch, &err) != RF_OK) {
            node->launch = NULL;
            cluster_trouble(node, "%s", err.text);
            node->verdict_ns = 0; /* told at the next tick */
        }
    }
}

void rf_cluster_joined(struct rf_cluster *cluster)
{
    cluster_stop_listening(cluster);
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
    cluster_lost(node, "");
    cluster->stopping = stopping;
    if (node->launch != NULL) {
        cluster->launcher->stop(node->launch, true);
    }
}

void rf_cluster_stop(struct rf_cluster *cluster, bool force)
{
    cluster->stopping = true;
    cluster_stop_listening(cluster);
    for (struct cluster_peer *peer = cluster->peers; peer != NULL;
         peer = peer->next) {
        rf_conn_close(peer->conn);
    }
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
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
        longest = RF_MAX(longest, cluster->nodes[i].clock.round_trip_ns);
    }
    return longest;
}

struct rf_cluster_clock rf_cluster_clock(const struct rf_cluster *cluster,
                                         uint32_t node)
{
    return cluster->nodes[node].clock;
}

static void tick_closed_cb(uv_handle_t *handle)
{
    struct rf_cluster *cluster = handle->data;
    rf_launch_gate_destroy(cluster->how.gate);
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        explicit_bzero(node->psk, sizeof(node->psk));
        if (node->join_key != NULL) {
            explicit_bzero(node->join_key, strlen(node->join_key));
        }
        free(node->join_key);
        free(node->join_address);
        for (unsigned l = 0; l < CLUSTER_LAST_LINES; l++) {
            free(node->last[l]);
        }
    }
    free(cluster->local_worker);
    free(cluster->nodes);
    free(cluster);
}

void rf_cluster_destroy(struct rf_cluster *cluster)
{
    if (cluster != NULL) {
        uv_close((uv_handle_t *)&cluster->tick, tick_closed_cb);
    }
}
