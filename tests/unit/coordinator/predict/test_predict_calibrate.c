/* What results make of simulated times. */
#include <stdio.h>

#include "common/mem.h"
#include "coordinator/predict/predict.h"
#include "tests/lib/logged.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_predict_rows, rf_predict_rows_free)

static const struct rf_result_file results[8];

/* A row of method host; `measured` 0: no result has it. */
static struct rf_predict_row row_of(size_t result, enum rf_path path,
                                    double simulated, double measured)
{
    return (struct rf_predict_row){
        .scenario = rf_xasprintf("s%zu", result),
        .method = rf_method_info_find("host"),
        .strategy = "send_recv",
        .p = {.simulated_ms = simulated, .path = path},
        .measured = {.ms = measured,
                     .from = measured > 0 ? &results[result] : NULL},
        .own = {.simulated_ms = measured > 0 ? simulated : 0, .path = path}};
}

static void add(struct rf_predict_rows *rows, struct rf_predict_row row)
{
    RF_PUSH(rows->rows, rows->n, rows->capacity, row);
}

static char *printed_rows(const struct rf_predict_rows *rows,
                          const struct rf_leave_one_out *error)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    rf_predict_print_table(rows, error, false, to);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

/* Between nodes two results are on one line, 3.33 + 1.167 x; memory is twice as
 * slow as simulated. */
static struct rf_predict_rows five_rows(void)
{
    struct rf_predict_rows rows = {.n = 0};
    add(&rows, row_of(0, RF_PATH_BETWEEN, 100, 120));
    add(&rows, row_of(1, RF_PATH_BETWEEN, 10, 15));
    add(&rows, row_of(2, RF_PATH_BETWEEN, 20, 60));
    add(&rows, row_of(3, RF_PATH_INSIDE, 5, 10));
    add(&rows, row_of(4, RF_PATH_BETWEEN, 40, 0));
    return rows;
}

TEST(test_calibrate_takes_the_line_of_the_same_path)
{
    AUTO(rf_predict_rows) rows = five_rows();
    struct rf_leave_one_out error;
    rf_predict_calibrate(&rows, &error);
    ck_assert_uint_eq(rows.rows[4].p.n_results, 3);
    ck_assert_double_eq_tol(rows.rows[4].p.factor, 3.5 / 3, 1e-9);
    ck_assert_double_eq_tol(rows.rows[4].p.fixed_ms, 10 / 3.0, 1e-9);
    ck_assert_double_eq_tol(rows.rows[4].p.ms, 50, 1e-9);
    ck_assert_double_eq_tol(rows.rows[4].p.simulated_ms, 40, 1e-9);
    ck_assert_double_eq_tol(rows.rows[0].p.ms, 120, 1e-9);
    ck_assert_uint_eq(rows.rows[3].p.n_results, 1);
    ck_assert_double_eq_tol(rows.rows[3].p.ms, 10, 1e-9);
}

TEST(test_print_shows_the_first_reasons)
{
    AUTO(rf_predict_rows) rows = five_rows();
    struct rf_leave_one_out error;
    AUTO_FREE char *text = NULL;
    rows.n_results = 14;
    rows.not_used = json_array();
    for (int i = 0; i < 10; i++) {
        json_array_append_new(rows.not_used, json_sprintf("reason %d", i));
    }
    rf_predict_calibrate(&rows, &error);
    text = printed_rows(&rows, &error);
    assert_says(text, "4 of 14 results used\n  reason 0\n");
    assert_says(text, "  reason 7\n  (and 2 more, listed by --json)\n");
    ck_assert_ptr_null(strstr(text, "reason 8"));
}

/* Times far from those simulated are, not a factor beside a fixed part. */
LOOP_TEST(test_calibrate_warns_of_results_far_from_simulations, 4)
{
    static const struct {
        double measured[3], simulated[3];
        const char *says; /* NULL: nothing */
    } cases[] = {
        {{3, 6, 9},
         {10, 20, 30},
         "results took x0.3 their simulated time: rate"
         "s of \"links\" or probes are too low"},
        {{54, 62, 66},
         {10, 30, 40},
         "results took x2.07 their simulated time: "
         "rates of \"links\" or probes are too "
         "high"},
        {{19, 23, 27}, {10, 20, 30}, NULL},
        {{14, 28, 42}, {10, 20, 30}, NULL},
    };
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    for (size_t i = 0; i < 3; i++) {
        add(&rows, row_of(i, RF_PATH_BETWEEN, cases[_i].simulated[i],
                          cases[_i].measured[i]));
    }
    rf_predict_calibrate(&rows, &error);
    logged_begin();
    rf_predict_warn(&rows);
    logged_expect(RF_LOG_WARN, cases[_i].says != NULL);
    if (cases[_i].says != NULL) {
        assert_says(logged, "host, between nodes: ");
        assert_says(logged, cases[_i].says);
    }
}

/* However many rows it has. */
TEST(test_calibrate_warns_once_of_a_result_with_unknown_links)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    for (size_t i = 0; i < 2; i++) {
        struct rf_predict_row row = row_of(0, RF_PATH_BETWEEN, 10, 20);
        row.own.simulated_ms = 0;
        row.measured.why = rf_xstrdup("calibrates nothing: s0");
        add(&rows, row);
    }
    rf_predict_calibrate(&rows, &error);
    logged_begin();
    rf_predict_warn(&rows);
    logged_end();
    ck_assert_str_eq(logged, "warning: calibrates nothing: s0\n");
}

/* What another system took is shown, and says nothing about the method here. */
TEST(test_calibrate_leaves_imported_results_out)
{
    json_auto_t *record = json_pack("{s:s}", "status", "imported");
    const struct rf_result_file imported = {.result = record};
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 20));
    add(&rows, row_of(1, RF_PATH_BETWEEN, 10, 90));
    rows.rows[1].measured.from = &imported;
    rf_predict_calibrate(&rows, &error);
    ck_assert_uint_eq(rows.rows[1].p.n_results, 1);
    ck_assert_double_eq(rows.rows[1].p.ms, 20);
    ck_assert_uint_eq(error.n, 1);
}

/* Results of an encoding calibrate it, on whatever path, and nothing else. */
TEST(test_calibrate_keeps_encodings_apart)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 20));
    add(&rows, row_of(1, RF_PATH_BETWEEN, 10, 30));
    add(&rows, row_of(2, RF_PATH_CHANGES, 10, 0));
    add(&rows, row_of(3, RF_PATH_CHANGES, 10, 0));
    rows.rows[1].encoding = rows.rows[2].encoding = RF_ENCODING_AUTO;
    rows.rows[3].encoding = RF_ENCODING_AUTO_DIFF;
    rf_predict_calibrate(&rows, &error);
    ck_assert_double_eq(rows.rows[0].p.ms, 20);
    ck_assert_double_eq(rows.rows[2].p.ms, 30);
    ck_assert_double_eq(rows.rows[3].p.ms, 10);
    ck_assert_uint_eq(rows.rows[3].p.n_results, 0);
}

/* What costs less than nothing where there is nothing to do, or takes less the
 * more there is, is no line; nor are two results, or three of nearly one time.
 */
LOOP_TEST(test_calibrate_multiplies_by_the_median_without_a_line, 5)
{
    static const struct {
        double simulated[3], measured[3], factor;
        size_t n;
    } cases[] = {
        {{10, 20, 30}, {12, 32, 52}, 1.6, 3},
        {{10, 20, 30}, {50, 40, 30}, 2, 3},
        {{10, 20}, {20, 30}, 1.75, 2},
        {{10, 10, 10}, {20, 30, 40}, 3, 3},
        {{10, 15, 19}, {21, 30, 36}, 2, 3}, /* too near each other */
    };
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    for (size_t i = 0; i < cases[_i].n; i++) {
        add(&rows, row_of(i, RF_PATH_INSIDE, cases[_i].simulated[i],
                          cases[_i].measured[i]));
    }
    rf_predict_calibrate(&rows, &error);
    ck_assert_double_eq_tol(rows.rows[0].p.factor, cases[_i].factor, 1e-9);
    ck_assert_double_eq(rows.rows[0].p.fixed_ms, 0);
    ck_assert_double_eq_tol(rows.rows[0].p.ms, 10 * cases[_i].factor, 1e-9);
}

/* Each is predicted from the others: 100 x 2.25, 10 x 2.1, 20 x 1.35, and what
 * has no others as it was simulated. */
TEST(test_calibrate_leaves_out_the_result_that_it_predicts)
{
    AUTO(rf_predict_rows) rows = five_rows();
    struct rf_leave_one_out error;
    rf_predict_calibrate(&rows, &error);
    ck_assert_double_eq_tol(rows.rows[0].p.others_ms, 225, 1e-9);
    ck_assert_double_eq_tol(rows.rows[1].p.others_ms, 21, 1e-9);
    ck_assert_double_eq_tol(rows.rows[2].p.others_ms, 27, 1e-9);
    ck_assert_double_eq_tol(rows.rows[3].p.others_ms, 5, 1e-9);
    ck_assert_uint_eq(error.n, 4);
    ck_assert_double_eq_tol(error.median, 0.525, 1e-9);
    ck_assert_double_eq_tol(error.worst, 0.875, 1e-9);
    ck_assert_ptr_eq(error.worst_row, &rows.rows[0]);
}

TEST(test_calibrate_counts_a_result_once)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 30));
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 30));
    add(&rows, row_of(1, RF_PATH_BETWEEN, 10, 10));
    rf_predict_calibrate(&rows, &error);
    ck_assert_uint_eq(error.n, 2);
    ck_assert_uint_eq(rows.rows[1].p.n_results, 2);
    ck_assert_double_eq_tol(rows.rows[1].p.factor, 2, 1e-9);
    ck_assert_double_eq_tol(rows.rows[1].p.others_ms, 10, 1e-9);
}

TEST(test_calibrate_keeps_methods_apart_and_above_the_bound)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 5));
    add(&rows, row_of(1, RF_PATH_BETWEEN, 10, 0));
    rows.rows[1].p.bound_ms = 8;
    add(&rows, row_of(2, RF_PATH_BETWEEN, 10, 0));
    rows.rows[2].method = rf_method_info_find("tcp");
    rf_predict_calibrate(&rows, &error);
    ck_assert_double_eq_tol(rows.rows[1].p.ms, 8, 1e-9);
    ck_assert_double_eq_tol(rows.rows[2].p.ms, 10, 1e-9);
    ck_assert_uint_eq(rows.rows[2].p.n_results, 0);
}

/* A bound that a result is below is from figures that are too low. */
TEST(test_calibrate_ignores_bounds_that_results_beat)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_INSIDE, 10, 5));
    rows.rows[0].p.bound_ms = rows.rows[0].own.bound_ms = 9;
    add(&rows, row_of(1, RF_PATH_INSIDE, 20, 0));
    rows.rows[1].p.bound_ms = 18;
    rf_predict_calibrate(&rows, &error);
    ck_assert_double_eq_tol(rows.rows[1].p.ms, 10, 1e-9);
    ck_assert_double_eq_tol(rows.rows[0].p.others_ms, 10, 1e-9);
}

/* The table marks a prediction that is below its bound all the same. */
TEST(test_calibrate_flags_what_is_below_its_bound)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    AUTO_FREE char *text = NULL;
    add(&rows, row_of(0, RF_PATH_INSIDE, 10, 5));
    rows.rows[0].own.bound_ms = 9;
    add(&rows, row_of(1, RF_PATH_INSIDE, 20, 0));
    rows.rows[1].p.bound_ms = 18;
    rf_predict_calibrate(&rows, &error);
    text = printed_rows(&rows, &error);
    assert_says(text, "0.0100 [1]");
    assert_says(text, "[1] below its bound: ");
}

/* A result over a link of a tenth of the rate says how far the model is off,
 * not how the links differ; and which path it took there. */
TEST(test_calibrate_compares_with_the_links_of_the_result)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_INSIDE, 10, 120));
    rows.rows[0].own.simulated_ms = 100;
    rows.rows[0].own.path = RF_PATH_BETWEEN;
    add(&rows, row_of(1, RF_PATH_BETWEEN, 20, 0));
    rf_predict_calibrate(&rows, &error);
    ck_assert_double_eq_tol(rows.rows[1].p.factor, 1.2, 1e-9);
    ck_assert_double_eq_tol(rows.rows[1].p.ms, 24, 1e-9);
    ck_assert_uint_eq(rows.rows[0].p.n_results, 0);
    ck_assert_double_eq(rows.rows[0].p.ms, 10);
    ck_assert_double_eq(rows.rows[0].p.others_ms, 100);
}

/* A result whose links nobody knows is shown, and calibrates nothing. */
TEST(test_calibrate_leaves_results_of_unknown_links_out)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 120));
    rows.rows[0].own.simulated_ms = 0;
    rf_predict_calibrate(&rows, &error);
    ck_assert_uint_eq(rows.rows[0].p.n_results, 0);
    ck_assert_double_eq(rows.rows[0].p.ms, 10);
    ck_assert_uint_eq(error.n, 0);
}

/* No prediction, nothing simulated, no results. */
TEST(test_calibrate_leaves_alone_what_it_cannot_compare)
{
    AUTO(rf_predict_rows) rows = {.n = 0};
    struct rf_leave_one_out error;
    add(&rows, row_of(0, RF_PATH_BETWEEN, 10, 20));
    rows.rows[0].gap = rf_xstrdup("no figures");
    add(&rows, row_of(1, RF_PATH_IN_PLACE, 0, 3));
    add(&rows, row_of(2, RF_PATH_BETWEEN, 10, 0));
    rf_predict_calibrate(&rows, &error);
    ck_assert_uint_eq(error.n, 0);
    ck_assert_ptr_null(error.worst_row);
    ck_assert_double_eq(rows.rows[1].p.ms, 0);
    ck_assert_double_eq(rows.rows[2].p.ms, 10);
}

TEST(test_calibrate_is_said_under_the_table)
{
    AUTO(rf_predict_rows) rows = five_rows();
    struct rf_leave_one_out error;
    AUTO_FREE char *text = NULL;
    static const char *const lines[] = {
        "\nhost, between nodes: calibrated by 3 results: x1.17 + 3.33 ms\n",
        "\nhost, inside nodes: calibrated by 1 result: x2\n",
        "\nleave-one-out error over 4 results: median 52.5 %, worst 87.5 % "
        "(s0, host)\n",
    };
    rf_predict_calibrate(&rows, &error);
    text = printed_rows(&rows, &error);
    for (size_t i = 0; i < RF_ARRAY_SIZE(lines); i++) {
        assert_says(text, lines[i]);
    }
}
