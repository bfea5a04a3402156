/*
 * The transfers of a plan, one after another. No plan keeps them: who sends
 * what is decided on every walk, always alike, so that a rank of a large world
 * needs no memory for what others do. One walk at a time over a plan.
 */
#ifndef RF_PLANNER_WALK_H
#define RF_PLANNER_WALK_H

#include "planner/box.h"

struct rf_walk {
    const struct rf_plan *plan;
    const struct rf_rank_layout *layout; /* of the receiver at hand */
    uint32_t dst;                        /* the receiver */
    size_t piece, match, match_end;
    struct rf_box both;      /* what the piece and the source shard share */
    uint64_t elements, done; /* of it, and decided so far */
    struct rf_box boxes[RF_BOX_RANGE_MAX]; /* that the source serves */
    size_t n_boxes, box;
    uint32_t src;
    struct rf_transfer transfer;
};

void rf_walk_start(struct rf_walk *walk, const struct rf_plan *plan);

/* The next transfer, by destination, then by piece of its layout (so by
 * family); NULL behind the last. Valid until the next call. */
const struct rf_transfer *rf_walk_next(struct rf_walk *walk);

#endif
