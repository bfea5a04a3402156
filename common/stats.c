/* Summary statistics. See stats.h for the formulae. */
#include "common/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"

#define BOOTSTRAP_RESAMPLES 2000

int rf_stats_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return RF_COMPARE(x, y);
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

static size_t draw(uint64_t *state, size_t count)
{
    return rf_mix64((*state)++) % count;
}

/* Draws no random number for a single repeat, so that it is resampled exactly
 * like samples without repeats. */
static size_t draw_repeat(const struct rf_stats_repeats *repeats,
                          uint64_t *state)
{
    return repeats->n > 1 ? draw(state, repeats->n) : 0;
}

static size_t count_of(const struct rf_stats_repeats *repeats)
{
    size_t count = 0;
    for (size_t i = 0; i < repeats->n; i++) {
        count += repeats->counts[i];
    }
    return count;
}

/* The index of each repeat's first sample; freed with free(). */
static size_t *starts_of(const struct rf_stats_repeats *repeats)
{
    size_t *starts = rf_xcalloc(repeats->n, sizeof(*starts)), at = 0;
    for (size_t i = 0; i < repeats->n; i++) {
        starts[i] = at;
        at += repeats->counts[i];
    }
    return starts;
}

static double resampled_mean(const struct rf_stats_repeats *repeats,
                             const size_t *starts, uint64_t *state)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < repeats->n; i++) {
        const size_t r = draw_repeat(repeats, state);
        for (size_t j = 0; j < repeats->counts[r]; j++) {
            sum +=
                repeats->samples[starts[r] + draw(state, repeats->counts[r])];
        }
        count += repeats->counts[r];
    }
    return sum / (double)count;
}

/* All samples in ascending order and, for each repeat, from its start on, the
 * positions of its samples there. */
struct order {
    double *sorted;
    size_t *starts, *places;
    size_t *drawn; /* times each is drawn in a resample */
};

/* Counts draws by position in `order`, so that a resample needs no sorting. */
static double resampled_median(const struct rf_stats_repeats *repeats,
                               const struct order *order, uint64_t *state)
{
    size_t *drawn = order->drawn;
    size_t count = 0, lower = 0, upper, below;
    memset(drawn, 0, count_of(repeats) * sizeof(*drawn));
    for (size_t i = 0; i < repeats->n; i++) {
        const size_t r = draw_repeat(repeats, state);
        const size_t *places = order->places + order->starts[r];
        for (size_t j = 0; j < repeats->counts[r]; j++) {
            drawn[places[draw(state, repeats->counts[r])]]++;
        }
        count += repeats->counts[r];
    }
    for (below = drawn[0]; below <= (count - 1) / 2; below += drawn[lower]) {
        lower++;
    }
    for (upper = lower; below <= count / 2; below += drawn[upper]) {
        upper++;
    }
    return (order->sorted[lower] + order->sorted[upper]) / 2;
}

/* The middle 95 % of the estimates, which it sorts. */
static void take_interval(double estimates[BOOTSTRAP_RESAMPLES], double *low,
                          double *high)
{
    qsort(estimates, BOOTSTRAP_RESAMPLES, sizeof(*estimates),
          rf_stats_by_value);
    *low = rf_percentile(estimates, BOOTSTRAP_RESAMPLES, 2.5);
    *high = rf_percentile(estimates, BOOTSTRAP_RESAMPLES, 97.5);
}

static void mean_interval(const struct rf_stats_repeats *repeats, double *low,
                          double *high)
{
    double *means = rf_xcalloc(BOOTSTRAP_RESAMPLES, sizeof(*means));
    size_t *starts = starts_of(repeats);
    uint64_t state = 1;
    for (size_t r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
        means[r] = resampled_mean(repeats, starts, &state);
    }
    take_interval(means, low, high);
    free(starts);
    free(means);
}

static double *sorted_copy(const double *samples, size_t count)
{
    double *sorted = rf_xcalloc(count, sizeof(*sorted));
    memcpy(sorted, samples, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), rf_stats_by_value);
    return sorted;
}

struct repeat_value {
    double value;
    size_t repeat;
};

static int compare_placed(const void *a, const void *b)
{
    const struct repeat_value *x = a, *y = b;
    return RF_THEN_BY(rf_stats_by_value(&x->value, &y->value),
                      RF_COMPARE(x->repeat, y->repeat));
}

static void put_in_order(const struct rf_stats_repeats *repeats,
                         struct order *out)
{
    const size_t count = count_of(repeats);
    struct repeat_value *all = rf_xcalloc(count, sizeof(*all));
    size_t *next = starts_of(repeats), at = 0;
    *out = (struct order){.sorted = rf_xcalloc(count, sizeof(*out->sorted)),
                          .starts = starts_of(repeats),
                          .places = rf_xcalloc(count, sizeof(*out->places)),
                          .drawn = rf_xcalloc(count, sizeof(*out->drawn))};
    for (size_t r = 0; r < repeats->n; r++) {
        for (size_t i = 0; i < repeats->counts[r]; i++, at++) {
            all[at] = (struct repeat_value){repeats->samples[at], r};
        }
    }
    qsort(all, count, sizeof(*all), compare_placed);
    for (size_t i = 0; i < count; i++) {
        out->sorted[i] = all[i].value;
        out->places[next[all[i].repeat]++] = i;
    }
    free(next);
    free(all);
}

static void free_order(struct order *order)
{
    free(order->sorted);
    free(order->starts);
    free(order->places);
    free(order->drawn);
}

bool rf_stats_repeats_median_interval(const struct rf_stats_repeats *repeats,
                                      double *low, double *high)
{
    struct order order;
    double *medians;
    uint64_t state = 1;
    if (count_of(repeats) < RF_STATS_INTERVAL_SAMPLES) {
        return false;
    }
    put_in_order(repeats, &order);
    medians = rf_xcalloc(BOOTSTRAP_RESAMPLES, sizeof(*medians));
    for (size_t r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
        medians[r] = resampled_median(repeats, &order, &state);
    }
    take_interval(medians, low, high);
    free(medians);
    free_order(&order);
    return true;
}

bool rf_stats_median_interval(const double *samples, size_t count, double *low,
                              double *high)
{
    const struct rf_stats_repeats one = {samples, &count, 1};
    return rf_stats_repeats_median_interval(&one, low, high);
}

void rf_stats_rerun_interval(double median, double low, double high,
                             double *rerun_low, double *rerun_high)
{
    const double factor = pow(RF_MAX(median / low, high / median), sqrt(2));
    *rerun_low = median / factor;
    *rerun_high = median * factor;
}

bool rf_stats_repeats_median_known(const struct rf_stats_repeats *repeats,
                                   double percent)
{
    const size_t count = count_of(repeats);
    double low, high, *sorted, median;
    if (!rf_stats_repeats_median_interval(repeats, &low, &high)) {
        return false;
    }
    sorted = sorted_copy(repeats->samples, count);
    median = rf_percentile(sorted, count, 50);
    free(sorted);
    return (high - low) / 2 * 100 < percent * median;
}

bool rf_stats_median_known(const double *samples, size_t count, double percent)
{
    const struct rf_stats_repeats one = {samples, &count, 1};
    return rf_stats_repeats_median_known(&one, percent);
}

double rf_stats_median(const double *samples, size_t count)
{
    double *sorted, median;
    if (count == 0) {
        return 0;
    }
    sorted = sorted_copy(samples, count);
    median = rf_percentile(sorted, count, 50);
    free(sorted);
    return median;
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

void rf_stats_repeats_compute(const struct rf_stats_repeats *repeats,
                              struct rf_stats *out)
{
    const double *samples = repeats->samples;
    const size_t count = count_of(repeats);
    double *sorted, squares = 0;
    memset(out, 0, sizeof(*out));
    if (count == 0) {
        return;
    }
    sorted = sorted_copy(samples, count);
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
    mean_interval(repeats, &out->ci95_low, &out->ci95_high);
    out->drift_percent = drift_percent(samples, count, out->mean);
    free(sorted);
}

void rf_stats_compute(const double *samples, size_t count, struct rf_stats *out)
{
    const struct rf_stats_repeats one = {samples, &count, 1};
    rf_stats_repeats_compute(&one, out);
}

static bool matters(double difference, double whole)
{
    return fabs(difference) * 100 > RF_STATS_MATTERS * fabs(whole);
}

size_t rf_stats_outliers(const double *samples, size_t count)
{
    double *sorted, q1, q3, median;
    size_t n = 0;
    if (count < RF_STATS_SIGN_SAMPLES) {
        return 0;
    }
    sorted = sorted_copy(samples, count);
    q1 = rf_percentile(sorted, count, 25);
    median = rf_percentile(sorted, count, 50);
    q3 = rf_percentile(sorted, count, 75);
    free(sorted);
    for (size_t i = 0; i < count; i++) {
        n += (samples[i] < q1 - 3 * (q3 - q1) ||
              samples[i] > q3 + 3 * (q3 - q1)) &&
             matters(samples[i] - median, median);
    }
    return n;
}

bool rf_stats_drifts(const double *samples, size_t count)
{
    struct rf_stats s;
    double n = (double)count, slope, r;
    if (count < RF_STATS_SIGN_SAMPLES) {
        return false;
    }
    rf_stats_compute(samples, count, &s);
    if (s.stddev <= 0 || !matters(s.drift_percent, 100)) {
        return false;
    }
    /* the standard deviation of 0 … n - 1 is sqrt(n (n + 1) / 12) */
    slope = s.drift_percent / 100 * s.mean / (n - 1);
    r = RF_MIN(fabs(slope) * sqrt(n * (n + 1) / 12) / s.stddev, 1.0);
    return atanh(r) * sqrt(n - 3) > 1.96;
}

/* Whether two neighbours among the middle three fifths are far apart. */
static bool has_gap(const double *sorted, size_t count)
{
    const size_t fifth = (count + 4) / 5;
    double median = rf_percentile(sorted, count, 50);
    for (size_t i = fifth; i <= count - fifth; i++) {
        if (matters(sorted[i] - sorted[i - 1], median)) {
            return true;
        }
    }
    return false;
}

/* Sarle's coefficient; skewness and kurtosis are the unbiased ones of SAS. */
static double bimodality(const double *samples, size_t count)
{
    double mean = mean_of(samples, count), n = (double)count;
    double m2 = 0, m3 = 0, m4 = 0, skewness, kurtosis;
    for (size_t i = 0; i < count; i++) {
        double d = samples[i] - mean;
        m2 += d * d / n;
        m3 += d * d * d / n;
        m4 += d * d * d * d / n;
    }
    if (m2 <= 0) {
        return 0;
    }
    skewness = m3 / pow(m2, 1.5) * sqrt(n * (n - 1)) / (n - 2);
    kurtosis =
        ((n + 1) * (m4 / (m2 * m2) - 3) + 6) * (n - 1) / ((n - 2) * (n - 3));
    return (skewness * skewness + 1) /
           (kurtosis + 3 * (n - 1) * (n - 1) / ((n - 2) * (n - 3)));
}

bool rf_stats_bimodal(const double *samples, size_t count)
{
    double *sorted;
    bool gap;
    if (count < RF_STATS_MODES_SAMPLES) {
        return false;
    }
    sorted = sorted_copy(samples, count);
    gap = has_gap(sorted, count);
    free(sorted);
    return gap && bimodality(samples, count) > 5.0 / 9;
}
