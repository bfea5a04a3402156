/* One-way random effects. See variance.h. */
#include "coordinator/records/variance.h"

#include <math.h>

#include "common/mem.h"

static double sum_of(const double *samples, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += samples[i];
    }
    return sum;
}

static double squares_about(double mean, const double *samples, size_t count)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        squares += (samples[i] - mean) * (samples[i] - mean);
    }
    return squares;
}

bool rf_variance_of(const struct rf_stats_repeats *repeats,
                    struct rf_variance *out)
{
    double within = 0, between = 0, all = 0, squares = 0, mean, n0;
    const double k = (double)repeats->n;
    const double *at = repeats->samples;
    for (size_t i = 0; i < repeats->n; i++) {
        const double n = (double)repeats->counts[i];
        all += n;
        squares += n * n;
    }
    if (k < 2 || all <= k) {
        return false;
    }
    mean = sum_of(repeats->samples, (size_t)all) / all;
    for (size_t i = 0; i < repeats->n; i++) {
        const size_t n = repeats->counts[i];
        const double own = sum_of(at, n) / (double)n;
        within += squares_about(own, at, n);
        between += (double)n * (own - mean) * (own - mean);
        at += n;
    }
    n0 = (all - squares / all) / (k - 1);
    *out = (struct rf_variance){.mean_square_between = between / (k - 1),
                                .mean_square_within = within / (all - k),
                                .within = within / (all - k),
                                .mean = mean,
                                .per_repeat = n0};
    out->between =
        RF_MAX((out->mean_square_between - out->mean_square_within) / n0, 0.0);
    return true;
}

bool rf_variance_dominates(const struct rf_variance *variance)
{
    return variance->per_repeat >= RF_STATS_SIGN_SAMPLES &&
           variance->between > variance->within &&
           sqrt(variance->between) * 100 > RF_STATS_MATTERS * variance->mean;
}
