/*
 * Pieces of the inference side that need no copy: ops from one rank's training
 * memory cover them in the same memory layout. Method shm leaves them in
 * place; method ipc leaves those that a single op fills. Predictions count no
 * time for them.
 */
#ifndef RF_PLANNER_SCHEDULE_IN_PLACE_H
#define RF_PLANNER_SCHEDULE_IN_PLACE_H

#include "planner/schedule/schedule.h"

/* A summary of the ops that write one piece. */
struct rf_in_place {
    bool usable; /* the piece can be used in the source's memory */
    uint32_t src;
    uint64_t elements; /* covered */
    uint64_t offset;   /* of the piece's first element in the source's arena */
    uint64_t stride[RF_BOX_DIMS]; /* bytes, in the source's arena */
};

struct rf_rank_in_place {
    const struct rf_rank_layout *layout; /* NULL: no op writes there, or it was
                                            not examined */
    struct rf_in_place *by_piece;        /* by piece number */
};

struct rf_in_place_set {
    struct rf_rank_in_place *ranks; /* by world rank */
    uint32_t n_ranks, only;         /* RF_NONE: all are examined */
};

/* Examines the pieces of `rank`, or with RF_NONE of every rank that ops of
 * `schedule` write to. The plan is borrowed; rf_in_place_free() frees *out. */
void rf_in_place_find(const struct rf_plan *plan,
                      const struct rf_schedule *schedule, uint32_t rank,
                      struct rf_in_place_set *out);
void rf_in_place_free(struct rf_in_place_set *set);

/* The entry of the piece that `op` writes; NULL if it was not examined. */
const struct rf_in_place *rf_in_place_of_op(const struct rf_in_place_set *set,
                                            const struct rf_op *op);

/* Whether an op fills a whole destination piece, unchanged, from memory of the
 * same slot: such a piece can be used in place, without a copy. Both ends give
 * the same answer. A view of another device's memory would delay the copy, not
 * save it. */
bool rf_in_place_in_slot(const struct rf_plan *plan, const struct rf_op *op);

#endif
