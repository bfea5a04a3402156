/*
 * What moved between two sets of results. Only the
 * median time is judged, and noise is not taken for a change: it has moved when
 * it is beyond the threshold and the intervals of both medians lie apart. The
 * threshold is two-sided: faster is reported as well, since an unexplained gain
 * is often a mistake, but only slower, broken or missing makes the exit code 1.
 * Beside each finding stands what else differs (machine, versions, scenario,
 * plan), so that a change of the question is not taken for a change of the
 * answer.
 */
#include "coordinator/results/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text.h"
#include "coordinator/results/difference.h"
#include "coordinator/results/fields.h"
#include "coordinator/results/report_table.h"

static const struct rf_result_file *find(const struct rf_result_set *set,
                                         const char *name)
{
    for (size_t i = 0; i < set->n; i++) {
        if (strcmp(set->files[i].name, name) == 0) {
            return &set->files[i];
        }
    }
    return NULL;
}

/* Whether a value is what older records imply by not having it: unknown tensors
 * are errors, so there are none. Yardsticks do not change a refit. */
static bool is_default(const char *key, const json_t *value)
{
    double tensors = 0;
    if (strcmp(key, "yardstick") == 0) {
        return true;
    }
    return strcmp(key, "unknown_tensors") == 0
               ? json_is_string(value) &&
                     strcmp(json_string_value(value), "error") == 0
               : rf_result_number(value, NULL, "tensors", &tensors) &&
                     tensors <= 0;
}

/* Drops defaults that the other record is too old to have. */
static void drop_defaults(json_t *part, const json_t *other)
{
    static const char *const keys[] = {"unknown_tensors", "unknown",
                                       "yardstick"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        const json_t *value = json_object_get(part, keys[i]);
        if (value != NULL && json_object_get(other, keys[i]) == NULL &&
            is_default(keys[i], value)) {
            json_object_del(part, keys[i]);
        }
    }
}

/* Drops what differs from run to run, also in the entries of a list. */
static void drop_varying(json_t *part, const char *name)
{
    for (const struct rf_result_field *f = rf_result_fields; f->key != NULL;
         f++) {
        if (f->varies && strcmp(f->object, name) == 0) {
            json_object_del(part, f->key);
            for (size_t n = 0; n < json_array_size(part); n++) {
                json_object_del(json_array_get(part, n), f->key);
            }
        }
    }
}

/* The first difference in a part of two records, "plan.digest"; NULL: none. */
static char *difference(const char *part, const json_t *a, const json_t *b)
{
    json_t *x = json_deep_copy(json_object_get(a, part));
    json_t *y = json_deep_copy(json_object_get(b, part));
    char *where, *text = NULL;
    drop_varying(x, part);
    drop_varying(y, part);
    drop_defaults(x, y);
    drop_defaults(y, x);
    where = x != NULL || y != NULL ? rf_json_difference(x, y) : NULL;
    json_decref(x);
    json_decref(y);
    if (where != NULL) {
        text = rf_xasprintf("%s%s", part, where);
        free(where);
    }
    return text;
}

/* Those of the parts that say what was run and where. */
static char *differences(const json_t *a, const json_t *b)
{
    static const char *const parts[] = {"scenario", "model", "plan", "tool",
                                        "environment"};
    char *list = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        char *one = difference(parts[i], a, b), *before = list;
        if (one != NULL && before != NULL) {
            list = rf_xasprintf("%s, %s", before, one);
            free(before);
            free(one);
        } else if (one != NULL) {
            list = one;
        }
    }
    return list;
}

static bool is_ok(const json_t *result)
{
    return strcmp(rf_result_text(result, NULL, "status"), "ok") == 0;
}

/* No figures unless the scenario was ok. */
static struct rf_timing timing_of(const json_t *result)
{
    struct rf_timing out = {0};
    double *samples;
    if (!is_ok(result) ||
        !rf_result_number(result, "summary", "median_ms", &out.median_ms) ||
        out.median_ms <= 0) {
        return (struct rf_timing){0};
    }
    samples = rf_result_samples(result, "refit_ms", &out.n_samples);
    out.has_interval = rf_stats_median_interval(samples, out.n_samples,
                                                &out.low_ms, &out.high_ms);
    free(samples);
    (void)rf_result_number(result, "bound", "efficiency", &out.efficiency);
    (void)rf_result_number(result, "summary.yardstick_ratio", "median",
                           &out.yardstick_ratio);
    return out;
}

static enum rf_change judge(const struct rf_timing *a,
                            const struct rf_timing *b, double change,
                            double threshold)
{
    if (fabs(change) <= threshold) {
        return RF_SAME;
    }
    if (!a->has_interval || !b->has_interval) {
        return RF_UNCLEAR;
    }
    if (change > 0) {
        return b->low_ms > a->high_ms ? RF_SLOWER : RF_UNCLEAR;
    }
    return b->high_ms < a->low_ms ? RF_FASTER : RF_UNCLEAR;
}

static void add(struct rf_comparisons *out, struct rf_comparison entry,
                const char *name)
{
    entry.name = rf_xstrdup(name);
    RF_PUSH(out->list, out->n, out->cap, entry);
}

static bool has_change(const struct rf_comparison *one)
{
    return one->reference.median_ms > 0 && one->now.median_ms > 0;
}

static void compare_pair(const char *name, const json_t *a, const json_t *b,
                         struct rf_comparisons *out)
{
    struct rf_comparison entry = {.reference = timing_of(a),
                                  .now = timing_of(b),
                                  .differs = differences(a, b)};
    bool was = is_ok(a), is = is_ok(b);
    if (has_change(&entry)) {
        entry.change = entry.now.median_ms / entry.reference.median_ms - 1;
        entry.verdict =
            judge(&entry.reference, &entry.now, entry.change, out->threshold);
    } else {
        entry.verdict = was && is ? RF_NO_FIGURE
                        : was     ? RF_BROKEN
                        : is      ? RF_MENDED
                                  : RF_NOT_OK;
    }
    add(out, entry, name);
}

/* Scenarios are matched by name, so each name must be unique. */
static enum rf_status check_once(const struct rf_result_set *set,
                                 const char *folder, struct rf_err *err)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *first = find(set, set->files[i].name);
        if (first != NULL && first != &set->files[i]) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: scenario %s is in several runs (%s, %s); "
                              "compare the folder of one run",
                              folder, first->name, first->run,
                              set->files[i].run);
        }
    }
    return RF_OK;
}

enum rf_status rf_compare_check(const struct rf_result_set *reference,
                                const char *reference_folder,
                                const struct rf_result_set *now,
                                const char *now_folder, struct rf_err *err)
{
    enum rf_status status = check_once(reference, reference_folder, err);
    if (status == RF_OK) {
        status = check_once(now, now_folder, err);
    }
    for (size_t i = 0; status == RF_OK && i < now->n; i++) {
        if (find(reference, now->files[i].name) != NULL) {
            return RF_OK;
        }
    }
    return status != RF_OK
               ? status
               : rf_err_set(err, RF_ERR_CONFIG,
                            "no scenario is in both %s and %s; scenarios are "
                            "matched by name",
                            reference_folder, now_folder);
}

void rf_compare(const struct rf_result_set *reference,
                const struct rf_result_set *now, double threshold,
                struct rf_comparisons *out)
{
    out->threshold = threshold;
    for (size_t i = 0; i < reference->n; i++) {
        const char *name = reference->files[i].name;
        const struct rf_result_file *b = find(now, name);
        if (b == NULL) {
            add(out, (struct rf_comparison){.verdict = RF_MISSING}, name);
        } else {
            compare_pair(name, reference->files[i].result, b->result, out);
        }
    }
    for (size_t i = 0; i < now->n; i++) {
        const char *name = now->files[i].name;
        if (find(reference, name) == NULL) {
            add(out, (struct rf_comparison){.verdict = RF_NEW}, name);
        }
    }
}

void rf_compare_records(const json_t *reference, const json_t *now,
                        double threshold, struct rf_comparisons *out)
{
    char *name = rf_xstrdup(rf_result_text(now, NULL, "name"));
    rf_text_clean_line(name, strlen(name));
    out->threshold = threshold;
    compare_pair(name, reference, now, out);
    free(name);
}

void rf_comparisons_free(struct rf_comparisons *comparisons)
{
    for (size_t i = 0; i < comparisons->n; i++) {
        free(comparisons->list[i].name);
        free(comparisons->list[i].differs);
    }
    free(comparisons->list);
    *comparisons = (struct rf_comparisons){0};
}

static const struct {
    const char *name;
    bool is_regression;
} verdicts[] = {
    [RF_SAME] = {"same", false},      [RF_SLOWER] = {"slower", true},
    [RF_FASTER] = {"faster", false},  [RF_UNCLEAR] = {"unclear", false},
    [RF_BROKEN] = {"broken", true},   [RF_MENDED] = {"mended", false},
    [RF_MISSING] = {"missing", true}, [RF_NEW] = {"new", false},
    [RF_NOT_OK] = {"not ok", false},  [RF_NO_FIGURE] = {"no figure", false},
};

bool rf_comparison_is_regression(const struct rf_comparison *comparison)
{
    return verdicts[comparison->verdict].is_regression;
}

size_t rf_comparisons_regressions(const struct rf_comparisons *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        n += rf_comparison_is_regression(&all->list[i]);
    }
    return n;
}

/* Counts those with both intervals, or the others. */
static size_t count_unclear(const struct rf_comparisons *all, bool intervals)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_comparison *one = &all->list[i];
        n +=
            one->verdict == RF_UNCLEAR &&
            intervals == (one->reference.has_interval && one->now.has_interval);
    }
    return n;
}

static json_t *figure_or_null(double figure)
{
    return figure > 0 ? json_real(figure) : json_null();
}

static json_t *timing_json(const struct rf_timing *timing)
{
    if (timing->median_ms <= 0) {
        return json_null();
    }
    return json_pack("{s:f, s:o, s:I, s:o, s:o}", "median_ms",
                     timing->median_ms, "median_ci95_ms",
                     timing->has_interval
                         ? json_pack("[f, f]", timing->low_ms, timing->high_ms)
                         : json_null(),
                     "samples", (json_int_t)timing->n_samples, "efficiency",
                     figure_or_null(timing->efficiency), "yardstick_ratio",
                     figure_or_null(timing->yardstick_ratio));
}

json_t *rf_comparisons_json(const struct rf_comparisons *comparisons)
{
    json_t *list = json_array();
    for (size_t i = 0; i < comparisons->n; i++) {
        const struct rf_comparison *one = &comparisons->list[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:s?}", "scenario",
                      one->name, "verdict", verdicts[one->verdict].name,
                      "reference", timing_json(&one->reference), "new",
                      timing_json(&one->now), "change",
                      has_change(one) ? json_real(one->change) : json_null(),
                      "regression", rf_comparison_is_regression(one), "differs",
                      one->differs));
    }
    return json_pack("{s:f, s:I, s:I, s:o}", "threshold",
                     comparisons->threshold, "regressions",
                     (json_int_t)rf_comparisons_regressions(comparisons),
                     "unclear",
                     (json_int_t)(count_unclear(comparisons, false) +
                                  count_unclear(comparisons, true)),
                     "comparisons", list);
}

static void timing_cells(struct rf_table *table, const struct rf_timing *timing)
{
    char a[32], b[32];
    if (timing->median_ms <= 0) {
        rf_table_cell(table, "-");
        rf_table_cell(table, "-");
        return;
    }
    rf_table_cell(table, "%s", rf_amount_text(timing->median_ms, a));
    if (timing->has_interval) {
        rf_table_cell(table, "%s to %s", rf_amount_text(timing->low_ms, a),
                      rf_amount_text(timing->high_ms, b));
    } else {
        rf_table_cell(table, "too few samples");
    }
}

static void change_cell(struct rf_table *table, double old, double now)
{
    char a[32] = "-", b[32] = "-";
    if (old <= 0 && now <= 0) {
        rf_table_cell(table, "-");
        return;
    }
    rf_table_cell(table, "%s -> %s", old > 0 ? rf_figure_text(old, 2, a) : a,
                  now > 0 ? rf_figure_text(now, 2, b) : b);
}

void rf_comparisons_print(const struct rf_comparisons *all, FILE *to)
{
    static const char *const heads[] = {
        "scenario",   "verdict",      ">old ms", ">old 95 %",
        ">new ms",    ">new 95 %",    ">change", "x yardstick",
        "efficiency", "also differs", NULL};
    static const char *const drops[] = {"efficiency",  "also differs",
                                        "x yardstick", "old 95 %",
                                        "new 95 %",    NULL};
    struct rf_table *table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "refit-coord compare OLD NEW | less -S");
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_comparison *one = &all->list[i];
        rf_table_cell(table, "%s", one->name);
        rf_table_cell(table, "%s", verdicts[one->verdict].name);
        timing_cells(table, &one->reference);
        timing_cells(table, &one->now);
        rf_table_cell(table, has_change(one) ? "%+.1f %%" : "-",
                      one->change * 100);
        change_cell(table, one->reference.yardstick_ratio,
                    one->now.yardstick_ratio);
        change_cell(table, one->reference.efficiency, one->now.efficiency);
        rf_table_cell(table, "%s", one->differs != NULL ? one->differs : "");
    }
    rf_table_print(table, to, RF_REPORT_TABLE, 0);
    rf_table_destroy(table);
}

void rf_comparisons_print_totals(const struct rf_comparisons *all, FILE *to)
{
    size_t regressions = rf_comparisons_regressions(all), slower = 0;
    size_t overlaps = count_unclear(all, true);
    size_t few = count_unclear(all, false);
    double percent = all->threshold * 100;
    for (size_t i = 0; i < all->n; i++) {
        slower += all->list[i].verdict == RF_SLOWER;
    }
    fprintf(to, "%zu regression%s", regressions, regressions == 1 ? "" : "s");
    if (slower > 0) {
        fprintf(to, ", %zu slower by more than %.3g %%", slower, percent);
    }
    fputc('\n', to);
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
