/*
 * Variance within and between repeats of one measurement, by one-way random
 * effects: a sample is the mean of all, plus what its repeat has in common,
 * plus what it has alone. With samples y_ij of repeat i, N in all, of k repeats
 * with n_i each, and their means m_i and m:
 *   mean square between = sum n_i (m_i - m)^2 / (k - 1)
 *   mean square within  = sum (y_ij - m_i)^2 / (N - k)
 *   n0 = (N - sum n_i^2 / N) / (k - 1)
 *   variance within     = mean square within
 *   variance between    = max(0, (mean square between - within) / n0)
 * (S. R. Searle, G. Casella and C. E. McCulloch, Variance Components, 1992,
 * 3.6; repeated program starts: T. Kalibera and R. Jones, Rigorous Benchmarking
 * in Reasonable Time, ISMM 2013).
 */
#ifndef RF_COORDINATOR_RECORDS_VARIANCE_H
#define RF_COORDINATOR_RECORDS_VARIANCE_H

#include <stdbool.h>

#include "common/stats.h"

struct rf_variance {
    double mean_square_between, mean_square_within;
    double between, within; /* in squared units of the samples */
    double mean;            /* of all samples */
    double per_repeat;      /* n0: samples per repeat */
};

/* False, with `out` unchanged, with fewer than two repeats, or if no repeat has
 * two samples. */
bool rf_variance_of(const struct rf_stats_repeats *repeats,
                    struct rf_variance *out);

/* Whether repeats differ more than the samples within one: `between` exceeds
 * `within`, its root exceeds RF_STATS_MATTERS percent of the mean, and n0 is at
 * least RF_STATS_SIGN_SAMPLES. The ratio of mean squares then exceeds 1 + n0,
 * which by chance is rarer than 5 % for any number of repeats (F test). */
bool rf_variance_dominates(const struct rf_variance *variance);

#endif
