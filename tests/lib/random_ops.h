/*
 * Random schedules for tests of methods without a planner: ops of every kind
 * that the rules of planner/schedule/schedule.h allow, and an executor that
 * runs them one after another, row by row, for the expected memory.
 */
#ifndef RF_TESTS_LIB_RANDOM_OPS_H
#define RF_TESTS_LIB_RANDOM_OPS_H

#include "planner/schedule/schedule.h"
#include "tests/lib/auto.h"

struct random_ops_options {
    uint64_t seed;
    uint32_t n_ranks, n_nodes;
    uint32_t n_steps; /* each makes one op or a few */
    bool relays, staging, casts, serialize;
    uint64_t large_bytes; /* of the occasional large op */
};

struct random_ops {
    struct rf_world world;
    struct rf_spec spec;
    struct rf_plan plan;
    struct rf_schedule all;           /* the whole world's */
    uint64_t bytes[32][RF_MEM_COUNT]; /* of each rank's memories */
};

void random_ops_make(const struct random_ops_options *options,
                     struct random_ops *out);
void random_ops_free(struct random_ops *ops);
AUTO_STRUCT(random_ops, random_ops_free)

/* The ops that touch `node`; the caller frees out->ops. */
void random_ops_of_node(const struct random_ops *ops, uint32_t node,
                        struct rf_schedule *out);

/* Content of a rank's training memory in an iteration. */
void random_ops_fill(uint32_t rank, uint64_t iteration, void *memory,
                     uint64_t bytes);

/* Runs all ops in ascending id on memory[rank][mem]. */
void random_ops_run(const struct random_ops *ops, void *memory[][RF_MEM_COUNT]);

#endif
