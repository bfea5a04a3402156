/*
 * The transfers of a plan, one after another. No plan keeps them: who sends
 * what is decided on every walk, always alike, so that a rank of a large world
 * needs no memory for what others do. A walk leaves the plan as it is: several
 * may be under way over one plan.
 */
#ifndef RF_PLANNER_PLAN_PLAN_WALK_H
#define RF_PLANNER_PLAN_PLAN_WALK_H

#include "planner/assign/assign.h"
#include "planner/layout/box.h"
#include "planner/plan/plan.h"

struct rf_plan_walk {
    const struct rf_plan *plan;
    struct rf_assign_cursor sources;     /* who serves next */
    const struct rf_rank_layout *layout; /* of the current receiver */
    uint32_t dst;                        /* the receiver */
    size_t piece, match, match_end;
    uint32_t item;           /* bytes of an element of the piece */
    uint64_t elements, done; /* of the match, and decided so far */
    bool whole;              /* the source serves all of the match */
    struct rf_box boxes[RF_BOX_RANGE_MAX]; /* that the source serves */
    size_t n_boxes, box;                   /* box: how many of them are done */
    uint32_t src;
    struct rf_transfer transfer;
};

/* Before the first transfer. `plan` must outlive the walk, which
 * rf_plan_walk_end() frees. */
void rf_plan_walk_start(struct rf_plan_walk *walk, const struct rf_plan *plan);
void rf_plan_walk_end(struct rf_plan_walk *walk);

/* Goes on to the next transfer: from `src` all of `match`, or a part of it;
 * what it says then depends on both ranks only by their layouts. False after
 * the last. */
bool rf_plan_walk_step(struct rf_plan_walk *walk);
/* The transfer that was gone on to, valid until the next step. */
const struct rf_transfer *rf_plan_walk_transfer(struct rf_plan_walk *walk);

/* Both: the next transfer, by destination, then by piece of its layout (so by
 * family); NULL after the last. Valid until the next call. */
const struct rf_transfer *rf_plan_walk_next(struct rf_plan_walk *walk);

#endif
