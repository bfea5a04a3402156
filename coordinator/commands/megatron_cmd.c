/*
 * `refit-coord megatron`: the refit benchmark of Megatron-LM with its own
 * flags. They become a cluster file (megatron_cluster.h) that runs as any
 * other; at the end, that benchmark's output (megatron_block.h) precedes the
 * table.
 */
#include <stdlib.h>

#include "common/json_out.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/run_app.h"
#include "coordinator/megatron/megatron_block.h"
#include "coordinator/megatron/megatron_cluster.h"
#include "coordinator/records/record_text.h"

struct megatron_app {
    struct rf_run_app run; /* first: `print` gets its address */
    struct rf_megatron_summary summary;
};

static void print_end(const struct rf_run_app *run)
{
    const struct megatron_app *app = (const struct megatron_app *)run;
    const json_t *record = rf_results_last(run->results);
    if (run->cli->json) {
        if (record != NULL) { /* NULL: the run ended before its scenario */
            char *text = rf_record_text(record);
            fputs(text != NULL ? text : "", stdout);
            free(text);
        }
        return;
    }
    rf_megatron_block_print(&app->summary, record, stdout);
    rf_results_print(run->results, stdout);
}

/* One line for all flags that change nothing. */
static void tell_idle(const struct rf_megatron_args *args)
{
    char *list = NULL;
    const json_t *name;
    size_t i;
    json_array_foreach (args->idle, i, name) {
        rf_text_add(&list, ", ", "--%s", json_string_value(name));
    }
    if (list != NULL) {
        rf_info("no effect on a refit: %s", list);
    }
    free(list);
}

static uint64_t number_of(const struct rf_megatron_args *args, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(args->values, name));
}

static enum rf_status summarize(struct megatron_app *app, struct rf_err *err)
{
    const struct rf_megatron_args *args = &app->run.cli->megatron;
    struct rf_scenario *scenario = NULL;
    RF_TRY(rf_scenario_set_take(app->run.scenarios, 0, &scenario, err));
    app->summary = rf_megatron_summary_of(scenario);
    app->summary.layers = number_of(args, "num-layers");
    app->summary.hidden = number_of(args, "hidden-size");
    app->summary.heads = number_of(args, "num-attention-heads");
    app->summary.experts = number_of(args, "num-experts");
    app->summary.backend = rf_megatron_backend(args);
    rf_scenario_set_return(app->run.scenarios, scenario);
    return RF_OK;
}

/* Takes `document`. */
static enum rf_status load(struct megatron_app *app, json_t *document,
                           struct rf_err *err)
{
    struct rf_run_app *run = &app->run;
    enum rf_status status =
        rf_load_document(run->cli, document, RF_MEGATRON_FILE, true,
                         &run->config, &run->model, err);
    RF_THEN(status,
            rf_scenario_set_plan(run->config, run->model, RF_SCENARIOS_BYTES,
                                 &run->scenarios, err));
    return status != RF_OK ? status : summarize(app, err);
}

/* Ranks run on this machine unless the command line names others. */
static enum rf_status override(const struct rf_cli *cli, json_t *document,
                               struct rf_err *err)
{
    if (cli->overrides.nodes != NULL || cli->overrides.hostfile != NULL) {
        json_object_del(document, "launch");
    }
    return rf_overrides_apply(&cli->overrides, document, RF_MEGATRON_FILE, err);
}

int rf_megatron_command(struct rf_cli *cli)
{
    struct megatron_app app = {.run = {.cli = cli,
                                       .libraries = rf_library_versions(),
                                       .print = print_end,
                                       .exit_code = RF_EXIT_USAGE}};
    struct rf_err err = {0};
    json_t *document = NULL;
    enum rf_status status =
        rf_megatron_cluster(&cli->megatron, &document, &err);
    RF_THEN(status, override(cli, document, &err));
    if (status == RF_OK) {
        tell_idle(&cli->megatron);
        status = load(&app, json_incref(document), &err);
    }
    if (status == RF_OK && cli->print) {
        rf_json_out(json_incref(document), stdout);
        app.run.exit_code = RF_EXIT_OK;
    } else if (status == RF_OK) {
        status = rf_run_app_planned(&app.run, &err);
    }
    if (status != RF_OK) {
        rf_error("%s", err.text);
    }
    json_decref(document);
    rf_run_app_free(&app.run);
    return app.run.exit_code;
}
