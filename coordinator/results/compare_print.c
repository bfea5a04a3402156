/*
 * Comparisons as a table and as JSON. Both say which median was judged, and
 * show the time beside the ratio. See compare.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/results/compare.h"
#include "coordinator/results/report_table.h"

/* Counts those with both intervals, or the others. */
static size_t count_unclear(const struct rf_comparisons *all, bool intervals)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_comparison *one = &all->list[i];
        n += one->verdict == RF_UNCLEAR &&
             intervals ==
                 (rf_comparison_judged(one, &one->reference)->has_interval &&
                  rf_comparison_judged(one, &one->now)->has_interval);
    }
    return n;
}

static json_t *figure_or_null(double figure)
{
    return figure > 0 ? json_real(figure) : json_null();
}

static json_t *interval_json(const struct rf_middle *middle)
{
    return middle->has_interval ? json_pack("[f, f]", middle->low, middle->high)
                                : json_null();
}

static json_t *timing_json(const struct rf_timing *timing)
{
    if (timing->ms.median <= 0) {
        return json_null();
    }
    return json_pack("{s:f, s:o, s:I, s:o, s:o, s:I, s:o}", "median_ms",
                     timing->ms.median, "median_ci95_ms",
                     interval_json(&timing->ms), "samples",
                     (json_int_t)timing->ms.n_samples, "yardstick_ratio",
                     figure_or_null(timing->ratio.median),
                     "yardstick_ratio_ci95", interval_json(&timing->ratio),
                     "yardsticks", (json_int_t)timing->ratio.n_samples,
                     "efficiency", figure_or_null(timing->efficiency));
}

/* What was judged: the name of the iterations' field. */
static json_t *judged_json(const struct rf_comparison *one)
{
    if (!rf_comparison_has_change(one)) {
        return json_null();
    }
    return json_string(one->by_ratio ? "yardstick_ratio" : "refit_ms");
}

static json_t *change_or_null(const struct rf_comparison *one, double change)
{
    return rf_comparison_has_change(one) ? json_real(change) : json_null();
}

json_t *rf_comparisons_json(const struct rf_comparisons *comparisons)
{
    json_t *list = json_array();
    for (size_t i = 0; i < comparisons->n; i++) {
        const struct rf_comparison *one = &comparisons->list[i];
        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:s?}", "scenario",
                one->name, "verdict", rf_change_name(one->verdict), "judged",
                judged_json(one), "reference", timing_json(&one->reference),
                "new", timing_json(&one->now), "change",
                change_or_null(one, one->change), "time_change",
                change_or_null(one, one->time_change), "regression",
                rf_comparison_is_regression(one), "differs", one->differs));
    }
    return json_pack("{s:f, s:I, s:I, s:o}", "threshold",
                     comparisons->threshold, "regressions",
                     (json_int_t)rf_comparisons_regressions(comparisons),
                     "unclear",
                     (json_int_t)(count_unclear(comparisons, false) +
                                  count_unclear(comparisons, true)),
                     "comparisons", list);
}

static void timing_cells(struct rf_table *table, const struct rf_middle *ms)
{
    char a[32], b[32];
    if (ms->median <= 0) {
        rf_table_cell(table, "-");
        rf_table_cell(table, "-");
        return;
    }
    rf_table_cell(table, "%s", rf_amount_text(ms->median, a));
    if (ms->has_interval) {
        rf_table_cell(table, "%s to %s", rf_amount_text(ms->low, a),
                      rf_amount_text(ms->high, b));
    } else {
        rf_table_cell(table, "too few samples");
    }
}

/* "1.02 [0.99, 1.04]", "-" without yardsticks */
static char *ratio_text(const struct rf_middle *ratio)
{
    char a[32], b[32], c[32];
    if (ratio->median <= 0) {
        return rf_xstrdup("-");
    }
    rf_figure_text(ratio->median, 2, a);
    return ratio->has_interval ? rf_xasprintf("%s [%s, %s]", a,
                                              rf_figure_text(ratio->low, 2, b),
                                              rf_figure_text(ratio->high, 2, c))
                               : rf_xstrdup(a);
}

static void ratio_cell(struct rf_table *table, const struct rf_comparison *one)
{
    char *a = ratio_text(&one->reference.ratio);
    char *b = ratio_text(&one->now.ratio);
    if (strcmp(a, "-") == 0 && strcmp(b, "-") == 0) {
        rf_table_cell(table, "-");
    } else {
        rf_table_cell(table, "%s -> %s", a, b);
    }
    free(a);
    free(b);
}

static void efficiency_cell(struct rf_table *table, double old, double now)
{
    char a[32] = "-", b[32] = "-";
    if (old <= 0 && now <= 0) {
        rf_table_cell(table, "-");
        return;
    }
    rf_table_cell(table, "%s -> %s", old > 0 ? rf_figure_text(old, 2, a) : a,
                  now > 0 ? rf_figure_text(now, 2, b) : b);
}

static void change_cells(struct rf_table *table,
                         const struct rf_comparison *one)
{
    if (!rf_comparison_has_change(one)) {
        rf_table_cell(table, "-");
        rf_table_cell(table, "-");
        rf_table_cell(table, "-");
        return;
    }
    rf_table_cell(table, "%+.1f %%", one->time_change * 100);
    rf_table_cell(table, "%s", one->by_ratio ? "x yardstick" : "time");
    rf_table_cell(table, "%+.1f %%", one->change * 100);
}

static void add_row(struct rf_table *table, const struct rf_comparison *one)
{
    rf_table_cell(table, "%s", one->name);
    rf_table_cell(table, "%s", rf_change_name(one->verdict));
    timing_cells(table, &one->reference.ms);
    timing_cells(table, &one->now.ms);
    change_cells(table, one);
    ratio_cell(table, one);
    efficiency_cell(table, one->reference.efficiency, one->now.efficiency);
    rf_table_cell(table, "%s", one->differs != NULL ? one->differs : "");
}

void rf_comparisons_print(const struct rf_comparisons *all, FILE *to)
{
    static const char *const heads[] = {
        "scenario",   "verdict",      ">old ms", ">old 95 %", ">new ms",
        ">new 95 %",  ">time change", "judged",  ">change",   "x yardstick",
        "efficiency", "also differs", NULL};
    static const char *const drops[] = {
        "efficiency",  "also differs", "old 95 %", "new 95 %",
        "x yardstick", "time change",  NULL};
    struct rf_table *table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "refit-coord compare OLD NEW | less -S");
    for (size_t i = 0; i < all->n; i++) {
        add_row(table, &all->list[i]);
    }
    rf_table_print(table, to, RF_REPORT_TABLE, 0);
    rf_table_destroy(table);
}

void rf_comparisons_print_totals(const struct rf_comparisons *all, FILE *to)
{
    size_t regressions = rf_comparisons_regressions(all), slower = 0;
    size_t overlaps = count_unclear(all, true);
    size_t few = count_unclear(all, false), shared = 0;
    double percent = all->threshold * 100;
    for (size_t i = 0; i < all->n; i++) {
        slower += all->list[i].verdict == RF_SLOWER;
        shared += all->list[i].verdict == RF_SAME &&
                  fabs(all->list[i].time_change) > all->threshold;
    }
    fprintf(to, "%zu regression%s", regressions, regressions == 1 ? "" : "s");
    if (slower > 0) {
        fprintf(to, ", %zu slower by more than %.3g %%", slower, percent);
    }
    fputc('\n', to);
    if (shared > 0) {
        fprintf(to,
                "%zu with a time beyond %.3g %% that the yardstick shares: the "
                "machine has changed, or how the method moves bytes\n",
                shared, percent);
    }
    if (overlaps > 0) {
        fprintf(to,
                "%zu unclear: beyond %.3g %%, but the intervals overlap; more "
                "iterations make them narrower\n",
                overlaps, percent);
    }
    if (few > 0) {
        fprintf(to,
                "%zu unclear: beyond %.3g %%, but with too few samples for an "
                "interval; both runs need %d iterations or more\n",
                few, percent, RF_STATS_INTERVAL_SAMPLES);
    }
}
