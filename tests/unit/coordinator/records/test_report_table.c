/* The rows of reports and summaries. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/records/fields.h"
#include "coordinator/records/report_table.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

AUTO_POINTER(rf_table, rf_table_destroy)

TEST(test_report_row_says_what_was_measured)
{
    static const char *const cells[][2] = {{"scenario", "good"},
                                           {"method", "host"},
                                           {"strategy", "send_recv"},
                                           {"bytes", "1.19 GB"},
                                           {"on links", "-"},
                                           {"median ms", "52.12"},
                                           {"p95 ms", "52.12"},
                                           {"GB/s", "1.500"},
                                           {"bound ms (best)", "47.43"},
                                           {"vs contiguous", "-"},
                                           {"eff. (strategy)", "-"},
                                           {"eff. (best)", "0.91"},
                                           {"peak memory", "-"},
                                           {"predicted", "-"},
                                           {"verified", "yes"}};
    struct rf_table *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_t *good = result_record("good", "ok", 52.125, 0.91);
    json_t *bad = result_record("bad", "failed", 1, 1);
    char *text;
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, good);
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, bad);
    text = rf_table_text(table, RF_REPORT_CSV);
    for (size_t i = 0; i < RF_ARRAY_SIZE(cells); i++) {
        assert_cell(text, 0, cells[i][0], cells[i][1]);
    }
    assert_cell(text, 1, "scenario", "bad");
    assert_cell(text, 1, "verified", "failed");
    free(text);
    json_decref(good);
    json_decref(bad);
    rf_table_destroy(table);
}

TEST(test_report_shows_ratios_and_bounds_that_are_none)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = result_record("x", "ok", 20, 1.1);
    AUTO_FREE char *text;
    json_object_set_new(
        json_object_get(result, "summary"), "yardstick_ratio",
        json_pack("{s:f, s:f, s:f}", "median", 1.034, "low", 0.9, "high", 1.5));
    json_object_set_new(result, "schedule_bound",
                        json_pack("{s:f, s:b}", "efficiency", 0.5, "valid", 1));
    json_object_update_new(
        json_object_get(result, "bound"),
        json_pack("{s:b, s:s}", "valid", 0, "underestimated", "memory of a"));
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(table, RF_REPORT_TABLE);
    ck_assert_msg(strstr(text,
                         "  1.03 [0.90, 1.50]             0.50  bound not "
                         "valid (memory of a)            -          -  yes") !=
                      NULL,
                  "%s", text);
}

TEST(test_report_shows_counts_where_there_are_any)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = result_record("x", "ok", 20, 1.1);
    AUTO_FREE char *text;
    json_object_set_new(json_object_get(result, "summary"), "resyncs",
                        json_integer(1200));
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(table, RF_REPORT_TABLE);
    assert_says(text, "  resyncs  ");
    assert_says(text, "     1200  ");
}

TEST(test_report_shows_conversions_where_there_are_any)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = result_record("x", "ok", 20, 1.1);
    AUTO_FREE char *text;
    json_object_set_new(json_object_get(result, "summary"), "conversion",
                        json_pack("{s:s, s:f, s:f}", "name", "mxfp8@sender",
                                  "quantize_ms", 12.25, "wire_ms", 3.5));
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(table, RF_REPORT_TABLE);
    assert_says(text, "  quantize      ");
    assert_says(text, "  convert ms  wire ms  ");
    assert_says(text, "       12.25    3.500  ");
}

TEST(test_report_shows_each_pools_conversion_and_the_loads_rates)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = result_record("x", "ok", 20, 1.1);
    json_t *summary = json_object_get(result, "summary");
    AUTO_FREE char *text;
    json_object_set_new(summary, "pools",
                        json_pack("[{s:f}, {s:f, s:f}]", "median_ms", 11.5,
                                  "median_ms", 12.5, "quantize_ms", 2.25));
    json_object_set_new(summary, "load",
                        json_pack("{s:f, s:f}", "gbytes_per_s", 4.5,
                                  "alone_gbytes_per_s", 9.25));
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    rf_report_table_end(table, RF_REPORT_TABLE);
    text = rf_table_text(table, RF_REPORT_TABLE);
    assert_says(text, "  infer[0] ms  infer[1] ms  infer[1] convert ms  ");
    assert_says(text, "        11.50        12.50                2.250  ");
    assert_says(text, "  load GB/s  load alone GB/s  ");
    assert_says(text, "      4.500            9.250  ");
}

static json_t *with_ratio(double ratio)
{
    json_t *result = result_record("x", "ok", 20, 0.66);
    json_object_set_new(
        json_object_get(result, "summary"), "yardstick_ratio",
        json_pack("{s:f, s:f, s:f}", "median", ratio, "low", 0.9, "high", 1.5));
    return result;
}

TEST(test_report_says_how_few_pairs_a_ratio_without_interval_has)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = with_ratio(1.034);
    json_t *ratio = json_at(result, "summary.yardstick_ratio");
    AUTO_FREE char *text;
    json_object_del(ratio, "low");
    json_object_set_new(ratio, "count", json_integer(3));
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(table, RF_REPORT_TABLE);
    ck_assert_msg(strstr(text, "  1.03 (n=3)  ") != NULL, "%s", text);
}

/* The bound is of one speed, the median of another. */
TEST(test_report_has_no_efficiency_where_times_have_two_modes)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    AUTO(rf_table) *csv = rf_report_table_create(RF_REPORT_CSV, false);
    json_auto_t *result = with_ratio(1.02);
    AUTO_FREE char *text, *rows;
    json_object_set_new(result, "flags",
                        json_pack("[s, s]", "bimodal", "unstable"));
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    rf_report_table_add(csv, RF_REPORT_CSV, NULL, result);
    text = rf_table_text(table, RF_REPORT_TABLE);
    rows = rf_table_text(csv, RF_REPORT_CSV);
    ck_assert_ptr_null(strstr(text, "0.66"));
    assert_says(text, "1.02 [0.90, 1.50]");
    assert_says(text, "     bimodal  ");
    ck_assert_ptr_null(strstr(rows, "0.66"));
}

TEST(test_report_keeps_its_headline_on_a_narrow_terminal)
{
    static const char *const gone[] = {"method", "bytes", "GB/s", "eff."};
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = with_ratio(1.02);
    char *text = NULL, *line;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    rf_table_print_text(table, to, 0, 45);
    fclose(to);
    line = strchr(text, '\n'); /* ends the head */
    ck_assert_ptr_nonnull(line);
    *line = '\0';
    assert_says(text,
                "median ms  refit slowdown  load slowdown      vs contiguous");
    for (size_t i = 0; i < RF_ARRAY_SIZE(gone); i++) {
        ck_assert_msg(strstr(text, gone[i]) == NULL, "%s: %s", gone[i], text);
    }
    free(text);
}

TEST(test_report_shows_small_figures)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = result_record("tiny", "ok", 0.0213, 0.00412);
    AUTO_FREE char *text;
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(table, RF_REPORT_CSV);
    assert_cell(text, 0, "median ms", "0.0213");
    assert_cell(text, 0, "p95 ms", "0.0213");
    assert_cell(text, 0, "GB/s", "1.500");
    assert_cell(text, 0, "bound ms (best)", "0.0000878");
    assert_cell(text, 0, "eff. (best)", "0.00412");
}

TEST(test_figures_have_three_digits_or_more)
{
    char text[32];
    ck_assert_str_eq(rf_figure_text(0, 2, text), "0.00");
    ck_assert_str_eq(rf_figure_text(0.5, 2, text), "0.50");
    ck_assert_str_eq(rf_figure_text(0.05, 2, text), "0.0500");
    ck_assert_str_eq(rf_figure_text(123.456, 1, text), "123.5");
    ck_assert_str_eq(rf_figure_text(1e-30, 3, text), "0.000000000000");
    ck_assert_str_eq(rf_amount_text(12345.67, text), "12345.7");
    ck_assert_str_eq(rf_amount_text(20, text), "20.00");
    ck_assert_str_eq(rf_amount_text(2, text), "2.000");
    ck_assert_str_eq(rf_amount_text(0.012345, text), "0.0123");
}

TEST(test_report_of_several_runs_says_which)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, true);
    json_auto_t *good = result_record("good", "ok", 52.125, 0.91);
    AUTO_FREE char *text;
    rf_report_table_add(table, RF_REPORT_TABLE, "20260102T030405Z-demo", good);
    text = rf_table_text(table, RF_REPORT_CSV);
    ck_assert_int_eq(strncmp(text, "run,", 4), 0);
    assert_cell(text, 0, "run", "20260102T030405Z-demo");
    assert_cell(text, 0, "scenario", "good");
}

/* How many cells of the first row of CSV say something. */
static size_t n_filled(const char *csv)
{
    const char *cell = strchr(csv, '\n') + 1;
    size_t n = *cell != ',';
    for (; *cell != '\n'; cell++) {
        n += cell[0] == ',' && cell[1] != ',' && cell[1] != '\n';
    }
    return n;
}

TEST(test_summary_row_has_all_figures_or_nothing)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_CSV, false);
    json_auto_t *empty =
        json_pack("{s:s, s:s}", "name", "x", "status", "failed");
    AUTO_FREE char *text;
    rf_report_table_add(table, RF_REPORT_CSV, NULL, empty);
    text = rf_table_text(table, RF_REPORT_CSV);
    assert_cell(text, 0, "scenario", "x");
    assert_cell(text, 0, "status", "failed");
    assert_cell(text, 0, "median_ms", "");
    ck_assert_uint_eq(n_filled(text), 2);
}

LOOP_TEST(test_summary_says_whether_bounds_are_valid, 2)
{
    struct rf_table *table = rf_report_table_create(RF_REPORT_CSV, false);
    json_t *result = result_record("x", "ok", 20, 1.1);
    char *text;
    json_object_set_new(json_object_get(result, "bound"), "valid",
                        json_false());
    json_object_set_new(
        result, "schedule_bound",
        json_pack("{s:o}", "valid", _i == 0 ? json_true() : json_null()));
    rf_report_table_add(table, RF_REPORT_CSV, NULL, result);
    text = rf_table_text(table, RF_REPORT_CSV);
    assert_cell(text, 0, "bound_valid", "false");
    assert_cell(text, 0, "schedule_bound_valid", _i == 0 ? "true" : "");
    assert_cell(text, 0, "unknown_tensors", "");
    json_decref(result);
    rf_table_destroy(table);
    free(text);
}

TEST(test_rows_count_unknown_tensors_that_are_replicated)
{
    AUTO(rf_table) *summary = rf_report_table_create(RF_REPORT_CSV, false);
    AUTO(rf_table) *report = rf_report_table_create(RF_REPORT_TABLE, false);
    json_auto_t *result = result_record("x", "ok", 52.125, 0.91);
    char *text;
    json_object_set_new(json_object_get(result, "plan"), "unknown",
                        json_pack("{s:i}", "tensors", 3));
    rf_report_table_add(summary, RF_REPORT_CSV, NULL, result);
    text = rf_table_text(summary, RF_REPORT_CSV);
    assert_cell(text, 0, "unknown_tensors", "3");
    free(text);
    rf_report_table_add(report, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(report, RF_REPORT_TABLE);
    ck_assert_msg(strstr(text, "  yes, replicated\n") != NULL, "%s", text);
    free(text);
}

LOOP_TEST(test_figures_that_cannot_be_are_not_shown, 8)
{
    static const char *const figures[] = {
        "1e308",  "-1",    "-1e308", "1e19", "9223372036854775807",
        "1e-300", "\"1\"", "true"};
    json_auto_t *value = json_loads(figures[_i], JSON_DECODE_ANY, NULL);
    json_auto_t *result = result_record("bad", "ok", 52.125, 0.91);
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_TABLE, false);
    double number = 7;
    AUTO_FREE char *text;
    json_object_set(json_object_get(result, "plan"), "bytes_total", value);
    json_object_set(json_object_get(result, "summary"), "median_ms", value);
    json_object_set(json_object_get(result, "verification"), "mismatched_bytes",
                    value);
    ck_assert(!rf_result_number(result, "summary", "median_ms", &number));
    ck_assert_double_eq(number, 7);
    rf_report_table_add(table, RF_REPORT_TABLE, NULL, result);
    text = rf_table_text(table, RF_REPORT_CSV);
    assert_cell(text, 0, "scenario", "bad");
    assert_cell(text, 0, "bytes", "-");
    assert_cell(text, 0, "on links", "-");
    assert_cell(text, 0, "median ms", "-");
    assert_cell(text, 0, "p95 ms", "52.12");
    assert_cell(text, 0, "GB/s", "1.500");
    assert_cell(text, 0, "bound ms (best)", "47.43");
    assert_cell(text, 0, "eff. (best)", "0.91");
    assert_cell(text, 0, "verified", "-");
}

TEST(test_summary_has_no_figures_that_cannot_be)
{
    AUTO(rf_table) *table = rf_report_table_create(RF_REPORT_CSV, false);
    json_auto_t *result = json_pack(
        "{s:s, s:s, s:{s:f, s:f, s:f, s:f}, s:{s:I}}", "name", "x", "status",
        "ok", "summary", "min_ms", -1.0, "max_ms", 1e308, "drift_percent", -2.5,
        "stddev_ms", 1e-17, "plan", "bytes_total", (json_int_t)-5);
    AUTO_FREE char *text;
    rf_report_table_add(table, RF_REPORT_CSV, NULL, result);
    text = rf_table_text(table, RF_REPORT_CSV);
    assert_cell(text, 0, "min_ms", "");
    assert_cell(text, 0, "max_ms", "");
    assert_cell(text, 0, "bytes_total", "");
    assert_cell(text, 0, "stddev_ms", "1e-17");
    assert_cell(text, 0, "drift_percent", "-2.5");
    ck_assert_uint_eq(n_filled(text), 4); /* with name and status */
}

/* A row whose times have an interval; freed with free(). */
static char *row_with_interval(enum rf_report_form form)
{
    json_t *result = result_record("x", "ok", 100, 0.9);
    struct rf_table *table = rf_report_table_create(form, false);
    char *text;
    json_object_set_new(result, "iterations",
                        json_pack("[{s:i}, {s:i}, {s:i}, {s:i}, {s:i}]",
                                  "refit_ms", 98, "refit_ms", 99, "refit_ms",
                                  100, "refit_ms", 101, "refit_ms", 103));
    rf_report_table_add(table, form, NULL, result);
    text = rf_table_text(table, form);
    rf_table_destroy(table);
    json_decref(result);
    return text;
}

TEST(test_papers_see_the_interval_of_the_median)
{
    char *paper = row_with_interval(RF_REPORT_LATEX);
    char *terminal = row_with_interval(RF_REPORT_TABLE);
    char *csv = row_with_interval(RF_REPORT_CSV);
    ck_assert_ptr_nonnull(strstr(paper, " & 100.0 [98.00, 103.0] & "));
    ck_assert_ptr_nonnull(strstr(terminal, "  100.0  "));
    assert_cell(csv, 0, "median_low_ms", "98");
    assert_cell(csv, 0, "median_high_ms", "103");
    free(paper);
    free(terminal);
    free(csv);
}
