/*
 * `refit-coord run`: joins the run's state machine, the cluster, the result
 * folder and the progress display on one loop.
 *
 * Planning every scenario (scenario_set.h) finds all errors of cluster.json
 * before the launch, or, if only nodes have the model's checkpoint, once they
 * have sent its headers. The result folder is made before the launch, so that a
 * full or read-only disk is found early; a launch that fails or is interrupted
 * removes it again. run_end.c has the end of a run.
 */
#include <signal.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/store.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/commands/run_app.h"
#include "coordinator/scenario/scenario.h"
#include "transport/net/loop.h"

#define REDRAW_MS 500

/* --- Requests of the run -------------------------------------------------- */

static int64_t now_op(void *data)
{
    (void)data;
    return rf_now_ns();
}

static void utc_op(char *out, size_t size, void *data)
{
    (void)data;
    rf_utc_stamp(out, size);
}

static void timer_cb(uv_timer_t *timer)
{
    struct rf_run_app *app = timer->data;
    rf_run_tick(app->run);
}

static void arm_op(int64_t at_ns, void *data)
{
    struct rf_run_app *app = data;
    int64_t wait = at_ns - rf_now_ns();
    if (at_ns == INT64_MAX) {
        uv_timer_stop(&app->timer);
        return;
    }
    uv_update_time(&app->loop);
    uv_timer_start(&app->timer, timer_cb,
                   wait <= 0 ? 1 : (uint64_t)(wait / RF_NS_PER_MS + 1), 0);
}

static void launch_op(void *data)
{
    struct rf_run_app *app = data;
    rf_cluster_launch(app->cluster);
}

static void joined_op(void *data)
{
    struct rf_run_app *app = data;
    rf_run_end_warn(app);
    rf_cluster_joined(app->cluster);
}

static void send_op(uint32_t node, const struct rf_msg *message, void *data)
{
    struct rf_run_app *app = data;
    rf_cluster_send(app->cluster, node, message);
}

static void send_all_op(const bool *to, const struct rf_msg *message,
                        void *data)
{
    struct rf_run_app *app = data;
    rf_cluster_send_all(app->cluster, to, message);
}

static void drop_op(uint32_t node, void *data)
{
    struct rf_run_app *app = data;
    rf_cluster_drop(app->cluster, node);
}

static void stop_op(bool force, void *data)
{
    struct rf_run_app *app = data;
    rf_cluster_stop(app->cluster, force);
}

static const char *waits_for_op(uint32_t node, void *data)
{
    const struct rf_run_app *app = data;
    return rf_cluster_waits_for(app->cluster, node);
}

static int64_t round_trip_op(void *data)
{
    const struct rf_run_app *app = data;
    return rf_cluster_round_trip_ns(app->cluster);
}

static void random_op(void *out, size_t size, void *data)
{
    (void)data;
    rf_random_fill(out, size);
}

static void progress_op(const struct rf_run_view *view, void *data)
{
    struct rf_run_app *app = data;
    rf_progress_update(app->progress, view, rf_now_ns());
}

static void begin_op(const struct rf_attempt *attempt, void *data)
{
    const struct rf_run_app *app = data;
    rf_node_lines_begin(app->lines, attempt);
    rf_debug("scenario %s: %u ranks, %zu transfers",
             attempt->scenario->spec->name, attempt->scenario->world->n_ranks,
             attempt->scenario->plan->n_transfers);
}

static void end_op(const struct rf_attempt *attempt, void *data)
{
    struct rf_run_app *app = data;
    rf_results_store(app->results, attempt);
    rf_node_lines_end(app->lines, attempt, rf_results_folder(app->results));
    if (app->trace != NULL) {
        rf_trace_file_add(app->trace, attempt, rf_results_last(app->results));
    }
    rf_progress_scenario(app->progress, rf_results_last(app->results));
}

static void done_op(void *data)
{
    struct rf_run_app *app = data;
    uv_stop(&app->loop);
}

/* Runs beside the loop: taking the scenario may plan it again. */
static void plan(void *data)
{
    struct rf_run_app *app = data;
    if (rf_scenario_set_take(app->scenarios, app->to_plan, &app->planned,
                             &app->why) != RF_OK) {
        app->planned = NULL;
    }
}

static void planned(void *data)
{
    struct rf_run_app *app = data;
    app->planning = false;
    rf_run_built(app->run, app->planned, &app->why);
}

static void build_op(size_t index, void *data)
{
    struct rf_run_app *app = data;
    app->planning = true;
    app->to_plan = index;
    rf_loop_beside(&app->loop, plan, planned, app);
}

static void plan_all(void *data)
{
    struct rf_run_app *app = data;
    enum rf_status status = rf_load_model(app->config, &app->model, &app->why);
    RF_THEN(status,
            rf_config_check_updates(app->config, app->model, true, &app->why));
    RF_THEN(status, rf_scenario_set_plan_late(app->config, app->model,
                                              RF_SCENARIOS_BYTES,
                                              &app->scenarios, &app->why));
    if (status != RF_OK) {
        rf_model_destroy(app->model);
        app->model = NULL;
    }
}

static void all_planned(void *data)
{
    struct rf_run_app *app = data;
    const bool ready =
        app->model != NULL &&
        rf_results_set_model(app->results, app->model, &app->why) == RF_OK;
    app->planning = false;
    rf_run_all_planned(app->run, ready ? NULL : &app->why);
}

static void inspected_op(json_t *headers, void *data)
{
    struct rf_run_app *app = data;
    rf_config_add_headers(app->config, headers);
    app->planning = true;
    rf_loop_beside(&app->loop, plan_all, all_planned, app);
}

static const struct rf_run_ops run_ops = {
    .now = now_op,
    .utc = utc_op,
    .arm = arm_op,
    .launch = launch_op,
    .joined = joined_op,
    .send = send_op,
    .send_all = send_all_op,
    .drop = drop_op,
    .stop = stop_op,
    .waits_for = waits_for_op,
    .round_trip_ns = round_trip_op,
    .random = random_op,
    .progress = progress_op,
    .inspected = inspected_op,
    .build = build_op,
    .scenario_begin = begin_op,
    .scenario_end = end_op,
    .done = done_op,
};

/* --- Events of the cluster ------------------------------------------------ */

static bool hello_cb(uint32_t node, struct rf_msg_hello *hello, void *data)
{
    struct rf_run_app *app = data;
    if (!app->cli->strict) { /* otherwise the run refuses the node */
        rf_advise_build(app->config->node_names[node], hello, false,
                        &app->findings);
    }
    rf_results_node(app->results, node, hello);
    return rf_run_hello(app->run, node, hello);
}

static void lost_cb(uint32_t node, const struct rf_err *why, void *data)
{
    struct rf_run_app *app = data;
    rf_run_node_lost(app->run, node, why);
}

static void message_cb(uint32_t node, const struct rf_msg *message, void *data)
{
    struct rf_run_app *app = data;
    rf_run_message(app->run, node, message);
}

static void reading_cb(uint32_t node, const struct rf_msg_lease *lease,
                       void *data)
{
    struct rf_run_app *app = data;
    rf_run_reading(app->run, node, lease);
}

static void bad_message_cb(uint32_t node, const struct rf_msg_bad *bad,
                           void *data)
{
    struct rf_run_app *app = data;
    rf_run_bad_message(app->run, node, bad);
}

static void log_cb(uint32_t node, uint32_t rank, const char *line, void *data)
{
    struct rf_run_app *app = data;
    rf_run_log(app->run, node, rank, line);
    rf_node_lines_show(app->lines, node, rank, line);
}

static void stopped_cb(void *data)
{
    struct rf_run_app *app = data;
    app->stopped = true;
    rf_run_stopped(app->run);
}

static const struct rf_cluster_ops cluster_ops = {
    {hello_cb, lost_cb, message_cb, reading_cb, bad_message_cb, log_cb},
    stopped_cb};

/* --- Handles -------------------------------------------------------------- */

static void redraw_cb(uv_timer_t *timer)
{
    struct rf_run_app *app = timer->data;
    int64_t now = rf_now_ns();
    rf_run_end_tick(app, now);
    if (app->progress != NULL) {
        rf_progress_tick(app->progress, now);
    }
}

static void open_handles(struct rf_run_app *app)
{
    uv_timer_init(&app->loop, &app->timer);
    uv_timer_init(&app->loop, &app->redraw);
    app->timer.data = app->redraw.data = app;
    uv_timer_start(&app->redraw, redraw_cb, REDRAW_MS, REDRAW_MS);
    rf_signals_start(&app->signals, &app->loop, rf_run_end_signal, app);
}

static void close_handles(struct rf_run_app *app)
{
    uv_close((uv_handle_t *)&app->timer, NULL);
    uv_close((uv_handle_t *)&app->redraw, NULL);
    rf_signals_close(&app->signals);
}

/* --- Before and after ----------------------------------------------------- */

/* "rank:iteration" or "rank:iteration:phase" from an environment variable that
 * only tests set. NULL: not set. */
static struct rf_msg_hook *read_hook(const char *variable)
{
    const char *text = getenv(variable);
    struct rf_msg_hook *hook;
    unsigned rank, iteration;
    char phase[16] = "run", end;
    if (text == NULL) {
        return NULL;
    }
    if (sscanf(text, "%u:%u%c", &rank, &iteration, &end) != 2 &&
        sscanf(text, "%u:%u:%15[a-z]%c", &rank, &iteration, phase, &end) != 3) {
        rf_warn("%s must be \"rank:iteration\" or \"rank:iteration:phase\"; "
                "ignored",
                variable);
        return NULL;
    }
    hook = rf_schema_new(&rf_msg_hook_schema);
    hook->rank = rank;
    hook->iteration = iteration;
    hook->phase = rf_xstrdup(phase);
    hook->signal = SIGKILL;
    return hook;
}

static enum rf_status load(struct rf_run_app *app, struct rf_err *err)
{
    RF_TRY(rf_load(app->cli, true, &app->config, &app->model, err));
    if (app->model != NULL) {
        RF_TRY(rf_scenario_set_plan(app->config, app->model, RF_SCENARIOS_BYTES,
                                    &app->scenarios, err));
        RF_TRY(rf_config_check_updates(app->config, app->model, true, err));
    }
    return rf_preflight_inspect_create(app->config, &app->inspect, err);
}

static void create_run(struct rf_run_app *app, struct rf_msg_hooks *test)
{
    const bool has_test =
        test->flip != NULL || test->stall != NULL || test->exit != NULL;
    const struct rf_run_options options = {
        .n_repeats = rf_results_repeats(app->results),
        .skip = rf_results_complete(app->results),
        .timeout_s = app->cli->timeout_s,
        .strict = app->cli->strict,
        .trace = app->cli->trace != NULL,
        .inspect = app->inspect,
        .test = has_test ? test : NULL};
    app->run = rf_run_create(app->config, &options, &run_ops, app);
}

static enum rf_status run_all(struct rf_run_app *app, struct rf_err *err)
{
    struct rf_cluster_options options = {.loop = &app->loop,
                                         .config = app->config,
                                         .run_id =
                                             rf_results_run_id(app->results)};
    struct rf_msg_hooks test = {.flip = read_hook("REFIT_TEST_FLIP"),
                                .stall = read_hook("REFIT_TEST_STALL"),
                                .exit = read_hook("REFIT_TEST_EXIT")};
    enum rf_status status =
        rf_cluster_create(&options, &cluster_ops, app, &app->cluster, err);
    if (status != RF_OK) {
        rf_run_end_discard(app);
        goto free_test;
    }
    app->stopped = false;
    create_run(app, &test);
    if (app->cli->trace != NULL) {
        app->trace = rf_trace_file_create();
    }
    app->lines = rf_node_lines_create(app->config);
    app->progress = rf_progress_create(app->cli->output, app->cli->quiet);
    rf_run_start(app->run);
    uv_run(&app->loop, UV_RUN_DEFAULT);
    rf_run_end(app);
    if (app->planning) {
        rf_info("waiting for the planner; send another signal to exit at once");
    }
    while (app->planning) {
        uv_run(&app->loop, UV_RUN_ONCE);
    }
    rf_node_lines_destroy(app->lines);
    if (app->stopped) {
        rf_cluster_destroy(app->cluster);
    }
    rf_run_destroy(app->run);
free_test:
    rf_schema_free(&rf_msg_hooks_schema, &test);
    return status;
}

static int exit_for(enum rf_status status)
{
    return status == RF_ERR_CONFIG || status == RF_ERR_USAGE ||
                   status == RF_ERR_NOMEM
               ? RF_EXIT_USAGE
           : status == RF_ERR_UNSUPPORTED || status == RF_ERR_LAUNCH
               ? RF_EXIT_LAUNCH
               : RF_EXIT_FAILED;
}

static void open_folder(void *data)
{
    struct rf_run_app *app = data;
    struct rf_results_settings settings = {
        app->cli->out,
        app->cli->resume,
        app->cli->repeat,
        {app->cli->argc, app->cli->argv, app->libraries},
        app->cli->logs};
    if (app->cli->trace != NULL &&
        rf_store_check(app->cli->trace, &app->why) != RF_OK) {
        rf_err_wrap(&app->why, "--trace: name a file that can be written");
        app->why.status = RF_ERR_USAGE;
        return;
    }
    app->why.status = rf_results_open(&settings, app->config, app->model,
                                      &app->results, &app->why);
}

/* Runs beside the loop: a hung disk must not keep signals from ending it. */
static enum rf_status open_results(struct rf_run_app *app, struct rf_err *err)
{
    app->waiting = RF_RUN_APP_OPENING;
    app->since_ns = rf_now_ns();
    rf_loop_beside(&app->loop, open_folder, rf_run_end_waited, app);
    while (app->waiting == RF_RUN_APP_OPENING) {
        uv_run(&app->loop, UV_RUN_ONCE);
    }
    if (app->why.status != RF_OK) {
        *err = app->why;
    }
    return app->why.status;
}

/* With the folder open: runs what is left to do in it. */
static enum rf_status run_in_folder(struct rf_run_app *app, struct rf_err *err)
{
    rf_results_serve(app->results, &rf_run_end_storing, app);
    if (app->interrupts > 0) {
        rf_run_end(app);
        return RF_OK;
    }
    if (rf_results_all_complete(app->results)) { /* no node is needed */
        rf_info("nothing to do: every scenario in that folder is complete");
        rf_run_end(app);
        return RF_OK;
    }
    return run_all(app, err);
}

enum rf_status rf_run_app_planned(struct rf_run_app *app, struct rf_err *err)
{
    enum rf_status status = rf_cluster_check_limits(app->config, err);
    RF_THEN(status, rf_loop_init_with_pool(&app->loop, err));
    if (status != RF_OK) {
        app->exit_code = RF_EXIT_LAUNCH;
        return status;
    }
    app->stopped = true;
    app->deadline_ns = rf_now_ns() + (int64_t)app->cli->timeout_s * RF_NS_PER_S;
    open_handles(app);
    status = open_results(app, err);
    RF_THEN(status, run_in_folder(app, err));
    app->exit_code = status != RF_OK ? exit_for(status) : app->exit_code;
    if (app->stopped) {
        close_handles(app);
        uv_run(&app->loop, UV_RUN_DEFAULT);
        uv_loop_close(&app->loop);
    }
    return status;
}

void rf_run_app_free(struct rf_run_app *app)
{
    rf_findings_free(&app->findings);
    rf_results_close(app->results);
    rf_scenario_set_destroy(app->scenarios);
    rf_preflight_inspect_destroy(app->inspect);
    rf_model_destroy(app->model);
    rf_config_destroy(app->config);
    json_decref(app->libraries);
}

int rf_run_command(struct rf_cli *cli)
{
    struct rf_run_app app = {.cli = cli, .libraries = rf_library_versions()};
    struct rf_err err = {0};
    enum rf_status status = load(&app, &err);
    if (status != RF_OK) {
        app.exit_code = RF_EXIT_USAGE;
    } else {
        status = rf_run_app_planned(&app, &err);
    }
    if (status != RF_OK) {
        rf_error("%s", err.text);
    }
    rf_run_app_free(&app);
    return app.exit_code;
}
