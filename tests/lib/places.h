/*
 * Elements of boxes, one at a time, and their addresses. Plain loops, so that
 * checks of plans share no arithmetic with the planner. Functions are in the
 * header because most fuzz harnesses link none of tests/lib.
 */
#ifndef RF_TESTS_LIB_PLACES_H
#define RF_TESTS_LIB_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/plan/plan.h"

/* Whether the element `at` is in the box. */
static inline bool place_inside(const struct rf_box *box, const uint64_t *at)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        if (at[d] < box->start[d] || at[d] >= box->start[d] + box->extent[d]) {
            return false;
        }
    }
    return true;
}

/* Steps `at` through the first `dims` dimensions of a box in row-major order;
 * after the last element, false, with `at` back at the start. */
static inline bool place_next_of(const struct rf_box *box, uint32_t dims,
                                 uint64_t *at)
{
    while (dims-- > 0) {
        if (++at[dims] < box->start[dims] + box->extent[dims]) {
            return true;
        }
        at[dims] = box->start[dims];
    }
    return false;
}

/* Likewise through all. */
static inline bool place_next(const struct rf_box *box, uint64_t *at)
{
    return place_next_of(box, RF_BOX_DIMS, at);
}

/* The dimension of a box's rows: the last one with more than one element. */
static inline uint32_t place_row(const struct rf_box *box)
{
    uint32_t row = RF_BOX_DIMS - 1;
    while (row > 0 && box->extent[row] == 1) {
        row--;
    }
    return row;
}

/* The address of `at` if the box's first element has address `offset`. */
static inline uint64_t place_address(const struct rf_box *box,
                                     const uint64_t *at, uint64_t offset,
                                     const uint64_t *stride)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        offset += (at[d] - box->start[d]) * stride[d];
    }
    return offset;
}

#endif
