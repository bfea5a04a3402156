/* What counts as a regression, and what cannot be compared. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/reports/compare.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

/* `spread`: how far the fastest and the slowest of five iterations are from the
 * median, in ms; 0 for one iteration. */
static void add_spread(struct rf_result_set *set, const char *name,
                       const char *status, double median, double efficiency,
                       double spread)
{
    json_t *result = result_record(name, status, median, efficiency);
    json_t *iterations = json_array();
    for (int i = spread > 0 ? -2 : 0; i <= (spread > 0 ? 2 : 0); i++) {
        json_array_append_new(iterations, json_pack("{s:f}", "refit_ms",
                                                    median + i * spread / 2));
    }
    json_object_set_new(result, "iterations", iterations);
    RF_PUSH(set->files, set->n, set->cap,
            ((struct rf_result_file){.path = rf_xstrdup("x/x.json"),
                                     .name = rf_xstrdup(name),
                                     .run = rf_xstrdup("x"),
                                     .result = result}));
}

static void add(struct rf_result_set *set, const char *name, const char *status,
                double median, double efficiency)
{
    add_spread(set, name, status, median, efficiency, 1);
}

/* Two sets of results, empty at first, and what comparing them gives. */
static struct rf_result_set reference, now;
static struct rf_comparisons all;

static void forget(void)
{
    rf_comparisons_free(&all);
    rf_result_set_free(&reference);
    rf_result_set_free(&now);
}

static void compare(void)
{
    const struct rf_thresholds thresholds = rf_thresholds_default();
    rf_compare(&reference, &now, &thresholds, &all);
}

/* The entry of a scenario; there must be one. */
static RF_NONNULL const struct rf_comparison *find(const char *name)
{
    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.list[i].name, name) == 0) {
            return &all.list[i];
        }
    }
    ck_abort_msg("no entry of %s", name);
    return &all.list[0];
}

FIXTURE(NULL, forget)

TEST(test_compare_is_two_sided)
{
    add(&reference, "slow", "ok", 100, 0.9);
    add(&now, "slow", "ok", 111, 0.9);
    add(&reference, "fast", "ok", 100, 0.9);
    add(&now, "fast", "ok", 89, 0.9);
    add(&reference, "same", "ok", 100, 0.9);
    add(&now, "same", "ok", 109, 0.9);
    compare();
    ck_assert_int_eq(find("slow")->verdict, RF_SLOWER);
    ck_assert_int_eq(find("fast")->verdict, RF_FASTER);
    ck_assert_int_eq(find("same")->verdict, RF_SAME);
    ck_assert(rf_comparison_is_regression(find("slow")));
    ck_assert(!rf_comparison_is_regression(find("fast")));
    ck_assert_double_eq_tol(find("slow")->change, 0.11, 1e-9);
}

/* Five iterations of `ms` each, whose ratios are around `ratio`. */
static void add_ratio(struct rf_result_set *set, const char *name, double ms,
                      double ratio, double spread)
{
    json_t *result, *iterations;
    add(set, name, "ok", ms, 0.9);
    result = set->files[set->n - 1].result;
    iterations = json_object_get(result, "iterations");
    json_object_set_new(json_object_get(result, "summary"), "yardstick_ratio",
                        json_pack("{s:f}", "median", ratio));
    for (int i = 0; i < 5; i++) {
        json_object_set_new(json_array_get(iterations, (size_t)i),
                            "yardstick_ratio",
                            json_real(ratio + (i - 2) * spread / 2));
    }
}

/* A machine that is half as fast is no regression, and one that is twice as
 * fast hides none. */
TEST(test_compare_judges_the_ratio_where_both_have_one)
{
    json_auto_t *document;
    add_ratio(&reference, "moment", 100, 1.0, 0.02);
    add_ratio(&now, "moment", 200, 1.03, 0.02);
    add_ratio(&reference, "slow", 100, 1.0, 0.02);
    add_ratio(&now, "slow", 60, 1.2, 0.02);
    add_ratio(&reference, "fast", 100, 1.2, 0.02);
    add_ratio(&now, "fast", 150, 1.0, 0.02);
    add_ratio(&reference, "unclear", 100, 1.0, 0.3);
    add_ratio(&now, "unclear", 100, 1.2, 0.3);
    compare();
    ck_assert_int_eq(find("moment")->verdict, RF_SAME);
    ck_assert_int_eq(find("slow")->verdict, RF_SLOWER);
    ck_assert_int_eq(find("fast")->verdict, RF_FASTER);
    ck_assert_int_eq(find("unclear")->verdict, RF_UNCLEAR);
    ck_assert(find("moment")->by_ratio);
    ck_assert_double_eq_tol(find("moment")->change, 0.03, 1e-9);
    ck_assert_double_eq_tol(find("moment")->time_change, 1, 1e-9);
    ck_assert_double_eq_tol(find("slow")->reference.ratio.low, 0.98, 1e-9);
    document = rf_comparisons_json(&all);
    ck_assert_str_eq(
        rf_result_text(json_at(document, "comparisons[0]"), NULL, "judged"),
        "yardstick_ratio");
}

/* The intervals reach 0.01 to either side, those of reruns 0.0141. */
LOOP_TEST(test_compare_says_whether_ratios_agree, 6)
{
    static const struct {
        double ratio, spread;
        bool agrees;
    } cases[] = {{1.014, 0.01, true}, {1.015, 0.01, false},
                 {0.986, 0.01, true}, {0.985, 0.01, false},
                 {1.028, 0.02, true}, {1.029, 0.02, false}};
    bool agree = !cases[_i].agrees;
    add_ratio(&reference, "one", 100, 1.0, 0.01);
    add_ratio(&now, "one", 100, cases[_i].ratio, cases[_i].spread);
    add(&reference, "no yardstick", "ok", 100, 0.9);
    add(&now, "no yardstick", "ok", 100, 0.9);
    compare();
    ck_assert(rf_comparison_agrees(find("one"), &agree));
    ck_assert_int_eq(agree, cases[_i].agrees);
    ck_assert(!rf_comparison_agrees(find("no yardstick"), &agree));
}

TEST(test_compare_judges_the_time_without_a_common_yardstick)
{
    add_ratio(&reference, "one", 100, 1.0, 0.02);
    add(&now, "one", "ok", 200, 0.9);
    add(&reference, "other", "ok", 100, 0.9);
    add_ratio(&now, "other", 100, 2.0, 0.02);
    add_ratio(&reference, "method", 100, 1.0, 0.02);
    add_ratio(&now, "method", 200, 1.0, 0.02);
    json_object_set_new(json_object_get(now.files[2].result, "scenario"),
                        "method", json_string("tcp"));
    add_ratio(&reference, "bytes", 200, 1.0, 0.02);
    add_ratio(&now, "bytes", 100, 1.0, 0.02);
    json_object_set_new(now.files[3].result, "schedule",
                        json_pack("{s:i}", "wire_bytes", 7));
    add_ratio(&reference, "ways", 100, 1.0, 0.02);
    add_ratio(&now, "ways", 300, 1.0, 0.02);
    json_object_set_new(now.files[4].result, "setup",
                        json_pack("{s:s}", "registration", "1 puts by tcp/lo"));
    compare();
    for (size_t i = 0; i < all.n; i++) {
        ck_assert(!all.list[i].by_ratio);
        ck_assert_double_eq(all.list[i].change, all.list[i].time_change);
    }
    ck_assert_int_eq(find("one")->verdict, RF_SLOWER);
    ck_assert_int_eq(find("other")->verdict, RF_SAME);
    ck_assert_int_eq(find("method")->verdict, RF_SLOWER);
    ck_assert_int_eq(find("bytes")->verdict, RF_FASTER);
    ck_assert_int_eq(find("ways")->verdict, RF_SLOWER);
    assert_says(find("ways")->differs, "setup.registration");
}

/* As with times: nothing is slower on two samples. */
TEST(test_compare_takes_an_interval_of_the_ratios)
{
    json_t *iterations;
    add_ratio(&reference, "few", 100, 1.0, 0.02);
    add_ratio(&now, "few", 100, 2.0, 0.02);
    iterations = json_object_get(now.files[0].result, "iterations");
    for (size_t i = 0; i < 3; i++) {
        json_object_set_new(json_array_get(iterations, i), "yardstick_ratio",
                            json_null());
    }
    compare();
    ck_assert(find("few")->by_ratio);
    ck_assert_int_eq(find("few")->verdict, RF_UNCLEAR);
    ck_assert_uint_eq(find("few")->now.ratio.n_samples, 2);
}

/* Five iterations of 100 ms, and a rank that needed so many bytes. */
static void add_memory(struct rf_result_set *set, const char *name,
                       double bytes)
{
    json_t *summary;
    add(set, name, "ok", 100, 0.9);
    summary = json_object_get(set->files[set->n - 1].result, "summary");
    json_object_set_new(summary, "memory",
                        json_pack("{s:I, s:I}", "peak_bytes", (json_int_t)bytes,
                                  "predicted_bytes",
                                  (json_int_t)(bytes * 0.9)));
}

TEST(test_compare_judges_peak_memory)
{
    AUTO_FREE char *findings;
    add_memory(&reference, "larger", 1e9);
    add_memory(&now, "larger", 1.2e9);
    add_memory(&reference, "smaller", 1e9);
    add_memory(&now, "smaller", 0.8e9);
    add_memory(&reference, "same", 1e9);
    add_memory(&now, "same", 1.05e9);
    add(&reference, "unknown", "ok", 100, 0.9);
    add_memory(&now, "unknown", 1e9);
    add_memory(&reference, "both", 1e9);
    add_memory(&now, "both", 1.2e9);
    json_object_set_new(json_object_get(now.files[4].result, "summary"),
                        "median_ms", json_real(200));
    json_object_set_new(now.files[4].result, "iterations",
                        json_pack("[{s:i}, {s:i}, {s:i}, {s:i}, {s:i}]",
                                  "refit_ms", 198, "refit_ms", 199, "refit_ms",
                                  200, "refit_ms", 201, "refit_ms", 202));
    compare();
    ck_assert_int_eq(find("larger")->verdict, RF_LARGER);
    ck_assert_int_eq(find("smaller")->verdict, RF_SMALLER);
    ck_assert_int_eq(find("same")->verdict, RF_SAME);
    ck_assert_int_eq(find("unknown")->verdict, RF_SAME);
    ck_assert(!find("unknown")->judgements[RF_METRIC_MEMORY].judged);
    ck_assert_uint_eq(rf_comparisons_regressions(&all), 2);
    findings = rf_comparison_findings(find("both"));
    ck_assert_str_eq(findings, "slower, larger");
    ck_assert_int_eq(find("both")->verdict, RF_SLOWER);
    ck_assert_double_eq_tol(find("both")->judgements[RF_METRIC_MEMORY].change,
                            0.2, 1e-9);
}

/* As --threshold says. */
static void compare_by(const char *limits)
{
    struct rf_thresholds thresholds = rf_thresholds_default();
    ck_assert_int_eq(rf_thresholds_read(limits, &thresholds, NULL), RF_OK);
    rf_comparisons_free(&all);
    rf_compare(&reference, &now, &thresholds, &all);
}

TEST(test_compare_judges_the_metrics_that_are_named)
{
    add_ratio(&reference, "s", 100, 1.0, 0.02);
    add_ratio(&now, "s", 150, 1.2, 0.02);
    compare_by("time=20%");
    ck_assert(!find("s")->by_ratio);
    ck_assert(!find("s")->judgements[RF_METRIC_RATIO].judged);
    ck_assert_int_eq(find("s")->verdict, RF_SLOWER);
    compare_by("time=60%");
    ck_assert_int_eq(find("s")->verdict, RF_SAME);
    compare_by("time=60%,ratio=10%");
    ck_assert(find("s")->by_ratio);
    ck_assert_int_eq(find("s")->verdict, RF_SLOWER);
    compare_by("time=20%,ratio=30%");
    ck_assert(!find("s")->by_ratio);
    ck_assert_double_eq_tol(find("s")->change, 0.5, 1e-9);
    compare_by("ratio=30%");
    ck_assert_int_eq(find("s")->verdict, RF_SAME);
    ck_assert(!find("s")->judgements[RF_METRIC_TIME].judged);
}

TEST(test_compare_has_a_limit_for_each_direction)
{
    add(&reference, "up", "ok", 100, 0.9);
    add(&now, "up", "ok", 108, 0.9);
    add(&reference, "down", "ok", 100, 0.9);
    add(&now, "down", "ok", 85, 0.9);
    compare_by("time=+5%-20%");
    ck_assert_int_eq(find("up")->verdict, RF_SLOWER);
    ck_assert_int_eq(find("down")->verdict, RF_SAME);
    compare_by("time=+10%-5%");
    ck_assert_int_eq(find("up")->verdict, RF_SAME);
    ck_assert_int_eq(find("down")->verdict, RF_FASTER);
}

TEST(test_compare_shows_efficiency_but_does_not_judge_it)
{
    add(&reference, "same", "ok", 100, 0.9);
    add(&now, "same", "ok", 100, 0.5);
    add(&reference, "fast", "ok", 100, 0.9);
    add(&now, "fast", "ok", 83, 0.5);
    compare();
    ck_assert_uint_eq(all.n, 2);
    ck_assert_int_eq(find("same")->verdict, RF_SAME);
    ck_assert_int_eq(find("fast")->verdict, RF_FASTER);
    ck_assert_double_eq(find("fast")->reference.efficiency, 0.9);
    ck_assert_double_eq(find("fast")->now.efficiency, 0.5);
}

TEST(test_compare_calls_overlapping_intervals_unclear)
{
    add_spread(&reference, "up", "ok", 100, 0.9, 10);
    add_spread(&now, "up", "ok", 115, 0.9, 10);
    add_spread(&reference, "down", "ok", 100, 0.9, 10);
    add_spread(&now, "down", "ok", 85, 0.9, 10);
    add_spread(&reference, "apart", "ok", 100, 0.9, 10);
    add_spread(&now, "apart", "ok", 125, 0.9, 10);
    compare();
    ck_assert_int_eq(find("up")->verdict, RF_UNCLEAR);
    ck_assert_int_eq(find("down")->verdict, RF_UNCLEAR);
    ck_assert_int_eq(find("apart")->verdict, RF_SLOWER);
    ck_assert(!rf_comparison_is_regression(find("up")));
    ck_assert_double_eq(find("up")->reference.ms.low, 90);
    ck_assert_double_eq(find("up")->reference.ms.high, 110);
}

TEST(test_compare_calls_nothing_slower_on_too_few_samples)
{
    add_spread(&reference, "s", "ok", 100, 0.9, 0);
    add_spread(&now, "s", "ok", 300, 0.9, 1);
    add_spread(&reference, "near", "ok", 100, 0.9, 0);
    add_spread(&now, "near", "ok", 101, 0.9, 0);
    compare();
    ck_assert_int_eq(find("s")->verdict, RF_UNCLEAR);
    ck_assert(!find("s")->reference.ms.has_interval);
    ck_assert_uint_eq(find("s")->reference.ms.n_samples, 1);
    ck_assert(find("s")->now.ms.has_interval);
    ck_assert_int_eq(find("near")->verdict, RF_SAME);
}

TEST(test_compare_takes_no_samples_that_cannot_be)
{
    const double bad[] = {-1, 1e308};
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 100, 0.9);
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad); i++) {
        json_array_append_new(
            json_object_get(now.files[0].result, "iterations"),
            json_pack("{s:f}", "refit_ms", bad[i]));
    }
    compare();
    ck_assert_uint_eq(find("s")->reference.ms.n_samples, 5);
    ck_assert_uint_eq(find("s")->now.ms.n_samples, 5);
}

static const json_t *entry_of(const json_t *document, size_t i)
{
    return json_array_get(json_object_get(document, "comparisons"), i);
}

TEST(test_compare_gives_null_for_figures_that_are_not_there)
{
    json_auto_t *document;
    const json_t *broken, *few, *fresh;
    double median;
    add(&reference, "broken", "ok", 7, 1);
    add(&now, "broken", "failed", 7, 1);
    add_spread(&reference, "few", "ok", 1, 0, 0);
    add(&now, "few", "ok", 1, 1);
    add(&now, "fresh", "ok", 1, 1);
    compare();
    document = rf_comparisons_json(&all);
    broken = entry_of(document, 0);
    few = entry_of(document, 1);
    fresh = entry_of(document, 2);
    ck_assert(rf_result_number(broken, "reference", "median_ms", &median));
    ck_assert_double_eq(median, 7);
    ck_assert(json_is_null(json_object_get(broken, "new")));
    ck_assert(json_is_null(json_object_get(broken, "change")));
    few = json_object_get(few, "reference");
    ck_assert(json_is_null(json_object_get(few, "median_ci95_ms")));
    ck_assert(json_is_null(json_object_get(few, "efficiency")));
    ck_assert(json_is_null(json_object_get(fresh, "reference")));
    ck_assert(json_is_null(json_object_get(fresh, "new")));
}

TEST(test_compare_lists_missing_new_broken_and_mended)
{
    add(&reference, "gone", "ok", 1, 1);
    add(&now, "fresh", "ok", 1, 1);
    add(&reference, "broken", "ok", 1, 1);
    add(&now, "broken", "failed", 1, 1);
    add(&reference, "mended", "failed", 1, 1);
    add(&now, "mended", "ok", 1, 1);
    compare();
    ck_assert_int_eq(find("gone")->verdict, RF_MISSING);
    ck_assert_int_eq(find("fresh")->verdict, RF_NEW);
    ck_assert_int_eq(find("broken")->verdict, RF_BROKEN);
    ck_assert_int_eq(find("mended")->verdict, RF_MENDED);
    ck_assert(rf_comparison_is_regression(find("gone")));
    ck_assert(rf_comparison_is_regression(find("broken")));
    ck_assert(!rf_comparison_is_regression(find("fresh")));
}

TEST(test_compare_calls_only_what_is_not_ok_broken)
{
    add(&reference, "lost", "ok", 100, 0.9);
    add(&now, "lost", "ok", -1, 0.9);
    add(&reference, "found", "ok", -1, 0.9);
    add(&now, "found", "ok", 100, 0.9);
    add(&reference, "broken", "ok", -1, 0.9);
    add(&now, "broken", "failed", 100, 0.9);
    add(&reference, "failed", "failed", 100, 0.9);
    add(&now, "failed", "mismatch", 100, 0.9);
    compare();
    ck_assert_int_eq(find("lost")->verdict, RF_NO_FIGURE);
    ck_assert_int_eq(find("found")->verdict, RF_NO_FIGURE);
    ck_assert(!rf_comparison_is_regression(find("lost")));
    ck_assert_int_eq(find("broken")->verdict, RF_BROKEN);
    ck_assert_int_eq(find("failed")->verdict, RF_NOT_OK);
}

TEST(test_compare_names_what_else_differs)
{
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 200, 0.9);
    json_object_set_new(json_object_get(now.files[0].result, "scenario"),
                        "method", json_string("tcp"));
    compare();
    ck_assert_str_eq(all.list[0].differs, "scenario.method");
}

TEST(test_compare_does_not_name_what_bears_on_nothing)
{
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 200, 0.9);
    json_object_set_new(json_object_get(now.files[0].result, "scenario"),
                        "iterations", json_integer(77));
    json_object_set_new(now.files[0].result, "model",
                        json_pack("{s:s}", "name", "other"));
    json_object_set_new(reference.files[0].result, "model", json_object());
    compare();
    ck_assert_ptr_null(all.list[0].differs);
}

/* A result of a model whose senders or receivers convert. */
static void add_converted(struct rf_result_set *set, const char *scenario,
                          int parameters, int bytes, int tensors)
{
    json_t *result;
    add(set, "s", "ok", 100, 0.9);
    result = set->files[set->n - 1].result;
    json_object_set_new(result, "scenario", json_loads(scenario, 0, NULL));
    json_object_set_new(result, "model",
                        json_pack("{s:i, s:i, s:s, s:i}", "parameters",
                                  parameters, "bytes", bytes, "dtype",
                                  "bfloat16", "tensors", tensors));
}

#define AT(end) "{\"quantize\": {\"format\": \"mxfp8\", \"at\": \"" end "\"}}"

/* Where senders convert, bytes and tensors of the model are of what moves. */
TEST(test_compare_knows_a_model_before_senders_convert_it)
{
    static const struct {
        const char *then, *now;
        int parameters, bytes;
        enum rf_change verdict;
    } cases[] = {
        {AT("receiver"), AT("sender"), 100, 110, RF_SAME},
        {AT("sender"), "{}", 100, 110, RF_SAME},
        {"{\"infer\": [{}, " AT("sender") "]}", "{}", 100, 110, RF_SAME},
        {AT("receiver"), AT("sender"), 101, 110, RF_OTHER_MODEL},
        {AT("receiver"), AT("receiver"), 100, 110, RF_OTHER_MODEL}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        add_converted(&reference, cases[i].then, 100, 200, 10);
        add_converted(&now, cases[i].now, cases[i].parameters, cases[i].bytes,
                      18);
        compare();
        ck_assert_int_eq(all.list[0].verdict, cases[i].verdict);
        ck_assert_ptr_nonnull(strstr(all.list[0].differs, "model."));
        forget();
    }
}

/* Results of versions before unknown tensors could be replicated. */
LOOP_TEST(test_compare_takes_absent_keys_for_their_defaults, 2)
{
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 100, 0.9);
    json_object_set_new(json_object_get(now.files[0].result, "plan"), "unknown",
                        json_pack("{s:i, s:i, s:i}", "families", _i, "tensors",
                                  _i, "bytes", _i));
    compare();
    if (_i == 0) {
        ck_assert_ptr_null(all.list[0].differs);
    } else {
        ck_assert_str_eq(all.list[0].differs, "plan.unknown");
    }
}

static void add_environment(struct rf_result_set *set, const char *text)
{
    add(set, "s", "ok", 100, 0.9);
    json_object_set_new(set->files[0].result, "environment",
                        json_loads(text, 0, NULL));
}

/* The data port of an agent and what is free are others in every run, a boot
 * and a network namespace end with it. */
TEST(test_compare_takes_no_notice_of_what_each_run_has_of_its_own)
{
    add_environment(&reference,
                    "[{\"candidate\": \"127.0.0.1:1\", \"boot_id\": \"a\", "
                    "\"network\": 1, \"memory_available_bytes\": 100, "
                    "\"memory_limits\": [{\"group\": 0, "
                    "\"available_bytes\": 100}], \"shm_bytes\": 5, "
                    "\"kernel\": \"old\"}]");
    add_environment(&now,
                    "[{\"candidate\": \"127.0.0.1:2\", \"boot_id\": \"b\", "
                    "\"network\": 2, \"memory_available_bytes\": 90, "
                    "\"memory_limits\": [], \"shm_bytes\": 6, "
                    "\"kernel\": \"new\"}]");
    compare();
    ck_assert_str_eq(all.list[0].differs, "environment[0].kernel");
}

TEST(test_compare_refuses_what_it_cannot_match)
{
    struct rf_err err = {0};
    add(&reference, "a", "ok", 100, 0.9);
    add(&now, "b", "ok", 100, 0.9);
    assert_fails(rf_compare_check(&reference, "old", &now, "new", &err),
                 RF_ERR_CONFIG, err, "no scenario is in both old and");
    add(&now, "a", "ok", 100, 0.9);
    assert_ok(rf_compare_check(&reference, "old", &now, "new", &err), err);
    add(&now, "b", "ok", 100, 0.9);
    assert_fails(rf_compare_check(&reference, "old", &now, "new", &err),
                 RF_ERR_CONFIG, err, "new: scenario b is in several");
}
