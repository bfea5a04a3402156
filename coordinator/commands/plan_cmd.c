/*
 * `refit-coord plan` and `run --dry-run`: prints the model and the plan of each
 * scenario, as text (plan_print.h) or, with --json, as one document
 * (docs/RESULTS.md).
 *
 * The file may also be a model's own config.json: then only its size is shown.
 */

#include "common/json_out.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/plan_families.h"
#include "coordinator/commands/plan_print.h"
#include "coordinator/scenario/scenario_set.h"
#include "planner/families/model_read.h"
#include "planner/model/model_json.h"
#include "planner/schedule/plan_json.h"

static json_t *scenario_json(const struct rf_scenario *scenario, bool full)
{
    json_t *out = rf_plan_json(scenario->plan, scenario->schedule,
                               rf_scenario_node_names(scenario), full);
    if (scenario->own_model != NULL) {
        json_object_set_new(out, "model", rf_model_json(scenario->own_model));
    }
    if (scenario->choice != NULL) {
        json_object_set_new(out, "strategy_choice",
                            rf_scenario_choice_json(scenario));
    }
    if (scenario->balance_choice != NULL) {
        json_object_set_new(out, "balance_choice",
                            rf_scenario_balance_choice_json(scenario));
    }
    return out;
}

static enum rf_status plan_all(const struct rf_cli *cli,
                               struct rf_config *config,
                               const struct rf_model *model, json_t *list,
                               struct rf_err *err)
{
    for (size_t i = 0; i < config->n_scenarios; i++) {
        struct rf_scenario *scenario = NULL;
        enum rf_status status =
            rf_scenario_set_try(config, model, i, &scenario, err);
        if (status != RF_OK) {
            if (!cli->json && cli->level >= RF_LOG_DEBUG) {
                rf_plan_families_print(model, NULL); /* may show the reason */
            }
            return status;
        }
        if (scenario == NULL) {
            break;
        }
        if (cli->json) {
            json_array_append_new(list, scenario_json(scenario, cli->full));
        } else {
            if (scenario->own_model != NULL) {
                fputs(scenario->index > 0 ? "\n" : "", stdout);
                rf_plan_print_model(scenario->own_model);
            }
            rf_plan_print_scenario(scenario, cli->level >= RF_LOG_DEBUG);
        }
        rf_scenario_destroy(scenario);
    }
    (void)fflush(stdout); /* main() reports its errors */
    rf_scenario_set_announce(config);
    return RF_OK;
}

/* Whether any scenario has the file's model. */
static bool needs_model(const struct rf_config *config)
{
    bool needs = false;
    for (size_t i = 0; i < config->n_scenarios; i++) {
        needs |= config->scenarios[i].model == NULL;
    }
    return needs;
}

/* `document` is taken. */
static int plan_cluster(const struct rf_cli *cli, json_t *document,
                        struct rf_err *err)
{
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    json_t *list = json_array();
    enum rf_status status = rf_load_document(
        cli, document, cli->config, cli->dry_run, &config, &model, err);
    if (status == RF_OK && model == NULL) { /* only nodes have it */
        status = rf_load_model(config, &model, err);
    }
    RF_THEN(status, rf_config_check_updates(config, model, false, err));
    if (status == RF_OK && !cli->json && needs_model(config)) {
        rf_plan_print_model(model);
    }
    RF_THEN(status, plan_all(cli, config, model, list, err));
    if (status == RF_OK && cli->json) {
        rf_json_out(json_pack("{s:i, s:o, s:O}", "schema_version", 1, "model",
                              rf_model_json(model), "scenarios", list),
                    stdout);
    }
    rf_model_destroy(model);
    rf_config_destroy(config);
    json_decref(list);
    return status == RF_OK ? RF_EXIT_OK : RF_EXIT_USAGE;
}

/* A file that is one model's config.json; `document` is taken. */
static int plan_model(const struct rf_cli *cli, json_t *document,
                      struct rf_err *err)
{
    json_t *wrapped =
        json_pack("{s:s, s:o}", "name", cli->config, "config", document);
    struct rf_jnode node = rf_jnode_root(wrapped, cli->config);
    struct rf_model *model = NULL;
    int code = RF_EXIT_USAGE;
    if (cli->overrides.nodes != NULL || cli->overrides.hostfile != NULL) {
        rf_err_set(err, RF_ERR_USAGE,
                   "%s: a model's config.json has no nodes; remove --nodes or "
                   "--hostfile",
                   cli->config);
        goto free_document;
    }
    if (rf_model_from_json(&node, &model, err) != RF_OK) {
        goto free_document;
    }
    code = RF_EXIT_OK;
    if (cli->json) {
        rf_json_out(json_pack("{s:i, s:o, s:[]}", "schema_version", 1, "model",
                              rf_model_json(model), "scenarios"),
                    stdout);
    } else {
        rf_plan_print_model(model);
        if (cli->level >= RF_LOG_DEBUG) {
            rf_plan_families_print(model, NULL);
        }
    }
    rf_model_destroy(model);
free_document:
    json_decref(wrapped);
    return code;
}

static int plan_file(const struct rf_cli *cli, struct rf_err *err)
{
    json_t *document = NULL;
    if (rf_load_is_folder(cli->config)) {
        rf_err_set(err, RF_ERR_CONFIG,
                   "%s: is a folder; for a checkpoint, plan a cluster file "
                   "with \"model\": {\"checkpoint\": \"%s\"}, or the "
                   "folder's config.json alone",
                   cli->config, cli->config);
        return RF_EXIT_USAGE;
    }
    if (rf_config_read(cli->config, &cli->overrides, &document, err) != RF_OK) {
        return RF_EXIT_USAGE;
    }
    return !cli->dry_run && rf_config_is_model(document)
               ? plan_model(cli, document, err)
               : plan_cluster(cli, document, err);
}

int rf_plan_command(struct rf_cli *cli)
{
    struct rf_err err = {0};
    int code = plan_file(cli, &err);
    (void)fflush(stdout); /* plans precede the error */
    if (err.status != RF_OK) {
        rf_error("%s", err.text);
    }
    return code;
}
