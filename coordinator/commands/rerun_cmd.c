/*
 * `refit-coord rerun`: runs the scenario of a result file again and compares.
 *
 * Everything comes from that file; nothing is launched unless the plan is the
 * same (store/rerun.h). The exit code is that of the run, or 1 if the run
 * succeeds but is a regression.
 */
#include "common/log.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/compare_cmd.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/run_app.h"
#include "coordinator/records/fields.h"
#include "coordinator/store/rerun.h"

static enum rf_status check_plan(struct rf_run_app *app, const json_t *old,
                                 struct rf_err *err)
{
    struct rf_scenario *scenario = NULL;
    enum rf_status status =
        rf_scenario_set_take(app->scenarios, 0, &scenario, err);
    if (status == RF_OK) {
        status =
            rf_rerun_check(old, app->cli->config, app->model, scenario, err);
        rf_scenario_set_return(app->scenarios, scenario);
    }
    return status;
}

/* The cluster file in a result, as changed by the options. */
static enum rf_status make_cluster(const struct rf_cli *cli, const json_t *old,
                                   json_t **out, struct rf_err *err)
{
    struct rf_hosts hosts = {0};
    json_t *cluster = NULL;
    enum rf_status status = rf_overrides_hosts(&cli->overrides, &hosts, err);
    RF_THEN(status, rf_rerun_cluster(old, cli->config, &hosts, &cluster, err));
    rf_hosts_free(&hosts);
    RF_THEN(status,
            rf_overrides_set(&cli->overrides, cluster, cli->config, err));
    if (status != RF_OK) {
        json_decref(cluster);
        return status;
    }
    *out = cluster;
    return RF_OK;
}

static enum rf_status load(struct rf_run_app *app, const json_t *old,
                           struct rf_err *err)
{
    const char *path = app->cli->config;
    json_t *cluster = NULL;
    enum rf_status status;
    RF_TRY(make_cluster(app->cli, old, &cluster, err));
    status = rf_config_from_json(cluster, path, true, &app->config, err);
    RF_THEN(status, rf_load_model(app->config, &app->model, err));
    RF_THEN(status,
            rf_scenario_set_plan(app->config, app->model, RF_SCENARIOS_BYTES,
                                 &app->scenarios, err));
    RF_TRY(rf_err_within(status, err, "\"cluster\" of the result"));
    if (app->config->n_scenarios != 1) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "%s: --set makes %zu scenarios, but rerun compares "
                          "one; give --set a value, not a list",
                          path, app->config->n_scenarios);
    }
    return check_plan(app, old, err);
}

static void compare(struct rf_run_app *app, const json_t *old)
{
    const json_t *now =
        app->results != NULL ? rf_results_last(app->results) : NULL;
    struct rf_comparisons all = {0};
    if (now == NULL) {
        return;
    }
    rf_compare_records(old, now, &app->cli->thresholds, &all);
    rf_compare_print(&all, app->cli->json);
    if (app->exit_code == RF_EXIT_OK && rf_comparisons_regressions(&all) > 0) {
        app->exit_code = RF_EXIT_FAILED;
    }
    rf_comparisons_free(&all);
}

int rf_rerun_command(struct rf_cli *cli)
{
    struct rf_run_app app = {.cli = cli,
                             .libraries = rf_library_versions(),
                             .exit_code = RF_EXIT_USAGE};
    struct rf_err err = {0};
    json_t *old = NULL;
    enum rf_status status =
        rf_load_is_folder(cli->config)
            ? rf_err_set(&err, RF_ERR_USAGE,
                         "%s: is a folder; name the result of one scenario "
                         "in it: %s/SCENARIO.json",
                         cli->config, cli->config)
            : rf_json_load(cli->config, RF_RESULT_MAX_BYTES, &old, &err);
    RF_THEN(status, load(&app, old, &err));
    RF_THEN(status, rf_run_app_planned(&app, &err));
    if (status == RF_OK) {
        compare(&app, old);
    } else {
        rf_error("%s", err.text);
    }
    rf_run_app_free(&app);
    json_decref(old);
    return app.exit_code;
}
