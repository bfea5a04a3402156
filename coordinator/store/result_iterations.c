/*
 * See result_iterations.h. An iteration takes as long as its slowest rank.
 * docs/RESULTS.md defines the fields.
 */
#include "coordinator/store/result_iterations.h"

#include <stdlib.h>

#include "common/json_schema.h"
#include "common/mem.h"
#include "coordinator/records/iteration_ranks.h"
#include "coordinator/records/repeats.h"
#include "coordinator/store/result_network.h"
#include "coordinator/store/values.h"

static int64_t if_any(int64_t ns)
{
    return ns != RF_ABSENT_I64 ? ns : RF_ITERATION_RANK_ABSENT;
}

static struct rf_iteration_rank numbers_of(const struct rf_msg_ran *sample,
                                           int64_t origin_ns)
{
    const bool load = sample->load_alone_ns > 0; /* and not absent */
    const int64_t rest = sample->ns - sample->pack_ns - sample->wire_ns -
                         sample->unpack_ns - sample->sync_ns;
    return (struct rf_iteration_rank){
        .ns = sample->ns,
        .pack_ns = sample->pack_ns,
        .wire_ns = sample->wire_ns,
        .unpack_ns = sample->unpack_ns,
        .sync_ns = sample->sync_ns,
        .unattributed_ns = RF_MAX(rest, 0),
        .device_ns = if_any(sample->device_ns),
        .quantize_ns = if_any(sample->quantize_ns),
        .amax_ns = if_any(sample->amax_ns),
        .start_ns = sample->start_ns - origin_ns,
        .sent_bytes = (int64_t)sample->sent_bytes,
        .received_bytes = (int64_t)sample->received_bytes,
        .load_alone_ns =
            load ? sample->load_alone_ns : RF_ITERATION_RANK_ABSENT,
        .load_alone_bytes =
            load ? (int64_t)sample->load_alone_bytes : RF_ITERATION_RANK_ABSENT,
        .load_ns = load ? sample->load_ns : RF_ITERATION_RANK_ABSENT,
        .load_bytes =
            load ? (int64_t)sample->load_bytes : RF_ITERATION_RANK_ABSENT};
}

static json_t *ranks_json(const struct rf_msg_ran *samples, uint32_t n,
                          int64_t origin_ns)
{
    struct rf_iteration_rank *ranks = rf_xcalloc(n + 1, sizeof(*ranks));
    json_t *out;
    for (uint32_t r = 0; r < n; r++) {
        ranks[r] = numbers_of(&samples[r], origin_ns);
    }
    out = rf_iteration_ranks_json(ranks, n);
    free(ranks);
    return out;
}

static json_t *loaded_ranks_json(const struct rf_msg_ran *samples, uint32_t n)
{
    return ranks_json(samples, n, rf_iteration_span_of(samples, n).first_start);
}

/* Ranks that got whole weights for lack of a base; NULL: none. */
static json_t *resyncs_json(const struct rf_msg_ran *samples, uint32_t n)
{
    json_int_t resyncs = 0;
    for (uint32_t r = 0; r < n; r++) {
        resyncs += samples[r].resync;
    }
    return resyncs > 0 ? json_integer(resyncs) : NULL;
}

/* Present where a refit under load was measured. */
#define LOADED(M)                                                              \
    M(NUMBER, loaded_ms, OPTIONAL,                                             \
      loaded ? rf_values_ms(load.refit_ns) : NULL)                             \
    M(NUMBER, refit_slowdown, OPTIONAL,                                        \
      loaded ? json_real(load.refit_slowdown) : NULL)                          \
    M(NUMBER, load_gbytes_per_s, OPTIONAL,                                     \
      loaded ? json_real(load.gbytes_per_s) : NULL)                            \
    M(NUMBER, load_alone_gbytes_per_s, OPTIONAL,                               \
      loaded ? json_real(load.alone_gbytes_per_s) : NULL)                      \
    M(NUMBER, load_slowdown, OPTIONAL,                                         \
      loaded ? json_real(load.load_slowdown) : NULL)                           \
    M(LIST(rf_iteration_rank_schema(true)), loaded_ranks, OPTIONAL,            \
      loaded ? loaded_ranks_json(iteration->loaded, n) : NULL)

#define ITERATION(M)                                                           \
    RF_REPEATS_MARK(M)                                                         \
    M(COUNT, index, REQUIRED, json_integer((json_int_t)index))                 \
    M(NUMBER, refit_ms, REQUIRED, rf_values_ms(s.slowest_ns))                  \
    M(NUMBER, span_ms, REQUIRED, rf_values_ms(s.last_end - s.first_start))     \
    M(NUMBER, start_skew_us, REQUIRED,                                         \
      json_real((double)(s.last_start - s.first_start) / 1e3))                 \
    M(COUNT, slowest_rank, REQUIRED, json_integer(s.slowest))                  \
    M(NUMBER, yardstick_ms, NULLABLE,                                          \
      yardstick_ns > 0 ? rf_values_ms(yardstick_ns) : NULL)                    \
    M(NUMBER, yardstick_ratio, NULLABLE,                                       \
      yardstick_ns > 0                                                         \
          ? json_real((double)s.slowest_ns / (double)yardstick_ns)             \
          : NULL)                                                              \
    M(COUNT, resyncs, OPTIONAL, resyncs_json(iteration->ranks, n))             \
    M(LIST(rf_iteration_rank_schema(false)), ranks, REQUIRED,                  \
      ranks_json(iteration->ranks, n, s.first_start))                          \
    LOADED(M)                                                                  \
    M(LIST(rf_result_network_schema()), network, REQUIRED,                     \
      rf_result_network_json(attempt, iteration))

json_t *rf_result_iterations_schema(void)
{
    json_t *out = rf_json_schema_object();
    ITERATION(RF_DESCRIBE);
    return out;
}

static json_t *iteration_json(const struct rf_attempt *attempt,
                              const struct rf_iteration *iteration,
                              size_t index)
{
    const uint32_t n = rf_attempt_ranks(attempt);
    const int64_t yardstick_ns = iteration->yardstick_ns;
    const struct rf_iteration_span s =
        rf_iteration_span_of(iteration->ranks, n);
    struct rf_load_effect load;
    const bool loaded = rf_load_effect_of(iteration, n, &load);
    json_t *out = json_object();
    ITERATION(RF_PUT);
    return out;
}

json_t *rf_result_iterations_json(const struct rf_attempt *attempt, bool warmup)
{
    json_t *list = json_array();
    for (size_t i = 0; i < attempt->n_iterations; i++) {
        const struct rf_iteration *iteration = &attempt->iterations[i];
        if (iteration->warmup == warmup) {
            json_array_append_new(list, iteration_json(attempt, iteration,
                                                       json_array_size(list)));
        }
    }
    return list;
}

json_t *rf_result_iterations_ended_by(const struct rf_attempt *attempt)
{
    return attempt->n_wanted > 0 && attempt->n_iterations == attempt->n_wanted
               ? json_string(attempt->ended_by)
               : NULL;
}
