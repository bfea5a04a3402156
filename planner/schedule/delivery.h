/*
 * Deliveries: ops that are stored together. Internal to the planner and its
 * tests.
 *
 * A *delivery* brings a box, chunk by chunk, from a source to the *stops* of a
 * *route*: to those without a parent from the source, to the others from their
 * parent, which forwards a chunk once it is there. A stop is a rank's piece of
 * inference memory or its staging memory, where a box has the same place on
 * every rank. Out of staging memory the stops of a second route, the *takes*,
 * copy the box on their own rank. On a *ring* the box is cut into parts as
 * well, at most one per stop: part p goes to stop turn + p (modulo their
 * number) and from there from stop to stop until all have it.
 *
 * Ops are made on demand, so the size of a delivery depends on neither stops
 * nor chunks, and deliveries can share a route. Their order: by chunk, then by
 * hop, then by part. The hops of a tree are its stops in their order; hop 0 of
 * a ring is the one from the source; takes come last.
 */
#ifndef RF_PLANNER_SCHEDULE_DELIVERY_H
#define RF_PLANNER_SCHEDULE_DELIVERY_H

#include "planner/layout/box.h"
#include "planner/plan/unit_task.h"
#include "planner/schedule/op.h"

struct rf_stop {
    struct rf_holder at; /* piece NULL: staging memory */
    uint32_t parent;     /* an earlier stop; RF_NONE: the source. Of a take: the
                            stop of the same rank on the route before */
    uint32_t depth;      /* hops from the source, at least 1 */
    bool sends;          /* has children */
};

enum rf_route_kind { RF_ROUTE_TREE, RF_ROUTE_RING, RF_ROUTE_TAKES };

struct rf_delivery_route {
    enum rf_route_kind kind;
    size_t first;    /* of its stops, in rf_deliveries.stops */
    uint32_t n;      /* stops */
    uint32_t height; /* greatest depth */
    uint32_t from;   /* the rank of the source; of takes: the route that fills
                        the staging memory */
    /* What all its deliveries together bring to each of its pieces, once. */
    uint32_t family;
    struct rf_box box;
    /* Sums over its deliveries, unless it is a ring: chunks, and their bytes on
     * a hop from the source and on others. Of takes: bytes read and written. */
    uint64_t chunks, first_bytes, bytes;
};

struct rf_delivery {
    /* The first op, but with the whole box, its place at the source and, if it
     * goes there, in staging memory. Chunk k depends on op dep + k. */
    struct rf_op op;
    uint32_t route, takes; /* takes: RF_NONE: none */
    uint32_t turn;         /* ring: the first part's first stop, < n */
    uint32_t larger;       /* number of the larger parts, which come first */
    struct rf_split split;
    struct rf_chunking chunking[2]; /* of the larger parts; of the others */
    uint32_t pace;       /* rounds from a chunk to the next; 1 on a ring */
    uint32_t tasks;      /* tasks from a chunk to the next, 0 or 1 */
    struct rf_form take; /* of the elements that takes write */
};

struct rf_deliveries {
    struct rf_delivery *of; /* ascending id; all ops of the world */
    size_t n, capacity;
    struct rf_delivery_route *routes;
    size_t n_routes, routes_capacity;
    struct rf_stop *stops; /* their pieces belong to the plan */
    size_t n_stops, stops_capacity;
};

/* One op: a chunk of a part on one hop. Hops from the route's n on are takes.
 */
struct rf_delivery_step {
    uint64_t chunk;
    uint32_t hop, part;
};

/* NULL is allowed. */
void rf_deliveries_destroy(struct rf_deliveries *all);

const struct rf_delivery_route *rf_route_of(const struct rf_deliveries *all,
                                            const struct rf_delivery *delivery);
/* NULL: no takes. */
const struct rf_delivery_route *rf_takes_of(const struct rf_deliveries *all,
                                            const struct rf_delivery *delivery);
const struct rf_stop *rf_route_stops(const struct rf_deliveries *all,
                                     const struct rf_delivery_route *route);
/* Whether nothing on the route leaves the source's rank. */
bool rf_route_is_local(const struct rf_deliveries *all,
                       const struct rf_delivery_route *route);

/* Cuts delivery->op.box into at most `parts` parts and these into chunks of at
 * most `max_elements`; sets split, larger and chunking. */
void rf_delivery_cut(struct rf_delivery *delivery, uint32_t parts,
                     uint64_t max_elements);

/* The number of chunks of one part, and the maximum over all parts. */
uint64_t rf_delivery_part_chunks(const struct rf_delivery *delivery,
                                 uint32_t part);
uint64_t rf_delivery_chunks(const struct rf_delivery *delivery);
/* Chunks of all parts, UINT64_MAX on overflow. */
uint64_t rf_delivery_boxes(const struct rf_delivery *delivery);
/* All ops, UINT64_MAX on overflow. */
uint64_t rf_delivery_ops(const struct rf_deliveries *all,
                         const struct rf_delivery *delivery);
/* Rounds from the first op's to the last op's, inclusive. */
uint64_t rf_delivery_rounds(const struct rf_deliveries *all,
                            const struct rf_delivery *delivery);
/* Bounds [*first, *end) of the rounds, counted from the first op's, in which a
 * stop of the route exchanges chunks with other ranks. */
void rf_delivery_busy(const struct rf_deliveries *all,
                      const struct rf_delivery *delivery, uint32_t stop,
                      uint64_t *first, uint64_t *end);

/* Part `part`, and its chunk `chunk`. */
struct rf_box rf_delivery_part(const struct rf_delivery *delivery,
                               uint32_t part);
struct rf_box rf_delivery_box(const struct rf_delivery *delivery, uint32_t part,
                              uint64_t chunk);

/* The stop of a ring that gets a part on a hop. */
uint32_t rf_delivery_ring_stop(const struct rf_deliveries *all,
                               const struct rf_delivery *delivery,
                               uint32_t part, uint32_t hop);

/* The step of the op at `index` in the order of the delivery's ops. */
struct rf_delivery_step rf_delivery_step_at(const struct rf_deliveries *all,
                                            const struct rf_delivery *delivery,
                                            uint64_t index);

/* Makes the op of a step. */
void rf_delivery_op(const struct rf_deliveries *all,
                    const struct rf_delivery *delivery,
                    const struct rf_delivery_step *step, struct rf_op *out);

/* The delivery with the op `id`; NULL: none. */
const struct rf_delivery *rf_delivery_find(const struct rf_deliveries *all,
                                           uint32_t id);

/* Calls `each` with the sum of the ops into one stop from another rank or, of
 * takes, on its rank: their number, their bytes on the way and as written. */
typedef void (*rf_link_fn)(uint32_t src, uint32_t dst, uint64_t n_ops,
                           uint64_t bytes, uint64_t written, void *data);
/* All deliveries over a route that is no ring. */
void rf_route_links(const struct rf_deliveries *all,
                    const struct rf_delivery_route *route, rf_link_fn each,
                    void *data);
/* One delivery over a ring. */
void rf_delivery_ring_links(const struct rf_deliveries *all,
                            const struct rf_delivery *delivery, rf_link_fn each,
                            void *data);

#endif
