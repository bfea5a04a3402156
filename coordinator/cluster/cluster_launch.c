/*
 * Starting agents: what the launcher is told, what it tells, and BOOT on the
 * stream that it brings. See cluster_internal.h.
 *
 * The launcher's last call for a node (on_fail or on_exit) destroys its launch;
 * if nobody stopped it, the node is lost then with whatever reason is known.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/cluster_internal.h"
#include "coordinator/cluster/program.h"
#include "planner/world.h"

#define NONCE_BYTES 16

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
    listener = address != NULL ? rf_cluster_listen(cluster, address) : NULL;
    if (listener != NULL) {
        json_array_append_new(list, json_pack("{s:s, s:i}", "address",
                                              listener->address, "port",
                                              (int)listener->port));
    }
    return list;
}

/* The launcher `local` starts nodes whose names may be made up. */
static const char *data_address(const struct cluster_node *node)
{
    bool local = strcmp(node->cluster->launcher->name, "local") == 0;
    return node->config->address != NULL ? node->config->address
           : local                       ? "127.0.0.1"
                                         : NULL;
}

void rf_cluster_send_boot(struct cluster_node *node, struct rf_conn *conn,
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
        data_address(node), "log_level", (int)rf_log_level(), "env",
        env != NULL ? json_deep_copy(env) : json_object());
    if (cluster->shared != NULL) {
        json_object_set_new(
            boot, "shared",
            rf_schema_encode(&rf_msg_shared_schema, cluster->shared));
    }
    rf_conn_send(conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, boot);
    node->hello_by_ns =
        rf_now_ns() +
        (cluster->config->launch.timeout_s + CLUSTER_HELLO_S) * RF_NS_PER_S;
    explicit_bzero(psk_text, sizeof(psk_text));
}

static void stdio_ready_cb(struct rf_conn *conn, void *data)
{
    struct cluster_node *node = data;
    (void)conn;
    node->answered = true; /* HELLO follows, here or over TCP */
}

static void stdio_frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                           void *data)
{
    rf_cluster_frame(data, conn, frame);
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
        rf_cluster_trouble(node, "%s", why->text);
    } else {
        rf_cluster_trouble(node, "its agent closed the stream");
    }
    if (node->ended[0] != '\0' && !node->lost && !cluster->stopping) {
        rf_cluster_judge(node); /* nothing else can follow */
    }
    rf_cluster_maybe_stopped(cluster);
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
    rf_cluster_send_boot(node, node->stdio, false);
}

static void stderr_cb(struct rf_launch *launch, const char *line, void *data)
{
    (void)launch;
    rf_cluster_log(data, RF_NONE, line, strlen(line));
}

static void note_cb(struct rf_launch *launch, const char *line, void *data)
{
    const struct cluster_node *node = data;
    (void)launch;
    rf_info("%s: %s", rf_cluster_name(node), line);
}

/* The launcher's last call for a node. Where the stream has not ended yet, what
 * it will say belongs to the cause: the verdict waits for it. */
static void launch_over(struct cluster_node *node, struct rf_launch *launch)
{
    struct rf_cluster *cluster = node->cluster;
    node->launch = NULL; /* nothing is left to stop */
    if (!node->lost && !cluster->stopping &&
        (node->joined || node->stdio == NULL || node->cause_known)) {
        rf_cluster_judge(node);
    }
    cluster->launcher->destroy(launch);
    rf_cluster_maybe_stopped(cluster);
}

static void fail_cb(struct rf_launch *launch, const struct rf_err *why,
                    void *data)
{
    struct cluster_node *node = data;
    rf_cluster_trouble(node, "%s", why->text);
    launch_over(node, launch);
}

/* What a shell says of a file that is there but that it cannot execute. */
static void not_executable(struct cluster_node *node)
{
    const struct rf_cluster *cluster = node->cluster;
    const struct rf_launch_config *how = &cluster->config->launch;
    char machine[RF_MACHINE_SIZE] = "";
    if (cluster->local_worker != NULL) {
        rf_program_machine(cluster->local_worker, machine);
    }
    if (machine[0] == '\0') {
        snprintf(machine, sizeof(machine), "an unknown one");
    }
    if (how->deploy) {
        rf_cluster_cause(
            node,
            "the worker that launch.deploy copied cannot be executed (status "
            "126): it is for %s; if the node is another machine (uname -m), "
            "build the worker there and say where it is with launch.worker",
            machine);
    } else {
        rf_cluster_cause(
            node,
            "the worker \"%s\" cannot be executed (status 126): is it built "
            "for another machine than the node (uname -m; the one beside "
            "refit-coord is for %s), or not executable (chmod +x, noexec)?",
            how->worker, machine);
    }
}

/* Whether a shell has run the worker as a script: then its messages begin with
 * the file's name and the line, "FILE: line 1: …" or "FILE: 1: …". */
static bool ran_as_script(const struct cluster_node *node)
{
    const char *worker = node->cluster->config->launch.worker;
    const size_t size = strlen(worker);
    for (unsigned i = 0; i < CLUSTER_LAST_LINES; i++) {
        const char *line = node->last[i];
        unsigned number;
        if (line != NULL && strncmp(line, worker, size) == 0 &&
            (sscanf(line + size, ": line %u:", &number) == 1 ||
             sscanf(line + size, ": %u:", &number) == 1)) {
            return true;
        }
    }
    return false;
}

static void not_found(struct cluster_node *node)
{
    const char *worker = node->cluster->config->launch.worker;
    if (ran_as_script(node)) {
        rf_cluster_cause(node,
                         "the worker \"%s\" is not a program (status 127): a "
                         "shell ran it as a script without \"#!\"; say where "
                         "it is with launch.worker, or use launch.deploy",
                         worker);
    } else {
        rf_cluster_cause(node,
                         "the worker \"%s\" was not found (status 127): say "
                         "where it is with launch.worker, or use launch.deploy",
                         worker);
    }
}

static void exit_cb(struct rf_launch *launch, int status, const char *signal,
                    void *data)
{
    struct cluster_node *node = data;
    if (signal != NULL) {
        rf_cluster_ended(node, "its agent was killed by SIG%s", signal);
    } else if (status == 127) {
        not_found(node);
    } else if (status == 126) {
        not_executable(node);
    } else if (status >= 0) {
        rf_cluster_ended(node, "its agent ended with status %d", status);
    } else {
        rf_cluster_ended(node, "the connection to it ended");
    }
    launch_over(node, launch);
}

static const struct rf_launch_ops_cb launch_callbacks = {
    stream_cb, stderr_cb, fail_cb, exit_cb, note_cb};

static void launch_node(struct cluster_node *node, const char *join_address)
{
    struct rf_cluster *cluster = node->cluster;
    char key[2 * RF_PSK_BYTES + 1];
    struct rf_launch_join join = {join_address, node->identity, key};
    struct rf_launch_order order = {.node = node->config,
                                    .settings = &cluster->config->launch,
                                    .local_worker = cluster->local_worker,
                                    .gate = cluster->gate,
                                    .join = &join};
    struct rf_err err = {0};
    rf_hex_encode(node->psk, RF_PSK_BYTES, key);
    node->launched_ns = rf_now_ns();
    if (cluster->launcher->start(cluster->loop, &order, &launch_callbacks, node,
                                 &node->launch, &err) != RF_OK) {
        node->launch = NULL;
        rf_cluster_trouble(node, "%s", err.text);
        node->verdict_ns = 0; /* told at the next tick */
    }
    explicit_bzero(key, sizeof(key));
}

void rf_cluster_launch(struct rf_cluster *cluster)
{
    char *addresses =
        rf_cluster_by_hand(cluster) ? rf_cluster_listen_all(cluster) : NULL;
    for (uint32_t i = 0; i < cluster->config->n_nodes; i++) {
        launch_node(&cluster->nodes[i], addresses);
    }
    free(addresses);
}
