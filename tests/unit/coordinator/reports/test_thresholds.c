/* The limits of --threshold. */
#include <string.h>

#include "coordinator/reports/thresholds.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text;
    double limits[RF_METRICS][2]; /* worse, better: of ratio, time, memory */
} good[] = {
    {"0.25", {{0.25, 0.25}, {0.25, 0.25}, {0.25, 0.25}}},
    {"5%", {{0.05, 0.05}, {0.05, 0.05}, {0.05, 0.05}}},
    {"time=5%,memory=0.2", {{0.1, 0.1}, {0.05, 0.05}, {0.2, 0.2}}},
    {"time=5%,0.3", {{0.3, 0.3}, {0.05, 0.05}, {0.3, 0.3}}},
    {"ratio=+2%-50%", {{0.02, 0.5}, {0.1, 0.1}, {0.1, 0.1}}},
    {"memory=-0.5+.2", {{0.1, 0.1}, {0.1, 0.1}, {0.2, 0.5}}},
    {"time=+3%", {{0.1, 0.1}, {0.03, 0.1}, {0.1, 0.1}}},
};

LOOP_TEST(test_thresholds_are_read_by_metric_and_direction, RF_ARRAY_SIZE(good))
{
    struct rf_thresholds read = rf_thresholds_default();
    ck_assert_int_eq(rf_thresholds_read(good[_i].text, &read, NULL), RF_OK);
    for (size_t m = 0; m < RF_METRICS; m++) {
        ck_assert_double_eq_tol(read.of[m].worse, good[_i].limits[m][0], 1e-12);
        ck_assert_double_eq_tol(read.of[m].better, good[_i].limits[m][1],
                                1e-12);
        ck_assert_int_eq(read.of[m].named,
                         strstr(good[_i].text, rf_metric_name(m)) != NULL);
    }
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"", "must be a number from"},
    {"-1", "must be a number from"},
    {"+5%", "must be a number from"},
    {"nan", "must be a number from"},
    {"5 %", "must be a number from"},
    {"0.1,", "must be a number from"},
    {"101", "from 0.0001 to 100"},
    {"time=", "time=+5%-20%"},
    {"time=5%-20%", "one for each direction"},
    {"time=+5%+6%", "one for each direction"},
    {"time=+", "one for each direction"},
    {"tim=5%", "(did you mean \"time\"?)"},
    {"speed=5%", "known: time, ratio, memory"},
    {"time=5%,memory=5%,time=6%", "time is given twice"},
    {"memory=+5%,memory=-6%", "are written memory=+5%-20%"},
};

LOOP_TEST(test_thresholds_that_make_no_sense_are_refused, RF_ARRAY_SIZE(bad))
{
    struct rf_thresholds read = rf_thresholds_default();
    struct rf_err err = {0};
    assert_fails(rf_thresholds_read(bad[_i].text, &read, &err), RF_ERR_USAGE,
                 err, bad[_i].error);
    for (size_t m = 0; m < RF_METRICS; m++) {
        ck_assert_double_eq(read.of[m].worse, 0.10);
        ck_assert(!read.of[m].named);
    }
}

/* As of other options that are given several times. */
TEST(test_thresholds_that_are_read_later_win)
{
    struct rf_thresholds read = rf_thresholds_default();
    ck_assert_int_eq(rf_thresholds_read("time=5%,memory=5%", &read, NULL),
                     RF_OK);
    ck_assert_int_eq(rf_thresholds_read("time=+7%", &read, NULL), RF_OK);
    ck_assert_double_eq_tol(read.of[RF_METRIC_TIME].worse, 0.07, 1e-12);
    ck_assert_double_eq_tol(read.of[RF_METRIC_TIME].better, 0.05, 1e-12);
    ck_assert_double_eq_tol(read.of[RF_METRIC_MEMORY].worse, 0.05, 1e-12);
}

TEST(test_thresholds_are_exceeded_in_their_direction)
{
    const struct rf_threshold limits = {.worse = 0.05, .better = 0.2};
    char text[64];
    ck_assert(rf_threshold_exceeded(&limits, 0.06));
    ck_assert(!rf_threshold_exceeded(&limits, 0.05));
    ck_assert(!rf_threshold_exceeded(&limits, -0.19));
    ck_assert(rf_threshold_exceeded(&limits, -0.21));
    ck_assert_str_eq(rf_threshold_text(&limits, text), "+5 % or -20 %");
}
