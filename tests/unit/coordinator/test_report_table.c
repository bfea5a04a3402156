/* The rows of reports and summaries. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/report_table.h"
#include "report_lab.h"

START_TEST(test_report_row_says_what_was_measured)
{
    struct rf_table *table = rf_report_table_create(false);
    json_t *good = result_record("good", "ok", 52.125, 0.91);
    json_t *bad = result_record("bad", "failed", 1, 1);
    char *text;
    rf_report_table_add(table, good);
    rf_report_table_add(table, bad);
    text = table_text(table, RF_REPORT_CSV);
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

START_TEST(test_report_shows_small_figures)
{
    struct rf_table *table = rf_report_table_create(false);
    json_t *result = result_record("tiny", "ok", 0.0213, 0.00412);
    char *text;
    rf_report_table_add(table, result);
    text = table_text(table, RF_REPORT_MARKDOWN);
    ck_assert_msg(strstr(text, "| 0.0213 | 0.0213 | 1.500 | 0.0000878 | "
                               "0.00412 |") != NULL,
                  "%s", text);
    json_decref(result);
    rf_table_destroy(table);
    free(text);
}
END_TEST

START_TEST(test_figures_have_three_digits_or_more)
{
    char text[32];
    ck_assert_str_eq(rf_figure_text(0, 2, text), "0.00");
    ck_assert_str_eq(rf_figure_text(0.5, 2, text), "0.50");
    ck_assert_str_eq(rf_figure_text(0.05, 2, text), "0.0500");
    ck_assert_str_eq(rf_figure_text(123.456, 1, text), "123.5");
    ck_assert_str_eq(rf_figure_text(1e-30, 3, text), "0.000000000000");
}
END_TEST

START_TEST(test_report_of_several_runs_says_which)
{
    struct rf_table *table = rf_report_table_create(true);
    json_t *good = result_record("good", "ok", 52.125, 0.91);
    char *text;
    rf_table_cell(table, "20260102T030405Z-demo");
    rf_report_table_add(table, good);
    text = table_text(table, RF_REPORT_CSV);
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
    text = table_text(table, RF_REPORT_CSV);
    ck_assert_ptr_nonnull(strstr(text, "\nx,failed,,,"));
    free(text);
    json_decref(empty);
    rf_table_destroy(table);
}
END_TEST

Suite *test_report_table_suite(void);
Suite *test_report_table_suite(void)
{
    Suite *suite = suite_create("report_table");
    TCase *tests = tcase_create("report_table");
    tcase_add_test(tests, test_report_row_says_what_was_measured);
    tcase_add_test(tests, test_report_shows_small_figures);
    tcase_add_test(tests, test_figures_have_three_digits_or_more);
    tcase_add_test(tests, test_report_of_several_runs_says_which);
    tcase_add_test(tests, test_summary_row_has_all_figures_or_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
