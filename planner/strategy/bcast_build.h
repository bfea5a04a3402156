/* Adding broadcasts (bcast.h) to a schedule. */
#ifndef RF_PLANNER_STRATEGY_BCAST_BUILD_H
#define RF_PLANNER_STRATEGY_BCAST_BUILD_H

#include "planner/schedule/bcast.h"
#include "planner/strategy/strategy.h"

/* What the broadcasts of one unit task add up to. */
struct rf_takes {
    uint64_t n, bytes, written; /* of each receiver */
    struct rf_hash hash;
    size_t near, near_end; /* in rf_bcast_build.near: receivers on the node */
};

/* Adds broadcasts to a schedule: one of the world keeps them as they are, one
 * of a node the ops that touch it. */
struct rf_bcast_build {
    struct rf_builder *builder;
    struct rf_bcast_template *tmpl;
    uint64_t n, bytes;      /* of each hop */
    struct rf_takes *takes; /* by unit task */
    struct rf_hash tree_hash;
    uint32_t *near_hops, *near; /* indices of what touches the node */
    size_t n_near_hops, near_hops_capacity, n_near, near_capacity;
};

/* `tmpl` has its tree and unit tasks; it is the schedule's from now on. */
void rf_bcast_build_start(struct rf_bcast_build *build,
                          struct rf_builder *builder,
                          struct rf_bcast_template *tmpl);
/* Numbers and adds a broadcast of the box that `gathered` brought to the root.
 */
void rf_bcast_build_add(struct rf_bcast_build *build, struct rf_bcast *bcast,
                        const struct rf_op *gathered);
/* Adds the broadcasts to the schedule's totals; nothing can be added after it.
 */
void rf_bcast_build_end(struct rf_bcast_build *build);

#endif
