/*
 * Ops that repeat over ranks, stored once. Internal to the planner and its
 * tests.
 *
 * A *broadcast* is how gather_broadcast distributes one box in the staging
 * memory of its root: hops along one tree bring it to the same place in every
 * rank's staging memory, then every receiver of its unit task takes it out. All
 * broadcasts share the tree and the unit tasks, so a broadcast's size depends
 * on neither. The op that gathered the box identifies it and its place. A
 * broadcast's ops, in order: the hops to the tree's nodes 1, 2, …, then the
 * takes by the unit task's receivers.
 */
#ifndef RF_PLANNER_SCHEDULE_BCAST_H
#define RF_PLANNER_SCHEDULE_BCAST_H

#include "planner/plan/unit_task.h"
#include "planner/schedule/op.h"

/* A node of the tree. Node 0 is the root; a parent comes before its children.
 * Hops to the children of a node of depth d belong to round + d of a
 * broadcast. */
struct rf_hop {
    uint32_t rank, parent, depth;
    bool sends; /* has children */
};

struct rf_bcast {
    uint32_t id;          /* of its first op */
    uint32_t gathered;    /* index in the world's `ops` of the op that wrote the
                             box to the root's staging memory */
    uint32_t task, round; /* of the first hops */
    uint32_t unit, take_round;
    struct rf_form take; /* of the elements at the receivers */
};

struct rf_bcast_template {
    struct rf_hop *hops;
    uint32_t n_hops, hops_capacity; /* including the root */
    uint32_t height;                /* greatest depth */
    uint32_t n_ranks, *place;       /* node by world rank, RF_NONE: none */
    struct rf_unit_tasks units;     /* their pieces belong to the plan */
    struct rf_bcast *bcasts;        /* ascending id */
    size_t n_bcasts, bcasts_capacity;
};

/* Creates a template without hops or unit tasks; rf_bcast_template_destroy()
 * takes NULL. */
struct rf_bcast_template *rf_bcast_template_create(uint32_t n_ranks);
void rf_bcast_template_destroy(struct rf_bcast_template *tmpl);

/* Adds a node, the root first. */
void rf_bcast_template_add_hop(struct rf_bcast_template *tmpl, uint32_t parent,
                               uint32_t rank);
/* The rounds [*first, *end) in which a node takes part in the hops of a
 * broadcast that starts in round 0. */
void rf_bcast_template_rounds(const struct rf_bcast_template *tmpl,
                              uint32_t node, uint32_t *first, uint32_t *end);

uint64_t rf_bcast_template_ops(const struct rf_bcast_template *tmpl,
                               const struct rf_bcast *bcast);
/* The common part of a broadcast's hops, with the id, dep and round of the
 * first; src = dst = the root. */
struct rf_op rf_bcast_op(const struct rf_bcast *bcast,
                         const struct rf_op *gathered);
/* The op at `index` of a broadcast; `index` is below
 * rf_bcast_template_ops(). */
void rf_bcast_template_op(const struct rf_bcast_template *tmpl,
                          const struct rf_bcast *bcast,
                          const struct rf_op *gathered, uint64_t index,
                          struct rf_op *out);

/* The op in the world's `ops` that gathered the box of a broadcast. */
const struct rf_op *rf_bcast_gathered(const struct rf_op *ops,
                                      const struct rf_bcast *bcast);
/* Bytes of each hop of a broadcast. */
uint64_t rf_bcast_bytes(const struct rf_op *ops, const struct rf_bcast *bcast);

#endif
