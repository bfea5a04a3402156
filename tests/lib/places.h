/*
 * Elements of boxes, one at a time, and their addresses. Plain loops, so that
 * checks of plans share no arithmetic with the planner. Functions are in the
 * header because fuzz harnesses link no test library.
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

/* Steps `at` through a box in row-major order; after the last element, false,
 * with `at` back at the start. */
static inline bool place_next(const struct rf_box *box, uint64_t *at)
{
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        if (++at[d] < box->start[d] + box->extent[d]) {
            return true;
        }
        at[d] = box->start[d];
    }
    return false;
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
