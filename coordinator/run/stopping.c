#include "coordinator/run/stopping.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/stats.h"

static bool has_min(const struct rf_attempt *attempt, uint32_t at)
{
    const struct rf_spec *spec = attempt->scenario->spec;
    return at + 1 >= spec->warmup + spec->min_iterations;
}

bool rf_stopping_samples(const struct rf_attempt *attempt, uint32_t at)
{
    const uint32_t n = rf_attempt_ranks(attempt);
    const double most = attempt->scenario->spec->ci_percent;
    double *times = rf_xcalloc(attempt->n_iterations + 1, sizeof(*times));
    double *ratios = rf_xcalloc(attempt->n_iterations + 1, sizeof(*ratios));
    size_t n_times = 0, n_ratios = 0;
    bool enough;
    for (size_t i = 0; i <= attempt->n_iterations; i++) {
        const bool last = i == attempt->n_iterations;
        const struct rf_iteration it =
            last ? (struct rf_iteration){.ranks = attempt->pending,
                                         .yardstick_ns =
                                             attempt->pending_yardstick_ns}
                 : attempt->iterations[i];
        double ns = (double)rf_iteration_span_of(it.ranks, n).slowest_ns;
        if (it.warmup) {
            continue;
        }
        times[n_times++] = ns;
        if (it.yardstick_ns > 0) {
            ratios[n_ratios++] = ns / (double)it.yardstick_ns;
        }
    }
    enough = has_min(attempt, at) &&
             rf_stats_median_known(times, n_times, most) &&
             (n_ratios == 0 || rf_stats_median_known(ratios, n_ratios, most));
    free(ratios);
    free(times);
    return enough;
}

bool rf_stopping_time(const struct rf_attempt *attempt, uint32_t at)
{
    const uint32_t n = rf_attempt_ranks(attempt);
    const struct rf_spec *spec = attempt->scenario->spec;
    const struct rf_iteration *first = attempt->iterations;
    const struct rf_iteration *end = first + attempt->n_iterations;
    while (first < end && first->warmup) {
        first++;
    }
    return spec->max_s > 0 && first < end && has_min(attempt, at) &&
           rf_iteration_span_of(attempt->pending, n).last_end -
                   rf_iteration_span_of(first->ranks, n).first_start >=
               (int64_t)spec->max_s * 1000 * RF_NS_PER_MS;
}
