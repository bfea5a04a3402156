/*
 * Arithmetic on boxes. A box always has RF_BOX_DIMS dimensions; those that its
 * family lacks have start 0 and extent 1, so loops need no special case.
 */
#include "planner/layout/box.h"

#include <stdlib.h>

#include "common/mem.h"

uint64_t rf_box_elements(const struct rf_box *box)
{
    uint64_t elements = 1;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        elements *= box->extent[d];
    }
    return elements;
}

struct rf_box rf_box_whole(const struct rf_family *family)
{
    struct rf_box box = {.start = {0}};
    box.extent[RF_DIM_LAYER] = family->n_layers;
    box.extent[RF_DIM_EXPERT] = family->n_experts;
    for (uint32_t d = 0; d < RF_TENSOR_MAX_DIMS; d++) {
        box.extent[RF_DIM_TENSOR + d] = d < family->ndim ? family->shape[d] : 1;
    }
    return box;
}

bool rf_box_intersect(const struct rf_box *a, const struct rf_box *b,
                      struct rf_box *out)
{
    struct rf_box both;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t a_end = a->start[d] + a->extent[d];
        uint64_t b_end = b->start[d] + b->extent[d];
        uint64_t start = RF_MAX(a->start[d], b->start[d]);
        uint64_t end = RF_MIN(a_end, b_end);
        if (start >= end) {
            return false;
        }
        both.start[d] = start;
        both.extent[d] = end - start;
    }
    *out = both;
    return true;
}

bool rf_box_contains(const struct rf_box *outer, const struct rf_box *inner)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        if (inner->start[d] < outer->start[d] ||
            inner->extent[d] > outer->extent[d] ||
            inner->start[d] - outer->start[d] >
                outer->extent[d] - inner->extent[d]) {
            return false;
        }
    }
    return true;
}

int rf_box_compare(const struct rf_box *a, const struct rf_box *b)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        if (a->start[d] != b->start[d]) {
            return a->start[d] < b->start[d] ? -1 : 1;
        }
        if (a->extent[d] != b->extent[d]) {
            return a->extent[d] < b->extent[d] ? -1 : 1;
        }
    }
    return 0;
}

uint64_t rf_box_step(const struct rf_box *box, uint32_t dim)
{
    uint64_t step = 1;
    for (uint32_t d = dim + 1; d < RF_BOX_DIMS; d++) {
        step *= box->extent[d];
    }
    return step;
}

size_t rf_box_range(const struct rf_box *box, uint64_t from, uint64_t to,
                    struct rf_box *out)
{
    uint64_t step[RF_BOX_DIMS];
    size_t n = 0;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        step[d] = rf_box_step(box, d);
    }
    while (from < to) {
        uint32_t dim = 0;
        uint64_t count;
        /* The outermost dimension of which a whole slice starts here. */
        while (from % step[dim] != 0 || step[dim] > to - from) {
            dim++;
        }
        struct rf_box *piece = &out[n++];
        *piece = *box;
        for (uint32_t d = 0; d < dim; d++) {
            piece->start[d] += from / step[d] % box->extent[d];
            piece->extent[d] = 1;
        }
        uint64_t digit = from / step[dim] % box->extent[dim];
        count = RF_MIN((to - from) / step[dim], box->extent[dim] - digit);
        piece->start[dim] += digit;
        piece->extent[dim] = count;
        from += count * step[dim];
    }
    return n;
}

uint64_t rf_box_offset(const uint64_t *start, uint64_t offset,
                       const uint64_t *stride, const uint64_t *at)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        offset += (at[d] - start[d]) * stride[d];
    }
    return offset;
}

uint64_t rf_piece_offset(const struct rf_piece *piece, const uint64_t *at)
{
    return rf_box_offset(piece->box.start, piece->offset, piece->stride, at);
}

static int by_start(const void *a, const void *b, void *dim)
{
    const struct rf_box *x = a, *y = b;
    const uint32_t d = *(const uint32_t *)dim;
    return RF_COMPARE(x->start[d], y->start[d]);
}

/* A run of boxes still to be separated; `tried` counts the successive
 * dimensions that did not cut it. */
struct run {
    size_t first, count;
    uint32_t dim, tried;
};

static bool pairs_disjoint(struct rf_box *boxes, struct run run)
{
    struct rf_box both, *of = boxes + run.first;
    for (size_t i = 0; i < run.count; i++) {
        for (size_t k = i + 1; k < run.count; k++) {
            if (rf_box_intersect(&of[i], &of[k], &both)) {
                struct rf_box a = of[i], b = of[k];
                boxes[0] = a;
                boxes[1] = b;
                return false;
            }
        }
    }
    return true;
}

bool rf_boxes_disjoint(struct rf_box *boxes, size_t n)
{
    struct run *stack = NULL;
    size_t depth = 0, cap = 0;
    bool disjoint = true;
    if (n > 1) {
        RF_PUSH(stack, depth, cap, ((struct run){.count = n}));
    }
    while (depth > 0 && disjoint) {
        struct run run = stack[--depth];
        if (run.count <= 3 || run.tried == RF_BOX_DIMS) {
            disjoint = pairs_disjoint(boxes, run);
            continue;
        }
        uint32_t dim = run.dim, next = (dim + 1) % RF_BOX_DIMS;
        size_t first = run.first, end_of_run = run.first + run.count;
        uint64_t end = 0;
        qsort_r(boxes + first, run.count, sizeof(*boxes), by_start, &dim);
        for (size_t i = first; i <= end_of_run; i++) {
            if (i > first && (i == end_of_run || boxes[i].start[dim] >= end)) {
                struct run part = {first, i - first, next, 0};
                part.tried = part.count == run.count ? run.tried + 1 : 0;
                if (part.count > 1) {
                    RF_PUSH(stack, depth, cap, part);
                }
                first = i;
            }
            if (i < end_of_run) {
                end = RF_MAX(end, boxes[i].start[dim] + boxes[i].extent[dim]);
            }
        }
    }
    free(stack);
    return disjoint;
}
