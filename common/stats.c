/* Summary statistics. See stats.h for the formulae. */
#include "common/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"

#define BOOTSTRAP_RESAMPLES 2000

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double rf_percentile(const double *sorted, size_t count, double p)
{
    double at = p / 100.0 * (double)(count - 1);
    size_t low = (size_t)floor(at);
    size_t high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

static double mean_of(const double *samples, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += samples[i];
    }
    return sum / (double)count;
}

static void bootstrap(const double *samples, size_t count, struct rf_stats *out)
{
    double *means = rf_xcalloc(BOOTSTRAP_RESAMPLES, sizeof(*means));
    uint64_t state = 1;
    for (size_t r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            sum += samples[rf_mix64(state++) % count];
        }
        means[r] = sum / (double)count;
    }
    qsort(means, BOOTSTRAP_RESAMPLES, sizeof(*means), compare_doubles);
    out->ci95_low = rf_percentile(means, BOOTSTRAP_RESAMPLES, 2.5);
    out->ci95_high = rf_percentile(means, BOOTSTRAP_RESAMPLES, 97.5);
    free(means);
}

static double drift_percent(const double *samples, size_t count, double mean)
{
    double mid = (double)(count - 1) / 2.0, sxy = 0, sxx = 0;
    if (count < 3 || mean == 0) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        sxy += ((double)i - mid) * (samples[i] - mean);
        sxx += ((double)i - mid) * ((double)i - mid);
    }
    return sxy / sxx * (double)(count - 1) / mean * 100.0;
}

void rf_stats_compute(const double *samples, size_t count, struct rf_stats *out)
{
    double *sorted, squares = 0;
    memset(out, 0, sizeof(*out));
    if (count == 0) {
        return;
    }
    sorted = rf_xcalloc(count, sizeof(*sorted));
    memcpy(sorted, samples, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_doubles);
    out->count = count;
    out->mean = mean_of(samples, count);
    out->min = sorted[0];
    out->max = sorted[count - 1];
    out->median = rf_percentile(sorted, count, 50);
    out->p95 = rf_percentile(sorted, count, 95);
    out->p99 = rf_percentile(sorted, count, 99);
    for (size_t i = 0; i < count; i++) {
        squares += (samples[i] - out->mean) * (samples[i] - out->mean);
    }
    out->stddev = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    bootstrap(samples, count, out);
    out->drift_percent = drift_percent(samples, count, out->mean);
    free(sorted);
}
