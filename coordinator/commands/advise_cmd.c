/*
 * `refit-coord advise`: meshes for the slots of a cluster file, without
 * reaching a node. Each scenario says what stays: mode, layouts, method,
 * strategy, nodes and how many ranks a side has. Every slot counts as a GPU,
 * whatever memory the method uses: the meshes are those of real training.
 */
#include <stdlib.h>

#include "common/json_out.h"
#include "common/log.h"
#include "coordinator/advice/advise_print.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/scenario/scenario_set.h"

/* Ranks planned for a scenario: 512 worlds of 16 ranks, 16 of 512. */
#define BUDGET 8192

/* What decides which meshes there are and which rules they break. Scenarios
 * that differ in strategy or balance only have the same. */
static json_t *question_of(const struct rf_scenario *base)
{
    const json_t *document = base->document;
    return json_pack("{s:s, s:O?, s:O?, s:O?}", "model",
                     base->plan->model->name, "mode",
                     json_object_get(document, "mode"), "train",
                     json_object_get(document, "train"), "infer",
                     json_object_get(document, "infer"));
}

/* Says of which scenario the meshes have been listed already; else notes that
 * this one's are. */
static bool is_repeated(const struct rf_scenario *base, json_t *asked)
{
    json_t *question = question_of(base), *before;
    const char *name;
    json_object_foreach (asked, name, before) {
        if (json_equal(question, before)) {
            printf("%s: the meshes of %s; -s '%s' predicts this one's "
                   "refits\n",
                   base->spec->name, name, base->spec->name);
            json_decref(question);
            return true;
        }
    }
    json_object_set_new(asked, base->spec->name, question);
    return false;
}

static enum rf_status advise_one(const struct rf_scenario *base, bool json,
                                 json_t *list, struct rf_err *err)
{
    struct rf_timeline timeline = base->config->timeline;
    struct rf_advise_report report = {.base = base, .timeline = &timeline};
    enum rf_status status;
    if (base->spec->train.layout == RF_LAYOUT_SPEC) {
        rf_warn("%s: layout spec has a mesh of its own: no advice",
                base->spec->name);
        return RF_OK;
    }
    report.assumed = rf_mesh_advice_assume(&timeline);
    status = rf_advise_search(base, &timeline, BUDGET, &report.advised, err);
    if (status == RF_OK && json) {
        json_array_append_new(list, rf_advise_json(&report));
    } else if (status == RF_OK) {
        fputs(base->index > 0 ? "\n" : "", stdout);
        rf_advise_print(&report, stdout);
    }
    free(report.assumed);
    free(report.advised.choices);
    return status;
}

static enum rf_status advise_all(const struct rf_cli *cli,
                                 struct rf_config *config,
                                 const struct rf_model *model,
                                 struct rf_err *err)
{
    json_t *list = json_array(), *asked = json_object();
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < config->n_scenarios; i++) {
        struct rf_scenario *base = NULL;
        status = rf_scenario_set_try(config, model, i, &base, err);
        if (base != NULL && (cli->json || !is_repeated(base, asked))) {
            status = advise_one(base, cli->json, list, err);
        }
        rf_scenario_destroy(base);
    }
    if (status == RF_OK) {
        rf_scenario_set_announce(config);
    }
    if (status == RF_OK && cli->json) {
        rf_json_out(
            json_pack("{s:i, s:O}", "schema_version", 1, "scenarios", list),
            stdout);
    }
    json_decref(list);
    json_decref(asked);
    return status;
}

int rf_advise_command(struct rf_cli *cli)
{
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    struct rf_err err = {0};
    enum rf_status status = rf_load(cli, true, &config, &model, &err);
    if (status == RF_OK && model == NULL) { /* only nodes have it: say so */
        status = rf_load_model(config, &model, &err);
    }
    RF_THEN(status, advise_all(cli, config, model, &err));
    rf_model_destroy(model);
    rf_config_destroy(config);
    if (status != RF_OK) {
        rf_error("%s", err.text);
    }
    return status == RF_OK ? RF_EXIT_OK : RF_EXIT_USAGE;
}
