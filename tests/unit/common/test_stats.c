/* Known answers for the summary statistics. */
#include <math.h>

#include "common/pattern.h"
#include "common/stats.h"
#include "tests/unit/unit.h"

TEST(test_stats_known_answers)
{
    const double samples[] = {4, 1, 3, 2, 5};
    struct rf_stats stats;
    rf_stats_compute(samples, 5, &stats);
    ck_assert_double_eq_tol(stats.mean, 3, 1e-12);
    ck_assert_double_eq_tol(stats.median, 3, 1e-12);
    ck_assert_double_eq_tol(rf_stats_median(samples, 5), 3, 1e-12);
    ck_assert_double_eq_tol(rf_stats_median(samples, 4), 2.5, 1e-12);
    ck_assert_double_eq(rf_stats_median(NULL, 0), 0);
    ck_assert_double_eq(stats.min, 1);
    ck_assert_double_eq(stats.max, 5);
    ck_assert_double_eq_tol(stats.p95, 4.8, 1e-12);
    ck_assert_double_eq_tol(stats.p99, 4.96, 1e-12);
    ck_assert_double_eq_tol(stats.stddev, sqrt(2.5), 1e-12);
    ck_assert(stats.ci95_low > 1 && stats.ci95_low < 3);
    ck_assert(stats.ci95_high > 3 && stats.ci95_high < 5);
}

TEST(test_stats_drift_is_slope_over_the_run)
{
    const double rising[] = {10, 11, 12, 13, 14};
    struct rf_stats stats;
    rf_stats_compute(rising, 5, &stats);
    ck_assert_double_eq_tol(stats.drift_percent, 100.0 * 4 / 12, 1e-9);
}

TEST(test_stats_of_nothing_and_of_one)
{
    const double one[] = {7};
    struct rf_stats stats;
    rf_stats_compute(NULL, 0, &stats);
    ck_assert_double_eq(stats.mean, 0);
    rf_stats_compute(one, 1, &stats);
    ck_assert_double_eq(stats.p99, 7);
    ck_assert_double_eq(stats.stddev, 0);
}

TEST(test_stats_median_interval_takes_no_notice_of_outliers)
{
    const double calm[] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
    const double wild[] = {900, 8, 7, 6, 5, 4, 3, 2, -100};
    double low = 0, high = 0, again_low = 0, again_high = 0;
    ck_assert(rf_stats_median_interval(calm, 9, &low, &high));
    ck_assert(low >= 2 && low <= 4);
    ck_assert(high >= 6 && high <= 8);
    ck_assert_double_eq(calm[0], 9);
    ck_assert(rf_stats_median_interval(wild, 9, &again_low, &again_high));
    ck_assert_double_eq(low, again_low);
    ck_assert_double_eq(high, again_high);
}

/* Medians of resamples are 1, 2 (between the two in the middle) or 3. */
TEST(test_stats_median_interval_of_an_even_count)
{
    const double pairs[] = {1, 3, 1, 3, 1, 3};
    double low = 0, high = 0;
    ck_assert(rf_stats_median_interval(pairs, 6, &low, &high));
    ck_assert_double_eq(low, 1);
    ck_assert_double_eq(high, 3);
}

TEST(test_stats_median_interval_needs_five_samples)
{
    const double samples[] = {5, 6, 5, 7, 5};
    double low = -1, high = -1;
    for (size_t n = 0; n < RF_STATS_INTERVAL_SAMPLES; n++) {
        ck_assert(!rf_stats_median_interval(samples, n, &low, &high));
    }
    ck_assert_double_eq(low, -1);
    ck_assert(rf_stats_median_interval(samples, 5, &low, &high));
    ck_assert_double_eq(low, 5);
    ck_assert_double_eq(high, 7);
}

/* How samples vary: evenly, mostly a little, or with a long tail. */
static double uniform(double u, double v)
{
    (void)v;
    return u;
}

static double normal(double u, double v)
{
    return sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v);
}

static double skewed(double u, double v)
{
    (void)v;
    return -log(1 - u);
}

static double next_unit(uint64_t *state)
{
    return (double)rf_mix64((*state)++) / 0x1p64;
}

static const struct {
    double (*shape)(double u, double v);
    double spread;
    size_t count; /* 0: 5, and on until the median is known to 2 % */
} reruns[] = {
    {uniform, 0.01, 5}, {normal, 0.01, 5},  {skewed, 0.01, 5},
    {normal, 0.01, 9},  {skewed, 0.01, 9},  {uniform, 0.01, 15},
    {normal, 0.01, 15}, {skewed, 0.01, 15}, {normal, 0.02, 0},
    {normal, 0.03, 0},  {skewed, 0.03, 0},  {skewed, 0.2, 5},
};

#define MOST_SAMPLES 101

/* Samples of a run around 1. Returns how many. */
static size_t draw_run(int row, uint64_t *state, double samples[MOST_SAMPLES])
{
    const size_t count = reruns[row].count;
    size_t n = 0;
    do {
        const double u = next_unit(state), v = next_unit(state);
        samples[n++] = 1 + reruns[row].spread * reruns[row].shape(u, v);
    } while (n < (count > 0 ? count : 5) ||
             (count == 0 && n < MOST_SAMPLES &&
              (n % 2 == 0 || !rf_stats_median_known(samples, n, 2))));
    return n;
}

LOOP_TEST(test_stats_reruns_lie_in_their_interval, RF_ARRAY_SIZE(reruns))
{
    const int runs = reruns[_i].count > 0 ? 1500 : 500;
    double low = 0, high = 0, rerun_low = 0, rerun_high = 0, median = 0;
    int in_own = 0, in_rerun = 0;
    uint64_t state = 7;
    for (int run = 0; run <= runs; run++) {
        double samples[MOST_SAMPLES];
        const size_t n = draw_run(_i, &state, samples);
        median = rf_stats_median(samples, n);
        in_own += run > 0 && median >= low && median <= high;
        in_rerun += run > 0 && median >= rerun_low && median <= rerun_high;
        ck_assert(rf_stats_median_interval(samples, n, &low, &high));
        rf_stats_rerun_interval(median, low, high, &rerun_low, &rerun_high);
    }
    ck_assert_int_lt(in_own, 90 * runs / 100);
    ck_assert_int_ge(in_rerun, (reruns[_i].count > 0 ? 94 : 90) * runs / 100);
    ck_assert_int_le(in_rerun, 98 * runs / 100);
}

/* On a logarithmic scale. The larger half counts, also of an interval that does
 * not have its median. */
TEST(test_stats_reruns_lie_as_far_off_on_either_side)
{
    static const struct {
        double low, high, factor;
    } cases[] = {{8, 15, 1.5}, {5, 15, 2},  {11, 20, 2},
                 {5, 8, 2},    {10, 10, 1}, {1, 90, 10}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const double factor = pow(cases[i].factor, sqrt(2));
        double low = 0, high = 0;
        rf_stats_rerun_interval(10, cases[i].low, cases[i].high, &low, &high);
        ck_assert_double_eq_tol(low, 10 / factor, 1e-12);
        ck_assert_double_eq_tol(high, 10 * factor, 1e-9);
    }
}

TEST(test_stats_median_is_known_from_a_narrow_interval)
{
    const double narrow[] = {99, 99.5, 100, 100.5, 101};
    const double wide[] = {90, 95, 100, 105, 110};
    ck_assert(rf_stats_median_known(narrow, 5, 2));
    ck_assert(!rf_stats_median_known(narrow, 5, 0.5));
    ck_assert(!rf_stats_median_known(wide, 5, 2));
    ck_assert(!rf_stats_median_known(narrow, 2, 100));
}

TEST(test_stats_outliers_are_far_out_and_matter)
{
    const double calm[] = {100, 102, 98, 101, 99, 103, 97};
    const double wild[] = {100, 102, 98, 150, 99, 103, 20};
    const double small[] = {100, 100.001, 99.999, 104, 100, 100, 100};
    const double few[] = {100, 100, 100, 500};
    /* quartiles 99 and 101: far out is below 93 and above 107 */
    const double inside[] = {93.5, 98, 99, 100, 100, 100, 101, 102, 106.5};
    const double beyond[] = {92.5, 98, 99, 100, 100, 100, 101, 102, 107.5};
    ck_assert_uint_eq(rf_stats_outliers(inside, 9), 0);
    ck_assert_uint_eq(rf_stats_outliers(beyond, 9), 2);
    ck_assert_uint_eq(rf_stats_outliers(calm, 7), 0);
    ck_assert_uint_eq(rf_stats_outliers(wild, 7), 2);
    ck_assert_uint_eq(rf_stats_outliers(small, 7), 0);
    ck_assert_uint_eq(rf_stats_outliers(few, 4), 0);
}

TEST(test_stats_drift_is_significant_and_matters)
{
    const double up[] = {100, 103, 104, 108, 110, 111};
    const double down[] = {111, 110, 108, 104, 103, 100};
    const double noise[] = {100, 111, 103, 110, 104, 108};
    const double small[] = {100, 101, 102, 103, 104, 104.5};
    const double line[] = {1, 2, 3, 4, 5}, flat[] = {7, 7, 7, 7, 7};
    /* z 1.97 and 1.85, by an independent program */
    const double just[] = {100, 104, 103, 111, 110, 108};
    const double hardly[] = {100, 103, 110, 104, 108, 111};
    ck_assert(rf_stats_drifts(just, 6));
    ck_assert(!rf_stats_drifts(hardly, 6));
    ck_assert(rf_stats_drifts(up, 6));
    ck_assert(rf_stats_drifts(down, 6));
    ck_assert(!rf_stats_drifts(noise, 6));
    ck_assert(!rf_stats_drifts(small, 6));
    ck_assert(rf_stats_drifts(line, 5));
    ck_assert(!rf_stats_drifts(line, 4));
    ck_assert(!rf_stats_drifts(flat, 5));
}

TEST(test_stats_two_modes_have_a_gap_between_them)
{
    const double two[] = {100, 150, 101, 151, 99, 149, 102, 152, 98, 148};
    const double near[] = {100, 104, 100, 104, 100, 104, 100, 104, 100, 104};
    const double even[] = {100, 103, 106, 109, 112, 115, 118, 121, 124, 127};
    const double tail[] = {100, 101, 102, 99, 98, 100, 101, 99, 100, 200};
    /* 0.566 and 0.551, by an independent program; the limit is 0.556 */
    const double just[] = {100, 100, 100, 100, 100, 110, 110, 110, 110, 110};
    const double hardly[] = {99, 100, 100, 100, 100, 110, 110, 110, 110, 111};
    ck_assert(rf_stats_bimodal(just, 10));
    ck_assert(!rf_stats_bimodal(hardly, 10));
    ck_assert(rf_stats_bimodal(two, 10));
    ck_assert(!rf_stats_bimodal(two, 9));
    ck_assert(!rf_stats_bimodal(near, 10));
    ck_assert(!rf_stats_bimodal(even, 10));
    ck_assert(!rf_stats_bimodal(tail, 10));
}

/* By an independent program, 40000 resamples: medians 11 to 20, means 11.13 to
 * 19.8. All samples as one would give less than half of that. */
static const double three[] = {10, 12, 11, 13, 9,  20, 21,
                               19, 22, 18, 14, 15, 13, 16};
static const size_t three_counts[] = {5, 5, 4};
static const struct rf_stats_repeats three_repeats = {three, three_counts, 3};

TEST(test_stats_intervals_of_repeats_draw_repeats_first)
{
    double low, high, flat_low, flat_high;
    struct rf_stats stats;
    ck_assert(rf_stats_repeats_median_interval(&three_repeats, &low, &high));
    ck_assert_double_eq_tol(low, 11, 0.25);
    ck_assert_double_eq_tol(high, 20, 0.25);
    ck_assert(rf_stats_median_interval(three, 14, &flat_low, &flat_high));
    ck_assert(flat_low > low && flat_high < high);
    rf_stats_repeats_compute(&three_repeats, &stats);
    ck_assert_uint_eq(stats.count, 14);
    ck_assert_double_eq(stats.median, 14.5);
    ck_assert_double_eq_tol(stats.ci95_low, 11.13, 0.3);
    ck_assert_double_eq_tol(stats.ci95_high, 19.8, 0.3);
    ck_assert(!rf_stats_repeats_median_known(&three_repeats, 30));
    ck_assert(rf_stats_repeats_median_known(&three_repeats, 40));
}

/* How samples of a repeat vary, and how repeats do. */
static const struct {
    double within, between;
} groups[] = {{0.01, 0}, {0.01, 0.01}, {0.003, 0.01}, {0.001, 0.01}};

#define GROUP_REPEATS 5
#define GROUP_SAMPLES (GROUP_REPEATS * 10)

/* The interval of a group of repeats around 1; `by` the factor that
 * scripts/guidelines widens it by. */
static void draw_group(int row, uint64_t *state, double by, double out[2])
{
    static const size_t counts[GROUP_REPEATS] = {10, 10, 10, 10, 10};
    double samples[GROUP_SAMPLES], middle, repeat = 0;
    const struct rf_stats_repeats repeats = {samples, counts, GROUP_REPEATS};
    for (size_t i = 0; i < GROUP_SAMPLES; i++) {
        double u = next_unit(state), v = next_unit(state);
        if (i % 10 == 0) {
            repeat = groups[row].between * normal(u, v);
            u = next_unit(state);
            v = next_unit(state);
        }
        samples[i] = 1 + repeat + groups[row].within * normal(u, v);
    }
    middle = rf_stats_median(samples, GROUP_SAMPLES);
    ck_assert(rf_stats_repeats_median_interval(&repeats, &out[0], &out[1]));
    for (size_t i = 0; i < 2; i++) {
        out[i] = middle + by * (out[i] - middle);
    }
}

/* Of `pairs` of equal groups, those whose intervals do not overlap. */
static int count_apart(int row, int pairs, double by)
{
    uint64_t state = 7;
    int apart = 0;
    for (int i = 0; i < pairs; i++) {
        double a[2], b[2];
        draw_group(row, &state, by, a);
        draw_group(row, &state, by, b);
        apart += a[0] > b[1] || b[0] > a[1];
    }
    return apart;
}

/* A guideline is violated in one of the two directions only: half as often. */
LOOP_TEST(test_stats_equal_groups_of_repeats_are_seldom_apart,
          RF_ARRAY_SIZE(groups))
{
    const double by = 2.78 / 1.96 * sqrt(5.0 / 4);
    ck_assert_int_le(count_apart(_i, 500, by), 1);
}

/* Three points on y = 2 + 3 x, one far off; two with nearly the same x say next
 * to nothing of the slope. */
TEST(test_stats_line_takes_no_notice_of_an_outlier)
{
    const double x[] = {1, 2, 4, 3, 4.001}, y[] = {5, 8, 14, 90, 13};
    double fixed = 0, slope = 0;
    ck_assert(rf_stats_line(x, y, 3, &fixed, &slope));
    ck_assert_double_eq_tol(slope, 3, 1e-9);
    ck_assert_double_eq_tol(fixed, 2, 1e-9);
    ck_assert(rf_stats_line(x, y, 5, &fixed, &slope));
    ck_assert_double_eq_tol(slope, 3, 0.35);
    ck_assert_double_eq_tol(fixed, 2, 0.7);
}

TEST(test_stats_line_needs_two_places)
{
    const double x[] = {3, 3, 3}, y[] = {1, 2, 3};
    double fixed = -1, slope = -1;
    ck_assert(!rf_stats_line(x, y, 3, &fixed, &slope));
    ck_assert(!rf_stats_line(x, y, 0, &fixed, &slope));
    ck_assert_double_eq(fixed, -1);
    ck_assert_double_eq(slope, -1);
}
