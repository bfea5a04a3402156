/* One record of several attempts. Those of result_lab.h take 14, 15 and 16 ms
 * beside yardsticks of 10 ms; a slower one takes more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/repeats.h"
#include "coordinator/store/result_json.h"
#include "tests/lib/result_lab.h"
#include "tests/unit/unit.h"

static json_t *record_of(const struct rf_attempt *attempt)
{
    json_auto_t *nodes = json_pack("[{s:s}, {s:s}]", "host", "a", "host", "b");
    const struct rf_result_run run = {.config = result_lab.config,
                                      .model = result_lab.model,
                                      .run_id = "0123",
                                      .maker = result_lab.settings.maker,
                                      .environment = nodes};
    return rf_result_json(&run, attempt);
}

/* Of the first scenario, every rank `more_ms` slower. Planned in no time, which
 * so is the same for all. */
static struct rf_attempt *slower(int64_t more_ms)
{
    struct rf_attempt *attempt = result_lab_attempt(0);
    attempt->scenario->built_ns = 0;
    attempt->scenario->plan->plan_ns = 0;
    for (size_t i = 0; i < attempt->n_iterations; i++) {
        for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
            attempt->iterations[i].ranks[r].ns += more_ms * 1000000;
        }
    }
    return attempt;
}

/* Adds an attempt, which is taken, to the record, which is replaced. */
static void add(json_t **record, struct rf_attempt *attempt, uint32_t repeat)
{
    json_t *one = record_of(attempt);
    json_t *all = rf_repeats_add(*record, one, repeat);
    json_decref(one);
    json_decref(*record);
    rf_attempt_destroy(attempt);
    *record = all;
}

static struct rf_attempt *failed(void)
{
    struct rf_attempt *attempt = slower(100);
    struct rf_fault fault =
        rf_fault_make(1, 2, RF_ERR_PEER, "rank killed by signal 9");
    rf_attempt_add_fault(attempt, &fault);
    result_lab_forget(attempt, 2); /* the warm-up and one are kept */
    attempt->verified = 1;
    return attempt;
}

static double number(const json_t *record, const char *object, const char *key)
{
    double value = NAN;
    ck_assert_msg(rf_result_number(record, object, key, &value), "%s.%s",
                  object, key);
    return value;
}

static const json_t *entry(const json_t *record, const char *list, size_t i)
{
    return json_array_get(json_object_get(record, list), i);
}

FIXTURE(result_lab_open, result_lab_close)

TEST(test_repeats_are_pooled_from_all_samples)
{
    json_auto_t *record = NULL;
    add(&record, slower(0), 0);
    add(&record, slower(10), 1);
    ck_assert_double_eq(number(record, "summary", "count"), 6);
    ck_assert_double_eq(number(record, "summary", "repeats"), 2);
    ck_assert_double_eq_tol(number(record, "summary", "median_ms"), 20, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "min_ms"), 14, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary.yardstick_ratio", "median"),
                            2, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary.phases", "pack_ms"), 1,
                            1e-9);
    ck_assert_double_eq_tol(number(record, "bound", "efficiency"),
                            number(record, "bound", "ms") / 20, 1e-9);
    ck_assert_double_eq_tol(number(record, "summary", "algbw_gbytes_per_s"),
                            number(record, "plan", "bytes_total") / 1e6 / 20,
                            1e-9);
}

/* Means 15 and 25: 2 · 3 · 5² = 150 between; 4 / 4 = 1 within; (150 - 1) / 3.
 */
TEST(test_repeats_have_their_variance_within_and_between)
{
    static const char time[] = "summary.variance.refit_ms";
    static const char ratio[] = "summary.variance.yardstick_ratio";
    json_auto_t *record = NULL;
    add(&record, slower(0), 0);
    add(&record, slower(10), 1);
    ck_assert_double_eq_tol(number(record, time, "mean_square_between"), 150,
                            1e-9);
    ck_assert_double_eq_tol(number(record, time, "mean_square_within"), 1,
                            1e-9);
    ck_assert_double_eq_tol(number(record, time, "between"), 149.0 / 3, 1e-9);
    ck_assert_double_eq_tol(number(record, time, "within"), 1, 1e-9);
    ck_assert_double_eq_tol(number(record, time, "within_percent"), 5, 1e-9);
    ck_assert_double_eq_tol(number(record, ratio, "between"), 1.49 / 3, 1e-9);
}

/* Either repeat may be drawn twice. */
TEST(test_repeats_widen_the_intervals)
{
    json_auto_t *record = NULL;
    const json_t *interval;
    add(&record, slower(0), 0);
    add(&record, slower(10), 1);
    interval = rf_result_value(record, "summary", "median_ci95_ms");
    ck_assert_double_le(json_number_value(json_array_get(interval, 0)), 15);
    ck_assert_double_ge(json_number_value(json_array_get(interval, 1)), 25);
    ck_assert_double_le(number(record, "summary.yardstick_ratio", "low"), 1.5);
    ck_assert_double_ge(number(record, "summary.yardstick_ratio", "high"), 2.5);
    ck_assert_double_le(number(record, "summary.yardstick_ratio", "rerun_low"),
                        2 - sqrt(2) / 2);
    ck_assert_double_ge(number(record, "summary.yardstick_ratio", "rerun_high"),
                        2 + sqrt(2) / 2);
}

TEST(test_repeats_keep_their_samples_and_what_is_their_own)
{
    json_auto_t *record = NULL;
    add(&record, slower(0), 0);
    add(&record, slower(10), 1);
    for (size_t i = 0; i < 6; i++) {
        const json_t *one = entry(record, "iterations", i);
        const size_t repeat = i / 3, index = i % 3;
        ck_assert_double_eq(number(one, NULL, "repeat"), (double)repeat);
        ck_assert_double_eq(number(one, NULL, "index"), (double)index);
    }
    ck_assert_uint_eq(
        json_array_size(json_object_get(record, "warmup_iterations")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(record, "repeats")), 2);
    ck_assert_double_eq_tol(
        number(entry(record, "repeats", 1), "summary", "median_ms"), 25, 1e-9);
    ck_assert_double_eq(number(record, "verification", "rounds"), 6);
    ck_assert_double_eq(number(record, "verification", "checked_bytes"),
                        6 * number(record, "plan", "bytes_total"));
    ck_assert_double_eq_tol(
        number(record, "setup", "total_ms"),
        number(entry(record, "repeats", 0), "setup", "total_ms") +
            number(entry(record, "repeats", 1), "setup", "total_ms"),
        1e-9);
}

TEST(test_repeats_before_a_failed_one_are_kept)
{
    json_auto_t *record = NULL;
    const json_t *fault;
    add(&record, slower(0), 0);
    add(&record, failed(), 1);
    ck_assert_str_eq(rf_result_text(record, NULL, "status"), "failed");
    ck_assert_double_eq(number(record, "summary", "count"), 4);
    fault = entry(record, "errors", 0);
    ck_assert_double_eq(number(fault, NULL, "repeat"), 1);
    ck_assert(json_is_false(json_object_get(fault, "consequence")));
    ck_assert(json_is_null(json_object_get(record, "iterations_ended_by")));
    ck_assert(rf_repeats_has(record, 0));
    ck_assert(!rf_repeats_has(record, 1));
    ck_assert(!rf_repeats_has(record, 2));
}

TEST(test_repeats_that_are_run_again_replace_what_failed)
{
    json_auto_t *record = NULL, *straight = NULL;
    add(&record, slower(0), 0);
    add(&record, failed(), 1);
    add(&record, slower(20), 2);
    add(&record, slower(10), 1);
    add(&straight, slower(0), 0);
    add(&straight, slower(10), 1);
    add(&straight, slower(20), 2);
    ck_assert(rf_repeats_has(record, 1));
    ck_assert(json_equal(record, straight));
}

TEST(test_repeats_begin_with_a_record_of_one_attempt)
{
    struct rf_attempt *attempt = slower(0);
    json_auto_t *record = record_of(attempt), *straight = NULL;
    ck_assert(rf_repeats_has(record, 0));
    ck_assert(!rf_repeats_has(record, 1));
    add(&record, slower(10), 1);
    add(&straight, attempt, 0);
    add(&straight, slower(10), 1);
    ck_assert(json_equal(record, straight));
}

/* Two runs, of one attempt and of two, are one of three. */
TEST(test_repeats_of_several_runs_are_joined)
{
    struct rf_attempt *attempt = slower(0);
    json_t *joined;
    json_auto_t *one = record_of(attempt), *two = NULL, *straight = NULL;
    add(&two, slower(10), 0);
    add(&two, slower(20), 1);
    add(&straight, attempt, 0);
    add(&straight, slower(10), 1);
    add(&straight, slower(20), 2);
    joined = rf_repeats_join(one, two);
    ck_assert(json_equal(joined, straight));
    json_decref(joined);
    joined = rf_repeats_join(two, one);
    ck_assert_double_eq(number(joined, "summary", "repeats"), 3);
    ck_assert_double_eq(number(entry(joined, "iterations", 6), NULL, "repeat"),
                        2);
    ck_assert_double_eq_tol(
        number(joined, "summary.variance.refit_ms", "between"),
        number(straight, "summary.variance.refit_ms", "between"), 1e-9);
    json_decref(joined);
}

/* Whatever numbers a file has. */
TEST(test_repeats_are_joined_by_their_order)
{
    json_auto_t *two = NULL, *odd, *joined;
    add(&two, slower(0), 0);
    add(&two, slower(10), 1);
    odd = json_deep_copy(two);
    json_object_set_new((json_t *)entry(odd, "repeats", 1), "repeat",
                        json_integer(INT64_MAX));
    json_object_set_new((json_t *)entry(odd, "iterations", 3), "repeat",
                        json_integer(INT64_MAX));
    joined = rf_repeats_join(odd, odd);
    ck_assert_double_eq(number(joined, "summary", "repeats"), 4);
    ck_assert_double_eq(number(joined, "summary", "count"), 8);
    ck_assert_double_eq(number(entry(joined, "repeats", 3), NULL, "repeat"), 3);
    ck_assert_double_eq(number(entry(joined, "iterations", 7), NULL, "repeat"),
                        3);
}

TEST(test_repeats_have_the_least_bound_that_was_seen)
{
    struct rf_attempt *attempt = slower(0);
    json_t *all;
    json_auto_t *record = NULL, *one = record_of(attempt);
    json_object_set_new(json_object_get(one, "bound"), "ms", json_real(0.125));
    add(&record, attempt, 0);
    all = rf_repeats_add(record, one, 1);
    ck_assert_double_eq(number(all, "bound", "ms"), 0.125);
    ck_assert_double_eq_tol(number(all, "bound", "efficiency"), 0.125 / 15,
                            1e-9);
    json_object_set_new(json_object_get(one, "bound"), "efficiency",
                        json_null());
    json_decref(all);
    all = rf_repeats_add(record, one, 1); /* zero copy, say */
    ck_assert(json_is_null(rf_result_value(all, "bound", "efficiency")));
    json_decref(all);
}

static bool has_flag(const json_t *record, const char *name)
{
    const json_t *flags = json_object_get(record, "flags"), *flag;
    size_t i;
    json_array_foreach (flags, i, flag) {
        if (strcmp(json_string_value(flag), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Six iterations each, as three with their neighbours. */
static struct rf_attempt *longer(int64_t more_ms)
{
    struct rf_attempt *attempt = slower(more_ms);
    const uint32_t n = rf_attempt_ranks(attempt);
    for (uint32_t round = 0; round < 3; round++) {
        memcpy(attempt->pending, attempt->iterations[round + 1].ranks,
               n * sizeof(*attempt->pending));
        rf_attempt_keep(attempt, 1);
    }
    return attempt;
}

TEST(test_repeats_that_differ_are_flagged_in_one_sentence)
{
    json_auto_t *record = NULL, *same = NULL;
    char *text;
    add(&record, longer(0), 0);
    add(&record, longer(10), 1);
    ck_assert(has_flag(record, "repeats_differ"));
    ck_assert(has_flag(record, "unstable"));
    text = rf_doubts_reasons(record);
    ck_assert_msg(strstr(text, "repeats_differ: time ") != NULL &&
                      strstr(text, " % between, ") != NULL &&
                      strstr(text, " % within") != NULL &&
                      strchr(text, '\n') == NULL,
                  "%s", text);
    free(text);
    add(&same, longer(0), 0);
    add(&same, longer(0), 1);
    ck_assert(!has_flag(same, "repeats_differ"));
}

/* Two levels are two modes only of all samples together. */
TEST(test_repeats_that_differ_are_not_two_modes)
{
    json_auto_t *record = NULL;
    add(&record, longer(0), 0);
    add(&record, longer(10), 1);
    ck_assert(!has_flag(record, "bimodal"));
    ck_assert(!has_flag(record, "drift"));
}
