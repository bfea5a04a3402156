/* What Megatron-LM's refit benchmark prints, of a run of ours. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_BLOCK_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_BLOCK_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/scenario/scenario.h"

/* One side, as the benchmark counts it. */
struct rf_megatron_side {
    uint32_t tp, pp, ep;
    uint32_t dp;         /* ranks / (tp · pp · ep), at least 1 */
    uint32_t first_rank; /* of the world; the training side's is 0 */
    uint64_t bytes;      /* that rank's parameters, padding included */
};

struct rf_megatron_summary {
    bool collocated;
    uint32_t world_size;
    struct rf_megatron_side train, infer;
    uint64_t layers, hidden, heads, experts; /* experts 0: dense */
    const char *backend;                     /* as it was asked for */
    uint32_t warmup, iterations;
};

/* Meshes and sizes of a planned scenario. What the model is made of and the
 * backend are the caller's to fill in. */
struct rf_megatron_summary
rf_megatron_summary_of(const struct rf_scenario *scenario);

/*
 * Prints the benchmark's lines. Times are of the scenario's record: of the
 * slowest rank, where the benchmark has rank 0's. MB are 2^20 bytes, as there.
 * As there, a run that fails ends without results. Of a record without an
 * iteration, or of NULL, nothing is printed: no refit was begun.
 */
void rf_megatron_block_print(const struct rf_megatron_summary *summary,
                             const json_t *record, FILE *to);

#endif
