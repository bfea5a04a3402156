/*
 * `refit-coord advise`: meshes for the slots of a cluster file, without
 * reaching a node. Each scenario says what stays: mode, layouts, method,
 * strategy, nodes and how many ranks a side has.
 */
#include <stdlib.h>

#include "coordinator/commands/advise_print.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/scenarios.h"

#define ASSUMED_GBYTES 80 /* of a GPU: H100 and A100 have that */
/* Ranks planned for a scenario: 512 worlds of 16 ranks, 16 of 512. */
#define BUDGET 8192

static enum rf_status advise_one(const struct rf_scenario *base, bool json,
                                 json_t *list, struct rf_err *err)
{
    struct rf_timeline timeline = base->config->timeline;
    struct rf_advise_report report = {.base = base, .timeline = &timeline};
    enum rf_status status;
    if (timeline.memory_gbytes <= 0 && rf_scenario_on_device(base)) {
        timeline.memory_gbytes = ASSUMED_GBYTES;
        report.memory_assumed = true;
    }
    status = rf_advise_search(base, &timeline, BUDGET, &report.advised, err);
    if (status == RF_OK && json) {
        json_array_append_new(list, rf_advise_json(&report));
    } else if (status == RF_OK) {
        fputs(base->index > 0 ? "\n" : "", stdout);
        rf_advise_print(&report, stdout);
    }
    free(report.advised.choices);
    return status;
}

static enum rf_status advise_all(const struct rf_cli *cli,
                                 struct rf_config *config,
                                 const struct rf_model *model,
                                 struct rf_err *err)
{
    json_t *list = json_array(), *document;
    enum rf_status status = RF_OK;
    size_t next = 0;
    while (status == RF_OK && next < config->n_scenarios) {
        struct rf_scenario *base = NULL;
        status = rf_scenarios_try(config, model, next, &base, err);
        if (status == RF_OK && base != NULL) {
            status = advise_one(base, cli->json, list, err);
            next++;
        }
        rf_scenario_destroy(base);
    }
    if (status == RF_OK) {
        rf_scenarios_announce(config);
    }
    document = json_pack("{s:i, s:o}", "schema_version", 1, "scenarios", list);
    if (status == RF_OK && cli->json) {
        json_dumpf(document, stdout,
                   JSON_INDENT(2) | JSON_PRESERVE_ORDER |
                       JSON_REAL_PRECISION(9));
        putchar('\n');
    }
    json_decref(document);
    return status;
}

int rf_advise_command(const struct rf_cli *cli)
{
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    struct rf_err err = {0};
    enum rf_status status = rf_load(cli, true, &config, &model, &err);
    if (status == RF_OK && model == NULL) { /* only nodes have it: say so */
        status = rf_load_model(config, &model, &err);
    }
    if (status == RF_OK) {
        status = advise_all(cli, config, model, &err);
    }
    rf_model_destroy(model);
    rf_config_destroy(config);
    if (status != RF_OK) {
        rf_error("%s", err.text);
    }
    return status == RF_OK ? RF_EXIT_OK : RF_EXIT_USAGE;
}
