/* Arithmetic on boxes of families. */
#ifndef RF_PLANNER_LAYOUT_BOX_H
#define RF_PLANNER_LAYOUT_BOX_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/layout/piece.h"

/* Capacity for rf_box_range(): the most boxes it makes. */
#define RF_BOX_RANGE_MAX (2 * RF_BOX_DIMS)

uint64_t rf_box_elements(const struct rf_box *box);

/* The whole family. */
struct rf_box rf_box_whole(const struct rf_family *family);

/* The intersection of `a` and `b`; false if empty, *out then untouched. */
bool rf_box_intersect(const struct rf_box *a, const struct rf_box *b,
                      struct rf_box *out);
bool rf_box_contains(const struct rf_box *outer, const struct rf_box *inner);

/* Order by start, then extent, from the layer dimension on. */
int rf_box_compare(const struct rf_box *a, const struct rf_box *b);

/* Elements per step in dimension `dim`, in row-major order. */
uint64_t rf_box_step(const struct rf_box *box, uint32_t dim);

/*
 * Splits elements [from, to) of `box`, in row-major order, into boxes: a
 * partial row, whole rows, a partial row, and so on outwards. `out` has room
 * for RF_BOX_RANGE_MAX; returns the number of boxes, which keep the order.
 */
size_t rf_box_range(const struct rf_box *box, uint64_t from, uint64_t to,
                    struct rf_box *out);

/* The offset in bytes of element `at`, where element `start` is at `offset`;
 * `at` may precede it. */
uint64_t rf_box_offset(const uint64_t *start, uint64_t offset,
                       const uint64_t *stride, const uint64_t *at);

/* Bytes from the start of `piece`'s arena to element `at` of its family. */
uint64_t rf_piece_offset(const struct rf_piece *piece, const uint64_t *at);

/*
 * Sorts `boxes`; true if no two share an element. Takes O(n log n) if straight
 * cuts can separate the boxes, as in all plans; otherwise it compares pairs.
 * Moves a rejected pair to boxes[0] and boxes[1].
 */
bool rf_boxes_disjoint(struct rf_box *boxes, size_t n);

/*
 * How to cut a box into at most `parts` boxes of nearly equal size: into how
 * many, and along which dimension, the outermost that divides evenly or else
 * the one that divides best. rf_box_part() makes the boxes.
 */
struct rf_split {
    uint32_t dim, parts;
};
struct rf_split rf_box_split(const struct rf_box *box, uint32_t parts);
struct rf_box rf_box_part(const struct rf_box *box,
                          const struct rf_split *split, uint32_t index);

/* Cuts a box into chunks of at most `max_elements` each, but at least one
 * element, outer dimensions first, in memory order. */
struct rf_chunking {
    uint32_t dim;   /* outer dimensions are cut to single indices */
    uint64_t step;  /* indices of `dim` per chunk */
    uint64_t count; /* number of chunks */
};
struct rf_chunking rf_box_chunking(const struct rf_box *box,
                                   uint64_t max_elements);
struct rf_box rf_box_chunk(const struct rf_box *box,
                           const struct rf_chunking *chunking, uint64_t index);

#endif
