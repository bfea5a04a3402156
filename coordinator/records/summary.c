/*
 * The summary of a record, computed from the iterations in the same file. See
 * docs/RESULTS.md.
 */
#include "coordinator/records/summary.h"

#include <math.h>

#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/iteration_ranks.h"
#include "coordinator/records/variance.h"

const char *const rf_summary_phases[RF_SUMMARY_PHASES] = {
    "pack_ms", "wire_ms", "unpack_ms", "sync_ms", "unattributed_ms"};

static void put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

/* The slowest rank's phases, averaged over the measured iterations. */
static json_t *phases_json(const json_t *record)
{
    const json_t *iterations = json_object_get(record, "iterations"), *one;
    const size_t count = json_array_size(iterations);
    json_t *out = json_object();
    for (size_t p = 0; p < RF_SUMMARY_PHASES; p++) {
        double sum = 0, ms;
        size_t i;
        json_array_foreach (iterations, i, one) {
            if (rf_iteration_ranks_value(
                    json_object_get(one, "ranks"),
                    (size_t)json_integer_value(
                        json_object_get(one, "slowest_rank")),
                    rf_summary_phases[p], &ms)) {
                sum += ms;
            }
        }
        put(out, rf_summary_phases[p],
            count > 0 ? json_real(sum / (double)count) : NULL);
    }
    return out;
}

/* [low, high]; NULL if unknown. */
static json_t *interval_json(const struct rf_stats_repeats *repeats)
{
    double low, high;
    return rf_stats_repeats_median_interval(repeats, &low, &high)
               ? json_pack("[f, f]", low, high)
               : NULL;
}

/* Refit over yardstick, from measured iterations with both. */
static json_t *ratios_json(const json_t *record)
{
    struct rf_result_samples ratios =
        rf_result_samples(record, "yardstick_ratio");
    const struct rf_stats_repeats repeats = rf_result_repeats(&ratios);
    json_t *out = json_object();
    struct rf_stats stats;
    double low, high, rerun_low, rerun_high;
    bool known = rf_stats_repeats_median_interval(&repeats, &low, &high);
    rf_stats_repeats_compute(&repeats, &stats);
    if (known) {
        rf_stats_rerun_interval(stats.median, low, high, &rerun_low,
                                &rerun_high);
    }
    put(out, "median", ratios.count > 0 ? json_real(stats.median) : NULL);
    put(out, "low", known ? json_real(low) : NULL);
    put(out, "high", known ? json_real(high) : NULL);
    put(out, "rerun_low", known ? json_real(rerun_low) : NULL);
    put(out, "rerun_high", known ? json_real(rerun_high) : NULL);
    put(out, "count", json_integer((json_int_t)ratios.count));
    rf_result_samples_free(&ratios);
    return out;
}

/* The standard deviation of a variance, as a percentage of the mean. */
static double percent_of(double variance, double mean)
{
    return mean > 0 ? sqrt(variance) / mean * 100 : 0;
}

/* One figure's variance within and between repeats; NULL if unknown. */
static json_t *variance_json(const json_t *record, const char *key)
{
    struct rf_result_samples samples = rf_result_samples(record, key);
    const struct rf_stats_repeats repeats = rf_result_repeats(&samples);
    struct rf_variance v;
    json_t *out = NULL;
    if (rf_variance_of(&repeats, &v)) {
        out = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "mean_square_between",
                        v.mean_square_between, "mean_square_within",
                        v.mean_square_within, "between", v.between, "within",
                        v.within, "between_percent",
                        percent_of(v.between, v.mean), "within_percent",
                        percent_of(v.within, v.mean));
    }
    rf_result_samples_free(&samples);
    return out;
}

static void put_repeats(json_t *out, const json_t *record,
                        const struct rf_stats_repeats *times)
{
    static const char *const keys[] = {"refit_ms", "yardstick_ratio"};
    json_t *variance = json_object();
    put(out, "median_ci95_ms", interval_json(times));
    put(out, "repeats", json_integer((json_int_t)times->n));
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        put(variance, keys[i], variance_json(record, keys[i]));
    }
    put(out, "variance", variance);
}

/* A figure over all ranks. */
struct of_ranks {
    double sum, most;
    size_t n;
};

static const char *const stages[] = {"before", "opened", "prepared", "refit",
                                     "after"};

struct rank_memory {
    struct of_ranks peak, stages[RF_ARRAY_SIZE(stages)];
};

static void add_rank(struct of_ranks *figure, double value)
{
    figure->sum += value;
    figure->most = RF_MAX(figure->most, value);
    figure->n++;
}

static json_t *mean_json(const struct of_ranks *figure)
{
    return figure->n > 0
               ? json_integer(llround(figure->sum / (double)figure->n))
               : NULL;
}

/* Takes a rank's peak, in the memory where its method keeps weights, if it is
 * the highest so far. */
static void take_peak(const json_t *rank, json_t *out, struct of_ranks *peaks)
{
    double peak, predicted = 0;
    const double most = peaks->most;
    const bool device =
        rf_result_number(rank, NULL, "predicted_device_bytes", &predicted) &&
        predicted > 0;
    const char *const measured =
        device ? "device_peak_bytes" : "host_peak_bytes";
    if (!rf_result_number(rank, NULL, measured, &peak)) {
        return;
    }
    add_rank(peaks, peak);
    if (peak <= most) {
        return;
    }
    put(out, "peak_bytes", json_incref(json_object_get(rank, measured)));
    put(out, "predicted_bytes",
        json_incref(json_object_get(rank, device ? "predicted_device_bytes"
                                                 : "predicted_host_bytes")));
}

/* Keeps a figure's maximum over ranks. */
static void keep_most(json_t *out, const json_t *rank, const char *object,
                      const char *key)
{
    double now, most;
    if (rf_result_number(rank, object, key, &now) &&
        (!rf_result_number(out, NULL, key, &most) || now > most)) {
        put(out, key,
            json_incref((json_t *)rf_result_value(rank, object, key)));
    }
}

static void take_stages(const json_t *rank, struct of_ranks *out)
{
    for (size_t s = 0; s < RF_ARRAY_SIZE(stages); s++) {
        char key[32];
        double value;
        snprintf(key, sizeof(key), "%s_bytes", stages[s]);
        if (rf_result_number(rank, "stages", key, &value)) {
            add_rank(&out[s], value);
        }
    }
}

static json_t *stages_json(const struct of_ranks *figures)
{
    json_t *out = json_object();
    for (size_t s = 0; s < RF_ARRAY_SIZE(stages); s++) {
        json_t *one = json_object();
        put(one, "mean_bytes", mean_json(&figures[s]));
        put(one, "max_bytes",
            figures[s].n > 0 ? json_integer(llround(figures[s].most)) : NULL);
        put(out, stages[s], one);
    }
    return out;
}

static void take_ranks(const json_t *memory, json_t *out,
                       struct rank_memory *all)
{
    const json_t *rank;
    size_t r;
    json_array_foreach (memory, r, rank) {
        take_peak(rank, out, &all->peak);
        take_stages(rank, all->stages);
        keep_most(out, rank, NULL, "host_peak_bytes");
        keep_most(out, rank, NULL, "device_peak_bytes");
        keep_most(out, rank, "device", "foreign_bytes");
    }
}

/* The rank that needed most, in any repeat; the maximum of each kind; the mean
 * over ranks, also of each stage. */
static json_t *memory_json(const json_t *record)
{
    json_t *out =
        json_pack("{s:n, s:n, s:n, s:n, s:n}", "peak_bytes", "predicted_bytes",
                  "host_peak_bytes", "device_peak_bytes", "foreign_bytes");
    const json_t *repeats = json_object_get(record, "repeats"), *repeat;
    struct rank_memory all = {0};
    size_t i;
    take_ranks(json_object_get(record, "memory"), out, &all);
    json_array_foreach (repeats, i, repeat) {
        take_ranks(json_object_get(repeat, "memory"), out, &all);
    }
    put(out, "peak_mean_bytes", mean_json(&all.peak));
    put(out, "stages", stages_json(all.stages));
    return out;
}

/* Useful bytes over the median time. */
static json_t *rate_json(const json_t *record, const struct rf_stats *stats)
{
    double bytes;
    return stats->median > 0 &&
                   rf_result_number(record, "plan", "bytes_total", &bytes)
               ? json_real(bytes / 1e6 / stats->median)
               : NULL;
}

static double sent_in(const json_t *iteration)
{
    const json_t *ranks = json_object_get(iteration, "ranks");
    double sum = 0, bytes;
    for (size_t r = 0; rf_iteration_ranks_value(ranks, r, "sent_bytes", &bytes);
         r++) {
        sum += bytes;
    }
    return sum;
}

/* What all ranks sent in an iteration, the median; NULL without an update, then
 * it is what the schedule says. */
static json_t *sent_json(const json_t *record)
{
    const json_t *iterations = json_object_get(record, "iterations"), *one;
    const size_t most = json_array_size(iterations);
    double *sums;
    json_t *out;
    size_t i;
    if (most == 0 || rf_result_value(record, "scenario", "encoding") == NULL) {
        return NULL;
    }
    sums = rf_xcalloc(most, sizeof(*sums));
    json_array_foreach (iterations, i, one) {
        sums[i] = sent_in(one);
    }
    out = json_integer((json_int_t)rf_stats_median(sums, most));
    free(sums);
    return out;
}

/* In all iterations; NULL: none. */
static json_t *resyncs_json(const json_t *record)
{
    struct rf_result_samples found = rf_result_samples(record, "resyncs");
    double sum = 0;
    for (size_t i = 0; i < found.count; i++) {
        sum += found.values[i];
    }
    rf_result_samples_free(&found);
    return sum > 0 ? json_integer((json_int_t)sum) : NULL;
}

json_t *rf_summary_json(const json_t *record, bool has_rate)
{
    struct rf_result_samples times = rf_result_samples(record, "refit_ms");
    const struct rf_stats_repeats repeats = rf_result_repeats(&times);
    const bool any = times.count > 0;
    struct rf_stats s;
    json_t *out = json_object();
    rf_stats_repeats_compute(&repeats, &s);
    const struct {
        const char *key;
        double value;
    } fields[] = {{"mean_ms", s.mean},     {"min_ms", s.min}, {"max_ms", s.max},
                  {"median_ms", s.median}, {"p95_ms", s.p95}, {"p99_ms", s.p99},
                  {"stddev_ms", s.stddev}};
    put(out, "count", json_integer((json_int_t)s.count));
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        put(out, fields[i].key, any ? json_real(fields[i].value) : NULL);
    }
    put(out, "ci95_ms",
        any ? json_pack("[f, f]", s.ci95_low, s.ci95_high) : NULL);
    put(out, "algbw_gbytes_per_s", has_rate ? rate_json(record, &s) : NULL);
    put(out, "drift_percent", any ? json_real(s.drift_percent) : NULL);
    put(out, "sent_bytes", sent_json(record));
    put(out, "resyncs", resyncs_json(record));
    put(out, "yardstick_ratio", ratios_json(record));
    put(out, "phases", phases_json(record));
    put(out, "memory", memory_json(record));
    if (json_is_array(json_object_get(record, "repeats"))) {
        put_repeats(out, record, &repeats);
    }
    rf_result_samples_free(&times);
    return out;
}

/* Nothing is faster than a true bound, but both medians are measured. */
#define VALID_EFFICIENCY 1.02

void rf_summary_judge_bound(json_t *bound, double median_ms)
{
    double ms = 0;
    const bool judged =
        rf_result_number(bound, NULL, "ms", &ms) && median_ms > 0;
    const double efficiency = judged ? ms / median_ms : 0;
    const bool valid = efficiency <= VALID_EFFICIENCY;
    put(bound, "efficiency", judged ? json_real(efficiency) : NULL);
    put(bound, "valid", judged ? json_boolean(valid) : NULL);
    put(bound, "underestimated",
        judged && !valid ? json_incref(json_object_get(bound, "resource"))
                         : NULL);
}
