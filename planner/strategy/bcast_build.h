/* Adding broadcasts (bcast.h) to a schedule. */
#ifndef RF_PLANNER_STRATEGY_BCAST_BUILD_H
#define RF_PLANNER_STRATEGY_BCAST_BUILD_H

#include "planner/schedule/bcast.h"
#include "planner/strategy/strategy.h"

/* Totals of the broadcasts of one unit task. */
struct rf_takes {
    uint64_t n, bytes, written; /* per receiver */
    struct rf_hash hash;
    size_t near, near_end; /* in rf_bcast_build.near: receivers on the node */
};

/* Adds broadcasts to a schedule: a world's schedule keeps them whole, a node's
 * keeps the ops that touch the node. */
struct rf_bcast_build {
    struct rf_builder *builder;
    struct rf_bcast_template *tmpl;
    uint64_t n, bytes;      /* per hop */
    struct rf_takes *takes; /* by unit task */
    struct rf_hash tree_hash;
    uint32_t *near_hops, *near; /* indices in a broadcast of the hops, and of
                                   the takes, that touch the node */
    size_t n_near_hops, near_hops_capacity, n_near, near_capacity;
};

/* `tmpl` has its tree and unit tasks; the schedule takes it. */
void rf_bcast_build_start(struct rf_bcast_build *build,
                          struct rf_builder *builder,
                          struct rf_bcast_template *tmpl);
/* Numbers and adds a broadcast of the box that `gathered` brought to the root.
 */
void rf_bcast_build_add(struct rf_bcast_build *build, struct rf_bcast *bcast,
                        const struct rf_op *gathered);
/* Adds the broadcasts to the schedule's totals and frees `build`; no broadcast
 * may be added afterwards. */
void rf_bcast_build_end(struct rf_bcast_build *build);

#endif
