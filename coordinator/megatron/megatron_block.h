/* The output of Megatron-LM's refit benchmark, for a run of ours. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_BLOCK_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_BLOCK_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/scenario/scenario.h"

/* One side, as the benchmark counts it. */
struct rf_megatron_side {
    uint32_t tp, pp, ep;
    uint32_t dp;         /* ranks / (tp · pp · ep), at least 1 */
    uint32_t first_rank; /* in the world; 0 for the training side */
    uint64_t bytes;      /* that rank's parameters, padding included */
};

struct rf_megatron_summary {
    bool collocated;
    uint32_t world_size;
    struct rf_megatron_side train, infer;
    uint64_t layers, hidden, heads, experts; /* experts 0: dense */
    const char *backend;                     /* as requested */
    uint32_t warmup, iterations;
};

/* Meshes and sizes of a planned scenario. The caller fills in the model's
 * figures and the backend. */
struct rf_megatron_summary
rf_megatron_summary_of(const struct rf_scenario *scenario);

/*
 * Prints the benchmark's lines. Times are those of the slowest rank in the
 * scenario's record; the benchmark has rank 0's. As in the benchmark, MB are
 * 2^20 bytes, and a failed run ends without results. Prints nothing for NULL or
 * a record without an iteration, since no refit began.
 */
void rf_megatron_block_print(const struct rf_megatron_summary *summary,
                             const json_t *record, FILE *to);

#endif
