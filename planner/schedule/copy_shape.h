/*
 * An op's box as the fewest nested loops over the longest contiguous runs.
 *
 * The runs of a shape, concatenated with the outermost dimension slowest, form
 * its *stream*: positions in it count items. An item is one byte, or one
 * element when the op casts.
 */
#ifndef RF_PLANNER_SCHEDULE_COPY_SHAPE_H
#define RF_PLANNER_SCHEDULE_COPY_SHAPE_H

#include <stdint.h>

#include "planner/schedule/op.h"

/* A copy as nested loops: run_items contiguous items at each point of a grid of
 * n_dims (outermost first), with byte strides on both sides. */
struct rf_copy_shape {
    uint32_t n_dims;
    uint64_t count[RF_BOX_DIMS];
    uint64_t src_stride[RF_BOX_DIMS], dst_stride[RF_BOX_DIMS];
    uint64_t run_items, total_items;
    uint32_t src_item, dst_item; /* bytes per item; 1 without a cast */
    enum rf_cast cast;
};

/* Collapses an op to its shape, without its offsets: users of a shape know the
 * addresses of the box's first element. */
void rf_copy_shape_of(const struct rf_op *op, struct rf_copy_shape *out);

/* Number of runs of a shape. */
uint64_t rf_copy_shape_runs(const struct rf_copy_shape *shape);

#endif
