/*
 * The transfers of a plan, one after another. No plan keeps them: who sends
 * what is decided on every walk, always alike, so that a rank of a large world
 * needs no memory for what others do. A walk leaves the plan as it is: several
 * may be under way over one plan.
 */
#ifndef RF_PLANNER_WALK_H
#define RF_PLANNER_WALK_H

#include "planner/assign.h"
#include "planner/box.h"

struct rf_walk {
    const struct rf_plan *plan;
    struct rf_assign_cursor sources;     /* who serves next */
    const struct rf_rank_layout *layout; /* of the current receiver */
    uint32_t dst;                        /* the receiver */
    size_t piece, match, match_end;
    struct rf_box both;      /* what the piece and the source shard share */
    uint64_t elements, done; /* of it, and decided so far */
    struct rf_box boxes[RF_BOX_RANGE_MAX]; /* that the source serves */
    size_t n_boxes, box;
    uint32_t src;
    struct rf_transfer transfer;
};

/* Before the first transfer. `plan` must outlive the walk, which rf_walk_end()
 * frees; after failure, RF_ERR_NOMEM, there is nothing to free. */
enum rf_status rf_walk_start(struct rf_walk *walk, const struct rf_plan *plan,
                             struct rf_err *err) RF_MUST_CHECK;
void rf_walk_end(struct rf_walk *walk);

/* The next transfer, by destination, then by piece of its layout (so by
 * family); NULL after the last. Valid until the next call. */
const struct rf_transfer *rf_walk_next(struct rf_walk *walk);

#endif
