/* Sizes of an operation. */
#include "planner/schedule/op.h"

#include "planner/layout/box.h"

uint64_t rf_op_bytes(const struct rf_op *op)
{
    uint32_t item = op->cast_at_source ? op->dst_item : op->src_item;
    return rf_box_elements(&op->box) * item;
}

bool rf_op_reads_held(const struct rf_op *op)
{
    return op->src_mem == RF_MEM_TRAIN && op->dep == RF_NO_OP &&
           (op->cast == RF_CAST_NONE || !op->cast_at_source);
}

uint64_t rf_op_src_end(const struct rf_op *op)
{
    uint64_t end = op->src_offset + op->src_item;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        end += (op->box.extent[d] - 1) * op->src_stride[d];
    }
    return end;
}

uint64_t rf_op_written(const struct rf_op *op)
{
    return rf_box_elements(&op->box) * op->dst_item;
}
