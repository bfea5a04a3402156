/* The fields of records that others read. See fields.h. */
#include "coordinator/records/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "planner/scenario/spec_side.h"

/* A file may come from anyone. Bytes, times, rates and counts are not negative;
 * within these limits they fit a uint64_t, and ratios are finite. */
#define MOST 1e18
#define LEAST 1e-60

/* PLAIN: for programs only. SHOWN: for people too. RARE: where a result has it,
 * for people if it has a head. VARIES: in no table; dropped before records are
 * compared. */
#define PLAIN(object, key, kind, column)                                       \
    {                                                                          \
        object, key, RF_RESULT_##kind, column, NULL, 0, false, false           \
    }
#define SHOWN(object, key, kind, column, head, drop)                           \
    {                                                                          \
        object, key, RF_RESULT_##kind, column, head, drop, false, false        \
    }
#define RARE_SHOWN(object, key, kind, column, head, drop)                      \
    {                                                                          \
        object, key, RF_RESULT_##kind, column, head, drop, false, true         \
    }
#define RARE(object, key, kind, column, head)                                  \
    RARE_SHOWN(object, key, kind, column, head, 0)
#define VARIES(object, key, kind)                                              \
    {                                                                          \
        object, key, RF_RESULT_##kind, NULL, NULL, 0, true, false              \
    }

/* Of one of several pools. */
#define POOL(n)                                                                \
    RARE("summary.pools." n, "median_ms", MS, "infer" n "_ms",                 \
         ">infer[" n "] ms"),                                                  \
        RARE("summary.pools." n, "quantize_ms", MS, "infer" n "_quantize_ms",  \
             ">infer[" n "] convert ms")

_Static_assert(RF_POOLS_MAX == 4, "there is a column for each pool");
const struct rf_result_field rf_result_fields[] = {
    SHOWN(NULL, "name", TEXT, "scenario", "scenario", 0),
    PLAIN(NULL, "status", TEXT, "status"),
    PLAIN(NULL, "started_at", TEXT, "started_at"),
    PLAIN("model", "name", TEXT, "model"),
    PLAIN("scenario", "mode", TEXT, "mode"),
    RARE("source", "system", TEXT, "system", "system"),
    SHOWN("scenario", "method", TEXT, "method", "method", 8),
    SHOWN("scenario", "strategy", TEXT, "strategy", "strategy", 7),
    RARE("scenario", "encoding", TEXT, "encoding", "encoding"),
    RARE("summary.conversion", "name", TEXT, "quantize", "quantize"),
    PLAIN("scenario", "balance", TEXT, "balance"),
    SHOWN("plan", "bytes_total", BYTES, "bytes_total", ">bytes", 6),
    PLAIN("plan", "bytes_local", BYTES, "bytes_local"),
    PLAIN("plan", "bytes_intra_node", BYTES, "bytes_intra_node"),
    PLAIN("plan", "bytes_inter_node", BYTES, "bytes_inter_node"),
    VARIES("plan", "plan_ms", MS),
    SHOWN("schedule", "inter_node_bytes", BYTES, NULL, ">on links", 5),
    RARE("summary", "sent_bytes", BYTES, "sent_bytes", ">sent"),
    RARE("summary", "resyncs", COUNT, "resyncs", ">resyncs"),
    RARE("summary.conversion", "quantize_ms", MS, "quantize_ms", ">convert ms"),
    RARE("summary.conversion", "wire_ms", MS, "wire_ms", ">wire ms"),
    POOL("0"),
    POOL("1"),
    POOL("2"),
    POOL("3"),
    PLAIN("summary", "count", COUNT, "iterations"),
    SHOWN("summary", "median_ms", TIME, "median_ms", ">median ms", 0),
    PLAIN("summary", "mean_ms", MS, "mean_ms"),
    PLAIN("summary", "min_ms", MS, "min_ms"),
    PLAIN("summary", "max_ms", MS, "max_ms"),
    SHOWN("summary", "p95_ms", MS, "p95_ms", ">p95 ms", 4),
    PLAIN("summary", "p99_ms", MS, "p99_ms"),
    PLAIN("summary", "stddev_ms", MS, "stddev_ms"),
    PLAIN("summary", "drift_percent", PERCENT, "drift_percent"),
    SHOWN("summary", "algbw_gbytes_per_s", GBYTES_PER_S, "algbw_gbytes_per_s",
          ">GB/s", 9),
    RARE("summary.load", "median_ms", MS, "loaded_ms", NULL),
    RARE("summary.load.refit_slowdown", "median", RATIO, "refit_slowdown",
         ">refit slowdown"),
    RARE("summary.load.refit_slowdown", "low", RATIO, "refit_slowdown_low",
         NULL),
    RARE("summary.load.refit_slowdown", "high", RATIO, "refit_slowdown_high",
         NULL),
    RARE_SHOWN("summary.load", "gbytes_per_s", GBYTES_PER_S,
               "load_gbytes_per_s", ">load GB/s", 13),
    RARE_SHOWN("summary.load", "alone_gbytes_per_s", GBYTES_PER_S,
               "load_alone_gbytes_per_s", ">load alone GB/s", 12),
    RARE("summary.load.load_slowdown", "median", RATIO, "load_slowdown",
         ">load slowdown"),
    RARE("summary.load.load_slowdown", "low", RATIO, "load_slowdown_low", NULL),
    RARE("summary.load.load_slowdown", "high", RATIO, "load_slowdown_high",
         NULL),
    SHOWN("bound", "ms", MS, "bound_ms", ">bound ms (best)", 3),
    PLAIN("bound", "resource", TEXT, "bound_resource"),
    PLAIN("bound", "valid", TRUTH, "bound_valid"),
    SHOWN("summary.yardstick_ratio", "median", RATIO, "yardstick_ratio",
          ">vs contiguous", 0),
    PLAIN("summary.yardstick_ratio", "low", RATIO, "yardstick_ratio_low"),
    PLAIN("summary.yardstick_ratio", "high", RATIO, "yardstick_ratio_high"),
    PLAIN("summary.yardstick_ratio", "count", COUNT, "yardsticks"),
    PLAIN("schedule_bound", "ms", MS, "schedule_bound_ms"),
    PLAIN("schedule_bound", "resource", TEXT, "schedule_bound_resource"),
    PLAIN("schedule_bound", "valid", TRUTH, "schedule_bound_valid"),
    SHOWN("schedule_bound", "efficiency", EFFICIENCY, "strategy_efficiency",
          ">eff. (strategy)", 10),
    SHOWN("bound", "efficiency", EFFICIENCY, "efficiency", ">eff. (best)", 11),
    SHOWN("summary.memory", "peak_bytes", BYTES, "memory_peak_bytes",
          ">peak memory", 2),
    SHOWN("summary.memory", "predicted_bytes", BYTES, "memory_predicted_bytes",
          ">predicted", 1),
    PLAIN("summary.memory", "host_peak_bytes", BYTES, "memory_host_peak_bytes"),
    PLAIN("summary.memory", "device_peak_bytes", BYTES,
          "memory_device_peak_bytes"),
    PLAIN("summary.memory", "foreign_bytes", BYTES, "memory_foreign_bytes"),
    PLAIN("summary.memory", "peak_mean_bytes", BYTES, "memory_peak_mean_bytes"),
    PLAIN("summary.memory.stages.before", "mean_bytes", BYTES,
          "memory_before_mean_bytes"),
    PLAIN("summary.memory.stages.before", "max_bytes", BYTES,
          "memory_before_max_bytes"),
    PLAIN("summary.memory.stages.opened", "mean_bytes", BYTES,
          "memory_opened_mean_bytes"),
    PLAIN("summary.memory.stages.opened", "max_bytes", BYTES,
          "memory_opened_max_bytes"),
    PLAIN("summary.memory.stages.prepared", "mean_bytes", BYTES,
          "memory_prepared_mean_bytes"),
    PLAIN("summary.memory.stages.prepared", "max_bytes", BYTES,
          "memory_prepared_max_bytes"),
    PLAIN("summary.memory.stages.refit", "mean_bytes", BYTES,
          "memory_refit_mean_bytes"),
    PLAIN("summary.memory.stages.refit", "max_bytes", BYTES,
          "memory_refit_max_bytes"),
    PLAIN("summary.memory.stages.after", "mean_bytes", BYTES,
          "memory_after_mean_bytes"),
    PLAIN("summary.memory.stages.after", "max_bytes", BYTES,
          "memory_after_max_bytes"),
    PLAIN("verification", "checked_bytes", BYTES, "checked_bytes"),
    SHOWN("verification", "mismatched_bytes", VERDICT, "mismatched_bytes",
          "verified", 0),
    PLAIN("plan.unknown", "tensors", COUNT, "unknown_tensors"),
    PLAIN("setup", "registration", TEXT, "registration"),
    PLAIN("summary", "repeats", COUNT, "repeats"),
    PLAIN("summary.variance.refit_ms", "within_percent", PERCENT,
          "within_percent"),
    PLAIN("summary.variance.refit_ms", "between_percent", PERCENT,
          "between_percent"),
    PLAIN("summary", "median_ms", LOW, "median_low_ms"),
    PLAIN("summary", "median_ms", HIGH, "median_high_ms"),
    VARIES("environment", "memory_available_bytes", BYTES),
    VARIES("environment", "memory_limits", LIST),
    VARIES("environment", "shm_bytes", BYTES),
    VARIES("environment", "network", COUNT),
    VARIES("environment", "topology", LIST),   /* speeds follow power states */
    VARIES("environment", "interfaces", LIST), /* of containers, too */
    VARIES("environment", "boot_id", TEXT),
    VARIES("environment", "candidate", TEXT), /* contains a port */
    PLAIN(NULL, NULL, TEXT, NULL),
};

const json_t *rf_result_value(const json_t *result, const char *object,
                              const char *key)
{
    while (object != NULL) {
        size_t size = strcspn(object, ".");
        result = json_is_array(result)
                     ? json_array_get(result, strtoul(object, NULL, 10))
                     : json_object_getn(result, object, size);
        object = object[size] == '.' ? object + size + 1 : NULL;
    }
    return json_object_get(result, key);
}

bool rf_result_change(const json_t *result, const char *object, const char *key,
                      double *out)
{
    const json_t *value = rf_result_value(result, object, key);
    const double number = json_number_value(value), size = fabs(number);
    if (!json_is_number(value) || size > MOST || (size < LEAST && size > 0)) {
        return false;
    }
    *out = number;
    return true;
}

bool rf_result_number(const json_t *result, const char *object, const char *key,
                      double *out)
{
    double number;
    if (!rf_result_change(result, object, key, &number) || number < 0) {
        return false;
    }
    *out = number;
    return true;
}

double rf_result_figure(const json_t *result, const char *object,
                        const char *key)
{
    double figure = 0;
    (void)rf_result_number(result, object, key, &figure);
    return figure;
}

struct rf_result_samples rf_result_samples(const json_t *result,
                                           const char *key)
{
    const json_t *iterations = json_object_get(result, "iterations"), *one;
    const size_t most = json_array_size(iterations) + 1;
    struct rf_result_samples out = {
        .values = rf_xcalloc(most, sizeof(*out.values)),
        .counts = rf_xcalloc(most, sizeof(*out.counts))};
    json_int_t last = 0;
    size_t i;
    json_array_foreach (iterations, i, one) {
        const json_int_t repeat =
            json_integer_value(json_object_get(one, "repeat"));
        if (!rf_result_number(one, NULL, key, &out.values[out.count])) {
            continue;
        }
        out.n_repeats += out.count == 0 || repeat != last;
        out.counts[out.n_repeats - 1]++;
        out.count++;
        last = repeat;
    }
    return out;
}

void rf_result_samples_free(struct rf_result_samples *samples)
{
    free(samples->values);
    free(samples->counts);
    *samples = (struct rf_result_samples){0};
}

struct rf_stats_repeats
rf_result_repeats(const struct rf_result_samples *samples)
{
    return (struct rf_stats_repeats){samples->values, samples->counts,
                                     samples->n_repeats};
}

double rf_result_median(const json_t *result, const char *key)
{
    struct rf_result_samples samples = rf_result_samples(result, key);
    const double median = rf_stats_median(samples.values, samples.count);
    rf_result_samples_free(&samples);
    return median;
}

const char *rf_result_text(const json_t *result, const char *object,
                           const char *key)
{
    const char *text = json_string_value(rf_result_value(result, object, key));
    return text != NULL ? text : "-";
}

bool rf_result_is_imported(const json_t *result)
{
    return strcmp(rf_result_text(result, NULL, "status"), RF_RESULT_IMPORTED) ==
           0;
}

bool rf_result_is_ok(const json_t *result)
{
    return strcmp(rf_result_text(result, NULL, "status"), "ok") == 0 ||
           rf_result_is_imported(result);
}

static bool converts_at_sender(const json_t *scenario_or_pool)
{
    return strcmp(rf_result_text(scenario_or_pool, "quantize", "at"),
                  "sender") == 0;
}

bool rf_result_senders_convert(const json_t *result)
{
    const json_t *pools = rf_result_value(result, "scenario", "infer"), *pool;
    bool convert = converts_at_sender(json_object_get(result, "scenario"));
    size_t i;
    json_array_foreach (pools, i, pool) {
        convert = convert || converts_at_sender(pool);
    }
    return convert;
}

bool rf_result_secret_name(const char *name)
{
    static const char *const words[] = {"SECRET",     "TOKEN",   "PASSW",
                                        "CREDENTIAL", "API_KEY", "PRIVATE_KEY",
                                        "COMM_ID"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(words); i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

struct rf_median_interval rf_median_interval_of(const json_t *result,
                                                const char *object,
                                                const char *key,
                                                const char *samples_key)
{
    struct rf_median_interval out = {0};
    struct rf_result_samples samples;
    struct rf_stats_repeats repeats;
    if (!rf_result_number(result, object, key, &out.median) ||
        out.median <= 0) {
        return (struct rf_median_interval){0};
    }
    samples = rf_result_samples(result, samples_key);
    repeats = rf_result_repeats(&samples);
    out.n_samples = samples.count;
    out.has_interval =
        rf_stats_repeats_median_interval(&repeats, &out.low, &out.high) &&
        out.low > 0;
    if (out.has_interval) {
        rf_stats_rerun_interval(out.median, out.low, out.high, &out.rerun_low,
                                &out.rerun_high);
    }
    rf_result_samples_free(&samples);
    return out;
}

struct rf_median_interval rf_median_interval_of_time(const json_t *result)
{
    return rf_median_interval_of(result, "summary", "median_ms", "refit_ms");
}
