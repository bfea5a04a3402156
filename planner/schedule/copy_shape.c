/* An op as nested loops. See copy_shape.h. */
#include "planner/schedule/copy_shape.h"

#include <string.h>

#include "planner/layout/box.h"

/* Adds dimension `extent` outside the current ones, merging it with the
 * outermost if both walk memory as one loop. Dimensions are kept innermost
 * first until the end. */
static void add_dim(struct rf_copy_shape *shape, uint64_t extent,
                    uint64_t src_stride, uint64_t dst_stride)
{
    uint32_t n = shape->n_dims;
    if (n == 0 && src_stride == shape->run_items * shape->src_item &&
        dst_stride == shape->run_items * shape->dst_item) {
        shape->run_items *= extent;
        return;
    }
    if (n > 0 && src_stride == shape->src_stride[n - 1] * shape->count[n - 1] &&
        dst_stride == shape->dst_stride[n - 1] * shape->count[n - 1]) {
        shape->count[n - 1] *= extent;
        return;
    }
    shape->count[n] = extent;
    shape->src_stride[n] = src_stride;
    shape->dst_stride[n] = dst_stride;
    shape->n_dims++;
}

static void swap_u64(uint64_t *a, uint64_t *b)
{
    uint64_t keep = *a;
    *a = *b;
    *b = keep;
}

void rf_copy_shape_of(const struct rf_op *op, struct rf_copy_shape *out)
{
    memset(out, 0, sizeof(*out));
    out->cast = rf_op_cast(op);
    out->src_item = rf_form_item(op->from);
    out->dst_item = rf_form_item(op->to);
    out->run_items = 1;
    out->total_items = rf_box_elements(&op->box);
    if (out->cast == RF_CAST_NONE) {
        out->run_items = out->src_item;
        out->total_items *= out->src_item;
        out->src_item = out->dst_item = 1;
    }
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        if (op->box.extent[d] > 1) {
            add_dim(out, op->box.extent[d], op->src_stride[d],
                    op->dst_stride[d]);
        }
    }
    for (uint32_t a = 0, b = out->n_dims; a + 1 < b; a++) {
        b--;
        swap_u64(&out->count[a], &out->count[b]);
        swap_u64(&out->src_stride[a], &out->src_stride[b]);
        swap_u64(&out->dst_stride[a], &out->dst_stride[b]);
    }
}

uint64_t rf_copy_shape_runs(const struct rf_copy_shape *shape)
{
    return shape->total_items / shape->run_items;
}
