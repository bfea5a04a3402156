/* Progress. See progress.h. The time left assumes that all scenarios take
 * equally long; the "~" marks it as an estimate. */
#include "coordinator/commands/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/terminal.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/report_table.h"

#define BAR_CELLS 24
/* Least time between lines without a terminal. */
#define PLAIN_NS (10 * RF_NS_PER_S)

struct rf_progress {
    struct rf_stderr_writer *output;
    bool bar, quiet;
    struct rf_run_view view;
    char scenario[256], state[32];
    int64_t began_ns, last_plain_ns;
    int64_t moved_ns; /* when the share of the work done last grew */
};

double rf_progress_share(const struct rf_run_view *view)
{
    double share;
    if (view->n_scenarios == 0 || view->scenario_at == 0) {
        return 0;
    }
    share = (double)(view->scenario_at - (view->over ? 0 : 1));
    if (view->n_expected > 0) {
        share +=
            RF_MIN(1.0, (double)view->iteration / (double)view->n_expected);
    }
    return RF_MIN(1.0, share / (double)view->n_scenarios);
}

const char *rf_progress_clock(int64_t seconds, char out[32])
{
    if (seconds >= 3600) {
        snprintf(out, 32, "%lld:%02lld:%02lld", (long long)(seconds / 3600),
                 (long long)(seconds / 60 % 60), (long long)(seconds % 60));
    } else {
        snprintf(out, 32, "%lld:%02lld", (long long)(seconds / 60),
                 (long long)(seconds % 60));
    }
    return out;
}

/* ", repeat 2 of 3", or "". */
static const char *repeat_text(const struct rf_run_view *view, char out[48])
{
    out[0] = '\0';
    if (view->n_repeats > 1) {
        snprintf(out, 48, ", repeat %u of %u", view->repeat + 1,
                 view->n_repeats);
    }
    return out;
}

void rf_progress_reading(const struct rf_run_view *view, char out[80])
{
    char done[32], of[32];
    out[0] = '\0';
    if (view->of_bytes > 0) {
        snprintf(out, 80, ", %s of %s read",
                 rf_format_bytes(view->read_bytes, done, sizeof(done)),
                 rf_format_bytes(view->of_bytes, of, sizeof(of)));
    }
}

/* "running 3/6" */
static void describe(const struct rf_progress *progress, char *out, size_t size)
{
    const struct rf_run_view *view = &progress->view;
    char repeat[48], reading[80];
    rf_progress_reading(view, reading);
    if (progress->scenario[0] == '\0') {
        snprintf(out, size, "%s, %u of %u nodes", progress->state,
                 view->nodes_joined, view->n_nodes);
    } else if (view->of_bytes > 0) { /* once, before all iterations */
        snprintf(out, size, "%s%s: %s%s", progress->scenario,
                 repeat_text(view, repeat), progress->state, reading);
    } else if (view->iteration < view->n_warmup) {
        snprintf(out, size, "%s%s: %s, warm-up %u of %u", progress->scenario,
                 repeat_text(view, repeat), progress->state,
                 view->iteration + 1, view->n_warmup);
    } else {
        snprintf(out, size, "%s%s: %s, iteration %u of %u", progress->scenario,
                 repeat_text(view, repeat), progress->state,
                 RF_MIN(view->iteration - view->n_warmup + 1,
                        view->n_iterations - view->n_warmup),
                 view->n_iterations - view->n_warmup);
    }
}

void rf_progress_line(const struct rf_run_view *view, const char *text,
                      const char *left, size_t width, char *out, size_t size)
{
    int cells = (int)(rf_progress_share(view) * BAR_CELLS);
    size_t room = width > 0 ? width - 1 : 0; /* the last column may wrap */
    size_t used, more = strlen(text) + strlen(left);
    char bar[BAR_CELLS + 1] = "";
    for (int i = 0; i < BAR_CELLS; i++) {
        bar[i] = i < cells ? '#' : '.';
    }
    used = (size_t)snprintf(out, size, "[%s] %zu/%zu ", bar, view->scenario_at,
                            view->n_scenarios);
    if (used + more <= room) {
        snprintf(out + used, size - used, "%s%s", text, left);
    } else if (used + strlen(left) + 1 < room) { /* part of the text fits */
        snprintf(out + used, size - used, "%.*s…%s",
                 (int)(room - used - strlen(left) - 1), text, left);
    } else if (room < used) {
        out[room] = '\0';
    }
}

/* "  ~2:31 left", or "" while too little is known or more time has passed. */
static void time_left(const struct rf_progress *progress, int64_t now_ns,
                      char out[48])
{
    double share = rf_progress_share(&progress->view);
    double spent = (double)(progress->moved_ns - progress->began_ns);
    char clock[32];
    out[0] = '\0';
    if (share > 0.02 && now_ns - progress->began_ns > RF_NS_PER_S &&
        !progress->view.over) {
        int64_t rest = progress->began_ns + (int64_t)(spent / share) - now_ns;
        if (rest > 0) {
            snprintf(out, 48, "  ~%s left",
                     rf_progress_clock(rest / RF_NS_PER_S, clock));
        }
    }
}

static void draw(struct rf_progress *progress, int64_t now_ns)
{
    char text[512], left[48], line[1024];
    if (!progress->bar) {
        return;
    }
    describe(progress, text, sizeof(text));
    time_left(progress, now_ns, left);
    rf_progress_line(&progress->view, text, left,
                     rf_terminal_columns(STDERR_FILENO), line, sizeof(line));
    rf_stderr_writer_status(progress->output, line);
}

struct rf_progress *rf_progress_create(struct rf_stderr_writer *output,
                                       bool quiet)
{
    struct rf_progress *progress = rf_xcalloc(1, sizeof(*progress));
    progress->output = output;
    progress->quiet = quiet;
    progress->bar = rf_stderr_writer_is_terminal(output) && !quiet;
    progress->began_ns = progress->moved_ns = rf_now_ns();
    progress->last_plain_ns = progress->began_ns;
    return progress;
}

void rf_progress_destroy(struct rf_progress *progress)
{
    if (progress != NULL) {
        rf_stderr_writer_status(progress->output, "");
        free(progress);
    }
}

/* Without a terminal: logs the run's progress, at most every PLAIN_NS. */
static void plain(struct rf_progress *progress, int64_t now_ns)
{
    char text[512], left[48];
    if (progress->bar || progress->quiet ||
        now_ns - progress->last_plain_ns < PLAIN_NS) {
        return;
    }
    progress->last_plain_ns = now_ns;
    describe(progress, text, sizeof(text));
    time_left(progress, now_ns, left);
    rf_info("%zu/%zu %s%s", progress->view.scenario_at,
            progress->view.n_scenarios, text, left);
}

void rf_progress_update(struct rf_progress *progress,
                        const struct rf_run_view *view, int64_t now_ns)
{
    bool other = view->scenario != NULL &&
                 strcmp(progress->scenario, view->scenario) != 0;
    double share = rf_progress_share(&progress->view);
    char repeat[48];
    progress->view = *view;
    if (rf_progress_share(view) > share) {
        progress->moved_ns = now_ns;
    }
    snprintf(progress->state, sizeof(progress->state), "%s", view->state);
    snprintf(progress->scenario, sizeof(progress->scenario), "%s",
             view->scenario != NULL ? view->scenario : "");
    progress->view.state = progress->state;
    progress->view.scenario = progress->scenario;
    if (other && !progress->bar && !progress->quiet) {
        rf_info("%s %zu of %zu: %s%s",
                view->n_repeats > 1 ? "attempt" : "scenario", view->scenario_at,
                view->n_scenarios, view->scenario, repeat_text(view, repeat));
        progress->last_plain_ns = now_ns;
    }
    plain(progress, now_ns);
    draw(progress, now_ns);
}

void rf_progress_tick(struct rf_progress *progress, int64_t now_ns)
{
    if (progress->view.state != NULL) {
        plain(progress, now_ns);
        draw(progress, now_ns);
    }
}

void rf_progress_result(const json_t *result, char *out, size_t size)
{
    double median, rate, ratio, efficiency, repeats;
    const char *name = rf_result_text(result, NULL, "name");
    const char *status = rf_result_text(result, NULL, "status");
    char speed[48] = "", share[48] = "", of[48] = "", figure[32];
    if (!rf_result_number(result, "summary", "median_ms", &median)) {
        snprintf(out, size, "%s: %s", name, status);
        return;
    }
    if (rf_result_number(result, "summary", "algbw_gbytes_per_s", &rate)) {
        snprintf(speed, sizeof(speed), ", %s GB/s",
                 rf_figure_text(rate, 2, figure));
    }
    if (rf_result_number(result, "summary.yardstick_ratio", "median", &ratio)) {
        snprintf(share, sizeof(share), ", %s vs contiguous%s",
                 rf_figure_text(ratio, 2, figure),
                 rf_doubts_has(result, RF_DOUBT_SLOW_YARDSTICKS) ? " (too low)"
                                                                 : "");
    } else if (rf_result_number(result, "bound", "efficiency", &efficiency) &&
               !json_is_false(rf_result_value(result, "bound", "valid")) &&
               !rf_doubts_has(result, RF_DOUBT_BIMODAL)) {
        snprintf(share, sizeof(share), ", %s of the bound",
                 rf_figure_text(efficiency, 2, figure));
    }
    if (rf_result_number(result, "summary", "repeats", &repeats)) {
        snprintf(of, sizeof(of), " of %.0f repeat%s", repeats,
                 repeats > 1 ? "s" : "");
    }
    snprintf(out, size, "%s: %s, median %s ms%s%s%s", name, status,
             rf_figure_text(median, 3, figure), of, share, speed);
}

void rf_progress_scenario(struct rf_progress *progress, const json_t *result)
{
    char text[512];
    if (!progress->quiet) {
        rf_progress_result(result, text, sizeof(text));
        rf_info("%s", text);
    }
}
