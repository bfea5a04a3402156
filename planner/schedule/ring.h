/*
 * Rings, stored once. Internal to the planner and its tests.
 *
 * A *ring* cuts a box into parts, and these into chunks. Part p goes from the
 * source to receiver turn + p (modulo their number) and from there from
 * receiver to receiver until all have it, chunk behind chunk. A ring's ops are
 * made on demand, so its size depends on neither parts nor chunks, and the size
 * of all rings grows with their receivers.
 *
 * The order of its ops: by chunk, then by hop (0 is the hop from the source),
 * then by part. In a round the k-th chunks take hop h while the chunks behind
 * them take hop h - 1.
 */
#ifndef RF_PLANNER_SCHEDULE_RING_H
#define RF_PLANNER_SCHEDULE_RING_H

#include "planner/layout/box.h"
#include "planner/plan/unit_task.h"
#include "planner/schedule/op.h"

struct rf_ring {
    struct rf_op op; /* the common part of all first hops: the whole box, its
                        place at the source, the elements, the task, the numbers
                        of the first one; dst is any receiver */
    size_t first;    /* of its receivers, in rf_rings.holders */
    uint32_t n;      /* receivers */
    uint32_t turn;   /* the first part's first receiver, < n */
    uint32_t larger; /* number of the larger parts, which come first */
    struct rf_split split;
    struct rf_chunking chunking[2]; /* of the larger parts; of the others */
};

struct rf_rings {
    struct rf_ring *of; /* ascending id */
    size_t n, capacity;
    struct rf_holder *holders; /* their pieces belong to the plan */
    size_t n_holders, holders_capacity;
};

/* One op of a ring: a chunk of a part on one hop. */
struct rf_ring_step {
    uint64_t chunk;
    uint32_t hop, part;
};

/* NULL is allowed. */
void rf_rings_destroy(struct rf_rings *rings);

/* Cuts ring->op.box into at most ring->split.parts parts and these into chunks
 * of at most `max_elements`; sets split, larger and chunking. */
void rf_ring_cut(struct rf_ring *ring, uint64_t max_elements);

/* The number of chunks of one part, and the maximum over all parts. */
uint64_t rf_ring_part_chunks(const struct rf_ring *ring, uint32_t part);
uint64_t rf_ring_chunks(const struct rf_ring *ring);
/* Chunks of all parts, UINT64_MAX on overflow; each takes n hops. */
uint64_t rf_ring_boxes(const struct rf_ring *ring);
uint64_t rf_ring_ops(const struct rf_ring *ring);

/* Part `part`, and its chunk `chunk`. */
struct rf_box rf_ring_part(const struct rf_ring *ring, uint32_t part);
struct rf_box rf_ring_box(const struct rf_ring *ring, uint32_t part,
                          uint64_t chunk);

/* The form of elements on the wire. */
struct rf_form rf_ring_form(const struct rf_ring *ring, bool from_source);

/* The receiver of a part on a hop. */
uint32_t rf_ring_receiver(const struct rf_ring *ring, uint32_t part,
                          uint32_t hop);

/* Rounds until a receiver is done, counted from the ring's first. */
uint64_t rf_ring_busy(const struct rf_ring *ring, uint32_t receiver);

/* The index of a step in the order of the ring's ops, and the inverse. */
uint64_t rf_ring_index(const struct rf_ring *ring,
                       const struct rf_ring_step *step);
struct rf_ring_step rf_ring_step_at(const struct rf_ring *ring, uint64_t index);

/* The op of a step; `to`: the ring's receivers. */
void rf_ring_op(const struct rf_ring *ring, const struct rf_holder *to,
                const struct rf_ring_step *step, struct rf_op *out);

/* Calls `each` for the ops into every receiver: from the source, and from the
 * previous receiver. */
typedef void (*rf_ring_link_fn)(uint32_t src, const struct rf_holder *to,
                                uint64_t n_ops, uint64_t elements,
                                bool from_source, void *data);
void rf_ring_links(const struct rf_ring *ring, const struct rf_holder *to,
                   rf_ring_link_fn each, void *data);

#endif
