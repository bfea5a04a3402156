/* Adding spreads (fold.h) to a schedule. */
#ifndef RF_PLANNER_STRATEGY_FOLDING_H
#define RF_PLANNER_STRATEGY_FOLDING_H

#include "planner/schedule/bcast.h"
#include "planner/strategy/strategy.h"

/* What the spreads of one unit task add up to. */
struct rf_takes {
    uint64_t n, bytes, written; /* of each receiver */
    struct rf_hash hash;
    size_t near, near_end; /* in rf_folding.near: receivers on the node */
};

/* Adds spreads to a schedule: one of the world keeps them as they are, one of a
 * node the ops that touch it. */
struct rf_folding {
    struct rf_builder *builder;
    struct rf_fold *fold;
    uint64_t n, bytes;      /* of each hop */
    struct rf_takes *takes; /* by unit task */
    struct rf_hash tree_hash;
    uint32_t *near_hops, *near; /* indices of what touches the node */
    size_t n_near_hops, near_hops_capacity, n_near, near_capacity;
};

/* `fold` has its tree and unit tasks; it is the schedule's from now on. */
void rf_folding_start(struct rf_folding *folding, struct rf_builder *builder,
                      struct rf_fold *fold);
/* Numbers and adds a spread of the box that `gathered` brought to the root. */
void rf_folding_add(struct rf_folding *folding, struct rf_spread *spread,
                    const struct rf_op *gathered);
/* Adds the spreads to the schedule's totals; nothing can be added after it. */
void rf_folding_end(struct rf_folding *folding);

#endif
