/* How method disk reads an op. See disk_reads.h. */
#include "transport/info/disk_reads.h"

/* Runs at least this long are read one by one, into place. */
#define DIRECT_BYTES (UINT64_C(32) << 10)
/* Rows no sparser than this are read with the gaps between them. */
#define DENSITY 8

bool rf_disk_reads_dense(const struct rf_copy_shape *shape)
{
    const uint64_t run_bytes = shape->run_items * shape->src_item;
    const uint64_t stride = shape->src_stride[shape->n_dims - 1];
    return stride >= run_bytes && stride <= run_bytes * DENSITY;
}

bool rf_disk_reads_short_rows(const struct rf_copy_shape *shape)
{
    return shape->n_dims > 0 &&
           shape->run_items * shape->src_item < DIRECT_BYTES;
}

uint64_t rf_disk_reads_bytes(const struct rf_op *op)
{
    struct rf_copy_shape shape;
    uint64_t rows, stride, run_bytes;
    rf_copy_shape_of(op, &shape);
    if (!rf_op_reads_held(op)) {
        return rf_op_bytes(op);
    }
    if (!rf_disk_reads_short_rows(&shape) || !rf_disk_reads_dense(&shape)) {
        return shape.total_items * shape.src_item;
    }
    rows = shape.count[shape.n_dims - 1];
    stride = shape.src_stride[shape.n_dims - 1];
    run_bytes = shape.run_items * shape.src_item;
    return rf_copy_shape_runs(&shape) / rows *
           ((rows - 1) * stride + run_bytes);
}

bool rf_disk_reads_into_place(const struct rf_op *op,
                              const struct rf_copy_shape *shape)
{
    return rf_op_reads_held(op) && !rf_disk_reads_short_rows(shape) &&
           shape->cast == RF_CAST_NONE;
}

uint64_t rf_disk_reads_scattered(const struct rf_op *op)
{
    struct rf_copy_shape shape;
    rf_copy_shape_of(op, &shape);
    return rf_disk_reads_into_place(op, &shape)
               ? 0
               : shape.total_items * shape.dst_item;
}
