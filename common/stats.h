/*
 * Summary statistics of a set of samples. Formulae are those of
 * docs/RESULTS.md: percentiles interpolate linearly between closest ranks (type
 * 7 of Hyndman and Fan 1996, the default of NumPy and R); the standard
 * deviation is the sample one (n-1); the intervals are percentile bootstraps of
 * the mean and of the median with a fixed seed; drift is the least-squares
 * slope over the samples' order, as percent of the mean from first to last.
 *
 * Samples of one repeat have more in common than those of several. So where
 * there are several, a resample draws as many repeats, with replacement, and
 * from each as many samples as it has (hierarchical bootstrap: A. C. Davison
 * and D. V. Hinkley, Bootstrap Methods and their Application, 1997, 3.8).
 */
#ifndef RF_COMMON_STATS_H
#define RF_COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* The median lies between the least and the largest of n samples with
 * probability 1 - 2^(1 - n): 0.75 with three, 0.94 with five. Fewer have no
 * interval that deserves 95 %. */
#define RF_STATS_INTERVAL_SAMPLES 5

/* Samples of several repeats of one measurement: those of the first, then those
 * of the next, at least one of each. One repeat is what the functions without
 * `repeats` in their names take. */
struct rf_stats_repeats {
    const double *samples;
    const size_t *counts; /* of each repeat */
    size_t n;             /* repeats */
};

struct rf_stats {
    size_t count;
    double mean, min, max, median, p95, p99;
    double stddev; /* 0 when count < 2 */
    double ci95_low, ci95_high;
    double drift_percent; /* 0 when count < 3 */
};

/* Compares two doubles as qsort() wants it. */
int rf_stats_by_value(const void *a, const void *b);

/* Percentile `p` in [0, 100] of `sorted` (ascending, count ≥ 1). */
double rf_percentile(const double *sorted, size_t count, double p);

/* The median of `samples` (not modified); 0 of none. */
double rf_stats_median(const double *samples, size_t count);

/* Fills `out` from `samples` (not modified). count 0 gives all zeros. Takes as
 * long as thousands of medians: the interval is a bootstrap's. */
void rf_stats_compute(const double *samples, size_t count,
                      struct rf_stats *out);
/* The same for all samples of all repeats. */
void rf_stats_repeats_compute(const struct rf_stats_repeats *repeats,
                              struct rf_stats *out);

/* The 95 % interval of the median of `samples` (not modified). False, with the
 * outputs as they were, below RF_STATS_INTERVAL_SAMPLES. */
bool rf_stats_median_interval(const double *samples, size_t count, double *low,
                              double *high);
bool rf_stats_repeats_median_interval(const struct rf_stats_repeats *repeats,
                                      double *low, double *high);

/*
 * Where the median of as many new samples lies in 95 of 100 cases, if `low` to
 * `high` is the 95 % interval of this one: no further off than sqrt(2) times
 * the interval's larger half. Both medians vary, so the interval itself has the
 * next one in only 83 of 100 (G. Cumming and R. Maillardet, Confidence
 * Intervals and Replication, Psychological Methods 11, 2006). The larger half,
 * since chance decides which it is where samples are few: in simulations (suite
 * stats) 95 to 98 of 100 lie there, and 91 to 94 where sampling ended once
 * rf_stats_median_known(), which luck does at times.
 */
void rf_stats_rerun_interval(double median, double low, double high,
                             double *rerun_low, double *rerun_high);

/* Whether half of the median's interval is less than `percent` of the median.
 */
bool rf_stats_median_known(const double *samples, size_t count, double percent);
bool rf_stats_repeats_median_known(const struct rf_stats_repeats *repeats,
                                   double percent);

/*
 * Signs that samples in the order of their measurement are not of one kind.
 * What is less than RF_STATS_MATTERS percent of the median (of a drift: of the
 * mean) is no sign, however unlikely; nor is anything among less than
 * RF_STATS_SIGN_SAMPLES, for two modes RF_STATS_MODES_SAMPLES.
 */
#define RF_STATS_MATTERS 5.0
#define RF_STATS_SIGN_SAMPLES 5
#define RF_STATS_MODES_SAMPLES 10

/* How many are beyond the outer fences, Q1 - 3 (Q3 - Q1) and Q3 + 3 (Q3 - Q1)
 * (J. W. Tukey, Exploratory Data Analysis, 1977). */
size_t rf_stats_outliers(const double *samples, size_t count);

/* Whether the drift is significant at 5 %: |artanh r| sqrt(n - 3) > 1.96, with
 * r the correlation with the order (R. A. Fisher, Metron 1, 1921). */
bool rf_stats_drifts(const double *samples, size_t count);

/*
 * Whether there are two modes: Sarle's coefficient
 *   (g^2 + 1) / (k + 3 (n - 1)^2 / ((n - 2) (n - 3))) > 5/9,
 * with g the skewness and k the excess kurtosis of the sample (SAS/STAT User's
 * Guide, 1990, CLUSTER; 5/9 is a uniform distribution's). A long tail has a
 * large one, too, so there must be a gap between the two, with a fifth of the
 * samples on either side.
 */
bool rf_stats_bimodal(const double *samples, size_t count);

/*
 * The line y = fixed + slope x through points, as an outlier or two cannot move
 * it: the slope is the weighted median of those of all pairs, each with the
 * weight |xi - xj|, and `fixed` the median of y - slope x (P. K. Sen, Estimates
 * of the regression coefficient based on Kendall's tau, JASA 63, 1968, after H.
 * Theil, 1950; weights: L. A. Jaeckel, Annals of Mathematical Statistics 43,
 * 1972). False, with the outputs as they were, where all x are equal.
 */
bool rf_stats_line(const double *x, const double *y, size_t count,
                   double *fixed, double *slope);

#endif
