/* Simple ops for tests; random ones are in random_ops.h. */
#ifndef RF_TESTS_LIB_OPS_H
#define RF_TESTS_LIB_OPS_H

#include "planner/schedule/op.h"

/* Lets an op copy one row of so many bytes. */
static inline void op_row(struct rf_op *op, uint64_t bytes)
{
    op->from = op->wire = op->to = (struct rf_form){RF_U8};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        const bool last = d + 1 == RF_BOX_DIMS;
        op->box.extent[d] = last ? bytes : 1;
        op->src_stride[d] = op->dst_stride[d] = last ? 1 : bytes;
    }
}

#endif
