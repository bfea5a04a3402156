/*
 * Joining, connections between nodes, headers and a moment for the clocks, each
 * with a time limit after which the next begins; then the agents are ended. See
 * reach_nodes.h.
 */
#include "coordinator/commands/reach_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "coordinator/commands/signals.h"
#include "coordinator/scenario/exit_code.h"
#include "transport/control/tls.h"
#include "transport/net/loop.h"

#define CLOCKS_MS 300 /* for the quick leases after joining */

struct agents {
    struct rf_reach_nodes *reach;
    uv_loop_t loop;
    uv_timer_t timer;
    struct rf_signals signals;
    struct rf_cluster *cluster;
    bool trying;     /* to reach each other */
    bool inspecting; /* headers */
    bool stopping;
};

static void stop(struct agents *agents, bool force)
{
    if (!agents->stopping || force) {
        agents->stopping = true;
        uv_timer_stop(&agents->timer);
        rf_cluster_stop(agents->cluster, force);
    }
}

static uint32_t inspect_limit_s(const struct agents *agents)
{
    return rf_config_inspect_limit_s(agents->reach->config) +
           RF_PREFLIGHT_INSPECT_SLACK_S;
}

/* Whether it has neither joined nor is lost. */
static bool is_awaited(const struct agents *agents, uint32_t node)
{
    const struct rf_preflight_join *join = agents->reach->join;
    return rf_preflight_join_hello(join, node) == NULL &&
           rf_preflight_join_lost(join, node) == NULL;
}

static void act_on_reach(struct agents *agents, bool given_up);

static void timer_cb(uv_timer_t *timer)
{
    struct agents *agents = timer->data;
    if (agents->trying) {
        act_on_reach(agents, true);
        return;
    }
    if (agents->inspecting) {
        agents->reach->headers = rf_preflight_inspect_silence(
            agents->reach->inspect, inspect_limit_s(agents));
    }
    for (uint32_t i = 0; i < agents->reach->config->n_nodes; i++) {
        if (is_awaited(agents, i)) {
            rf_findings_add(agents->reach->findings, RF_ADVICE_ERROR,
                            agents->reach->config->node_names[i],
                            "did not join within %u s%s",
                            agents->reach->limit_s,
                            rf_cluster_waits_for(agents->cluster, i));
        }
    }
    stop(agents, false);
}

static void wait_for_clocks(struct agents *agents)
{
    uv_timer_start(&agents->timer, timer_cb, CLOCKS_MS, 0);
}

static void act_on_headers(struct agents *agents, enum rf_verdict verdict)
{
    if (agents->inspecting && verdict != RF_VERDICT_GO_ON) {
        agents->reach->headers = verdict;
        agents->inspecting = false;
        wait_for_clocks(agents);
    }
}

/* Of the nodes that have joined. */
static void ask_for_headers(struct agents *agents)
{
    struct rf_msg inspect;
    agents->inspecting = true;
    uv_timer_start(&agents->timer, timer_cb,
                   (uint64_t)inspect_limit_s(agents) * 1000, 0);
    for (uint32_t i = 0; i < agents->reach->config->n_nodes; i++) {
        if (rf_preflight_join_lost(agents->reach->join, i) != NULL) {
            act_on_headers(agents,
                           rf_preflight_inspect_fail(agents->reach->inspect, i,
                                                     "is not there"));
        } else if (rf_preflight_inspect_ask(agents->reach->inspect, i,
                                            &inspect)) {
            rf_cluster_send(agents->cluster, i, &inspect);
            rf_msg_free(&inspect);
        }
    }
}

/* Goes on when no node is trying to reach others any more. */
static void act_on_reach(struct agents *agents, bool given_up)
{
    if (!agents->trying ||
        (rf_reach_pairs_is_awaited(agents->reach->pairs) && !given_up)) {
        return;
    }
    agents->trying = false;
    if (agents->reach->inspect != NULL) {
        ask_for_headers(agents);
    } else {
        wait_for_clocks(agents);
    }
}

static void ask_to_reach(struct agents *agents)
{
    struct rf_msg message;
    rf_reach_pairs_choose(agents->reach->pairs,
                          rf_preflight_join_hellos(agents->reach->join));
    for (uint32_t i = 0; i < agents->reach->config->n_nodes; i++) {
        if (rf_reach_pairs_ask(agents->reach->pairs, i, &message)) {
            rf_cluster_send(agents->cluster, i, &message);
            rf_msg_free(&message);
        }
    }
    agents->trying = true; /* all that are awaited are known */
    uv_timer_start(&agents->timer, timer_cb, (uint64_t)RF_REACH_S * 1000, 0);
    act_on_reach(agents, false);
}

/* Nodes that have joined are asked even if others are lost. */
static void act_on_join(struct agents *agents, enum rf_verdict verdict)
{
    if (verdict != RF_VERDICT_GO_ON) {
        rf_cluster_joined(agents->cluster);
        ask_to_reach(agents);
    }
}

static bool hello_cb(uint32_t node, struct rf_msg_hello *hello, void *data)
{
    struct agents *agents = data;
    struct rf_msg welcome;
    enum rf_verdict verdict;
    if (!is_awaited(agents, node)) {
        return false;
    }
    verdict = rf_preflight_join_add(agents->reach->join, node, hello);
    rf_msg_init(&welcome, RF_MSG_WELCOME);
    welcome.welcome.protocol = RF_PROTOCOL_MAX;
    rf_cluster_send(agents->cluster, node, &welcome);
    act_on_join(agents, verdict);
    return true;
}

static void lost_cb(uint32_t node, const struct rf_err *why, void *data)
{
    struct agents *agents = data;
    const bool awaited = is_awaited(agents, node);
    enum rf_verdict verdict =
        rf_preflight_join_lose(agents->reach->join, node, why->text);
    rf_findings_add(agents->reach->findings, RF_ADVICE_ERROR,
                    agents->reach->config->node_names[node], "%s", why->text);
    rf_reach_pairs_lose(agents->reach->pairs, node);
    if (awaited) {
        act_on_join(agents, verdict);
    } else if (agents->trying) {
        act_on_reach(agents, false);
    } else if (agents->inspecting) {
        act_on_headers(agents, rf_preflight_inspect_fail(agents->reach->inspect,
                                                         node, why->text));
    }
}

static void message_cb(uint32_t node, const struct rf_msg *message, void *data)
{
    struct agents *agents = data;
    rf_debug("%s: %s", agents->reach->config->node_names[node],
             rf_msg_name((uint8_t)message->type));
    if (agents->trying && message->type == RF_MSG_REACHED) {
        rf_reach_pairs_take(agents->reach->pairs, node, &message->reached);
        act_on_reach(agents, false);
    } else if (agents->inspecting && message->type == RF_MSG_HEADERS) {
        act_on_headers(agents,
                       rf_preflight_inspect_take(agents->reach->inspect, node,
                                                 &message->headers));
    }
}

static void reading_cb(uint32_t node, const struct rf_msg_lease *lease,
                       void *data)
{
    (void)node;
    (void)lease;
    (void)data;
}

static void bad_message_cb(uint32_t node, const struct rf_msg_bad *bad,
                           void *data)
{
    struct agents *agents = data;
    rf_debug("%s: %s", agents->reach->config->node_names[node], bad->why->text);
    if (agents->inspecting && bad->type == RF_MSG_HEADERS) {
        act_on_headers(agents, rf_preflight_inspect_fail(agents->reach->inspect,
                                                         node, bad->why->text));
    }
}

static void log_cb(uint32_t node, uint32_t rank, const char *line, void *data)
{
    const struct agents *agents = data;
    (void)rank;
    rf_debug("%s: %s", agents->reach->config->node_names[node], line);
}

static void stopped_cb(void *data)
{
    struct agents *agents = data;
    uv_stop(&agents->loop);
}

static const struct rf_cluster_ops cluster_ops = {
    {hello_cb, lost_cb, message_cb, reading_cb, bad_message_cb, log_cb},
    stopped_cb};

static void signal_cb(uv_signal_t *handle, int number)
{
    struct agents *agents = handle->data;
    if (agents->reach->signal != 0) {
        _exit(RF_EXIT_SIGNAL + number);
    }
    agents->reach->signal = number;
    stop(agents, true);
}

static void run(struct agents *agents)
{
    struct rf_reach_nodes *reach = agents->reach;
    uv_timer_init(&agents->loop, &agents->timer);
    agents->timer.data = agents;
    rf_signals_start(&agents->signals, &agents->loop, signal_cb, agents);
    uv_timer_start(&agents->timer, timer_cb, (uint64_t)reach->limit_s * 1000,
                   0);
    rf_cluster_launch(agents->cluster);
    uv_run(&agents->loop, UV_RUN_DEFAULT);
    for (uint32_t i = 0; i < reach->config->n_nodes; i++) {
        reach->clocks[i] = rf_cluster_clock(agents->cluster, i);
    }
    rf_cluster_destroy(agents->cluster);
    uv_close((uv_handle_t *)&agents->timer, NULL);
    rf_signals_close(&agents->signals);
    uv_run(&agents->loop, UV_RUN_DEFAULT);
}

enum rf_status rf_reach_nodes(struct rf_reach_nodes *reach, struct rf_err *err)
{
    const struct rf_config *config = reach->config;
    char run_id[17], reach_key[2 * RF_PSK_BYTES + 1];
    struct agents agents = {.reach = reach};
    struct rf_cluster_options options = {.loop = &agents.loop,
                                         .config = config,
                                         .run_id = run_id,
                                         .reach_key = reach_key};
    enum rf_status status;
    RF_TRY(rf_cluster_check_limits(config, err));
    RF_TRY(rf_loop_init(&agents.loop, err));
    rf_random_hex(run_id, 8);
    rf_random_hex(reach_key, RF_PSK_BYTES);
    status = rf_cluster_create(&options, &cluster_ops, &agents, &agents.cluster,
                               err);
    if (status == RF_OK) {
        reach->limit_s = reach->limit_s > 0 ? reach->limit_s
                                            : rf_config_join_limit_s(config);
        reach->join = rf_preflight_join_create(config);
        reach->clocks = rf_xcalloc(config->n_nodes, sizeof(*reach->clocks));
        run(&agents);
    }
    uv_loop_close(&agents.loop);
    explicit_bzero(reach_key, sizeof(reach_key));
    return status;
}

void rf_reach_nodes_free(struct rf_reach_nodes *reach)
{
    rf_preflight_join_destroy(reach->join);
    free(reach->clocks);
}
