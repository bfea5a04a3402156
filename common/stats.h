/*
 * Summary statistics of a set of samples. Formulae are those of
 * docs/RESULTS.md: percentiles interpolate linearly between closest ranks (type
 * 7 of Hyndman and Fan 1996, the default of NumPy and R); the standard
 * deviation is the sample one (n-1); the intervals are percentile bootstraps of
 * the mean and of the median with a fixed seed; drift is the least-squares
 * slope over the samples' order, as percent of the mean from first to last.
 */
#ifndef RF_COMMON_STATS_H
#define RF_COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Fewer samples say nothing about how far their median can be trusted. */
#define RF_STATS_INTERVAL_SAMPLES 3

struct rf_stats {
    size_t count;
    double mean, min, max, median, p95, p99;
    double stddev; /* 0 when count < 2 */
    double ci95_low, ci95_high;
    double drift_percent; /* 0 when count < 3 */
};

/* Percentile `p` in [0, 100] of `sorted` (ascending, count ≥ 1). */
double rf_percentile(const double *sorted, size_t count, double p);

/* Fills `out` from `samples` (not modified). count 0 gives all zeros. */
void rf_stats_compute(const double *samples, size_t count,
                      struct rf_stats *out);

/* The 95 % interval of the median of `samples` (not modified). False, with the
 * outputs as they were, below RF_STATS_INTERVAL_SAMPLES. */
bool rf_stats_median_interval(const double *samples, size_t count, double *low,
                              double *high);

#endif
