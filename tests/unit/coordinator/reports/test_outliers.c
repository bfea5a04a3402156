/* What stands out of a comparison, and what else differs there. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/reports/outliers.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

static struct rf_result_set reference, now;
static struct rf_comparisons all;

static void forget(void)
{
    rf_comparisons_free(&all);
    rf_result_set_free(&reference);
    rf_result_set_free(&now);
}

/* A record with five iterations of `median`, of two nodes; borrowed. */
static json_t *add(struct rf_result_set *set, const char *name, double median)
{
    json_t *result = result_record(name, "ok", median, 0.9);
    json_object_set_new(result, "iterations",
                        json_pack("[{s:f}, {s:f}, {s:f}, {s:f}, {s:f}]",
                                  "refit_ms", median, "refit_ms", median,
                                  "refit_ms", median, "refit_ms", median,
                                  "refit_ms", median));
    json_object_set_new(result, "tool", json_pack("{s:s}", "build", "b1"));
    json_object_set_new(result, "environment",
                        json_pack("[{s:s, s:s}, {s:s, s:s}]", "host", "x",
                                  "kernel", "5", "host", "y", "kernel", "5"));
    RF_PUSH(set->files, set->n, set->cap,
            ((struct rf_result_file){.path = rf_xstrdup("x/x.json"),
                                     .name = rf_xstrdup(name),
                                     .run = rf_xstrdup("x"),
                                     .result = result}));
    return result;
}

static void set_build(json_t *record, const char *build)
{
    json_object_set_new(json_object_get(record, "tool"), "build",
                        json_string(build));
}

static void set_kernel(json_t *record, size_t node, const char *kernel)
{
    json_object_set_new(
        json_array_get(json_object_get(record, "environment"), node), "kernel",
        json_string(kernel));
}

static char *compared(void)
{
    const struct rf_thresholds thresholds = rf_thresholds_default();
    rf_compare(&reference, &now, &thresholds, &all);
    return rf_outliers_csv(&all);
}

FIXTURE(NULL, forget)

TEST(test_outliers_have_what_differs_on_both_sides)
{
    json_t *slow;
    AUTO_FREE char *text;
    (void)add(&reference, "same", 100);
    (void)add(&reference, "slow", 100);
    set_build(add(&now, "same", 100), "b2");
    slow = add(&now, "slow", 150);
    set_build(slow, "b2");
    set_kernel(slow, 0, "6");
    set_kernel(slow, 1, "6");
    json_object_set_new(json_object_get(slow, "scenario"), "chunk_bytes",
                        json_integer(4096));
    text = compared();
    assert_cell(text, 0, "scenario", "slow");
    assert_cell(text, 0, "verdict", "slower");
    assert_cell(text, 0, "change", "0.5");
    assert_cell(text, 0, "method", "host");
    assert_cell(text, 0, "reference.median_ms", "100.0");
    assert_cell(text, 0, "new.median_ms", "150.0");
    assert_cell(text, 0, "reference.tool.build", "b1");
    assert_cell(text, 0, "new.tool.build", "b2");
    assert_cell(text, 0, "reference.scenario.chunk_bytes", "");
    assert_cell(text, 0, "new.scenario.chunk_bytes", "4096");
    assert_cell(text, 0, "reference.environment.kernel", "5");
    assert_cell(text, 0, "new.environment.kernel", "6");
    ck_assert_ptr_null(strstr(text, "\nsame,"));
}

TEST(test_outliers_list_nodes_that_differ_in_other_ways)
{
    json_t *slow;
    AUTO_FREE char *text;
    (void)add(&reference, "slow", 100);
    slow = add(&now, "slow", 150);
    set_kernel(slow, 0, "6");
    set_kernel(slow, 1, "66");
    text = compared();
    assert_says(text, ",5,\"6; 66\"\n");
}

/* Neither scenario can be compared with anything; what it was is known. */
TEST(test_outliers_have_scenarios_of_one_side)
{
    AUTO_FREE char *text;
    (void)add(&reference, "both", 100);
    (void)add(&reference, "gone", 100);
    (void)add(&now, "both", 101);
    (void)add(&now, "fresh", 100);
    text = compared();
    assert_cell(text, 0, "verdict", "missing");
    assert_cell(text, 0, "strategy", "send_recv");
    assert_cell(text, 0, "regression", "true");
    assert_cell(text, 0, "reference.median_ms", "");
    assert_cell(text, 1, "scenario", "fresh");
}

/* Equal times of another question say nothing; another build is what is to be
 * compared. */
TEST(test_outliers_are_those_of_another_question)
{
    AUTO_FREE char *text;
    (void)add(&reference, "method", 100);
    (void)add(&reference, "build", 100);
    set_build(add(&now, "build", 100), "b2");
    json_object_set_new(json_object_get(add(&now, "method", 100), "scenario"),
                        "method", json_string("tcp"));
    text = compared();
    assert_cell(text, 0, "scenario", "method");
    assert_cell(text, 0, "verdict", "same");
    assert_cell(text, 0, "reference.scenario.method", "host");
    assert_cell(text, 0, "new.scenario.method", "tcp");
    ck_assert_ptr_null(strstr(text, "\nbuild,"));
}

TEST(test_outliers_without_any_are_a_head)
{
    AUTO_FREE char *text;
    (void)add(&reference, "same", 100);
    (void)add(&now, "same", 100);
    text = compared();
    ck_assert_ptr_eq(strstr(text, "scenario,verdict,judged,change,"), text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
