/* Known answers for one-way random effects. */

#include "coordinator/records/variance.h"

#include "tests/unit/unit.h"

/* By an independent program, from the sums of squares as exact fractions:
 * 2875/28, 25/11, 65/14 and 6185/286. */
TEST(test_variance_of_uneven_repeats)
{
    const double samples[] = {10, 12, 11, 13, 9,  20, 21,
                              19, 22, 18, 14, 15, 13, 16};
    const size_t counts[] = {5, 5, 4};
    struct rf_variance v;
    ck_assert(
        rf_variance_of(&(struct rf_stats_repeats){samples, counts, 3}, &v));
    ck_assert_double_eq_tol(v.mean_square_between, 2875.0 / 28, 1e-9);
    ck_assert_double_eq_tol(v.mean_square_within, 25.0 / 11, 1e-12);
    ck_assert_double_eq_tol(v.within, 25.0 / 11, 1e-12);
    ck_assert_double_eq_tol(v.per_repeat, 65.0 / 14, 1e-12);
    ck_assert_double_eq_tol(v.between, 6185.0 / 286, 1e-9);
    ck_assert_double_eq_tol(v.mean, 213.0 / 14, 1e-12);
}

TEST(test_variance_between_is_not_below_zero)
{
    const double samples[] = {1, 9, 9, 1};
    const size_t counts[] = {2, 2};
    struct rf_variance v;
    ck_assert(
        rf_variance_of(&(struct rf_stats_repeats){samples, counts, 2}, &v));
    ck_assert_double_eq(v.between, 0);
    ck_assert_double_eq(v.within, 32);
}

TEST(test_variance_needs_two_repeats_and_more_than_one_sample_each)
{
    const double samples[] = {1, 2, 3};
    const size_t one[] = {3}, each[] = {1, 1, 1}, enough[] = {2, 1};
    struct rf_variance v = {.within = 7};
    ck_assert(!rf_variance_of(&(struct rf_stats_repeats){samples, one, 1}, &v));
    ck_assert(
        !rf_variance_of(&(struct rf_stats_repeats){samples, each, 3}, &v));
    ck_assert_double_eq(v.within, 7);
    ck_assert(
        rf_variance_of(&(struct rf_stats_repeats){samples, enough, 2}, &v));
}

/* The second repeat is `by` above the first. */
static bool dominates(double by, size_t n)
{
    const double calm[] = {100, 101, 99, 100, 102, 98};
    double samples[12];
    const size_t counts[] = {n, n};
    struct rf_variance v;
    for (size_t i = 0; i < n; i++) {
        samples[i] = calm[i];
        samples[n + i] = calm[i] + by;
    }
    ck_assert(
        rf_variance_of(&(struct rf_stats_repeats){samples, counts, 2}, &v));
    return rf_variance_dominates(&v);
}

TEST(test_variance_dominates_only_where_it_matters)
{
    ck_assert(!dominates(0, 6));
    ck_assert(!dominates(4, 6)); /* a root of 2.8 % of the mean */
    ck_assert(dominates(12, 6));
    ck_assert(!dominates(12, 4)); /* too few samples to tell */
}
