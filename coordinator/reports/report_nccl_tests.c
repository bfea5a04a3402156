/*
 * Results under the names of nccl-tests. See report_nccl_tests.h. As there, a
 * time is the mean over iterations, in microseconds, and truths are the words
 * "true" and "false".
 */
#include "coordinator/reports/report_nccl_tests.h"

#include <stdbool.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/iteration_ranks.h"

#define FORMAT_VERSION 2

static json_t *truth(bool is)
{
    return json_string(is ? "true" : "false");
}

/* --- One result ----------------------------------------------------------- */

/* A time of the summary; null if unknown. */
static json_t *us_json(const json_t *result, const char *key)
{
    double ms;
    return rf_result_number(result, "summary", key, &ms) ? json_real(ms * 1e3)
                                                         : json_null();
}

/* Each rank's time in each iteration; NULL without any. */
static json_t *rank_times_json(const json_t *result)
{
    const json_t *iterations = json_object_get(result, "iterations"), *one;
    json_t *out = json_array();
    double ms;
    size_t i, n = 0;
    json_array_foreach (iterations, i, one) {
        const json_t *ranks = json_object_get(one, "ranks");
        for (size_t r = 0; rf_iteration_ranks_value(ranks, r, "ms", &ms); r++) {
            if (r == n) {
                json_array_append_new(out, json_array());
                n++;
            }
            json_array_append_new(json_array_get(out, r), json_real(ms * 1e3));
        }
    }
    if (n == 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *iterations_json(const json_t *result)
{
    static const char *const keys[][2] = {
        {"min_us", "min_ms"},     {"max_us", "max_ms"}, {"avg_us", "mean_ms"},
        {"p50_us", "median_ms"},  {"p95_us", "p95_ms"}, {"p99_us", "p99_ms"},
        {"stdev_us", "stddev_ms"}};
    struct rf_result_samples samples = rf_result_samples(result, "refit_ms");
    json_t *out = json_object(), *times = json_array();
    json_t *ranks = rank_times_json(result);
    double mean, deviation;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        json_object_set_new(out, keys[i][0], us_json(result, keys[i][1]));
    }
    json_object_set_new(
        out, "cv_pct",
        rf_result_number(result, "summary", "mean_ms", &mean) && mean > 0 &&
                rf_result_number(result, "summary", "stddev_ms", &deviation)
            ? json_real(deviation / mean * 100)
            : json_null());
    for (size_t i = 0; i < samples.count; i++) {
        json_array_append_new(times, json_real(samples.values[i] * 1e3));
    }
    json_object_set_new(out, "times_us", times);
    if (ranks != NULL) {
        json_object_set_new(out, "per_process_max_times_us", ranks);
    }
    rf_result_samples_free(&samples);
    return out;
}

/* Types, as nccl-tests calls them. */
static const struct nccl_type {
    const char *ours, *theirs;
    unsigned bytes;
} types[] = {{"bfloat16", "bfloat16", 2},
             {"float16", "half", 2},
             {"float32", "float", 4},
             {"float64", "double", 8},
             {"float8_e4m3fn", "f8e4m3", 1},
             {"float8_e5m2", "f8e5m2", 1},
             {"int8", "int8", 1},
             {"uint8", "uint8", 1},
             {"int32", "int32", 4},
             {"int64", "int64", 8}};

/* What a side receives: its own type, or the model's. */
static const char *dtype_of(const json_t *result, const json_t *side)
{
    const char *own = json_string_value(json_object_get(side, "dtype"));
    return own != NULL ? own : rf_result_text(result, "model", "dtype");
}

/* The type of most weights that arrive; NULL: unknown there, or engines
 * differ. */
static const struct nccl_type *type_of(const json_t *result)
{
    const json_t *sides = rf_result_value(result, "scenario", "infer"), *side;
    const char *dtype = dtype_of(
        result, json_is_array(sides) ? json_array_get(sides, 0) : sides);
    size_t k;
    json_array_foreach (sides, k, side) {
        if (strcmp(dtype_of(result, side), dtype) != 0) {
            return NULL;
        }
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(types); i++) {
        if (strcmp(types[i].ours, dtype) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

/* Bytes that the busiest rank must receive or send, whatever the strategy. */
static bool busiest_of(const json_t *result, double *bytes)
{
    double sent, received;
    if (!rf_result_number(result, "plan", "bound_send_bytes", &sent) ||
        !rf_result_number(result, "plan", "bound_recv_bytes", &received)) {
        return false;
    }
    *bytes = RF_MAX(sent, received);
    return true;
}

/* GB/s of `bytes` in `us`, or null. */
static json_t *rate_json(bool known, double bytes, double us)
{
    return known ? json_real(bytes / us / 1e3) : json_null();
}

static json_t *times_json(const json_t *result, double bytes, double us)
{
    const bool has_rate = json_is_number(
        rf_result_value(result, "summary", "algbw_gbytes_per_s"));
    const double checked =
        rf_result_figure(result, "verification", "checked_bytes");
    double busiest = 0;
    const bool has_busiest = has_rate && busiest_of(result, &busiest);
    return json_pack("{s:f, s:o, s:o, s:o}", "time", us, "alg_bw",
                     rate_json(has_rate, bytes, us), "bus_bw",
                     rate_json(has_busiest, busiest, us), "nwrong",
                     checked > 0 ? json_real(0) : json_null());
}

/* NULL: not ok, or without a mean time. */
static json_t *entry_json(const struct rf_result_set *set, size_t i)
{
    const json_t *result = set->files[i].result;
    const struct nccl_type *type = type_of(result);
    double ms, bytes;
    if (!rf_result_is_ok(result) ||
        !rf_result_number(result, "summary", "mean_ms", &ms) || ms <= 0 ||
        !rf_result_number(result, "plan", "bytes_total", &bytes)) {
        return NULL;
    }
    return json_pack(
        "{s:I, s:o, s:s?, s:s, s:s, s:o, s:o, s:n, s:O?, s:o}", "size",
        (json_int_t)bytes, "count",
        type != NULL ? json_integer((json_int_t)bytes / type->bytes)
                     : json_null(),
        "type", type != NULL ? type->theirs : NULL, "redop", "none", "root",
        "-1", "out_of_place", times_json(result, bytes, ms * 1e3),
        "out_of_place_per_iter", iterations_json(result), "in_place",
        "actual_iterations", rf_result_value(result, "summary", "count"),
        "experiment_name", rf_result_set_title(set, i));
}

/* --- The document --------------------------------------------------------- */

/* A value that all results have; null where they differ. */
static json_t *shared_json(const struct rf_result_set *set, const char *object,
                           const char *key)
{
    const json_t *shared =
        set->n > 0 ? rf_result_value(set->files[0].result, object, key) : NULL;
    for (size_t i = 1; i < set->n && shared != NULL; i++) {
        if (!json_equal(shared,
                        rf_result_value(set->files[i].result, object, key))) {
            return json_null();
        }
    }
    return shared != NULL ? json_deep_copy(shared) : json_null();
}

/* A number of iterations of all scenarios; null if it was not fixed, or others
 * measured. */
static json_t *count_json(const struct rf_result_set *set, const char *key)
{
    json_t *count = shared_json(set, "scenario", key);
    bool is = json_is_integer(count);
    for (size_t i = 0; i < set->n; i++) {
        is &= !rf_result_is_imported(set->files[i].result);
    }
    if (!is) {
        json_decref(count);
        return json_null();
    }
    return count;
}

/* "2026-01-02 03:04:05", in UTC. */
static json_t *time_json(const json_t *result, const char *key)
{
    const char *text = rf_result_text(result, NULL, key);
    return strlen(text) == sizeof("2026-01-02T03:04:05Z") - 1
               ? json_sprintf("%.10s %.8s", text, text + 11)
               : json_null();
}

/* The ranks of the first result. */
static json_t *devices_json(const json_t *result)
{
    const json_t *ranks = json_object_get(result, "memory"), *rank;
    json_t *out = json_array();
    size_t i;
    json_array_foreach (ranks, i, rank) {
        json_array_append_new(
            out, json_pack("{s:i, s:i, s:n, s:s, s:n, s:n, s:n}", "rank",
                           (int)i, "group", 0, "pid", "hostname",
                           rf_result_text(rank, NULL, "host"), "device",
                           "device_hex", "device_info"));
    }
    return out;
}

static json_t *config_json(const struct rf_result_set *set,
                           const json_t *results)
{
    json_int_t least = 0, most = 0;
    bool checked = json_array_size(results) > 0;
    const json_t *one;
    size_t i;
    json_array_foreach (results, i, one) {
        const json_int_t size =
            json_integer_value(json_object_get(one, "size"));
        least = i == 0 ? size : RF_MIN(least, size);
        most = RF_MAX(most, size);
        checked &=
            !json_is_null(rf_result_value(one, "out_of_place", "nwrong"));
    }
    return json_pack(
        "{s:i, s:i, s:I, s:I, s:n, s:o, s:o, s:i, s:i, s:i, s:o, "
        "s:o, s:n, s:o}",
        "nthreads", 1, "ngpus", 1, "minimum_bytes", least, "maximum_bytes",
        most, "step_bytes", "warmup_iters", count_json(set, "warmup"),
        "iterations", count_json(set, "iterations"), "aggregated_iterations", 1,
        "validation", (int)checked, "graph", 0, "blocking_collectives",
        truth(true), "per_iter_timing", truth(true), "parallel_init", "devices",
        devices_json(set->n > 0 ? set->files[0].result : NULL));
}

static json_t *mean_json(const json_t *results)
{
    const json_t *one;
    double sum = 0;
    size_t i, n = 0;
    json_array_foreach (results, i, one) {
        const json_t *rate = rf_result_value(one, "out_of_place", "bus_bw");
        sum += json_number_value(rate);
        n += json_is_number(rate);
    }
    return n > 0 ? json_real(sum / (double)n) : json_null();
}

json_t *rf_report_nccl_tests(const struct rf_result_set *set)
{
    json_t *results = json_array(), *errors = json_array();
    const json_t *first = set->n > 0 ? set->files[0].result : NULL;
    const json_t *last = set->n > 0 ? set->files[set->n - 1].result : NULL;
    double wrong = 0, bytes;
    for (size_t i = 0; i < set->n; i++) {
        const json_t *result = set->files[i].result;
        json_t *entry = entry_json(set, i);
        if (rf_result_number(result, "verification", "mismatched_bytes",
                             &bytes)) {
            wrong += bytes;
        }
        if (entry != NULL) {
            json_array_append_new(results, entry);
            continue;
        }
        rf_warn("%s is left out: has no mean time: its status is %s",
                set->files[i].name, rf_result_text(result, NULL, "status"));
        json_array_append_new(
            errors, json_sprintf("%s: %s", set->files[i].name,
                                 rf_result_text(result, NULL, "status")));
    }
    return json_pack(
        "{s:i, s:o, s:o, s:n, s:n, s:o, s:o, s:{s:f, s:o}, s:{s:o, s:s}, s:o, "
        "s:o}",
        "version", FORMAT_VERSION, "start_time", time_json(first, "started_at"),
        "args", shared_json(set, NULL, "argv"), "env", "nccl_version", "config",
        config_json(set, results), "results", results, "out_of_bounds", "count",
        wrong, "okay", truth(wrong <= 0), "average_bus_bandwidth", "bandwidth",
        mean_json(results), "okay", "unchecked", "errors", errors, "end_time",
        time_json(last, "finished_at"));
}
