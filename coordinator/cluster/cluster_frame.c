/*
 * What agents say once they are connected: HELLO joins, LOG is shown, LEASE
 * keeps alive and compares clocks, the rest goes to the run.
 */
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/cluster_internal.h"
#include "planner/world.h"

#define QUICK_NS (20 * RF_NS_PER_MS)

/* What came on `conn` makes no sense. Before HELLO that ends a connection over
 * TCP, and its end decides about the node. */
static void reject(struct cluster_node *node, struct rf_conn *conn,
                   const char *text)
{
    struct rf_err why = {.status = RF_ERR_PROTOCOL};
    if (conn != node->tcp || node->control != NULL) {
        rf_cluster_lost(node, text);
        return;
    }
    snprintf(why.text, sizeof(why.text), "%s", text);
    rf_conn_fail(conn, &why);
}

/* So that the launcher can end it, whatever state it is in then. */
static void identify_agent(const struct cluster_node *node, const json_t *hello)
{
    json_int_t pid = json_integer_value(json_object_get(hello, "pid"));
    const json_t *ticks = json_object_get(hello, "start_ticks");
    if (node->launch != NULL && pid > 1 && pid <= INT32_MAX &&
        json_is_integer(ticks) && json_integer_value(ticks) >= 0) {
        node->cluster->launcher->identify(node->launch, (uint32_t)pid,
                                          (uint64_t)json_integer_value(ticks));
    }
}

static void take_hello(struct cluster_node *node, struct rf_conn *conn,
                       const json_t *hello)
{
    struct rf_cluster *cluster = node->cluster;
    const json_t *index = json_object_get(hello, "node");
    if (node->control != NULL || !json_is_integer(index) ||
        json_integer_value(index) != (json_int_t)node->index) {
        reject(node, conn, "a second HELLO, or one of another node");
        return;
    }
    node->control = conn;
    node->used = true;
    explicit_bzero(node->psk, sizeof(node->psk));
    node->hello_by_ns = INT64_MAX;
    node->clock.tcp = conn == node->tcp;
    node->clock.launch_ns = rf_now_ns() - node->launched_ns;
    identify_agent(node, hello);
    if (!cluster->ops.hello(node->index, hello, cluster->data)) {
        return;
    }
    node->joined = true;
    node->quick = RF_LEASE_BURST;
    node->next_lease_ns = rf_now_ns();
    rf_debug("%s joined over %s in %.0f ms", rf_cluster_name(node),
             node->clock.tcp ? "TCP" : "the launcher's stream",
             (double)node->clock.launch_ns / 1e6);
    if (!node->clock.tcp && node->launch != NULL &&
        strcmp(cluster->config->control.address, "stdio") != 0) {
        rf_debug("%s: it could not connect back; control stays on the "
                 "launcher's stream",
                 rf_cluster_name(node));
    }
}

static void take_lease(struct cluster_node *node, const json_t *lease)
{
    const json_t *t = json_object_get(lease, "t");
    const json_t *echo = json_object_get(lease, "echo");
    const json_t *echo_at = json_object_get(lease, "echo_at");
    int64_t now = rf_now_ns();
    if (!json_is_integer(t)) {
        return;
    }
    node->heard_t = json_integer_value(t);
    node->heard_at = now;
    if (json_is_integer(echo) && json_is_integer(echo_at) &&
        json_integer_value(echo) > 0) {
        rf_clock_add(&node->exchanges, json_integer_value(echo),
                     json_integer_value(echo_at), node->heard_t, now);
        node->clock.best = rf_clock_best(&node->exchanges);
    }
}

static void take_log(struct cluster_node *node, const struct rf_frame *frame)
{
    uint32_t rank = frame->rank == RF_FRAME_NO_RANK ? RF_NONE : frame->rank;
    const char *at = (const char *)frame->payload;
    size_t left = frame->length;
    while (left > 0) {
        const char *end = memchr(at, '\n', left);
        size_t size = end != NULL ? (size_t)(end - at) : left;
        if (size > 0) {
            rf_cluster_log(node, rank, at, size);
        }
        at += size + (end != NULL);
        left -= size + (end != NULL);
    }
}

void rf_cluster_frame(struct cluster_node *node, struct rf_conn *conn,
                      const struct rf_frame *frame)
{
    struct rf_cluster *cluster = node->cluster;
    struct rf_err err = {0};
    json_t *payload = NULL;
    if (node->lost || cluster->stopping) {
        return;
    }
    if (frame->type == RF_MSG_LOG) {
        take_log(node, frame);
        return;
    }
    if (rf_msg_parse(frame, &payload, &err) != RF_OK) {
        reject(node, conn, err.text);
        return;
    }
    rf_trace("%s: %s", rf_cluster_name(node), rf_msg_name(frame->type));
    if (frame->type == RF_MSG_HELLO) {
        take_hello(node, conn, payload);
    } else if (frame->type == RF_MSG_ERROR && !node->joined) {
        const char *text = json_string_value(json_object_get(payload, "text"));
        reject(node, conn, text != NULL ? text : "its agent gave up");
    } else if (conn != node->control) {
        reject(node, conn, "it speaks before it has joined");
    } else if (frame->type == RF_MSG_LEASE) {
        take_lease(node, payload);
    } else {
        cluster->ops.message(node->index, (enum rf_msg_type)frame->type,
                             payload, cluster->data);
    }
    json_decref(payload);
}

/* Sends leases and checks that the node's have come. */
void rf_cluster_lease_tick(struct cluster_node *node, int64_t now)
{
    struct rf_cluster *cluster = node->cluster;
    int64_t silent;
    if (!node->joined || node->control == NULL) {
        return;
    }
    if (now >= node->next_lease_ns) {
        rf_conn_send(node->control, RF_MSG_LEASE, RF_FRAME_NO_RANK,
                     json_pack("{s:I, s:I, s:I}", "t", (json_int_t)now, "echo",
                               (json_int_t)node->heard_t, "echo_at",
                               (json_int_t)node->heard_at));
        node->next_lease_ns =
            now +
            (node->quick > 0 ? QUICK_NS : RF_LEASE_PERIOD_MS * RF_NS_PER_MS);
        node->quick -= node->quick > 0;
    }
    silent = now - rf_conn_last_heard_ns(node->control);
    if (silent > RF_LEASE_DEAD_MS * RF_NS_PER_MS &&
        now >= cluster->grace_until_ns) {
        char text[96];
        snprintf(text, sizeof(text), "silent for %.1f s", (double)silent / 1e9);
        rf_cluster_lost(node, text);
    }
}
