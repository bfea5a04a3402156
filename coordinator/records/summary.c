/*
 * The summary of a record, computed from the iterations in the same file. See
 * docs/RESULTS.md.
 */
#include "coordinator/records/summary.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "common/stats.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/iteration_ranks.h"
#include "coordinator/records/network.h"
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
    json_t *out = json_object();
    for (size_t p = 0; p < RF_SUMMARY_PHASES; p++) {
        double sum = 0, ms;
        size_t i, n = 0;
        json_array_foreach (iterations, i, one) {
            if (rf_iteration_ranks_value(
                    json_object_get(one, "ranks"),
                    (size_t)json_integer_value(
                        json_object_get(one, "slowest_rank")),
                    rf_summary_phases[p], &ms)) {
                sum += ms;
                n++;
            }
        }
        put(out, rf_summary_phases[p],
            n > 0 ? json_real(sum / (double)n) : NULL);
    }
    return out;
}

static json_t *phases_schema(void)
{
    json_t *out = rf_json_schema_object();
    for (size_t p = 0; p < RF_SUMMARY_PHASES; p++) {
        rf_json_schema_describe(out, rf_summary_phases[p], RF_NULLABLE,
                                rf_json_schema_type("number"));
    }
    return out;
}

static json_t *interval_schema(void)
{
    return rf_json_schema_list(rf_json_schema_type("number"), 2, 2);
}

/* [low, high]; NULL if unknown. */
static json_t *interval_json(const struct rf_stats_repeats *repeats)
{
    double low, high;
    return rf_stats_repeats_median_interval(repeats, &low, &high)
               ? json_pack("[f, f]", low, high)
               : NULL;
}

#define RATIOS(M)                                                              \
    M(NUMBER, median, NULLABLE,                                                \
      ratios.count > 0 ? json_real(stats.median) : NULL)                       \
    M(NUMBER, low, NULLABLE, known ? json_real(low) : NULL)                    \
    M(NUMBER, high, NULLABLE, known ? json_real(high) : NULL)                  \
    M(NUMBER, rerun_low, NULLABLE, known ? json_real(rerun_low) : NULL)        \
    M(NUMBER, rerun_high, NULLABLE, known ? json_real(rerun_high) : NULL)      \
    M(COUNT, count, REQUIRED, json_integer((json_int_t)ratios.count))

RF_MEMBERS_SCHEMA(ratios_schema, RATIOS)

/* A ratio of the measured iterations that have it. */
static json_t *ratios_json(const json_t *record, const char *key)
{
    struct rf_result_samples ratios = rf_result_samples(record, key);
    const struct rf_stats_repeats repeats = rf_result_repeats(&ratios);
    json_t *out = json_object();
    struct rf_stats stats;
    double low, high, rerun_low, rerun_high;
    const bool known =
        rf_stats_repeats_median_interval(&repeats, &low, &high) && low > 0;
    rf_stats_repeats_compute(&repeats, &stats);
    if (known) {
        rf_stats_rerun_interval(stats.median, low, high, &rerun_low,
                                &rerun_high);
    }
    RATIOS(RF_PUT);
    rf_result_samples_free(&ratios);
    return out;
}

/* The ranks that had the load, as far as the first iteration says. */
static size_t loaded_ranks(const json_t *record)
{
    const json_t *ranks = json_object_get(
        json_array_get(json_object_get(record, "iterations"), 0),
        "loaded_ranks");
    double value;
    size_t n = 0;
    for (size_t r = 0; rf_iteration_ranks_value(ranks, r, "ms", &value); r++) {
        n += rf_iteration_ranks_value(ranks, r, "load_alone_bytes", &value);
    }
    return n;
}

/* The rate that a scenario asks of the loads of all ranks; NULL: none. */
static json_t *asked_json(const json_t *record)
{
    double of_rank;
    return rf_result_number(record, "scenario.load", "memory_gbytes_per_s",
                            &of_rank) ||
                   rf_result_number(record, "scenario.load",
                                    "network_gbytes_per_s", &of_rank)
               ? json_real(of_rank * (double)loaded_ranks(record))
               : NULL;
}

/* Consecutive ranks. */
struct rank_range {
    size_t first, n;
};

static const struct rank_range all_ranks = {0, SIZE_MAX};

/* The median over iterations of the longest time of any of these ranks, in
 * `list`, "ranks" or "loaded_ranks"; NULL: none. */
static json_t *longest_in(const json_t *record, const char *list,
                          struct rank_range of, const char *key)
{
    const json_t *iterations = json_object_get(record, "iterations"), *one;
    double *longest =
        rf_xcalloc(json_array_size(iterations) + 1, sizeof(*longest));
    double ms, most;
    json_t *out;
    size_t i, n = 0;
    json_array_foreach (iterations, i, one) {
        const json_t *ranks = json_object_get(one, list);
        most = -1;
        for (size_t r = of.first; r - of.first < of.n &&
                                  rf_iteration_ranks_value(ranks, r, "ms", &ms);
             r++) {
            if (rf_iteration_ranks_value(ranks, r, key, &ms)) {
                most = RF_MAX(most, ms);
            }
        }
        if (most >= 0) {
            longest[n++] = most;
        }
    }
    out = n > 0 ? json_real(rf_stats_median(longest, n)) : NULL;
    free(longest);
    return out;
}

#define LOAD(M)                                                                \
    M(NUMBER, median_ms, REQUIRED,                                             \
      json_real(rf_result_median(record, "loaded_ms")))                        \
    M(NUMBER, load_ms, REQUIRED,                                               \
      longest_in(record, "loaded_ranks", all_ranks, "load_ms"))                \
    M(NUMBER, gbytes_per_s, REQUIRED,                                          \
      json_real(rf_result_median(record, "load_gbytes_per_s")))                \
    M(NUMBER, alone_gbytes_per_s, REQUIRED,                                    \
      json_real(rf_result_median(record, "load_alone_gbytes_per_s")))          \
    M(NUMBER, asked_gbytes_per_s, OPTIONAL, asked_json(record))                \
    M(OF(ratios_schema()), refit_slowdown, REQUIRED,                           \
      ratios_json(record, "refit_slowdown"))                                   \
    M(OF(ratios_schema()), load_slowdown, REQUIRED,                            \
      ratios_json(record, "load_slowdown"))

RF_MEMBERS_SCHEMA(load_schema, LOAD)

/* Of iterations with a refit under load; NULL: there are none. */
static json_t *load_json(const json_t *record)
{
    struct rf_result_samples times = rf_result_samples(record, "loaded_ms");
    json_t *out = times.count > 0 ? json_object() : NULL;
    rf_result_samples_free(&times);
    if (out != NULL) {
        LOAD(RF_PUT);
    }
    return out;
}

/* The standard deviation of a variance, as a percentage of the mean. */
static double percent_of(double variance, double mean)
{
    return mean > 0 ? sqrt(variance) / mean * 100 : 0;
}

#define VARIANCE(M)                                                            \
    M(NUMBER, mean_square_between, REQUIRED, json_real(v.mean_square_between)) \
    M(NUMBER, mean_square_within, REQUIRED, json_real(v.mean_square_within))   \
    M(NUMBER, between, REQUIRED, json_real(v.between))                         \
    M(NUMBER, within, REQUIRED, json_real(v.within))                           \
    M(NUMBER, between_percent, REQUIRED,                                       \
      json_real(percent_of(v.between, v.mean)))                                \
    M(NUMBER, within_percent, REQUIRED, json_real(percent_of(v.within, v.mean)))

RF_MEMBERS_SCHEMA(variance_schema, VARIANCE)

/* One figure's variance within and between repeats; NULL if unknown. */
static json_t *variance_json(const json_t *record, const char *key)
{
    struct rf_result_samples samples = rf_result_samples(record, key);
    const struct rf_stats_repeats repeats = rf_result_repeats(&samples);
    struct rf_variance v;
    json_t *out = NULL;
    if (rf_variance_of(&repeats, &v)) {
        out = json_object();
        VARIANCE(RF_PUT);
    }
    rf_result_samples_free(&samples);
    return out;
}

#define VARIANCES(M)                                                           \
    M(OF(variance_schema()), refit_ms, NULLABLE,                               \
      variance_json(record, "refit_ms"))                                       \
    M(OF(variance_schema()), yardstick_ratio, NULLABLE,                        \
      variance_json(record, "yardstick_ratio"))

RF_MEMBERS_SCHEMA(variances_schema, VARIANCES)

static json_t *variances_json(const json_t *record)
{
    json_t *out = json_object();
    VARIANCES(RF_PUT);
    return out;
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
    double peak;
    const double most = peaks->most;
    const bool device =
        rf_result_figure(rank, NULL, "predicted_device_bytes") > 0;
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

static json_t *stages_schema(void)
{
    json_t *out = rf_json_schema_object();
    for (size_t s = 0; s < RF_ARRAY_SIZE(stages); s++) {
        rf_json_schema_need(
            out, stages[s],
            rf_json_schema_record("mean_bytes:count? max_bytes:count?"));
    }
    return out;
}

#define PEAKS(M)                                                               \
    M(COUNT, peak_bytes, NULLABLE, NULL)                                       \
    M(COUNT, predicted_bytes, NULLABLE, NULL)                                  \
    M(COUNT, host_peak_bytes, NULLABLE, NULL)                                  \
    M(COUNT, device_peak_bytes, NULLABLE, NULL)                                \
    M(COUNT, foreign_bytes, NULLABLE, NULL)
#define MEANS(M)                                                               \
    M(COUNT, peak_mean_bytes, NULLABLE, mean_json(&all.peak))                  \
    M(OF(stages_schema()), stages, REQUIRED, stages_json(all.stages))
#define MEMORY(M) PEAKS(M) MEANS(M)

RF_MEMBERS_SCHEMA(memory_schema, MEMORY)

/* The rank that needed most, in any repeat; the maximum of each kind; the mean
 * over ranks, also of each stage. */
static json_t *memory_json(const json_t *record)
{
    const json_t *repeats = json_object_get(record, "repeats"), *repeat;
    struct rank_memory all = {0};
    json_t *out = json_object();
    size_t i;
    PEAKS(RF_PUT);
    take_ranks(json_object_get(record, "memory"), out, &all);
    json_array_foreach (repeats, i, repeat) {
        take_ranks(json_object_get(repeat, "memory"), out, &all);
    }
    MEANS(RF_PUT);
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

/* Format and end, as tables have them; of several pools one after another. */
static json_t *conversion_name(const json_t *record)
{
    const json_t *pools = rf_result_value(record, "scenario", "infer"), *pool;
    char *formats = NULL;
    json_t *out;
    size_t i;
    const json_t *quantize = rf_result_value(record, "scenario", "quantize");
    json_array_foreach (pools, i, pool) {
        const json_t *own = json_object_get(pool, "quantize");
        quantize = own != NULL ? own : quantize;
        rf_text_add(&formats, "/", "%s",
                    own != NULL ? rf_result_text(own, NULL, "format") : "none");
    }
    out = json_sprintf(
        "%s@%s%s",
        formats != NULL ? formats : rf_result_text(quantize, NULL, "format"),
        rf_result_text(quantize, NULL, "at"),
        json_is_true(json_object_get(quantize, "overlap")) ? "+overlap" : "");
    free(formats);
    return out;
}

#define CONVERSION(M)                                                          \
    M(TEXT, name, REQUIRED, conversion_name(record))                           \
    M(NUMBER, quantize_ms, REQUIRED, quantize_ms)                              \
    M(NUMBER, wire_ms, REQUIRED,                                               \
      longest_in(record, "ranks", all_ranks, "wire_ms"))

RF_MEMBERS_SCHEMA(conversion_schema, CONVERSION)

/* NULL if no rank converts. */
static json_t *conversion_json(const json_t *record)
{
    json_t *quantize_ms = longest_in(record, "ranks", all_ranks, "quantize_ms"),
           *out;
    if (quantize_ms == NULL) {
        return NULL;
    }
    out = json_object();
    CONVERSION(RF_PUT);
    return out;
}

#define POOL(M)                                                                \
    M(NUMBER, median_ms, REQUIRED, longest_in(record, "ranks", of, "ms"))      \
    M(NUMBER, wire_ms, REQUIRED, longest_in(record, "ranks", of, "wire_ms"))   \
    M(NUMBER, quantize_ms, OPTIONAL,                                           \
      longest_in(record, "ranks", of, "quantize_ms"))

RF_MEMBERS_SCHEMA(pool_schema, POOL)

static json_t *pool_json(const json_t *record, struct rank_range of)
{
    json_t *out = json_object();
    POOL(RF_PUT);
    return out;
}

/* NULL unless iterations served several pools. */
static json_t *pools_json(const json_t *record)
{
    const json_t *pools = rf_result_value(record, "plan", "pools"), *pool;
    json_t *out;
    size_t i;
    if (!json_is_array(pools) ||
        json_array_size(json_object_get(record, "iterations")) == 0) {
        return NULL;
    }
    out = json_array();
    json_array_foreach (pools, i, pool) {
        const struct rank_range of = {
            (size_t)rf_result_figure(pool, NULL, "first_rank"),
            (size_t)rf_result_figure(pool, NULL, "ranks")};
        json_array_append_new(out, pool_json(record, of));
    }
    return out;
}

#define SUMMARY(M)                                                             \
    M(COUNT, count, REQUIRED, json_integer((json_int_t)s.count))               \
    M(NUMBER, mean_ms, NULLABLE, any ? json_real(s.mean) : NULL)               \
    M(NUMBER, min_ms, NULLABLE, any ? json_real(s.min) : NULL)                 \
    M(NUMBER, max_ms, NULLABLE, any ? json_real(s.max) : NULL)                 \
    M(NUMBER, median_ms, NULLABLE, any ? json_real(s.median) : NULL)           \
    M(NUMBER, p95_ms, NULLABLE, any ? json_real(s.p95) : NULL)                 \
    M(NUMBER, p99_ms, NULLABLE, any ? json_real(s.p99) : NULL)                 \
    M(NUMBER, stddev_ms, NULLABLE, any ? json_real(s.stddev) : NULL)           \
    M(OF(interval_schema()), ci95_ms, NULLABLE,                                \
      any ? json_pack("[f, f]", s.ci95_low, s.ci95_high) : NULL)               \
    M(NUMBER, algbw_gbytes_per_s, NULLABLE,                                    \
      has_rate ? rate_json(record, &s) : NULL)                                 \
    M(NUMBER, drift_percent, NULLABLE,                                         \
      any ? json_real(s.drift_percent) : NULL)                                 \
    M(COUNT, sent_bytes, NULLABLE, sent_json(record))                          \
    M(COUNT, resyncs, NULLABLE, resyncs_json(record))                          \
    M(OF(ratios_schema()), yardstick_ratio, REQUIRED,                          \
      ratios_json(record, "yardstick_ratio"))                                  \
    M(OF(load_schema()), load, OPTIONAL, load_json(record))                    \
    M(OF(phases_schema()), phases, REQUIRED, phases_json(record))              \
    M(OF(conversion_schema()), conversion, OPTIONAL, conversion_json(record))  \
    M(LIST(pool_schema()), pools, OPTIONAL, pools_json(record))                \
    M(OF(memory_schema()), memory, REQUIRED, memory_json(record))              \
    M(LIST(rf_network_summary_schema()), network, REQUIRED,                    \
      rf_network_summary_json(record))
/* Of a record with repeats alone. */
#define SUMMARY_OF_REPEATS(M)                                                  \
    M(OF(interval_schema()), median_ci95_ms, NULLABLE,                         \
      interval_json(&repeats))                                                 \
    M(COUNT, repeats, REQUIRED, json_integer((json_int_t)repeats.n))           \
    M(OF(variances_schema()), variance, REQUIRED, variances_json(record))

json_t *rf_summary_json(const json_t *record, bool has_rate)
{
    struct rf_result_samples times = rf_result_samples(record, "refit_ms");
    const struct rf_stats_repeats repeats = rf_result_repeats(&times);
    const bool any = times.count > 0;
    struct rf_stats s;
    json_t *out = json_object();
    rf_stats_repeats_compute(&repeats, &s);
    SUMMARY(RF_PUT);
    if (json_is_array(json_object_get(record, "repeats"))) {
        SUMMARY_OF_REPEATS(RF_PUT);
    }
    rf_result_samples_free(&times);
    return out;
}

static json_t *form_schema(bool of_repeats)
{
    json_t *out = rf_json_schema_object();
    SUMMARY(RF_DESCRIBE);
    if (of_repeats) {
        SUMMARY_OF_REPEATS(RF_DESCRIBE);
    }
    return out;
}

json_t *rf_summary_schema(void)
{
    return rf_json_schema_either(form_schema(false), form_schema(true));
}

/* Nothing is faster than a true bound, but both medians are measured. */
#define VALID_EFFICIENCY 1.02

#define JUDGEMENT(M)                                                           \
    M(NUMBER, efficiency, NULLABLE, judged ? json_real(efficiency) : NULL)     \
    M(FLAG, valid, NULLABLE, judged ? json_boolean(valid) : NULL)              \
    M(TEXT, underestimated, NULLABLE,                                          \
      judged && !valid ? json_incref(json_object_get(out, "resource")) : NULL)

void rf_summary_judge_bound(json_t *out, double median_ms)
{
    double ms = 0;
    const bool judged = rf_result_number(out, NULL, "ms", &ms) && median_ms > 0;
    const double efficiency = judged ? ms / median_ms : 0;
    const bool valid = efficiency <= VALID_EFFICIENCY;
    JUDGEMENT(RF_PUT);
}

void rf_summary_judge_schema(json_t *out)
{
    JUDGEMENT(RF_DESCRIBE);
}
