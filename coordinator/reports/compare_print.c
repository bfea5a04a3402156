/*
 * Comparisons as a table and as JSON. Both name the deciding median, and show
 * the time beside the ratio. See compare.h.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/records/report_table.h"
#include "coordinator/reports/compare.h"

/* Whether a median is unclear, with intervals on both sides or, if not
 * `intervals`, without. */
static bool is_unclear(const struct rf_comparison *one, bool intervals)
{
    for (size_t m = RF_METRIC_RATIO; m <= RF_METRIC_TIME; m++) {
        const bool both =
            rf_compared_middle(&one->reference, m)->has_interval &&
            rf_compared_middle(&one->now, m)->has_interval;
        if (one->judgements[m].judged &&
            one->judgements[m].verdict == RF_UNCLEAR && both == intervals) {
            return true;
        }
    }
    return false;
}

/* Whether the time is beyond its limit, but the judged ratio is not. */
static bool is_shared(const struct rf_comparison *one,
                      const struct rf_threshold *limits)
{
    const struct rf_judgement *ratio = &one->judgements[RF_METRIC_RATIO];
    return ratio->judged && ratio->verdict == RF_SAME &&
           rf_threshold_exceeded(limits, one->time_change);
}

/* Numbers of scenarios. */
struct comparison_counts {
    size_t overlaps, few; /* unclear, with intervals or without */
    size_t shared, mended, never_ok, other_model;
    size_t rerun, agreeing; /* scenarios whose ratios can agree; those that
                               do */
};

static struct comparison_counts count_all(const struct rf_comparisons *all)
{
    struct comparison_counts n = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_comparison *one = &all->list[i];
        bool agrees = false;
        n.overlaps += is_unclear(one, true);
        n.few += is_unclear(one, false);
        n.shared += is_shared(one, &all->thresholds.of[RF_METRIC_TIME]);
        n.mended += one->verdict == RF_MENDED;
        n.never_ok += one->verdict == RF_NOT_OK;
        n.other_model += one->verdict == RF_OTHER_MODEL;
        n.rerun += rf_comparison_agrees(one, &agrees);
        n.agreeing += agrees;
    }
    return n;
}

static json_t *figure_or_null(double figure)
{
    return figure > 0 ? json_real(figure) : json_null();
}

static json_t *interval_json(bool has, double low, double high)
{
    return has ? json_pack("[f, f]", low, high) : json_null();
}

static json_t *bytes_or_null(double bytes)
{
    return bytes > 0 ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *side_json(const struct rf_compared *side)
{
    const struct rf_median_interval *ms = &side->ms, *ratio = &side->ratio;
    if (ms->median <= 0) {
        return json_null();
    }
    return json_pack(
        "{s:f, s:o, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "median_ms",
        ms->median, "median_ci95_ms",
        interval_json(ms->has_interval, ms->low, ms->high), "samples",
        (json_int_t)ms->n_samples, "yardstick_ratio",
        figure_or_null(ratio->median), "yardstick_ratio_ci95",
        interval_json(ratio->has_interval, ratio->low, ratio->high),
        "yardstick_ratio_rerun95",
        interval_json(ratio->has_interval, ratio->rerun_low, ratio->rerun_high),
        "yardsticks", (json_int_t)ratio->n_samples, "efficiency",
        figure_or_null(side->efficiency), "memory_peak_bytes",
        bytes_or_null(side->peak_bytes), "memory_predicted_bytes",
        bytes_or_null(side->predicted_bytes));
}

/* By metric; omits metrics not judged. */
static json_t *judgements_json(const struct rf_comparison *one)
{
    json_t *out = json_object();
    for (size_t m = 0; m < RF_METRICS; m++) {
        const struct rf_judgement *judgement = &one->judgements[m];
        if (judgement->judged) {
            json_object_set_new(out, rf_metric_name(m),
                                json_pack("{s:f, s:s}", "change",
                                          judgement->change, "verdict",
                                          rf_change_name(judgement->verdict)));
        }
    }
    return out;
}

static json_t *comparison_json(const struct rf_comparison *one)
{
    const bool has = rf_comparison_has_change(one);
    bool agrees = false;
    const bool rerun = rf_comparison_agrees(one, &agrees);
    return json_pack(
        "{s:s, s:s, s:s?, s:o, s:o, s:o, s:o?, s:o?, s:o?, s:b, s:s?}",
        "scenario", one->name, "verdict", rf_change_name(one->verdict),
        "judged", /* the name of the field in iterations */
        !has            ? NULL
        : one->by_ratio ? "yardstick_ratio"
                        : "refit_ms",
        "judgements", judgements_json(one), "reference",
        side_json(&one->reference), "new", side_json(&one->now), "change",
        has ? json_real(one->change) : NULL, "time_change",
        has ? json_real(one->time_change) : NULL, "agrees",
        rerun ? json_boolean(agrees) : NULL, "regression",
        rf_comparison_is_regression(one), "differs", one->differs);
}

json_t *rf_comparisons_json(const struct rf_comparisons *comparisons)
{
    const struct comparison_counts n = count_all(comparisons);
    json_t *list = json_array();
    for (size_t i = 0; i < comparisons->n; i++) {
        json_array_append_new(list, comparison_json(&comparisons->list[i]));
    }
    return json_pack(
        "{s:f, s:o, s:I, s:I, s:o}", "threshold",
        comparisons->thresholds.of[RF_METRIC_TIME].worse, "thresholds",
        rf_thresholds_json(&comparisons->thresholds), "regressions",
        (json_int_t)rf_comparisons_regressions(comparisons), "unclear",
        (json_int_t)(n.overlaps + n.few), "comparisons", list);
}

static void timing_cells(struct rf_table *table,
                         const struct rf_median_interval *ms)
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
static char *ratio_text(const struct rf_median_interval *ratio)
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

/* "1.19 GB -> 1.43 GB (+20.0 %)"; `change`: with the percentage. */
static void bytes_cell(struct rf_table *table, double old, double now,
                       bool change)
{
    char a[32] = "-", b[32] = "-", percent[32] = "";
    if (old > 0) {
        rf_format_bytes((uint64_t)old, a, sizeof(a));
    }
    if (now > 0) {
        rf_format_bytes((uint64_t)now, b, sizeof(b));
    }
    if (change && old > 0 && now > 0) {
        snprintf(percent, sizeof(percent), " (%+.1f %%)",
                 (now / old - 1) * 100);
    }
    if (old <= 0 && now <= 0) {
        rf_table_cell(table, "-");
    } else {
        rf_table_cell(table, "%s -> %s%s", a, b, percent);
    }
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
    rf_table_cell(table, "%s", one->by_ratio ? "vs contiguous" : "time");
    rf_table_cell(table, "%+.1f %%", one->change * 100);
}

static void add_row(struct rf_table *table, const struct rf_comparison *one)
{
    char *findings = rf_comparison_findings(one);
    rf_table_cell(table, "%s", one->name);
    rf_table_cell(table, "%s", findings);
    timing_cells(table, &one->reference.ms);
    timing_cells(table, &one->now.ms);
    change_cells(table, one);
    ratio_cell(table, one);
    bytes_cell(table, one->reference.peak_bytes, one->now.peak_bytes, true);
    bytes_cell(table, one->reference.predicted_bytes, one->now.predicted_bytes,
               false);
    efficiency_cell(table, one->reference.efficiency, one->now.efficiency);
    rf_table_cell(table, "%s", one->differs != NULL ? one->differs : "");
    free(findings);
}

void rf_comparisons_print(const struct rf_comparisons *all, FILE *to)
{
    static const char *const heads[] = {
        "scenario",      "verdict",      ">old ms",
        ">old 95 %",     ">new ms",      ">new 95 %",
        ">time change",  "judged",       ">change",
        "vs contiguous", "peak memory",  "predicted",
        "efficiency",    "also differs", NULL};
    static const char *const drops[] = {
        "efficiency",    "also differs", "predicted",   "old 95 %", "new 95 %",
        "vs contiguous", "time change",  "peak memory", NULL};
    struct rf_table *table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "refit-coord compare OLD NEW | less -S");
    for (size_t i = 0; i < all->n; i++) {
        add_row(table, &all->list[i]);
    }
    rf_table_print(table, to, RF_REPORT_TABLE, 0);
    rf_table_destroy(table);
}

/* ", 2 slower by more than 10 %", if any, by one of these metrics. */
static void print_worse(const struct rf_comparisons *all, enum rf_metric first,
                        enum rf_metric last, FILE *to)
{
    const bool memory = last == RF_METRIC_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        bool worse = false;
        for (size_t m = first; m <= last; m++) {
            const struct rf_judgement *one = &all->list[i].judgements[m];
            worse |=
                one->judged && one->verdict == (memory ? RF_LARGER : RF_SLOWER);
        }
        n += worse;
    }
    if (n > 0) {
        fprintf(to, ", %zu %s by more than %.3g %%", n,
                memory ? "larger" : "slower",
                all->thresholds.of[last].worse * 100);
    }
}

static void print_regressions(const struct rf_comparisons *all, FILE *to)
{
    const struct rf_threshold *limits = all->thresholds.of;
    const size_t n = rf_comparisons_regressions(all);
    const double apart =
        limits[RF_METRIC_RATIO].worse - limits[RF_METRIC_TIME].worse;
    fprintf(to, "%zu regression%s", n, n == 1 ? "" : "s");
    if (apart < 0 || apart > 0) {
        print_worse(all, RF_METRIC_RATIO, RF_METRIC_RATIO, to);
        print_worse(all, RF_METRIC_TIME, RF_METRIC_TIME, to);
    } else {
        print_worse(all, RF_METRIC_RATIO, RF_METRIC_TIME, to);
    }
    print_worse(all, RF_METRIC_MEMORY, RF_METRIC_MEMORY, to);
    fputc('\n', to);
}

void rf_comparisons_print_totals(const struct rf_comparisons *all, FILE *to)
{
    const struct comparison_counts n = count_all(all);
    char limits[64];
    print_regressions(all, to);
    if (n.mended > 0) {
        fprintf(to, "%zu not compared: failed in the reference\n", n.mended);
    }
    if (n.never_ok > 0) {
        fprintf(to, "%zu not compared: failed in both\n", n.never_ok);
    }
    if (n.other_model > 0) {
        fprintf(to, "%zu not compared: of another model\n", n.other_model);
    }
    if (n.rerun > 0) {
        fprintf(
            to,
            "vs contiguous: %zu of %zu changed no more than between reruns\n",
            n.agreeing, n.rerun);
    }
    if (n.shared > 0) {
        fprintf(to,
                "%zu with a time beyond %s, yardstick too: the machine or the "
                "method has changed\n",
                n.shared,
                rf_threshold_text(&all->thresholds.of[RF_METRIC_TIME], limits));
    }
    if (n.overlaps > 0) {
        fprintf(to,
                "%zu unclear: beyond the threshold, but the intervals overlap; "
                "use more iterations\n",
                n.overlaps);
    }
    if (n.few > 0) {
        fprintf(to,
                "%zu unclear: beyond the threshold, but with too few samples "
                "for an interval; both runs need %d iterations or more\n",
                n.few, RF_STATS_INTERVAL_SAMPLES);
    }
}
