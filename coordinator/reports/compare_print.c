/*
 * Comparisons as a table and as JSON. Both say which median decides, and show
 * the time beside the ratio. See compare.h.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/records/report_table.h"
#include "coordinator/reports/compare.h"

/* Counts scenarios of which a metric up to `last` has that verdict. */
static size_t count(const struct rf_comparisons *all, enum rf_metric first,
                    enum rf_metric last, enum rf_change verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_judgement *list = all->list[i].judgements;
        size_t m = first;
        while (m <= last && !(list[m].judged && list[m].verdict == verdict)) {
            m++;
        }
        n += m <= last;
    }
    return n;
}

/* Whether a median is unclear, of which both sides have an interval or not. */
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

static size_t count_unclear(const struct rf_comparisons *all, bool intervals)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        n += is_unclear(&all->list[i], intervals);
    }
    return n;
}

static json_t *figure_or_null(double figure)
{
    return figure > 0 ? json_real(figure) : json_null();
}

static json_t *interval_json(const struct rf_median_interval *middle)
{
    return middle->has_interval ? json_pack("[f, f]", middle->low, middle->high)
                                : json_null();
}

static json_t *rerun_json(const struct rf_median_interval *middle)
{
    return middle->has_interval
               ? json_pack("[f, f]", middle->rerun_low, middle->rerun_high)
               : json_null();
}

static json_t *agrees_json(const struct rf_comparison *one)
{
    bool agree;
    return rf_comparison_agrees(one, &agree) ? json_boolean(agree)
                                             : json_null();
}

static json_t *bytes_or_null(double bytes)
{
    return bytes > 0 ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *side_json(const struct rf_compared *side)
{
    if (side->ms.median <= 0) {
        return json_null();
    }
    return json_pack("{s:f, s:o, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o}",
                     "median_ms", side->ms.median, "median_ci95_ms",
                     interval_json(&side->ms), "samples",
                     (json_int_t)side->ms.n_samples, "yardstick_ratio",
                     figure_or_null(side->ratio.median), "yardstick_ratio_ci95",
                     interval_json(&side->ratio), "yardstick_ratio_rerun95",
                     rerun_json(&side->ratio), "yardsticks",
                     (json_int_t)side->ratio.n_samples, "efficiency",
                     figure_or_null(side->efficiency), "memory_peak_bytes",
                     bytes_or_null(side->peak_bytes), "memory_predicted_bytes",
                     bytes_or_null(side->predicted_bytes));
}

/* By metric; those that were not judged are left out. */
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
                "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s?}",
                "scenario", one->name, "verdict", rf_change_name(one->verdict),
                "judged", judged_json(one), "judgements", judgements_json(one),
                "reference", side_json(&one->reference), "new",
                side_json(&one->now), "change",
                change_or_null(one, one->change), "time_change",
                change_or_null(one, one->time_change), "agrees",
                agrees_json(one), "regression",
                rf_comparison_is_regression(one), "differs", one->differs));
    }
    return json_pack(
        "{s:f, s:o, s:I, s:I, s:o}", "threshold",
        comparisons->thresholds.of[RF_METRIC_TIME].worse, "thresholds",
        rf_thresholds_json(&comparisons->thresholds), "regressions",
        (json_int_t)rf_comparisons_regressions(comparisons), "unclear",
        (json_int_t)(count_unclear(comparisons, false) +
                     count_unclear(comparisons, true)),
        "comparisons", list);
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

/* "1.19 GB -> 1.43 GB (+20.0 %)"; `change`: say by how much. */
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

/* ", 2 slower by more than 10 %", if there are any. */
static void print_worse(const struct rf_comparisons *all, enum rf_metric first,
                        enum rf_metric last, FILE *to)
{
    const bool memory = last == RF_METRIC_MEMORY;
    const size_t n = count(all, first, last, memory ? RF_LARGER : RF_SLOWER);
    if (n > 0) {
        fprintf(to, ", %zu %s by more than %.3g %%", n,
                memory ? "larger" : "slower",
                all->thresholds.of[last].worse * 100);
    }
}

/* Times that are beyond their limit while the ratio, which is judged, is not.
 */
static size_t count_shared(const struct rf_comparisons *all)
{
    const struct rf_threshold *limits = &all->thresholds.of[RF_METRIC_TIME];
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_comparison *one = &all->list[i];
        n += one->judgements[RF_METRIC_RATIO].judged &&
             one->judgements[RF_METRIC_RATIO].verdict == RF_SAME &&
             rf_threshold_exceeded(limits, one->time_change);
    }
    return n;
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

static void print_agreement(const struct rf_comparisons *all, FILE *to)
{
    size_t known = 0, agreeing = 0;
    for (size_t i = 0; i < all->n; i++) {
        bool agree = false;
        known += rf_comparison_agrees(&all->list[i], &agree);
        agreeing += agree;
    }
    if (known > 0) {
        fprintf(to, "vs contiguous: %zu of %zu within what reruns give\n",
                agreeing, known);
    }
}

static size_t count_verdict(const struct rf_comparisons *all,
                            enum rf_change verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        n += all->list[i].verdict == verdict;
    }
    return n;
}

static void print_failures(const struct rf_comparisons *all, FILE *to)
{
    const size_t mended = count_verdict(all, RF_MENDED);
    const size_t never = count_verdict(all, RF_NOT_OK);
    if (mended > 0) {
        fprintf(to, "%zu not compared: failed in the reference\n", mended);
    }
    if (never > 0) {
        fprintf(to, "%zu not compared: failed in both\n", never);
    }
}

void rf_comparisons_print_totals(const struct rf_comparisons *all, FILE *to)
{
    const size_t overlaps = count_unclear(all, true);
    const size_t few = count_unclear(all, false), shared = count_shared(all);
    char limits[64];
    print_regressions(all, to);
    print_failures(all, to);
    print_agreement(all, to);
    if (shared > 0) {
        fprintf(to,
                "%zu with a time beyond %s that the yardstick shares: the "
                "machine has changed, or how the method moves bytes\n",
                shared,
                rf_threshold_text(&all->thresholds.of[RF_METRIC_TIME], limits));
    }
    if (overlaps > 0) {
        fprintf(to,
                "%zu unclear: beyond the threshold, but the intervals overlap; "
                "more iterations make them narrower\n",
                overlaps);
    }
    if (few > 0) {
        fprintf(to,
                "%zu unclear: beyond the threshold, but with too few samples "
                "for an interval; both runs need %d iterations or more\n",
                few, RF_STATS_INTERVAL_SAMPLES);
    }
}
