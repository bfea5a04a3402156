/*
 * Internal to the planner: the common part of all strategies. A strategy turns
 * a plan into ops through a *builder*, which numbers them, counts bytes,
 * digests them and keeps those that the caller wants. Memory does not grow with
 * the world's ops, so a rank can build its part of a large world's schedule.
 * Ops that follow a pattern are added as deliveries (delivery.h), without
 * listing them.
 */
#ifndef RF_PLANNER_STRATEGY_STRATEGY_H
#define RF_PLANNER_STRATEGY_STRATEGY_H

#include "planner/layout/box.h"
#include "planner/plan/tensor_groups.h"
#include "planner/schedule/delivery.h"
#include "planner/schedule/schedule.h"

struct rf_builder {
    const struct rf_plan *plan;
    const struct rf_world *world;
    const struct rf_spec *spec;
    struct rf_schedule *schedule; /* under construction */
    size_t capacity;              /* of schedule->ops */
    uint64_t max_ops;             /* limit of `kept`; beyond it building ends,
                                     see `full` */
    uint64_t kept;                /* stored ops, and what readers of stored
                                     deliveries visit */
    bool full;
    uint32_t node;       /* keep this node's ops; RF_NONE: all */
    const uint32_t *ids; /* of the ops from first_id on in order of emission;
                            NULL: ascending */
    uint32_t first_id;
    const struct rf_tensor_groups *groups; /* of the scenario */
    uint32_t group;                        /* of ops now made */
    uint32_t first_round;                  /* that they may have */
    uint32_t next_task;
    uint32_t *next_round;          /* by world rank: its first free round */
    uint64_t chunk_bytes;          /* forwarding granularity */
    struct rf_built_route *routes; /* by route: see deliver.c */
    size_t n_routes, routes_capacity;
    uint32_t *near; /* stops that touch the builder's node, by route */
    size_t n_near, near_capacity;
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
    uint32_t dep, round, task;
};

/* The number of groups in which the scenario moves tensors, at least 1. */
uint32_t rf_builder_groups(const struct rf_builder *builder);
/* Begins the group of that number: its ops have rounds after those so far. */
void rf_builder_begin_group(struct rf_builder *builder, uint32_t group);
/* The parts of a box that are in the group begun last, one per call; *at begins
 * as 0. False after the last. */
bool rf_builder_part(const struct rf_builder *builder, uint32_t family,
                     const struct rf_box *box, size_t *at, struct rf_box *out);

/* Makes an op without an id. */
void rf_builder_make(const struct rf_builder *builder,
                     const struct rf_op_draft *step,
                     const struct rf_op_end *src, const struct rf_op_end *dst,
                     struct rf_op *out);
/* Assigns the op an id (valid even if the op is not kept; RF_NO_OP after a
 * failure) and adds it. */
void rf_builder_add(struct rf_builder *builder, struct rf_op *op);
/* Reserves the ids of `n` ops, starting at *first; false when there are too
 * many or after a failure. Not with builder->ids. */
bool rf_builder_number(struct rf_builder *builder, uint64_t n, uint32_t *first);

/* Stores a numbered op if it touches the builder's node, without counting it.
 * rf_builder_add() does this, too. */
void rf_builder_keep(struct rf_builder *builder, const struct rf_op *op);

/* Adds `n` to builder->kept; false, and building ends, if that exceeds
 * max_ops. */
bool rf_builder_has_room(struct rf_builder *builder, uint64_t n);

/* The round for an op of `src` and `dst` without dependency: the group's first
 * unless serialised, then the first in which both are free. */
uint32_t rf_builder_round(const struct rf_builder *builder, uint32_t src,
                          uint32_t dst);

/* When serialised, marks `src` and `dst` busy in `round`. Adding an op does
 * this, too. */
void rf_builder_occupy(struct rf_builder *builder, uint32_t src, uint32_t dst,
                       uint32_t round);

/* Begins a route (delivery.h) without stops; returns its number. Pointers to
 * routes and stops hold until the next one is added. */
uint32_t rf_builder_begin_route(struct rf_builder *builder,
                                const struct rf_delivery_route *route);
/* Adds a stop to the route begun last; returns its index there, RF_NONE after a
 * failure. */
uint32_t rf_builder_stop(struct rf_builder *builder, const struct rf_holder *at,
                         uint32_t parent);
/* Ends a route: counts what its deliveries moved. None may follow. A node's
 * schedule forgets it if it is the last: end routes in reverse order. */
void rf_builder_end_route(struct rf_builder *builder, uint32_t route);

/* The same for all ranks of a route. */
uint32_t rf_builder_route_round(const struct rf_builder *builder,
                                uint32_t route);

/* Numbers and adds a delivery, which is complete but for its id. */
void rf_builder_deliver(struct rf_builder *builder,
                        struct rf_delivery *delivery);
/* When serialised, marks the ranks of its route busy. */
void rf_builder_occupy_route(struct rf_builder *builder,
                             const struct rf_delivery *delivery);

/* Makes room for one more item of an array; false, and building ends, without
 * memory. */
bool rf_builder_grow(struct rf_builder *builder, void **items, size_t n,
                     size_t *capacity, size_t item_size);

/* Elements of a family in `bytes` bytes on the wire, at least 1. */
uint64_t rf_builder_elements(const struct rf_builder *builder, uint32_t family,
                             uint64_t bytes);

/* Records the first failure, so that emitting code stays simple. */
void rf_builder_fail(struct rf_builder *builder, enum rf_status status,
                     const char *text);

/* The strategies' builders. Each emits all ops of the world. */
#define RF_BUILDER(name) void rf_strategy_##name(struct rf_builder *builder);
RF_BUILDER_MAP(RF_BUILDER)
#undef RF_BUILDER

#endif
