/*
 * Compares two sets of results.
 *
 * One median is judged, unless thresholds name another. If both sides measured
 * the same yardstick, it is that of refit over yardstick: a shared machine
 * changes its speed between two runs, but not between two neighbours. Otherwise
 * it is that of the time. A median has moved when the change is beyond the
 * threshold and the intervals do not overlap, so noise does not count. Peak
 * memory hardly varies and is a single figure, so it needs no interval.
 *
 * Thresholds are two-sided: a decrease is reported too, since an unexplained
 * gain is often a mistake, but only slower, larger, broken or missing makes the
 * exit code 1. Each finding lists what else differs (machine, versions,
 * scenario, plan), so that a different question is not mistaken for a different
 * answer.
 */
#include "coordinator/reports/compare.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/records_differ.h"

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

/* All zero unless the scenario was ok. */
static struct rf_compared side_of(const json_t *result)
{
    struct rf_compared out = {0};
    if (!rf_result_is_ok(result)) {
        return out;
    }
    out.ms = rf_median_interval_of_time(result);
    if (out.ms.median > 0) {
        out.ratio = rf_median_interval_of(result, "summary.yardstick_ratio",
                                          "median", "yardstick_ratio");
        out.efficiency = rf_result_figure(result, "bound", "efficiency");
    }
    out.peak_bytes = rf_result_figure(result, "summary.memory", "peak_bytes");
    out.predicted_bytes =
        rf_result_figure(result, "summary.memory", "predicted_bytes");
    return out;
}

/* Whether the yardsticks of two results move the same bytes the same way. If
 * not, their ratios do not show which refit takes longer. */
static bool same_yardstick(const json_t *a, const json_t *b)
{
    static const char *const keys[][2] = {
        {"plan", "digest"},         {"scenario", "method"},
        {"scenario", "strategy"},   {"scenario", "balance"},
        {"scenario", "serialize"},  {"setup", "registration"},
        {"schedule", "wire_bytes"}, {"schedule", "inter_node_bytes"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        const json_t *x = rf_result_value(a, keys[i][0], keys[i][1]);
        const json_t *y = rf_result_value(b, keys[i][0], keys[i][1]);
        if (x != y && !json_equal(x, y)) {
            return false;
        }
    }
    return true;
}

const struct rf_median_interval *
rf_compared_middle(const struct rf_compared *side, enum rf_metric metric)
{
    return metric == RF_METRIC_RATIO ? &side->ratio : &side->ms;
}

static enum rf_change judge_medians(const struct rf_median_interval *a,
                                    const struct rf_median_interval *b,
                                    double change)
{
    if (!a->has_interval || !b->has_interval) {
        return RF_UNCLEAR;
    }
    if (change > 0) {
        return b->low > a->high ? RF_SLOWER : RF_UNCLEAR;
    }
    return b->high < a->low ? RF_FASTER : RF_UNCLEAR;
}

/* Judges one metric; both sides must have its figure. */
static void judge(struct rf_comparison *one, enum rf_metric metric,
                  const struct rf_threshold *limits)
{
    struct rf_judgement *out = &one->judgements[metric];
    const struct rf_median_interval *a =
        rf_compared_middle(&one->reference, metric);
    const struct rf_median_interval *b = rf_compared_middle(&one->now, metric);
    const bool memory = metric == RF_METRIC_MEMORY;
    out->judged = true;
    out->change = memory ? one->now.peak_bytes / one->reference.peak_bytes - 1
                         : b->median / a->median - 1;
    out->verdict = !rf_threshold_exceeded(limits, out->change) ? RF_SAME
                   : !memory         ? judge_medians(a, b, out->change)
                   : out->change > 0 ? RF_LARGER
                                     : RF_SMALLER;
}

static void add(struct rf_comparisons *out, struct rf_comparison entry,
                const char *name)
{
    entry.name = rf_xstrdup(name);
    RF_PUSH(out->list, out->n, out->cap, entry);
}

bool rf_comparison_has_change(const struct rf_comparison *one)
{
    return one->verdict != RF_OTHER_MODEL && one->reference.ms.median > 0 &&
           one->now.ms.median > 0;
}

static bool is_rerun_of(const struct rf_median_interval *one,
                        const struct rf_median_interval *other)
{
    return one->median >= other->rerun_low && one->median <= other->rerun_high;
}

bool rf_comparison_agrees(const struct rf_comparison *one, bool *agree)
{
    const struct rf_median_interval *a = &one->reference.ratio,
                                    *b = &one->now.ratio;
    if (!one->judgements[RF_METRIC_RATIO].judged || !a->has_interval ||
        !b->has_interval) {
        return false;
    }
    *agree = is_rerun_of(a, b) || is_rerun_of(b, a);
    return true;
}

static const enum rf_change gravest_first[] = {
    RF_SLOWER, RF_LARGER, RF_UNCLEAR, RF_FASTER, RF_SMALLER, RF_SAME};

static bool was_judged(const struct rf_comparison *one, enum rf_change verdict)
{
    for (size_t m = 0; m < RF_METRICS; m++) {
        if (one->judgements[m].judged &&
            one->judgements[m].verdict == verdict) {
            return true;
        }
    }
    return false;
}

static enum rf_change gravest_of(const struct rf_comparison *one)
{
    size_t i = 0;
    while (gravest_first[i] != RF_SAME && !was_judged(one, gravest_first[i])) {
        i++;
    }
    return gravest_first[i];
}

/* Whether the ratio decides, not the time: the graver of the two does, if both
 * are judged. */
static bool ratio_decides(const struct rf_comparison *one)
{
    const struct rf_judgement *ratio = &one->judgements[RF_METRIC_RATIO];
    const struct rf_judgement *time = &one->judgements[RF_METRIC_TIME];
    if (!ratio->judged || !time->judged) {
        return ratio->judged;
    }
    for (size_t i = 0; gravest_first[i] != RF_SAME; i++) {
        if (time->verdict == gravest_first[i] ||
            ratio->verdict == gravest_first[i]) {
            return ratio->verdict == gravest_first[i];
        }
    }
    return true;
}

/* Both sides must have figures. */
static void judge_pair(struct rf_comparison *one, bool same_yardsticks,
                       const struct rf_thresholds *thresholds)
{
    const struct rf_threshold *limits = thresholds->of;
    const bool named = limits[RF_METRIC_TIME].named;
    const bool ratio = same_yardsticks && one->reference.ratio.median > 0 &&
                       one->now.ratio.median > 0 &&
                       (!named || limits[RF_METRIC_RATIO].named);
    if (ratio) {
        judge(one, RF_METRIC_RATIO, &limits[RF_METRIC_RATIO]);
    }
    if (named || !ratio) {
        judge(one, RF_METRIC_TIME, &limits[RF_METRIC_TIME]);
    }
    if (one->reference.peak_bytes > 0 && one->now.peak_bytes > 0) {
        judge(one, RF_METRIC_MEMORY, &limits[RF_METRIC_MEMORY]);
    }
    one->verdict = gravest_of(one);
    one->by_ratio = ratio_decides(one);
    one->time_change = one->now.ms.median / one->reference.ms.median - 1;
    one->change = one->by_ratio ? one->judgements[RF_METRIC_RATIO].change
                                : one->time_change;
}

/* An older record may lack its model. */
static bool same_model(const json_t *a, const json_t *b)
{
    static const char *const converted[] = {"bytes", "tensors"};
    json_auto_t *x = rf_refit_model(json_object_get(a, "model"));
    json_auto_t *y = rf_refit_model(json_object_get(b, "model"));
    if (rf_result_senders_convert(a) || rf_result_senders_convert(b)) {
        for (size_t i = 0; i < RF_ARRAY_SIZE(converted); i++) {
            json_object_del(x, converted[i]);
            json_object_del(y, converted[i]);
        }
    }
    return x == NULL || y == NULL || json_equal(x, y);
}

static void compare_pair(const char *name, const json_t *a, const json_t *b,
                         struct rf_comparisons *out)
{
    struct rf_comparison entry = {.reference = side_of(a),
                                  .now = side_of(b),
                                  .differs = rf_records_differ(a, b),
                                  .old_record = json_incref((json_t *)a),
                                  .new_record = json_incref((json_t *)b)};
    bool was = rf_result_is_ok(a), is = rf_result_is_ok(b);
    if (was && is && !same_model(a, b)) {
        entry.verdict = RF_OTHER_MODEL;
    } else if (rf_comparison_has_change(&entry)) {
        judge_pair(&entry, same_yardstick(a, b), &out->thresholds);
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
                              "compare the folder of one run, or pool "
                              "them with --pool",
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
    RF_THEN(status, check_once(now, now_folder, err));
    for (size_t i = 0; status == RF_OK && i < now->n; i++) {
        if (find(reference, now->files[i].name) != NULL) {
            return RF_OK;
        }
    }
    return status != RF_OK
               ? status
               : rf_err_set(err, RF_ERR_CONFIG,
                            "no scenario is in both %s and %s; scenarios are "
                            "matched by name; to compare two of different "
                            "names, give `refit-coord compare` their files, "
                            "RUN/NAME.json",
                            reference_folder, now_folder);
}

void rf_compare(const struct rf_result_set *reference,
                const struct rf_result_set *now,
                const struct rf_thresholds *thresholds,
                struct rf_comparisons *out)
{
    out->thresholds = *thresholds;
    for (size_t i = 0; i < reference->n; i++) {
        const char *name = reference->files[i].name;
        json_t *a = reference->files[i].result;
        const struct rf_result_file *b = find(now, name);
        if (b == NULL) {
            add(out,
                (struct rf_comparison){.verdict = RF_MISSING,
                                       .old_record = json_incref(a)},
                name);
        } else {
            compare_pair(name, a, b->result, out);
        }
    }
    for (size_t i = 0; i < now->n; i++) {
        const char *name = now->files[i].name;
        if (find(reference, name) == NULL) {
            json_t *b = now->files[i].result;
            add(out,
                (struct rf_comparison){.verdict = RF_NEW,
                                       .new_record = json_incref(b)},
                name);
        }
    }
}

void rf_compare_records(const json_t *reference, const json_t *now,
                        const struct rf_thresholds *thresholds,
                        struct rf_comparisons *out)
{
    const char *old_name = rf_result_text(reference, NULL, "name");
    const char *new_name = rf_result_text(now, NULL, "name");
    char *name = strcmp(old_name, new_name) == 0
                     ? rf_xstrdup(new_name)
                     : rf_xasprintf("%s -> %s", old_name, new_name);
    rf_text_clean_line(name, strlen(name));
    out->thresholds = *thresholds;
    compare_pair(name, reference, now, out);
    free(name);
}

void rf_comparisons_free(struct rf_comparisons *comparisons)
{
    for (size_t i = 0; i < comparisons->n; i++) {
        free(comparisons->list[i].name);
        free(comparisons->list[i].differs);
        json_decref(comparisons->list[i].old_record);
        json_decref(comparisons->list[i].new_record);
    }
    free(comparisons->list);
    *comparisons = (struct rf_comparisons){0};
}

static const struct {
    const char *name;
    bool is_regression;
} verdicts[] = {
    [RF_SAME] = {"same", false},
    [RF_SLOWER] = {"slower", true},
    [RF_LARGER] = {"larger", true},
    [RF_SMALLER] = {"smaller", false},
    [RF_FASTER] = {"faster", false},
    [RF_UNCLEAR] = {"unclear", false},
    [RF_BROKEN] = {"broken", true},
    [RF_MENDED] = {"mended", false},
    [RF_MISSING] = {"missing", true},
    [RF_NEW] = {"new", false},
    [RF_NOT_OK] = {"not ok", false},
    [RF_NO_FIGURE] = {"no figure", false},
    [RF_OTHER_MODEL] = {"other model", false},
};

const char *rf_change_name(enum rf_change verdict)
{
    return verdicts[verdict].name;
}

char *rf_comparison_findings(const struct rf_comparison *one)
{
    char *text = NULL;
    for (size_t i = 0; gravest_first[i] != RF_SAME; i++) {
        if (was_judged(one, gravest_first[i])) {
            rf_text_add(&text, ", ", "%s", rf_change_name(gravest_first[i]));
        }
    }
    return text != NULL ? text : rf_xstrdup(rf_change_name(one->verdict));
}

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

bool rf_comparisons_all_of_other_models(const struct rf_comparisons *all)
{
    bool other = false, judged = false;
    for (size_t i = 0; i < all->n; i++) {
        other |= all->list[i].verdict == RF_OTHER_MODEL;
        judged |= rf_comparison_has_change(&all->list[i]);
    }
    return other && !judged;
}
