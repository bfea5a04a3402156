/* Sizes and conversions of an operation. */
#include "planner/schedule/op.h"

enum rf_cast rf_op_cast(const struct rf_op *op)
{
    return rf_form_cast(op->from, op->to);
}

bool rf_op_casts_at_source(const struct rf_op *op)
{
    return !rf_form_equal(op->from, op->wire);
}

bool rf_op_casts_at_destination(const struct rf_op *op)
{
    return !rf_form_equal(op->wire, op->to);
}

uint64_t rf_op_bytes(const struct rf_op *op)
{
    return rf_form_bytes(op->wire, &op->box);
}

uint64_t rf_op_written(const struct rf_op *op)
{
    return rf_form_bytes(op->to, &op->box);
}

bool rf_op_reads_held(const struct rf_op *op)
{
    return op->src_mem == RF_MEM_TRAIN && op->dep == RF_NO_OP &&
           !rf_op_casts_at_source(op);
}

uint64_t rf_op_src_end(const struct rf_op *op)
{
    uint64_t end = op->src_offset + rf_form_item(op->from);
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        end += (op->box.extent[d] - 1) * op->src_stride[d];
    }
    return end;
}
