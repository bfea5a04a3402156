/*
 * What one attempt at a scenario measured, as it grows: samples of every rank,
 * probes, verification, errors. Only collects; results.c turns it into JSON.
 */
#ifndef RF_COORDINATOR_RUN_ATTEMPT_H
#define RF_COORDINATOR_RUN_ATTEMPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/run/scenario.h"
#include "planner/cost.h"

enum rf_outcome {
    RF_OUTCOME_OK,
    RF_OUTCOME_FAILED,
    RF_OUTCOME_MISMATCH,
    RF_OUTCOME_INTERRUPTED,
};

/* One rank in one iteration. Times are on the coordinator's clock. */
struct rf_sample {
    int64_t start_ns, end_ns;
    int64_t ns; /* its own window */
    int64_t pack_ns, wire_ns, unpack_ns, sync_ns;
    uint64_t sent_bytes, received_bytes;
};

struct rf_iteration {
    uint32_t round; /* counts warm-ups */
    bool warmup;
    struct rf_sample *ranks; /* one for each rank of the world */
};

struct rf_rank_facts {
    int64_t plan_ns, open_ns;
    uint64_t host_peak_bytes, device_peak_bytes;
    json_t *device; /* where device_peak_bytes comes from, or NULL */
    uint64_t arena_bytes[RF_MEM_COUNT];
};

struct rf_attempt {
    uint32_t number;
    size_t index;                 /* of config->scenarios */
    struct rf_scenario *scenario; /* owned; NULL when it could not be built */
    enum rf_outcome outcome;
    char started_at[24], finished_at[24];
    int64_t started_ns, finished_ns;
    json_t *errors;       /* first fault first, consequences after it */
    enum rf_status cause; /* of the first fault, RF_OK: none yet */

    struct rf_iteration *iterations; /* verified, or run without bytes */
    size_t n_iterations, cap_iterations;
    struct rf_sample *pending; /* of the iteration in progress */
    struct rf_rank_facts *ranks;

    uint32_t rounds; /* measured iterations verified */
    uint64_t checked_bytes, warmup_checked_bytes, mismatched_bytes;
    uint64_t quantized_bytes; /* compared in measured iterations */
    json_t *first_mismatch;   /* object or NULL */

    struct rf_links before, after;
    bool probed_before, probed_after;
    bool closed; /* every rank reported its peak memory */
};

/* `one` is taken and may be NULL. */
struct rf_attempt *rf_attempt_create(uint32_t number, size_t index,
                                     struct rf_scenario *scenario);
void rf_attempt_destroy(struct rf_attempt *attempt);

uint32_t rf_attempt_ranks(const struct rf_attempt *attempt);

/* Moves `pending` to the iterations. */
void rf_attempt_keep(struct rf_attempt *attempt, uint32_t round, bool warmup);

/* Appends an error: `host` and `phase` may be NULL, `rank` RF_NONE, `lines` is
 * borrowed and may be NULL. The first makes the outcome RF_OUTCOME_FAILED
 * unless something worse or other is known already. */
void rf_attempt_error(struct rf_attempt *attempt, const char *host,
                      uint32_t rank, const char *phase, enum rf_status status,
                      const char *text, const json_t *lines);

/* The better of both probes, figure by figure: the bound must hold for the
 * faster of the two. `out` is initialised here. False without any probe. */
bool rf_attempt_links(const struct rf_attempt *attempt, struct rf_links *out);

const char *rf_outcome_name(enum rf_outcome outcome);

#endif
