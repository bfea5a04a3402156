/*
 * The end of `refit-coord run`: signals, storing the rest, printing.
 *
 * The loop turns until the last file is stored. For a hung file server, results
 * are given up only on a signal, or GRACE_NS after --timeout.
 */
#include "coordinator/commands/run_app.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/commands/cli_table.h"
#include "coordinator/commands/store_thread.h"
#include "transport/net/loop.h"

#define PATIENCE_NS (2 * RF_NS_PER_S) /* before a wait is explained */
#define GRACE_NS (10 * RF_NS_PER_S)   /* for storing, after --timeout */
#define LEAVE_MS 500                  /* for the last messages */

/* --- Signals and waiting -------------------------------------------------- */

/* The path that the run waits for, and its wanted state; NULL: none. */
static const char *awaited(const struct rf_run_app *app, const char **state)
{
    const struct rf_cli *cli = app->cli;
    switch (app->waiting) {
    case RF_RUN_APP_OPENING:
        *state = cli->resume != NULL ? "opened" : "ready";
        return cli->resume != NULL ? cli->resume : cli->out;
    case RF_RUN_APP_DISCARDING:
        *state = cli->resume != NULL ? "as it was" : "removed";
        return rf_results_folder(app->results);
    case RF_RUN_APP_TRACING:
        *state = "stored";
        return cli->trace;
    case RF_RUN_APP_NOT_WAITING:
        break;
    }
    *state = "stored";
    return rf_results_storing(app->results);
}

static void explain_wait(struct rf_run_app *app)
{
    const char *state, *path = awaited(app, &state);
    if (path != NULL && !app->explained) {
        app->explained = true;
        rf_warn("waiting until %s is %s (interrupt%s to exit without it)", path,
                state, app->interrupts > 0 ? " again" : "");
    }
}

/* The agents see the end of their standard input and exit as well. */
static _Noreturn void leave(const struct rf_run_app *app, int exit_code)
{
    const char *state, *path = awaited(app, &state);
    if (path != NULL) {
        rf_error("%s is not %s", path, state);
    }
    (void)rf_stderr_writer_flush(app->cli->output, LEAVE_MS);
    _exit(exit_code);
}

void rf_run_end_signal(uv_signal_t *handle, int number)
{
    struct rf_run_app *app = handle->data;
    const bool early = app->run == NULL && !app->over;
    const char *state;
    app->interrupts++;
    app->interrupt_code = RF_EXIT_SIGNAL + number;
    if (early && app->interrupts == 1) {
        app->since_ns = rf_now_ns(); /* handled once the folder is open */
        return;
    }
    if (early || app->interrupts > 2 ||
        (app->over && (app->explained || awaited(app, &state) == NULL))) {
        leave(app, app->interrupt_code);
    }
    if (app->over) {
        explain_wait(app);
        return;
    }
    if (app->interrupts == 1) {
        rf_warn("stopping and keeping the results (interrupt again to force, a "
                "third time to exit at once)");
    }
    rf_run_interrupt(app->run, app->interrupt_code);
}

/* After --timeout, limits storing to GRACE_NS. */
static void leave_late(const struct rf_run_app *app, int64_t now_ns)
{
    if (app->cli->timeout_s > 0 &&
        now_ns - RF_MAX(app->since_ns, app->deadline_ns) > GRACE_NS) {
        leave(app, RF_EXIT_FAILED);
    }
}

void rf_run_end_tick(struct rf_run_app *app, int64_t now_ns)
{
    if (now_ns - app->since_ns <= PATIENCE_NS) {
        return;
    }
    if (app->waiting == RF_RUN_APP_OPENING && app->interrupts > 0) {
        leave(app, app->interrupt_code);
    }
    if (app->waiting == RF_RUN_APP_OPENING || app->over) {
        explain_wait(app);
        leave_late(app, now_ns);
    }
}

/* --- The end -------------------------------------------------------------- */

void rf_run_end_warn(struct rf_run_app *app)
{
    rf_findings_merge(&app->findings);
    for (size_t i = 0; i < app->findings.n; i++) {
        const struct rf_finding *one = &app->findings.list[i];
        rf_warn("%s: %s", one->about, one->text);
    }
    rf_findings_free(&app->findings);
}

/* Logs each node that could not join, with its reason; equal reasons are
 * folded. */
static void report_launch(const struct rf_run_app *app)
{
    uint32_t n = app->config->n_nodes;
    for (uint32_t i = 0; i < n; i++) {
        const char *why = rf_run_node_error(app->run, i);
        char *hosts = NULL;
        bool told = false;
        for (uint32_t j = 0; j < i && why != NULL && !told; j++) {
            const char *other = rf_run_node_error(app->run, j);
            told = other != NULL && strcmp(other, why) == 0;
        }
        if (why == NULL || told) {
            continue;
        }
        for (uint32_t j = i; j < n; j++) {
            const char *other = rf_run_node_error(app->run, j);
            if (other != NULL && strcmp(other, why) == 0) {
                rf_text_add(&hosts, ", ", "%s", app->config->node_names[j]);
            }
        }
        rf_error("%s: %s", hosts, why);
        free(hosts);
    }
}

/* Whether a signal or --timeout stopped it early. */
static bool cut_short(const struct rf_run_app *app)
{
    return app->exit_code > RF_EXIT_SIGNAL ||
           (app->cli->timeout_s > 0 && app->exit_code == RF_EXIT_FAILED);
}

static void stored_cb(const struct rf_err *why, void *data)
{
    struct rf_run_app *app = data;
    rf_results_stored(app->results, why);
}

static void store_op(char *path, char *text, json_t *record, unsigned n_folders,
                     void *data)
{
    struct rf_run_app *app = data;
    const struct rf_store_thread_file file = {path, text, record, true,
                                              n_folders};
    rf_store_thread_start(&app->loop, &file, stored_cb, app);
}

/* All files of a scenario are stored, or run.json for the last time. */
static void done_op(const struct rf_err *why, void *data)
{
    struct rf_run_app *app = data;
    if (!app->finishing) {
        rf_run_stored(app->run, why);
    } else if (why != NULL) {
        rf_error("%s", why->text);
        app->unfinished = true;
    }
}

const struct rf_results_ops rf_run_end_storing = {store_op, done_op};

static void discard(void *data)
{
    const struct rf_run_app *app = data;
    rf_results_discard(app->results);
}

void rf_run_end_waited(void *data)
{
    struct rf_run_app *app = data;
    app->waiting = RF_RUN_APP_NOT_WAITING;
}

/* Turns the loop until nothing is being stored. */
static void settle(struct rf_run_app *app)
{
    const char *state;
    if (!app->over) {
        app->over = true;
        app->since_ns = rf_now_ns();
    }
    while (awaited(app, &state) != NULL) {
        uv_run(&app->loop, UV_RUN_ONCE);
    }
}

void rf_run_end_discard(struct rf_run_app *app)
{
    app->waiting = RF_RUN_APP_DISCARDING;
    rf_loop_beside(&app->loop, discard, rf_run_end_waited, app);
    settle(app);
}

static void traced_cb(const struct rf_err *why, void *data)
{
    struct rf_run_app *app = data;
    if (why != NULL) {
        rf_error("%s", why->text);
        app->unfinished = true;
    }
    rf_run_end_waited(app);
}

static bool is_standard_output(const struct rf_run_app *app)
{
    return app->cli->trace != NULL && strcmp(app->cli->trace, "-") == 0;
}

static void discard_trace(struct rf_run_app *app)
{
    if (app->trace != NULL) {
        free(rf_trace_file_end(app->trace));
        app->trace = NULL;
    }
}

/* Stores the file of --trace. */
static void store_trace(struct rf_run_app *app)
{
    char *text = rf_trace_file_end(app->trace);
    app->trace = NULL;
    if (text == NULL) {
        rf_error("%s: out of memory for the trace", app->cli->trace);
        app->unfinished = true;
    } else if (is_standard_output(app)) {
        if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
            rf_error("standard output: %s; the trace is incomplete",
                     strerror(errno));
            app->unfinished = true;
        }
        free(text);
    } else {
        const struct rf_store_thread_file file = {
            .path = rf_xstrdup(app->cli->trace), .text = text};
        app->waiting = RF_RUN_APP_TRACING;
        rf_store_thread_start(&app->loop, &file, traced_cb, app);
        settle(app);
    }
}

/* Prints the requested output to standard output. */
static void print(const struct rf_run_app *app)
{
    if (is_standard_output(app)) {
        return;
    }
    if (app->print != NULL) {
        app->print(app);
    } else if (!app->cli->json) {
        rf_results_print(app->results, stdout);
    }
}

void rf_run_end(struct rf_run_app *app)
{
    settle(app);
    if (app->run != NULL) {
        app->exit_code = rf_run_exit_code(app->run);
    } else if (app->interrupts > 0) {
        app->exit_code = app->interrupt_code;
    }
    rf_progress_destroy(app->progress);
    app->progress = NULL;
    if (rf_results_last(app->results) == NULL &&
        (app->exit_code == RF_EXIT_LAUNCH || app->exit_code == RF_EXIT_USAGE ||
         app->interrupts > 0)) {
        if (app->exit_code == RF_EXIT_LAUNCH) {
            rf_run_end_warn(app);
            report_launch(app);
        } else if (app->interrupts > 0) {
            rf_info("stopped before the first scenario: no results kept");
        }
        rf_run_end_discard(app);
        discard_trace(app);
        return;
    }
    app->finishing = true;
    rf_results_finish(app->results, app->exit_code);
    settle(app);
    if (app->trace != NULL) {
        store_trace(app);
    }
    if (app->unfinished && app->exit_code == RF_EXIT_OK) {
        app->exit_code = RF_EXIT_FAILED;
    }
    (void)rf_stderr_writer_flush(app->cli->output, RF_STDERR_WRITER_WAIT_MS);
    print(app);
    rf_info("results in %s", rf_results_folder(app->results));
    if (cut_short(app) &&
        rf_cli_commands[app->cli->command].options & RF_OPT(RESUME)) {
        rf_info("to continue: give the command again with --resume %s%s",
                rf_results_folder(app->results),
                app->cli->has_out ? " in place of --output" : "");
    }
}
