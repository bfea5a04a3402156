/* Medians with their intervals. See median_interval.h. */
#include "coordinator/records/median_interval.h"

#include "common/stats.h"
#include "coordinator/records/fields.h"

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
        rf_stats_repeats_median_interval(&repeats, &out.low, &out.high);
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
