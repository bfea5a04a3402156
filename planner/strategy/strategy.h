/*
 * Internal to the planner: the common part of all strategies. A strategy turns
 * a plan into ops through a *builder*, which numbers them, counts bytes,
 * digests them and keeps those that the caller wants. Memory does not grow with
 * the world's ops, so a rank can build its part of a large world's schedule.
 * Ops that repeat over ranks are added as broadcasts (bcast.h) or rings
 * (ring.h), without listing them.
 */
#ifndef RF_PLANNER_STRATEGY_STRATEGY_H
#define RF_PLANNER_STRATEGY_STRATEGY_H

#include "planner/layout/box.h"
#include "planner/plan/unit_task.h"
#include "planner/schedule/schedule.h"

struct rf_builder {
    const struct rf_plan *plan;
    const struct rf_world *world;
    const struct rf_spec *spec;
    struct rf_schedule *schedule; /* under construction */
    size_t capacity;              /* of schedule->ops */
    uint64_t max_ops;             /* limit of `kept`; beyond it building ends,
                                     see `full` */
    uint64_t kept;                /* stored ops, and receivers and boxes of
                                     stored rings */
    bool full;
    uint32_t node;       /* keep this node's ops; RF_NONE: all */
    const uint32_t *ids; /* of the ops in order of emission; NULL: ascending
                            from 0 */
    uint32_t next_task;
    uint32_t *next_round; /* by world rank: its first free round */
    uint64_t chunk_bytes; /* forwarding granularity */
    struct rf_err *err;
    enum rf_status status; /* first failure; later emits do nothing */
};

/* The place of a box at one end of an op. */
struct rf_op_end {
    uint32_t rank;
    uint8_t mem;           /* enum rf_mem */
    struct rf_form form;   /* of its elements */
    uint32_t piece;        /* of the rank's layout, RF_NONE: none */
    uint64_t offset;       /* bytes, of the element at `start` */
    const uint64_t *start; /* borrowed, RF_BOX_DIMS entries each */
    const uint64_t *stride;
};

struct rf_op_end rf_op_end_of_piece(const struct rf_builder *builder,
                                    const struct rf_holder *holder,
                                    enum rf_mem mem);

/* An op apart from its two ends. */
struct rf_op_draft {
    uint32_t family;
    struct rf_box box;
    uint32_t dep, bucket, round, task;
};

/* Makes an op without an id. */
void rf_builder_make(const struct rf_builder *builder,
                     const struct rf_op_draft *step,
                     const struct rf_op_end *src, const struct rf_op_end *dst,
                     struct rf_op *out);
/* Assigns the op an id (valid even if the op is not kept; RF_NO_OP after a
 * failure) and adds it. */
void rf_builder_add(struct rf_builder *builder, struct rf_op *op);
/* Makes and adds an op; returns its id. */
uint32_t rf_builder_emit(struct rf_builder *builder,
                         const struct rf_op_draft *step,
                         const struct rf_op_end *src,
                         const struct rf_op_end *dst);

/* Reserves the ids of `n` ops, starting at *first; false when there are too
 * many or after a failure. Not with builder->ids. */
bool rf_builder_number(struct rf_builder *builder, uint64_t n, uint32_t *first);

/* Adds the receivers' places of a box to a digest. */
void rf_builder_hash_receivers(const struct rf_holder *to, uint32_t n,
                               const struct rf_box *box, struct rf_hash *hash);

/* Stores a numbered op if it touches the builder's node, without counting it.
 * rf_builder_add() does this, too. */
void rf_builder_keep(struct rf_builder *builder, const struct rf_op *op);

/* Adds `n` to builder->kept; false, and building ends, if that exceeds
 * max_ops. */
bool rf_builder_has_room(struct rf_builder *builder, uint64_t n);

/* The round for an op of `src` and `dst` without dependency: 0 unless
 * serialised, then the first in which both are free. */
uint32_t rf_builder_round(const struct rf_builder *builder, uint32_t src,
                          uint32_t dst);

/* When serialised, marks `src` and `dst` busy in `round`. Emitting an op does
 * this, too. */
void rf_builder_occupy(struct rf_builder *builder, uint32_t src, uint32_t dst,
                       uint32_t round);

/*
 * A tree of copies: node 0 has a box, every other node gets it from its parent,
 * which precedes it. Heads (the first n_heads nodes after node 0) form a chain
 * across nodes of the cluster; the others get it from one of these or from node
 * 0.
 */
struct rf_tree_node {
    uint32_t parent, depth;
    struct rf_op_end view;
    uint32_t op; /* of the chunk being emitted */
};

struct rf_tree {
    struct rf_tree_node *nodes;
    uint32_t n, n_heads, capacity;
};

void rf_tree_reset(struct rf_tree *tree, const struct rf_op_end *root);
/* Adds a node, returns its index. */
uint32_t rf_tree_add(struct rf_tree *tree, uint32_t parent,
                     const struct rf_op_end *view);
void rf_tree_free(struct rf_tree *tree);

/* Options for emitting a tree. */
struct rf_tree_how {
    uint32_t family, task, bucket;
    uint32_t first_round;  /* the earliest round */
    uint32_t root_dep;     /* the op that gave node 0 its box, or RF_NO_OP */
    bool root_in_chunks;   /* op root_dep + k gave it chunk k */
    uint64_t max_elements; /* of a chunk */
    bool paced;            /* rounds let a sender forward one chunk at a time */
};

/* Emits the ops that bring `box` from node 0 to all nodes, chunk by chunk.
 * Returns the round after the last op's. */
uint32_t rf_tree_emit(struct rf_builder *builder, struct rf_tree *tree,
                      const struct rf_box *box, const struct rf_tree_how *how);

/* A box that is divided among receivers and then goes around them. */
struct rf_ring_draft {
    uint32_t family;
    const struct rf_box *box;
    const struct rf_holder *source, *receivers;
    uint32_t n_receivers, turn; /* receiver of the first part, modulo n */
    uint32_t parts;             /* at most */
    uint64_t max_elements;      /* of a chunk */
};

/* Adds a ring (ring.h) as one task. */
void rf_strategy_ring_emit(struct rf_builder *builder,
                           const struct rf_ring_draft *draft);

/* Elements of a family in `bytes` bytes on the wire, at least 1. */
uint64_t rf_builder_elements(const struct rf_builder *builder, uint32_t family,
                             uint64_t bytes);

/* Records the first failure, so that emitting code stays simple. */
void rf_builder_fail(struct rf_builder *builder, enum rf_status status,
                     const char *text);

/* Likewise RF_ERR_NOMEM, with the number of ops so far and the available
 * memory. */
void rf_builder_fail_memory(struct rf_builder *builder);

/* The strategies. Each emits all ops of the world. */
void rf_strategy_direct(struct rf_builder *builder);
void rf_strategy_replicate(struct rf_builder *builder);
void rf_strategy_gather(struct rf_builder *builder);

#endif
