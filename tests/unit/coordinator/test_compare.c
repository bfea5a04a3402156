/* What counts as a regression, and what cannot be compared. */
#include <check.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/compare.h"
#include "coordinator/report_table.h"
#include "report_lab.h"

static void add(struct rf_result_set *set, const char *name, const char *status,
                double median, double efficiency)
{
    RF_PUSH(set->files, set->n, set->cap,
            ((struct rf_result_file){
                .path = rf_xstrdup("x/x.json"),
                .name = rf_xstrdup(name),
                .run = rf_xstrdup("x"),
                .result = result_record(name, status, median, efficiency)}));
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

/* The first entry of a scenario (and metric); there must be one. */
static RF_NONNULL const struct rf_comparison *find(const char *name,
                                                   const char *metric)
{
    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.list[i].name, name) == 0 &&
            (metric == NULL || strcmp(all.list[i].metric, metric) == 0)) {
            return &all.list[i];
        }
    }
    ck_abort_msg("no entry of %s", name);
    return &all.list[0];
}

START_TEST(test_compare_is_two_sided)
{
    add(&reference, "slow", "ok", 100, 0.9);
    add(&now, "slow", "ok", 111, 0.9);
    add(&reference, "fast", "ok", 100, 0.9);
    add(&now, "fast", "ok", 89, 0.9);
    add(&reference, "same", "ok", 100, 0.9);
    add(&now, "same", "ok", 109, 0.9);
    rf_compare(&reference, &now, 0.10, &all);
    ck_assert_int_eq(find("slow", "median_ms")->verdict, RF_SLOWER);
    ck_assert_int_eq(find("fast", "median_ms")->verdict, RF_FASTER);
    ck_assert_int_eq(find("same", NULL)->verdict, RF_SAME);
    ck_assert(rf_comparison_is_regression(find("slow", "median_ms")));
    ck_assert(!rf_comparison_is_regression(find("fast", "median_ms")));
    ck_assert_double_eq_tol(find("slow", "median_ms")->change, 0.11, 1e-9);
}
END_TEST

START_TEST(test_compare_knows_that_more_efficiency_is_better)
{
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 100, 0.5);
    rf_compare(&reference, &now, 0.10, &all);
    ck_assert_uint_eq(all.n, 1);
    ck_assert_str_eq(all.list[0].metric, "efficiency");
    ck_assert_int_eq(all.list[0].verdict, RF_SLOWER);
}
END_TEST

/* In JSON, for a scenario without figures. */
static void expect_null_figures(const json_t *document, const char *name)
{
    static const char *const keys[] = {"reference", "new", "change"};
    const json_t *list = json_object_get(document, "comparisons");
    const json_t *one = NULL;
    for (size_t i = 0; i < json_array_size(list) && one == NULL; i++) {
        const json_t *entry = json_array_get(list, i);
        if (strcmp(rf_result_text(entry, NULL, "scenario"), name) == 0) {
            one = entry;
        }
    }
    ck_assert_ptr_nonnull(one);
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        ck_assert(json_is_null(json_object_get(one, keys[i])));
    }
}

START_TEST(test_compare_gives_null_for_figures_that_are_not_there)
{
    json_t *document, *fresh;
    add(&reference, "broken", "ok", 1, 1);
    add(&now, "broken", "failed", 1, 1);
    add(&now, "fresh", "ok", 1, 1);
    rf_compare(&reference, &now, 0.10, &all);
    document = rf_comparisons_json(&all, 0.10);
    expect_null_figures(document, "broken");
    expect_null_figures(document, "fresh");
    fresh = json_array_get(json_object_get(document, "comparisons"), 1);
    ck_assert(json_is_null(json_object_get(fresh, "metric")));
    json_decref(document);
}
END_TEST

START_TEST(test_compare_lists_missing_new_broken_and_mended)
{
    add(&reference, "gone", "ok", 1, 1);
    add(&now, "fresh", "ok", 1, 1);
    add(&reference, "broken", "ok", 1, 1);
    add(&now, "broken", "failed", 1, 1);
    add(&reference, "mended", "failed", 1, 1);
    add(&now, "mended", "ok", 1, 1);
    rf_compare(&reference, &now, 0.10, &all);
    ck_assert_int_eq(find("gone", NULL)->verdict, RF_MISSING);
    ck_assert_int_eq(find("fresh", NULL)->verdict, RF_NEW);
    ck_assert_int_eq(find("broken", NULL)->verdict, RF_BROKEN);
    ck_assert_int_eq(find("mended", NULL)->verdict, RF_MENDED);
    ck_assert(rf_comparison_is_regression(find("gone", NULL)));
    ck_assert(rf_comparison_is_regression(find("broken", NULL)));
    ck_assert(!rf_comparison_is_regression(find("fresh", NULL)));
}
END_TEST

START_TEST(test_compare_names_what_else_differs)
{
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 200, 0.9);
    json_object_set_new(json_object_get(now.files[0].result, "scenario"),
                        "method", json_string("tcp"));
    rf_compare(&reference, &now, 0.10, &all);
    ck_assert_str_eq(all.list[0].differs, "scenario.method");
}
END_TEST

/* The data port of an agent is another in every run. */
START_TEST(test_compare_takes_no_notice_of_ports)
{
    add(&reference, "s", "ok", 100, 0.9);
    add(&now, "s", "ok", 100, 0.9);
    json_object_set_new(
        reference.files[0].result, "environment",
        json_pack("[{s:s, s:s}]", "candidate", "127.0.0.1:1", "kernel", "old"));
    json_object_set_new(
        now.files[0].result, "environment",
        json_pack("[{s:s, s:s}]", "candidate", "127.0.0.1:2", "kernel", "new"));
    rf_compare(&reference, &now, 0.10, &all);
    ck_assert_str_eq(all.list[0].differs, "environment[0].kernel");
}
END_TEST

START_TEST(test_compare_refuses_what_it_cannot_match)
{
    struct rf_err err = {0};
    add(&reference, "a", "ok", 100, 0.9);
    add(&now, "b", "ok", 100, 0.9);
    ck_assert_int_eq(rf_compare_check(&reference, "old", &now, "new", &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "no scenario is in both old and"));
    add(&now, "a", "ok", 100, 0.9);
    ck_assert_int_eq(rf_compare_check(&reference, "old", &now, "new", &err),
                     RF_OK);
    add(&now, "b", "ok", 100, 0.9);
    ck_assert_int_eq(rf_compare_check(&reference, "old", &now, "new", &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "new: scenario b is in several"));
}
END_TEST

Suite *test_compare_suite(void);
Suite *test_compare_suite(void)
{
    Suite *suite = suite_create("compare");
    TCase *tests = tcase_create("compare");
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, test_compare_is_two_sided);
    tcase_add_test(tests, test_compare_knows_that_more_efficiency_is_better);
    tcase_add_test(tests, test_compare_lists_missing_new_broken_and_mended);
    tcase_add_test(tests,
                   test_compare_gives_null_for_figures_that_are_not_there);
    tcase_add_test(tests, test_compare_names_what_else_differs);
    tcase_add_test(tests, test_compare_takes_no_notice_of_ports);
    tcase_add_test(tests, test_compare_refuses_what_it_cannot_match);
    suite_add_tcase(suite, tests);
    return suite;
}
