/*
 * Ops that repeat over ranks, kept once. Internal to the planner and its tests.
 *
 * A *spread* is what gather_broadcast does with one box in the staging memory
 * of its root: hops along one tree bring it to the same place in every rank's
 * staging memory, then every receiver of its unit task takes it out. All
 * spreads share the tree and the unit tasks, so a spread's size depends on
 * neither. The op that gathered the box says which it is and where it lies. A
 * spread's ops, in order: the hops to the tree's nodes 1, 2, …, then the takes
 * by the unit task's receivers.
 */
#ifndef RF_PLANNER_SCHEDULE_FOLD_H
#define RF_PLANNER_SCHEDULE_FOLD_H

#include "planner/plan/unit_task.h"
#include "planner/schedule/op.h"

/* A node of the tree. Node 0 is the root; a parent comes before its children.
 * Hops to the children of a node of depth d are in a spread's round + d. */
struct rf_hop {
    uint32_t rank, parent, depth;
    bool sends; /* has children */
};

struct rf_spread {
    uint32_t id;          /* of its first op */
    uint32_t gathered;    /* index in the world's `ops` of the op that wrote the
                             box into the root's staging memory */
    uint32_t task, round; /* of the first hops */
    uint32_t unit, take_round, take_item; /* take_item: at the receivers */
    uint8_t take_cast;
};

struct rf_fold {
    struct rf_hop *hops;
    uint32_t n_hops, hops_capacity; /* the root included */
    uint32_t height;                /* greatest depth */
    uint32_t n_ranks, *place;       /* by world rank: its node, RF_NONE: none */
    struct rf_unit_tasks units;     /* their pieces are the plan's */
    struct rf_spread *spreads;      /* ascending id */
    size_t n_spreads, spreads_capacity;
};

/* Without hops or unit tasks; rf_fold_destroy() takes NULL. */
struct rf_fold *rf_fold_create(uint32_t n_ranks);
void rf_fold_destroy(struct rf_fold *fold);

/* Adds a node, the root first. */
void rf_fold_add_hop(struct rf_fold *fold, uint32_t parent, uint32_t rank);
/* The rounds [*first, *end) in which a node takes part in the hops of a spread
 * that begin in round 0. */
void rf_fold_rounds(const struct rf_fold *fold, uint32_t node, uint32_t *first,
                    uint32_t *end);

uint64_t rf_fold_ops(const struct rf_fold *fold,
                     const struct rf_spread *spread);
/* What all hops of a spread have in common, with the numbers of the first one;
 * src = dst = the root. */
struct rf_op rf_spread_op(const struct rf_spread *spread,
                          const struct rf_op *gathered);
/* The op at `index` of a spread, of rf_fold_ops(). */
void rf_fold_op(const struct rf_fold *fold, const struct rf_spread *spread,
                const struct rf_op *gathered, uint64_t index,
                struct rf_op *out);

/* The op that gathered the box of a spread, of the world's `ops`. */
const struct rf_op *rf_spread_gathered(const struct rf_op *ops,
                                       const struct rf_spread *spread);
/* Bytes of each of its hops. */
uint64_t rf_spread_bytes(const struct rf_op *ops,
                         const struct rf_spread *spread);

#endif
