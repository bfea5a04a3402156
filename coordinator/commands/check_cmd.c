/*
 * `refit-coord check`: everything that can be known before a run. Plans all
 * scenarios, starts the agents, collects their reports about the nodes, has
 * nodes try to reach each other, compares clocks briefly, and stops the agents.
 * Asks nodes for the headers of checkpoints that only they have; if the model's
 * is one of them, plans the scenarios after that. Measures and stores nothing.
 *
 *     JOINING → REACHING → (INSPECTING →) CLOCKS → STOPPING
 *
 * Each state has a time limit, after which the next begins. A node that is
 * lost, or has not joined in time, is a finding; the others are still asked.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "coordinator/advice/advice.h"
#include "coordinator/advice/reach_pairs.h"
#include "coordinator/cluster/cluster.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/signals.h"
#include "coordinator/preflight/inspect.h"
#include "coordinator/preflight/join.h"
#include "coordinator/scenario/scenario_set.h"
#include "transport/control/tls.h"
#include "transport/net/loop.h"

#define SLOW_START_MS 1500
#define REACH_S 15    /* for nodes to reach each other; more than they need */
#define CLOCKS_MS 300 /* for the quick leases after joining */

enum check_state {
    CHECK_JOINING,
    CHECK_REACHING,
    CHECK_INSPECTING, /* headers */
    CHECK_CLOCKS,
    CHECK_STOPPING,
};

struct check_app {
    const struct rf_cli *cli;
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario_set *scenarios;    /* NULL: planning failed */
    struct rf_preflight_inspect *inspect; /* NULL: checkpoints are here */
    struct rf_reach_pairs *pairs;
    struct rf_findings findings;
    enum check_state state;
    uint32_t limit_s; /* for joining */
    uv_loop_t loop;
    uv_timer_t timer;
    struct rf_signals signals;
    struct rf_cluster *cluster;
    struct rf_preflight_join *join;
    struct rf_cluster_clock *clocks; /* by node */
    enum rf_verdict headers;         /* of `inspect`; NEXT: all answered */
    int signal;                      /* the signal that ended it; 0: none */
};

static void stop(struct check_app *check, bool force)
{
    if (check->state != CHECK_STOPPING || force) {
        check->state = CHECK_STOPPING;
        uv_timer_stop(&check->timer);
        rf_cluster_stop(check->cluster, force);
    }
}

/* Whether it has neither joined nor been lost. */
static bool is_awaited(const struct check_app *check, uint32_t node)
{
    const struct rf_preflight_join *join = check->join;
    return rf_preflight_join_hello(join, node) == NULL &&
           rf_preflight_join_lost(join, node) == NULL;
}

static void timer_cb(uv_timer_t *timer);

static void go_on(struct check_app *check, enum check_state state, uint64_t ms)
{
    check->state = state;
    uv_timer_start(&check->timer, timer_cb, ms, 0);
}

static void ask_for_headers(struct check_app *check);

static void act_on_headers(struct check_app *check, enum rf_verdict verdict)
{
    if (check->state != CHECK_INSPECTING || verdict == RF_VERDICT_GO_ON) {
        return;
    }
    if (verdict == RF_VERDICT_NEXT &&
        rf_preflight_inspect_more(check->inspect)) {
        ask_for_headers(check);
    } else {
        check->headers = verdict;
        go_on(check, CHECK_CLOCKS, CLOCKS_MS);
    }
}

/* Asks the joined nodes. */
static void ask_for_headers(struct check_app *check)
{
    struct rf_msg inspect;
    go_on(check, CHECK_INSPECTING,
          (uint64_t)rf_preflight_inspect_limit_s(check->inspect) * 1000);
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        if (rf_preflight_join_lost(check->join, i) != NULL) {
            act_on_headers(check, rf_preflight_inspect_fail(check->inspect, i,
                                                            "is not there"));
        } else if (rf_preflight_inspect_ask(check->inspect, i, &inspect)) {
            rf_cluster_send(check->cluster, i, &inspect);
            rf_msg_free(&inspect);
        }
    }
}

static void after_reach(struct check_app *check)
{
    if (check->inspect != NULL) {
        ask_for_headers(check);
    } else {
        go_on(check, CHECK_CLOCKS, CLOCKS_MS);
    }
}

/* Continues once no node is trying to reach others. */
static void act_on_reach(struct check_app *check)
{
    if (check->state == CHECK_REACHING &&
        !rf_reach_pairs_is_awaited(check->pairs)) {
        after_reach(check);
    }
}

static void ask_to_reach(struct check_app *check)
{
    struct rf_msg message;
    rf_reach_pairs_choose(check->pairs, rf_preflight_join_hellos(check->join));
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        if (rf_reach_pairs_ask(check->pairs, i, &message)) {
            rf_cluster_send(check->cluster, i, &message);
            rf_msg_free(&message);
        }
    }
    go_on(check, CHECK_REACHING, (uint64_t)REACH_S * 1000);
    act_on_reach(check);
}

/* Asks joined nodes even if others are lost. */
static void act_on_join(struct check_app *check, enum rf_verdict verdict)
{
    if (verdict != RF_VERDICT_GO_ON) {
        rf_cluster_joined(check->cluster);
        ask_to_reach(check);
    }
}

static void tell_not_joined(struct check_app *check)
{
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        if (is_awaited(check, i)) {
            rf_findings_add(&check->findings, RF_ADVICE_ERROR,
                            check->config->node_names[i],
                            "did not join within %u s%s", check->limit_s,
                            rf_cluster_waits_for(check->cluster, i));
        }
    }
}

/* The time limit of a state has passed. */
static void timer_cb(uv_timer_t *timer)
{
    struct check_app *check = timer->data;
    switch (check->state) {
    case CHECK_REACHING:
        after_reach(check);
        return;
    case CHECK_JOINING:
        tell_not_joined(check);
        break;
    case CHECK_INSPECTING:
        check->headers = rf_preflight_inspect_silence(
            check->inspect, rf_preflight_inspect_limit_s(check->inspect));
        break;
    default:
        break;
    }
    stop(check, false);
}

/* --- Events of the cluster ------------------------------------------------ */

static bool hello_cb(uint32_t node, struct rf_msg_hello *hello, void *data)
{
    struct check_app *check = data;
    struct rf_msg welcome;
    enum rf_verdict verdict;
    if (!is_awaited(check, node)) {
        return false;
    }
    verdict = rf_preflight_join_add(check->join, node, hello);
    rf_msg_init(&welcome, RF_MSG_WELCOME);
    welcome.welcome.protocol = RF_PROTOCOL_MAX;
    rf_cluster_send(check->cluster, node, &welcome);
    act_on_join(check, verdict);
    return true;
}

static void lost_cb(uint32_t node, const struct rf_err *why, void *data)
{
    struct check_app *check = data;
    const bool awaited = is_awaited(check, node);
    enum rf_verdict verdict =
        rf_preflight_join_lose(check->join, node, why->text);
    rf_findings_add(&check->findings, RF_ADVICE_ERROR,
                    check->config->node_names[node], "%s", why->text);
    rf_reach_pairs_lose(check->pairs, node);
    if (awaited) {
        act_on_join(check, verdict);
    } else if (check->state == CHECK_REACHING) {
        act_on_reach(check);
    } else if (check->state == CHECK_INSPECTING) {
        act_on_headers(
            check, rf_preflight_inspect_fail(check->inspect, node, why->text));
    }
}

static void message_cb(uint32_t node, const struct rf_msg *message, void *data)
{
    struct check_app *check = data;
    rf_debug("%s: %s", check->config->node_names[node],
             rf_msg_name((uint8_t)message->type));
    if (check->state == CHECK_REACHING && message->type == RF_MSG_REACHED) {
        rf_reach_pairs_take(check->pairs, node, &message->reached);
        act_on_reach(check);
    } else if (check->state == CHECK_INSPECTING &&
               message->type == RF_MSG_HEADERS) {
        act_on_headers(check, rf_preflight_inspect_take(check->inspect, node,
                                                        &message->headers));
    }
}

static void bad_message_cb(uint32_t node, const struct rf_msg_bad *bad,
                           void *data)
{
    struct check_app *check = data;
    rf_debug("%s: %s", check->config->node_names[node], bad->why->text);
    if (check->state == CHECK_INSPECTING && bad->type == RF_MSG_HEADERS) {
        act_on_headers(check, rf_preflight_inspect_fail(check->inspect, node,
                                                        bad->why->text));
    }
}

static void log_cb(uint32_t node, uint32_t rank, const char *line, void *data)
{
    const struct check_app *check = data;
    (void)rank;
    rf_debug("%s: %s", check->config->node_names[node], line);
}

static void stopped_cb(void *data)
{
    struct check_app *check = data;
    uv_stop(&check->loop);
}

static const struct rf_cluster_ops cluster_ops = {
    {hello_cb, lost_cb, message_cb, NULL, bad_message_cb, log_cb}, stopped_cb};

static void signal_cb(uv_signal_t *handle, int number)
{
    struct check_app *check = handle->data;
    if (check->signal != 0) {
        _exit(RF_EXIT_SIGNAL + number);
    }
    check->signal = number;
    stop(check, true);
}

/* Starts an agent on every node, queries those that join, and stops them. */
static void run(struct check_app *check)
{
    uv_timer_init(&check->loop, &check->timer);
    check->timer.data = check;
    rf_signals_start(&check->signals, &check->loop, signal_cb, check);
    go_on(check, CHECK_JOINING, (uint64_t)check->limit_s * 1000);
    rf_cluster_launch(check->cluster);
    uv_run(&check->loop, UV_RUN_DEFAULT);
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        check->clocks[i] = rf_cluster_clock(check->cluster, i);
    }
    rf_cluster_destroy(check->cluster);
    uv_close((uv_handle_t *)&check->timer, NULL);
    rf_signals_close(&check->signals);
    uv_run(&check->loop, UV_RUN_DEFAULT);
}

static enum rf_status reach_nodes(struct check_app *check, struct rf_err *err)
{
    const struct rf_config *config = check->config;
    char run_id[17], reach_key[2 * RF_PSK_BYTES + 1];
    struct rf_cluster_options options = {.loop = &check->loop,
                                         .config = config,
                                         .run_id = run_id,
                                         .reach_key = reach_key};
    enum rf_status status;
    RF_TRY(rf_cluster_check_limits(config, err));
    RF_TRY(rf_loop_init(&check->loop, err));
    rf_random_hex(run_id, 8);
    rf_random_hex(reach_key, RF_PSK_BYTES);
    status =
        rf_cluster_create(&options, &cluster_ops, check, &check->cluster, err);
    if (status == RF_OK) {
        check->limit_s = check->cli->timeout_s > 0
                             ? check->cli->timeout_s
                             : rf_config_join_limit_s(config);
        check->join = rf_preflight_join_create(config);
        check->clocks = rf_xcalloc(config->n_nodes, sizeof(*check->clocks));
        run(check);
    }
    uv_loop_close(&check->loop);
    explicit_bzero(reach_key, sizeof(reach_key));
    return status;
}

/* --- Findings ------------------------------------------------------------- */

/* Without a stream, a scheduler or a user may have kept us waiting. */
static void advise_start(struct check_app *check, const char *host,
                         const struct rf_node_start *start)
{
    if (start->stream_ns == 0 ||
        start->hello_ns <= SLOW_START_MS * RF_NS_PER_MS) {
        return;
    }
    rf_findings_add(
        &check->findings, RF_ADVICE_WARNING, host,
        "took %.1f s to start: %.1f s to log in (waiting for launch.parallel "
        "and copying for launch.deploy included), %.1f s until the worker "
        "answered (start-up files of the login shell and launch.wrap "
        "included), %.1f s to look for devices and connect back",
        (double)start->hello_ns / 1e9, (double)start->stream_ns / 1e9,
        (double)(start->answer_ns - start->stream_ns) / 1e9,
        (double)(start->hello_ns - start->answer_ns) / 1e9);
}

/* Findings about how nodes joined and how well their clocks are known. */
static void advise_clocks(struct check_app *check)
{
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        const struct rf_cluster_clock *clock = &check->clocks[i];
        const char *host = check->config->node_names[i];
        if (rf_preflight_join_hello(check->join, i) == NULL) {
            continue;
        }
        rf_findings_add(
            &check->findings, RF_ADVICE_INFO, host,
            "joined over %s after %.0f ms; round trip %.2f ms, clock error "
            "at most %.2f ms (offset %.3f ms)",
            clock->tcp ? "TCP" : "the launcher's stream",
            (double)clock->start.hello_ns / 1e6,
            (double)clock->best.round_trip_ns / 1e6,
            (double)clock->best.round_trip_ns / 2e6,
            (double)clock->best.offset_ns / 1e6);
        advise_start(check, host, &clock->start);
    }
}

static void advise_everything(struct check_app *check)
{
    const struct rf_config *config = check->config;
    const struct rf_msg_hello *const *hellos =
        rf_preflight_join_hellos(check->join);
    advise_clocks(check);
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        if (hellos[i] != NULL) {
            rf_advise_build(config->node_names[i], hellos[i],
                            check->cli->strict, &check->findings);
        }
    }
    rf_advise_nodes(config, hellos, &check->findings);
    for (size_t i = 0; check->scenarios != NULL && i < config->n_scenarios;
         i++) {
        struct rf_scenario *scenario = NULL;
        if (rf_scenario_set_take(check->scenarios, i, &scenario, NULL) ==
            RF_OK) {
            rf_advise_scenario(scenario, &config->timeline, &check->findings);
            rf_advise_fit(scenario, hellos, &check->findings);
        }
        rf_scenario_destroy(scenario);
    }
    rf_reach_pairs_advise(check->pairs, REACH_S, &check->findings);
    rf_findings_merge(&check->findings);
}

/* Plans all scenarios and notes which nodes exchange data. An impossible
 * scenario is a configuration error. */
static enum rf_status plan(struct check_app *check, struct rf_err *err)
{
    RF_TRY(rf_scenario_set_plan(check->config, check->model, RF_SCENARIOS_BYTES,
                                &check->scenarios, err));
    RF_TRY(rf_config_check_updates(check->config, check->model, true, err));
    for (size_t i = 0; i < check->config->n_scenarios; i++) {
        struct rf_scenario *scenario;
        RF_TRY(rf_scenario_set_take(check->scenarios, i, &scenario, err));
        rf_reach_pairs_need(check->pairs, scenario);
        rf_scenario_set_return(check->scenarios, scenario);
    }
    return RF_OK;
}

/* The configuration alone. */
static enum rf_status load(struct check_app *check, struct rf_err *err)
{
    RF_TRY(rf_load(check->cli, true, &check->config, &check->model, err));
    check->pairs = rf_reach_pairs_create(check->config);
    if (check->model != NULL) {
        RF_TRY(plan(check, err));
    }
    return rf_preflight_inspect_create(check->config, &check->inspect, err);
}

/* Plans with the headers from the nodes, if usable. Lost nodes are already
 * reported. */
static enum rf_status plan_late(struct check_app *check, struct rf_err *err)
{
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        const char *why = rf_preflight_inspect_error(check->inspect, i);
        if (why != NULL && rf_preflight_join_lost(check->join, i) == NULL) {
            rf_findings_add(&check->findings, RF_ADVICE_ERROR,
                            check->config->node_names[i], "%s", why);
        }
    }
    if (check->headers != RF_VERDICT_NEXT || check->model != NULL) {
        return RF_OK;
    }
    rf_config_add_headers(check->config,
                          rf_preflight_inspect_headers(check->inspect));
    RF_TRY(rf_load_model(check->config, &check->model, err));
    return plan(check, err);
}

static void free_check(struct check_app *check)
{
    rf_preflight_join_destroy(check->join);
    free(check->clocks);
    rf_reach_pairs_destroy(check->pairs);
    rf_findings_free(&check->findings);
    rf_scenario_set_destroy(check->scenarios);
    rf_preflight_inspect_destroy(check->inspect);
    rf_model_destroy(check->model);
    rf_config_destroy(check->config);
}

/* Returns the exit code. */
static int check_all(struct check_app *check, struct rf_err *err)
{
    if (load(check, err) != RF_OK) {
        return RF_EXIT_USAGE;
    }
    if (reach_nodes(check, err) != RF_OK) {
        return RF_EXIT_LAUNCH;
    }
    if (check->signal != 0) {
        rf_info("stopped by a signal before the nodes were checked");
        return RF_EXIT_SIGNAL + check->signal;
    }
    if (check->inspect != NULL && plan_late(check, err) != RF_OK) {
        return RF_EXIT_USAGE;
    }
    advise_everything(check);
    (void)rf_stderr_writer_flush(check->cli->output, RF_STDERR_WRITER_WAIT_MS);
    rf_findings_print(&check->findings, check->cli->json, check->cli->quiet);
    return rf_findings_count(&check->findings, RF_ADVICE_ERROR) == 0
               ? RF_EXIT_OK
               : RF_EXIT_LAUNCH;
}

int rf_check_command(struct rf_cli *cli)
{
    struct check_app check = {.cli = cli};
    struct rf_err err = {0};
    int code = check_all(&check, &err);
    if (err.status != RF_OK) {
        rf_error("%s", err.text);
    }
    free_check(&check);
    return code;
}
