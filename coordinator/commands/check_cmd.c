/*
 * `refit-coord check`: all that can be known before a run. Plans all scenarios,
 * starts the agents, collects what they report about their nodes, compares
 * clocks briefly, and ends them. If only nodes have the model's checkpoint,
 * they are asked for its headers and the scenarios planned after that. Measures
 * and stores nothing.
 */
#include "common/clock.h"
#include "common/log.h"
#include "coordinator/advice/advice.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/reach_nodes.h"
#include "coordinator/scenario/scenario_set.h"

#define SLOW_START_MS 1500

struct check_app {
    const struct rf_cli *cli;
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario_set *scenarios;    /* NULL: they could not be planned */
    struct rf_preflight_inspect *inspect; /* NULL: the checkpoint is here */
    struct rf_reach_pairs *pairs;
    struct rf_findings findings;
    struct rf_reach_nodes nodes;
};

/* How nodes joined, and how well their clocks are known. */
static void advise_clocks(struct check_app *check)
{
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        const struct rf_cluster_clock *clock = &check->nodes.clocks[i];
        const char *host = check->config->node_names[i];
        if (rf_preflight_join_hello(check->nodes.join, i) == NULL) {
            continue;
        }
        rf_findings_add(
            &check->findings, RF_ADVICE_INFO, host,
            "joined over %s after %.0f ms; round trip %.2f ms, clock known "
            "to within %.2f ms (offset %.3f ms)",
            clock->tcp ? "TCP" : "the launcher's stream",
            (double)clock->launch_ns / 1e6,
            (double)clock->best.round_trip_ns / 1e6,
            (double)clock->best.round_trip_ns / 2e6,
            (double)clock->best.offset_ns / 1e6);
        if (clock->launch_ns > SLOW_START_MS * RF_NS_PER_MS) {
            rf_findings_add(&check->findings, RF_ADVICE_WARNING, host,
                            "took %.1f s to start; slow shell start-up files "
                            "(~/.bashrc) or name lookups may be the cause",
                            (double)clock->launch_ns / 1e9);
        }
    }
}

static void advise_everything(struct check_app *check)
{
    const struct rf_config *config = check->config;
    const struct rf_msg_hello *const *hellos =
        rf_preflight_join_hellos(check->nodes.join);
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
    rf_reach_pairs_advise(check->pairs, RF_REACH_S, &check->findings);
    rf_findings_merge(&check->findings);
}

/* Plans all scenarios and notes which nodes exchange data. An impossible
 * scenario is a configuration error. */
static enum rf_status plan(struct check_app *check, struct rf_err *err)
{
    RF_TRY(rf_scenario_set_plan(check->config, check->model, RF_SCENARIOS_BYTES,
                                &check->scenarios, err));
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
    return check->model == NULL ? rf_preflight_inspect_create(
                                      check->config, &check->inspect, err)
                                : plan(check, err);
}

/* From the headers that nodes have sent, if they could be used. Nodes that were
 * lost have been reported. */
static enum rf_status plan_late(struct check_app *check, struct rf_err *err)
{
    for (uint32_t i = 0; i < check->config->n_nodes; i++) {
        const char *why = rf_preflight_inspect_error(check->inspect, i);
        if (why != NULL &&
            rf_preflight_join_lost(check->nodes.join, i) == NULL) {
            rf_findings_add(&check->findings, RF_ADVICE_ERROR,
                            check->config->node_names[i], "%s", why);
        }
    }
    if (check->nodes.headers != RF_VERDICT_NEXT) {
        return RF_OK;
    }
    rf_config_add_headers(check->config,
                          rf_preflight_inspect_headers(check->inspect));
    RF_TRY(rf_load_model(check->config, &check->model, err));
    return plan(check, err);
}

static void free_check(struct check_app *check)
{
    rf_reach_nodes_free(&check->nodes);
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
    check->nodes = (struct rf_reach_nodes){.config = check->config,
                                           .limit_s = check->cli->timeout_s,
                                           .pairs = check->pairs,
                                           .inspect = check->inspect,
                                           .findings = &check->findings};
    if (rf_reach_nodes(&check->nodes, err) != RF_OK) {
        return RF_EXIT_LAUNCH;
    }
    if (check->nodes.signal != 0) {
        rf_info("stopped by a signal before the nodes were checked");
        return RF_EXIT_SIGNAL + check->nodes.signal;
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
