/*
 * Summary statistics of a set of samples. The formulae are those of
 * docs/RESULTS.md: percentiles interpolate linearly between closest ranks (type
 * 7 of Hyndman and Fan 1996, the default of NumPy and R); the standard
 * deviation is the sample one (n-1); the intervals are percentile bootstraps of
 * the mean and of the median with a fixed seed; drift is the least-squares
 * slope over the samples' order, as percent of the mean from first to last.
 *
 * Samples of one repeat resemble each other more than samples of different
 * repeats. With several repeats, a resample therefore draws as many repeats,
 * with replacement, and from each as many samples as it has (hierarchical
 * bootstrap: A. C. Davison and D. V. Hinkley, Bootstrap Methods and their
 * Application, 1997, 3.8).
 */
#ifndef RF_COMMON_STATS_H
#define RF_COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* The median lies between the least and the largest of n samples with
 * probability 1 - 2^(1 - n): 0.75 for three, 0.94 for five. Fewer samples give
 * no meaningful 95 % interval. */
#define RF_STATS_INTERVAL_SAMPLES 5

/* Samples of several repeats of one measurement, repeat after repeat, at least
 * one each. Functions without `repeats` in their names take one repeat. */
struct rf_stats_repeats {
    const double *samples;
    const size_t *counts; /* samples of each repeat */
    size_t n;             /* repeats */
};

struct rf_stats {
    size_t count;
    double mean, min, max, median, p95, p99;
    double stddev; /* 0 when count < 2 */
    double ci95_low, ci95_high;
    double drift_percent; /* 0 when count < 3 */
};

/* Compares two doubles, for qsort(). */
int rf_stats_by_value(const void *a, const void *b);

/* Percentile `p` in [0, 100] of `sorted` (ascending, count ≥ 1). */
double rf_percentile(const double *sorted, size_t count, double p);

/* The median of `samples` (not modified); 0 if there are none. */
double rf_stats_median(const double *samples, size_t count);

/* Fills `out` from `samples` (not modified). count 0 gives all zeros. Costs as
 * much as thousands of medians, because it bootstraps the interval. */
void rf_stats_compute(const double *samples, size_t count,
                      struct rf_stats *out);
/* The same for all samples of all repeats. */
void rf_stats_repeats_compute(const struct rf_stats_repeats *repeats,
                              struct rf_stats *out);

/* The 95 % interval of the median of `samples` (not modified). False, with the
 * outputs unchanged, below RF_STATS_INTERVAL_SAMPLES. */
bool rf_stats_median_interval(const double *samples, size_t count, double *low,
                              double *high);
bool rf_stats_repeats_median_interval(const struct rf_stats_repeats *repeats,
                                      double *low, double *high);

/*
 * The range that holds the median of as many new samples in 95 of 100 cases,
 * given the 95 % interval `low` to `high` of this one, all above 0: sqrt(2)
 * times the interval's larger half on either side of the median, on a
 * logarithmic scale, since times and their ratios are never below 0. Both
 * medians vary, so the interval itself holds the next one in only 83 of 100
 * cases (G. Cumming and R. Maillardet, Confidence Intervals and Replication,
 * Psychological Methods 11, 2006). It takes the larger half because with few
 * samples chance decides which half is larger. In simulations (suite stats) 95
 * to 98 of 100 lie in the range, and 91 to 94 if sampling ended once
 * rf_stats_median_known(), which sometimes happens by luck.
 */
void rf_stats_rerun_interval(double median, double low, double high,
                             double *rerun_low, double *rerun_high);

/* Whether half of the median's interval is below `percent` of the median. */
bool rf_stats_median_known(const double *samples, size_t count, double percent);
bool rf_stats_repeats_median_known(const struct rf_stats_repeats *repeats,
                                   double percent);

/*
 * Signs that samples in measurement order are of different kinds. An effect
 * below RF_STATS_MATTERS percent of the median (for a drift: of the mean) is no
 * sign, however unlikely; nor is any with fewer than RF_STATS_SIGN_SAMPLES
 * samples, or RF_STATS_MODES_SAMPLES for two modes.
 */
#define RF_STATS_MATTERS 5.0
#define RF_STATS_SIGN_SAMPLES 5
#define RF_STATS_MODES_SAMPLES 10

/* The number of samples beyond the outer fences, Q1 - 3 (Q3 - Q1) and Q3 + 3
 * (Q3 - Q1) (J. W. Tukey, Exploratory Data Analysis, 1977). */
size_t rf_stats_outliers(const double *samples, size_t count);

/* Whether the drift is significant at 5 %: |artanh r| sqrt(n - 3) > 1.96, with
 * r the correlation with the order (R. A. Fisher, Metron 1, 1921). */
bool rf_stats_drifts(const double *samples, size_t count);

/*
 * Whether there are two modes: Sarle's coefficient
 *   (g^2 + 1) / (k + 3 (n - 1)^2 / ((n - 2) (n - 3))) > 5/9,
 * with g the skewness and k the excess kurtosis of the sample (SAS/STAT User's
 * Guide, 1990, CLUSTER; 5/9 is that of a uniform distribution). A long tail
 * also gives a large coefficient, so there must also be a gap between the
 * modes, with a fifth of the samples on either side.
 */
bool rf_stats_bimodal(const double *samples, size_t count);

/*
 * The line y = fixed + slope x through points, robust against an outlier or
 * two: the slope is the weighted median of the slopes of all pairs, each with
 * the weight |xi - xj|, and `fixed` the median of y - slope x (P. K. Sen,
 * Estimates of the regression coefficient based on Kendall's tau, JASA 63,
 * 1968, after H. Theil, 1950; weights: L. A. Jaeckel, Annals of Mathematical
 * Statistics 43, 1972). False, with the outputs unchanged, where all x are
 * equal.
 */
bool rf_stats_line(const double *x, const double *y, size_t count,
                   double *fixed, double *slope);

#endif
