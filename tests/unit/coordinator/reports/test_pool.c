/* Several runs of the same scenarios as one. */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/reports/pool.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

static struct rf_result_set set;
static struct rf_pooled counts;

static char *said; /* the last warning */

static void take_line(enum rf_log_level level, const char *line, void *data)
{
    (void)level;
    (void)data;
    free(said);
    said = rf_xstrdup(line);
}

static void listen(void)
{
    rf_log_set_sink(take_line, NULL);
}

static void forget(void)
{
    rf_log_set_sink(NULL, NULL);
    free(said);
    said = NULL;
    rf_result_set_free(&set);
    counts = (struct rf_pooled){0};
}

/* Three iterations around `ms` of a run whose run_id is its name. */
static json_t *add(const char *run, const char *name, double ms)
{
    json_t *result = result_record(name, "ok", ms, 0.9);
    json_t *iterations = json_array();
    for (int i = -1; i <= 1; i++) {
        json_array_append_new(iterations,
                              json_pack("{s:f}", "refit_ms", ms + i));
    }
    json_object_set_new(result, "iterations", iterations);
    json_object_set_new(result, "run_id", json_string(run));
    json_object_set_new(json_object_get(result, "summary"), "count",
                        json_integer(3));
    json_object_set_new(json_object_get(result, "plan"), "digest",
                        json_string("d1"));
    json_object_set_new(
        result, "environment",
        json_pack("[{s:s, s:s}]", "host", "a", "kernel", "old"));
    RF_PUSH(set.files, set.n, set.cap,
            ((struct rf_result_file){.path = rf_xasprintf("/%s/x", run),
                                     .name = rf_xstrdup(name),
                                     .folder = rf_xstrdup(run),
                                     .run = rf_xstrdup(run),
                                     .result = result}));
    return result;
}

static double number(size_t i, const char *object, const char *key)
{
    double value = -1;
    (void)rf_result_number(set.files[i].result, object, key, &value);
    return value;
}

FIXTURE(listen, forget)

TEST(test_pool_makes_one_record_of_the_runs_of_a_scenario)
{
    AUTO_FREE char *text;
    add("one", "x", 10);
    add("one", "y", 50);
    add("two", "x", 20);
    add("two", "y", 50);
    rf_pool(&set, &counts);
    ck_assert_uint_eq(set.n, 2);
    ck_assert_uint_eq(counts.scenarios, 2);
    ck_assert_uint_eq(counts.apart, 0);
    ck_assert_int_eq(rf_pool_check(&counts, NULL), RF_OK);
    ck_assert_str_eq(set.files[0].name, "x");
    ck_assert_str_eq(set.files[0].run, "one, two");
    ck_assert_double_eq_tol(number(0, "summary", "median_ms"), 15, 1e-9);
    ck_assert_double_eq(number(0, "summary", "repeats"), 2);
    /* Means 10 and 20: 2 · 3 · 5² = 150 between, 1 within; (150 - 1) / 3. */
    ck_assert_double_eq_tol(number(0, "summary.variance.refit_ms", "between"),
                            149.0 / 3, 1e-9);
    ck_assert_double_eq_tol(number(0, "summary.variance.refit_ms", "within"), 1,
                            1e-9);
    text = rf_pool_text(&set.files[0]);
    assert_says(text, "pooled: x: 6 iterations of 2 repeats in 2 runs (one, "
                      "two); standard deviation 6.667 % within repeats, ");
    ck_assert(!rf_result_set_has_runs(&set));
}

TEST(test_pool_keeps_what_is_of_one_run_and_its_order)
{
    char *text;
    add("one", "x", 10);
    add("one", "only", 10);
    add("one", "z", 10);
    add("two", "x", 10);
    add("two", "z", 10);
    rf_pool(&set, &counts);
    ck_assert_uint_eq(set.n, 3);
    ck_assert_str_eq(set.files[0].name, "x");
    ck_assert_str_eq(set.files[1].name, "z");
    ck_assert_str_eq(set.files[2].name, "only");
    ck_assert_str_eq(set.files[2].run, "one");
    text = rf_pool_text(&set.files[2]);
    ck_assert_ptr_null(text);
}

static void other_digest(json_t *record)
{
    json_object_set_new(json_object_get(record, "plan"), "digest",
                        json_string("d2"));
}

static void other_setting(json_t *record)
{
    json_object_set_new(json_object_get(record, "scenario"), "method",
                        json_string("tcp"));
}

static void other_host(json_t *record)
{
    json_object_set_new(
        record, "environment",
        json_pack("[{s:s, s:s}]", "host", "b", "kernel", "old"));
}

static void other_ways(json_t *record)
{
    json_object_set_new(record, "setup",
                        json_pack("{s:s}", "registration", "1 puts by tcp/lo"));
}

static void copied(json_t *record)
{
    json_object_set_new(record, "run_id", json_string("one"));
}

LOOP_TEST(test_pool_leaves_other_refits_and_copies_apart, 5)
{
    static const struct {
        void (*make)(json_t *record);
        const char *why;
    } changes[] = {{other_digest, "they differ in plan.digest"},
                   {other_setting, "they differ in scenario.method"},
                   {other_host, "they differ in hosts[0]"},
                   {other_ways, "they differ in setup.registration"},
                   {copied, "both are of run_id one, so one is a copy"}};
    static const char begin[] =
        "scenario x of run two is not pooled with that of run one: ";
    struct rf_err err = {0};
    add("one", "x", 10);
    changes[_i].make(add("two", "x", 20));
    rf_pool(&set, &counts);
    ck_assert_uint_eq(set.n, 2);
    ck_assert_uint_eq(counts.apart, 1);
    assert_says(said, begin);
    ck_assert_str_eq(strstr(said, begin) + strlen(begin), changes[_i].why);
    ck_assert_double_eq(number(1, "summary", "median_ms"), 20);
    assert_fails(rf_pool_check(&counts, &err), RF_ERR_CONFIG, err,
                 "no scenario has comparable records");
}

TEST(test_pool_of_one_run_asks_for_others)
{
    struct rf_err err = {0};
    add("one", "x", 10);
    add("one", "y", 10);
    rf_pool(&set, &counts);
    assert_fails(rf_pool_check(&counts, &err), RF_ERR_CONFIG, err,
                 "--pool needs two runs");
}

/* Three runs of which the second is another refit. */
TEST(test_pool_takes_the_runs_that_fit)
{
    add("one", "x", 10);
    other_digest(add("two", "x", 20));
    add("three", "x", 30);
    rf_pool(&set, &counts);
    ck_assert_uint_eq(set.n, 2);
    ck_assert_uint_eq(counts.scenarios, 1);
    ck_assert_uint_eq(counts.apart, 1);
    ck_assert_str_eq(set.files[0].run, "one, three");
    ck_assert_str_eq(set.files[1].run, "two");
}

TEST(test_pool_says_what_else_differs)
{
    json_t *node;
    AUTO_FREE char *text;
    add("one", "x", 10);
    node = json_at(add("two", "x", 10), "environment[0]");
    json_object_set_new(node, "kernel", json_string("new"));
    rf_pool(&set, &counts);
    ck_assert_uint_eq(set.n, 1);
    text = rf_pool_text(&set.files[0]);
    ck_assert_msg(strstr(text, "; two differs in environment[0].kernel") !=
                      NULL,
                  "%s", text);
}
