/*
 * In how many pieces copies inside a node read memory, and what they read
 * again. See simulation.h.
 *
 * Parts of rows (a column split) are slow to read, since fetching ahead begins
 * anew with each. Method `host` reads rows from end to end where its ranks copy
 * all of each, and once for all replicas, whoever needs which columns
 * (transport/engine/portions.h). So its ops are sorted by the rows that they
 * have parts of, and what of a row they read is added up. It does so with
 * copies that wait for nothing; of those that also cast, the model takes none
 * together.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/predict/simulation.h"

/* The part of each row that an op reads; what is one piece of memory is one
 * row. */
struct row_part {
    const struct rf_op *op;
    uint32_t dim; /* rows follow each other in this dimension */
    uint64_t bytes, row_bytes;
};

/* False where it is one piece of memory. */
static bool part_of(const struct rf_op *op, struct row_part *out)
{
    uint64_t items = 1;
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        const uint64_t extent = op->box.extent[d];
        if (extent > 1 && op->src_stride[d] != items * op->src_item) {
            *out = (struct row_part){op, d, items * op->src_item,
                                     op->src_stride[d]};
            return true;
        }
        items *= extent;
    }
    *out = (struct row_part){op, RF_BOX_DIMS - 1, items * op->src_item,
                             items * op->src_item};
    return false;
}

static bool is_inside(const struct rf_simulation *b, const struct rf_op *op)
{
    return b->world->ranks[op->src].node == b->world->ranks[op->dst].node;
}

/* 0: parts of the same rows. */
static int compare_rows(const struct row_part *a, const struct row_part *b)
{
    int order = RF_COMPARE(a->op->src, b->op->src);
    order = order ? order : RF_COMPARE(a->op->src_mem, b->op->src_mem);
    order = order ? order : RF_COMPARE(a->op->family, b->op->family);
    order = order ? order : RF_COMPARE(a->dim, b->dim);
    order = order ? order : RF_COMPARE(a->row_bytes, b->row_bytes);
    for (uint32_t d = 0; d <= a->dim && order == 0; d++) {
        const struct rf_box *x = &a->op->box, *y = &b->op->box;
        order = RF_COMPARE(x->start[d], y->start[d]);
        order = order ? order : RF_COMPARE(x->extent[d], y->extent[d]);
    }
    return order;
}

static int compare_parts(const void *a, const void *b)
{
    const struct row_part *x = a, *y = b;
    int order = compare_rows(x, y);
    order = order ? order : RF_COMPARE(x->op->src_offset, y->op->src_offset);
    order = order ? order : RF_COMPARE(x->bytes, y->bytes);
    return order ? order : RF_COMPARE(x->op->id, y->op->id);
}

static bool same_part(const struct row_part *a, const struct row_part *b)
{
    return a->op->src_offset == b->op->src_offset && a->bytes == b->bytes;
}

/* Whether an op may be copied together with others. */
static bool waits_for_nothing(const struct rf_simulation *b,
                              const struct rf_op *op)
{
    return op->dep == RF_NO_OP &&
           (op->src == op->dst || !b->env->plan->spec->serialize);
}

/* Parts of the same rows, in the order of their columns; several may be one and
 * the same. */
static void find_reads(const struct row_part *parts, size_t n,
                       const struct rf_op *ops, struct rf_read *reads)
{
    uint64_t bytes = 0, end = parts[0].op->src_offset;
    for (size_t i = 0; i < n; i++) {
        const uint64_t from = RF_MAX(parts[i].op->src_offset, end);
        const uint64_t to = parts[i].op->src_offset + parts[i].bytes;
        reads[parts[i].op - ops].again =
            i > 0 && same_part(&parts[i - 1], &parts[i]);
        bytes += to > from ? to - from : 0;
        end = RF_MAX(end, to);
    }
    for (size_t i = 0; i < n; i++) {
        reads[parts[i].op - ops].whole = bytes >= parts[0].row_bytes;
    }
}

void rf_simulation_find_reads(struct rf_simulation *b)
{
    const struct rf_schedule *schedule = b->env->schedule;
    struct row_part *parts = NULL;
    size_t n = 0, capacity = 0, end;
    if (b->env->inside.copier != RF_COPIER_ANY) {
        return;
    }
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (is_inside(b, op) && waits_for_nothing(b, op) &&
            op->cast == RF_CAST_NONE) {
            struct row_part part;
            (void)part_of(op, &part);
            RF_PUSH(parts, n, capacity, part);
        }
    }
    b->reads = rf_xcalloc(RF_MAX(schedule->n_ops, 1), sizeof(*b->reads));
    if (n > 0) {
        qsort(parts, n, sizeof(*parts), compare_parts);
    }
    for (size_t first = 0; first < n; first = end) {
        for (end = first + 1;
             end < n && compare_rows(&parts[first], &parts[end]) == 0;) {
            end++;
        }
        find_reads(&parts[first], end - first, schedule->ops, b->reads);
    }
    free(parts);
}

/* Pieces of memory, as long as both ends have them in one piece. */
static uint64_t runs_at_both_ends(const struct rf_op *op)
{
    uint64_t run = 1;
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        const uint64_t extent = op->box.extent[d];
        if (extent > 1 && (op->src_stride[d] != run * op->src_item ||
                           op->dst_stride[d] != run * op->dst_item)) {
            break;
        }
        run *= extent;
    }
    return rf_box_elements(&op->box) / run;
}

uint64_t rf_simulation_runs(const struct rf_simulation *b, size_t i)
{
    const struct rf_op *op = &b->env->schedule->ops[i];
    struct row_part part;
    if (!is_inside(b, op) || b->env->inside.copier == RF_COPIER_SRC) {
        return 0;
    }
    if (b->env->inside.copier == RF_COPIER_BOTH) {
        return runs_at_both_ends(op);
    }
    if ((b->reads != NULL && (b->reads[i].whole || b->reads[i].again)) ||
        !part_of(op, &part)) {
        return 0;
    }
    return rf_box_elements(&op->box) * op->src_item / part.bytes;
}

uint64_t rf_simulation_again(const struct rf_simulation *b, size_t i)
{
    return b->reads != NULL && b->reads[i].again
               ? rf_op_bytes(&b->env->schedule->ops[i])
               : 0;
}
