/*
 * The transfers of a plan, one after another. A plan does not store them: every
 * walk assigns sources anew, with the same result, so a rank of a large world
 * needs no memory for the transfers of others. A walk does not change the plan,
 * so several can use one plan at once.
 */
#ifndef RF_PLANNER_PLAN_PLAN_WALK_H
#define RF_PLANNER_PLAN_PLAN_WALK_H

#include "planner/assign/assign.h"
#include "planner/layout/box.h"
#include "planner/plan/plan.h"

struct rf_plan_walk {
    const struct rf_plan *plan;
    struct rf_assign_cursor sources;     /* the next senders */
    const struct rf_rank_layout *layout; /* of the current receiver */
    uint32_t dst;                        /* the receiver */
    size_t piece, match, match_end;
    uint32_t item;           /* bytes of an element of the piece */
    uint64_t elements, done; /* of the match; assigned so far */
    bool whole;              /* the source serves all of the match */
    struct rf_box boxes[RF_BOX_RANGE_MAX]; /* from this source */
    size_t n_boxes, box;                   /* box: number done */
    uint32_t src;
    struct rf_transfer transfer;
};

/* Starts before the first transfer. `plan` must outlive the walk;
 * rf_plan_walk_end() frees the walk. */
void rf_plan_walk_start(struct rf_plan_walk *walk, const struct rf_plan *plan);
void rf_plan_walk_end(struct rf_plan_walk *walk);

/* Advances to the next transfer: all or part of `match`, from `src`. Transfers
 * are ordered by destination, then by piece of the destination's layout (so by
 * family). Apart from its ranks, a transfer of a whole match depends only on
 * their layouts. False after the last. */
bool rf_plan_walk_step(struct rf_plan_walk *walk);
/* The current transfer; valid until the next step. */
const struct rf_transfer *rf_plan_walk_transfer(struct rf_plan_walk *walk);

#endif
