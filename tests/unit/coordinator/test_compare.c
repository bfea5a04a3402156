/* report and compare: tables in every form, what counts as a regression. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/compare.h"
#include "coordinator/progress.h"
#include "coordinator/report_table.h"

static json_t *record(const char *name, const char *status, double median,
                      double efficiency)
{
    return json_pack(
        "{s:i, s:s, s:s, s:{s:s, s:s}, s:{s:f, s:f, s:f}, s:{s:f, s:f}, "
        "s:{s:I}, s:{s:I, s:i}}",
        "schema_version", 1, "name", name, "status", status, "scenario",
        "method", "host", "strategy", "send_recv", "summary", "median_ms",
        median, "p95_ms", median, "algbw_gbytes_per_s", 1.5, "bound", "ms",
        median * efficiency, "efficiency", efficiency, "plan", "bytes_total",
        (json_int_t)1192493056, "verification", "checked_bytes", (json_int_t)10,
        "mismatched_bytes", 0);
}

static void add(struct rf_result_set *set, const char *name, const char *status,
                double median, double efficiency)
{
    RF_PUSH(set->files, set->n, set->cap,
            ((struct rf_result_file){
                .path = rf_xstrdup("x/x.json"),
                .name = rf_xstrdup(name),
                .run = rf_xstrdup("x"),
                .result = record(name, status, median, efficiency)}));
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

static char *printed(const struct rf_table *table, enum rf_report_form form)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_table_print(table, file, form, 0);
    fclose(file);
    return text;
}

START_TEST(test_table_aligns_and_escapes)
{
    static const char *const heads[] = {"name", ">value", NULL};
    static const struct {
        enum rf_report_form form;
        const char *text;
    } forms[] = {
        {RF_REPORT_TABLE, "name     value\na_b&<c>      1\n=x,\"y\"      22\n"},
        {RF_REPORT_CSV, "name,value\na_b&<c>,1\n\"'=x,\"\"y\"\"\",22\n"},
        {RF_REPORT_MARKDOWN, "| name | value |\n|---|---:|\n| a\\_b&<c> | 1 "
                             "|\n| =x,\"y\" | 22 |\n"},
    };
    struct rf_table *table = rf_table_create(heads);
    rf_table_cell(table, "a_b&<c>");
    rf_table_cell(table, "%d", 1);
    rf_table_cell(table, "=x,\"y\"");
    rf_table_cell(table, "%d", 22);
    ck_assert_uint_eq(rf_table_rows(table), 2);
    for (size_t i = 0; i < RF_ARRAY_SIZE(forms); i++) {
        char *text = printed(table, forms[i].form);
        ck_assert_str_eq(text, forms[i].text);
        free(text);
    }
    rf_table_destroy(table);
}
END_TEST

START_TEST(test_table_latex_and_html_are_escaped)
{
    static const char *const heads[] = {"a", NULL};
    struct rf_table *table = rf_table_create(heads);
    char *text;
    rf_table_cell(table, "5 %% of <b>_&\\");
    text = printed(table, RF_REPORT_LATEX);
    ck_assert_ptr_nonnull(
        strstr(text, "5 \\% of <b>\\_\\&\\textbackslash{} \\\\"));
    free(text);
    text = printed(table, RF_REPORT_HTML);
    ck_assert_ptr_nonnull(strstr(text, "<td>5 % of &lt;b&gt;_&amp;\\</td>"));
    free(text);
    rf_table_destroy(table);
}
END_TEST

START_TEST(test_report_row_says_what_was_measured)
{
    struct rf_table *table = rf_report_table_create(false);
    json_t *good = record("good", "ok", 52.125, 0.91);
    json_t *bad = record("bad", "failed", 1, 1);
    char *text;
    rf_report_table_add(table, good);
    rf_report_table_add(table, bad);
    text = printed(table, RF_REPORT_CSV);
    ck_assert_ptr_nonnull(strstr(
        text,
        "good,host,send_recv,1.19 GB,-,52.12,52.12,1.500,47.43,0.91,yes"));
    ck_assert_ptr_nonnull(strstr(text, ",failed\n"));
    free(text);
    json_decref(good);
    json_decref(bad);
    rf_table_destroy(table);
}
END_TEST

START_TEST(test_report_of_several_runs_says_which)
{
    struct rf_table *table = rf_report_table_create(true);
    json_t *good = record("good", "ok", 52.125, 0.91);
    char *text;
    rf_table_cell(table, "20260102T030405Z-demo");
    rf_report_table_add(table, good);
    text = printed(table, RF_REPORT_CSV);
    ck_assert_ptr_nonnull(strstr(text, "run,scenario,method,"));
    ck_assert_ptr_nonnull(strstr(text, "\n20260102T030405Z-demo,good,host,"));
    free(text);
    json_decref(good);
    rf_table_destroy(table);
}
END_TEST

START_TEST(test_summary_row_has_all_figures_or_nothing)
{
    struct rf_table *table = rf_summary_table_create(false);
    json_t *empty = json_pack("{s:s, s:s}", "name", "x", "status", "failed");
    char *text;
    rf_summary_table_add(table, empty);
    text = printed(table, RF_REPORT_CSV);
    ck_assert_ptr_nonnull(strstr(text, "\nx,failed,,,"));
    free(text);
    json_decref(empty);
    rf_table_destroy(table);
}
END_TEST

START_TEST(test_progress_share_and_clock)
{
    struct rf_run_view view = {.n_scenarios = 4, .n_rounds = 10};
    char text[32];
    ck_assert_double_eq(rf_progress_share(&view), 0);
    view.scenario_at = 3;
    view.round = 5;
    ck_assert_double_eq_tol(rf_progress_share(&view), 2.5 / 4, 1e-12);
    view.scenario_at = 4;
    view.round = 99;
    ck_assert_double_eq_tol(rf_progress_share(&view), 1, 1e-12);
    ck_assert_str_eq(rf_progress_clock(65, text), "1:05");
    ck_assert_str_eq(rf_progress_clock(3723, text), "1:02:03");
}
END_TEST

START_TEST(test_progress_of_a_scenario_says_what_was_measured)
{
    json_t *result = record("s", "ok", 52.125, 0.91);
    char text[128];
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text,
                     "s: ok, median 52.125 ms, 1.50 GB/s, 0.91 of the bound");
    json_object_set_new(json_object_get(result, "summary"),
                        "algbw_gbytes_per_s", json_null());
    json_object_set_new(json_object_get(result, "bound"), "efficiency",
                        json_null());
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "s: ok, median 52.125 ms");
    json_decref(result);
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
    tcase_add_test(tests, test_compare_names_what_else_differs);
    tcase_add_test(tests, test_compare_takes_no_notice_of_ports);
    tcase_add_test(tests, test_compare_refuses_what_it_cannot_match);
    tcase_add_test(tests, test_table_aligns_and_escapes);
    tcase_add_test(tests, test_table_latex_and_html_are_escaped);
    tcase_add_test(tests, test_report_row_says_what_was_measured);
    tcase_add_test(tests, test_report_of_several_runs_says_which);
    tcase_add_test(tests, test_summary_row_has_all_figures_or_nothing);
    tcase_add_test(tests, test_progress_share_and_clock);
    tcase_add_test(tests, test_progress_of_a_scenario_says_what_was_measured);
    suite_add_tcase(suite, tests);
    return suite;
}
