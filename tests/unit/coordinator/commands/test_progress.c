/* What the progress line says. */
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "coordinator/commands/progress.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

TEST(test_progress_share_and_clock)
{
    struct rf_run_view view = {.n_scenarios = 4, .n_expected = 10};
    char text[32];
    ck_assert_double_eq(rf_progress_share(&view), 0);
    view.scenario_at = 3;
    view.iteration = 5;
    ck_assert_double_eq_tol(rf_progress_share(&view), 2.5 / 4, 1e-12);
    view.scenario_at = 4;
    view.iteration = 99;
    ck_assert_double_eq_tol(rf_progress_share(&view), 1, 1e-12);
    view.iteration = view.n_expected = 0; /* between scenarios, */
    ck_assert_double_eq_tol(rf_progress_share(&view), 3.0 / 4, 1e-12);
    view.over = true; /* or behind the last */
    ck_assert_double_eq_tol(rf_progress_share(&view), 1, 1e-12);
    ck_assert_str_eq(rf_progress_clock(65, text), "1:05");
    ck_assert_str_eq(rf_progress_clock(3723, text), "1:02:03");
}

TEST(test_progress_line_fits_the_terminal)
{
    struct rf_run_view view = {.n_scenarios = 2, .scenario_at = 2};
    char line[256];
    rf_progress_line(&view, "name: running", "  ~0:09 left", 80, line, 256);
    ck_assert_str_eq(line, "[############............] 2/2 name: running  "
                           "~0:09 left");
    rf_progress_line(&view, "name: running", "  ~0:09 left", 50, line, 256);
    ck_assert_str_eq(line, "[############............] 2/2 name:…  ~0:09 left");
    rf_progress_line(&view, "name: running", "  ~0:09 left", 44, line, 256);
    ck_assert_str_eq(line, "[############............] 2/2 ");
    rf_progress_line(&view, "name: running", "", 11, line, 256);
    ck_assert_str_eq(line, "[#########");
    rf_progress_line(&view, "name: running", "", 0, line, 256);
    ck_assert_str_eq(line, "");
}

TEST(test_progress_of_a_scenario_says_what_was_measured)
{
    json_t *result = result_record("s", "ok", 52.125, 0.91);
    char text[128];
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text,
                     "s: ok, median 52.125 ms, 0.91 of the bound, 1.50 GB/s");
    json_object_set_new(json_object_get(result, "summary"),
                        "algbw_gbytes_per_s", json_null());
    json_object_set_new(json_object_get(result, "bound"), "efficiency",
                        json_null());
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "s: ok, median 52.125 ms");
    json_decref(result);
    result = result_record("r", "ok", 52.125, 0.91);
    json_object_set_new(json_object_get(result, "summary"), "repeats",
                        json_integer(2));
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "r: ok, median 52.125 ms of 2 repeats, 0.91 of the "
                           "bound, 1.50 GB/s");
    json_decref(result);
    result = result_record("tiny", "ok", 0.0213, 0.00412);
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "tiny: ok, median 0.0213 ms, 0.00412 of the bound, "
                           "1.50 GB/s");
    json_decref(result);
}

/* The ratio is what the table is about, and a bound that is none says nothing.
 */
TEST(test_progress_of_a_scenario_has_one_headline)
{
    json_t *result = result_record("s", "ok", 36.5, 1.3);
    char text[128];
    json_object_set_new(json_object_get(result, "bound"), "valid",
                        json_false());
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "s: ok, median 36.500 ms, 1.50 GB/s");
    json_object_set_new(json_object_get(result, "summary"), "yardstick_ratio",
                        json_pack("{s:f}", "median", 1.008));
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text,
                     "s: ok, median 36.500 ms, 1.01 vs contiguous, 1.50 GB/s");
    json_object_set_new(result, "flags", json_pack("[s]", "slow_yardsticks"));
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "s: ok, median 36.500 ms, 1.01 vs contiguous (too "
                           "low), 1.50 GB/s");
    json_decref(result);
    result = result_record("s", "ok", 36.5, 0.66);
    json_object_set_new(result, "flags", json_pack("[s]", "bimodal"));
    rf_progress_result(result, text, sizeof(text));
    ck_assert_str_eq(text, "s: ok, median 36.500 ms, 1.50 GB/s");
    json_decref(result);
}

TEST(test_progress_says_how_much_of_a_checkpoint_is_read)
{
    struct rf_run_view view = {.n_scenarios = 1};
    char text[80];
    rf_progress_reading(&view, text);
    ck_assert_str_eq(text, "");
    view.read_bytes = 1200000000;
    view.of_bytes = 3080000000;
    rf_progress_reading(&view, text);
    ck_assert_str_eq(text, ", 1.20 GB of 3.08 GB read");
}

static char logged[256];

static void take_line(enum rf_log_level level, const char *line, void *data)
{
    (void)level;
    (void)data;
    snprintf(logged, sizeof(logged), "%s", line);
}

TEST(test_progress_without_a_terminal_says_what_time_is_left)
{
    struct rf_run_view view = {.n_scenarios = 2,
                               .n_iterations = 4,
                               .n_expected = 4,
                               .scenario_at = 1,
                               .scenario = "s",
                               .state = "running"};
    int ends[2];
    struct rf_stderr_writer *output;
    struct rf_progress *progress;
    int64_t began_ns = rf_now_ns();
    ck_assert_int_eq(pipe(ends), 0);
    output = rf_stderr_writer_create(ends[1]);
    progress = rf_progress_create(output, false);
    rf_log_set_sink(take_line, NULL);
    rf_progress_update(progress, &view, began_ns);
    assert_says(logged, "scenario 1 of 2: s");
    view.iteration = 2; /* a quarter of all */
    rf_progress_update(progress, &view, began_ns + 9 * RF_NS_PER_S);
    assert_says(logged, "scenario 1 of 2: s"); /* too soon */
    rf_progress_update(progress, &view,
                       began_ns + 20 * RF_NS_PER_S + RF_NS_PER_S / 4);
    assert_says(logged, "1/2 s: running, iteration 3 of 4  "
                        "~0:15 left"); /* of 36 s in all */
    rf_progress_tick(progress, began_ns + 31 * RF_NS_PER_S);
    assert_says(logged, "~0:04 left");
    rf_progress_tick(progress, began_ns + 42 * RF_NS_PER_S);
    ck_assert_ptr_null(strstr(logged, "left")); /* it is late */
    rf_log_set_sink(NULL, NULL);
    rf_progress_destroy(progress);
    rf_stderr_writer_end(output, 5000);
    rf_stderr_writer_destroy(output);
    close(ends[0]);
    close(ends[1]);
}
