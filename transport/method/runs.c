/*
 * Runs and padding of a piece. See runs.h.
 *
 * A dimension joins the run when its step in the tensor and its step in memory
 * both equal the run so far; dimensions of extent 1 vanish. The remaining
 * dimensions form an odometer, innermost fastest, so that runs come in the
 * tensor's order whatever the memory layout.
 */
#include "transport/method/runs.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static void add_dim(struct rf_run_walk *walk, uint32_t dim, uint64_t count,
                    uint64_t stride, uint64_t elements)
{
    uint32_t i = walk->n_dims++;
    walk->dims[i].at = 0;
    walk->dims[i].count = count;
    walk->dims[i].stride = stride;
    walk->dims[i].elements = elements;
    walk->dims[i].dim = dim;
    walk->left *= count;
}

void rf_runs_init(struct rf_run_walk *walk, const struct rf_family *family,
                  const struct rf_box *box, const uint64_t stride[RF_BOX_DIMS],
                  uint32_t item_bytes)
{
    uint64_t step = 1; /* of the dimension in the logical tensor */
    memset(walk, 0, sizeof(*walk));
    walk->left = 1;
    walk->next.layer = (uint32_t)box->start[RF_DIM_LAYER];
    walk->next.expert = (uint32_t)box->start[RF_DIM_EXPERT];
    walk->next.elements = 1;
    for (uint32_t d = family->ndim; d-- > 0;) {
        uint32_t dim = RF_DIM_TENSOR + d;
        uint64_t extent = box->extent[dim];
        walk->next.element += box->start[dim] * step;
        if (extent != 1) {
            if (walk->n_dims == 0 && walk->next.elements == step &&
                stride[dim] == step * item_bytes) {
                walk->next.elements *= extent;
            } else {
                add_dim(walk, dim, extent, stride[dim], step);
            }
        }
        step *= family->shape[d];
    }
    if (box->extent[RF_DIM_EXPERT] != 1) {
        add_dim(walk, RF_DIM_EXPERT, box->extent[RF_DIM_EXPERT],
                stride[RF_DIM_EXPERT], 0);
    }
    if (box->extent[RF_DIM_LAYER] != 1) {
        add_dim(walk, RF_DIM_LAYER, box->extent[RF_DIM_LAYER],
                stride[RF_DIM_LAYER], 0);
    }
    if (walk->next.elements == 0) {
        walk->left = 0;
    }
}

bool rf_runs_next(struct rf_run_walk *walk, struct rf_stretch *out)
{
    if (walk->left == 0) {
        return false;
    }
    walk->left--;
    *out = walk->next;
    for (uint32_t i = 0; i < walk->n_dims; i++) {
        uint64_t back = walk->dims[i].count - 1;
        if (walk->dims[i].at < back) {
            walk->dims[i].at++;
            walk->next.offset += walk->dims[i].stride;
            walk->next.element += walk->dims[i].elements;
            walk->next.expert += walk->dims[i].dim == RF_DIM_EXPERT;
            walk->next.layer += walk->dims[i].dim == RF_DIM_LAYER;
            break;
        }
        walk->dims[i].at = 0;
        walk->next.offset -= back * walk->dims[i].stride;
        walk->next.element -= back * walk->dims[i].elements;
        if (walk->dims[i].dim == RF_DIM_EXPERT) {
            walk->next.expert -= (uint32_t)back;
        } else if (walk->dims[i].dim == RF_DIM_LAYER) {
            walk->next.layer -= (uint32_t)back;
        }
    }
    return true;
}

void rf_runs_index(const struct rf_family *family, uint64_t element,
                   uint64_t index[RF_TENSOR_MAX_DIMS])
{
    memset(index, 0, RF_TENSOR_MAX_DIMS * sizeof(index[0]));
    for (uint32_t d = family->ndim; d-- > 0;) {
        index[d] = element % family->shape[d];
        element /= family->shape[d];
    }
}

struct spans {
    struct rf_byte_span *items;
    size_t n, capacity;
};

static bool push_span(struct spans *spans, uint64_t start, uint64_t end)
{
    if (spans->n > 0 && spans->items[spans->n - 1].end == start) {
        spans->items[spans->n - 1].end = end;
        return true;
    }
    if (spans->n == spans->capacity) {
        size_t capacity = spans->capacity ? 2 * spans->capacity : 256;
        struct rf_byte_span *items =
            realloc(spans->items, capacity * sizeof(*items));
        if (items == NULL) {
            return false;
        }
        spans->items = items;
        spans->capacity = capacity;
    }
    spans->items[spans->n++] = (struct rf_byte_span){start, end};
    return true;
}

/* Adds the memory ranges of one piece. Only memory order matters here, so the
 * walk pretends that the tensor is exactly the box. */
static bool push_piece(struct spans *spans, const struct rf_piece *piece,
                       uint32_t ndim, uint32_t item_bytes)
{
    struct rf_run_walk walk;
    struct rf_stretch run;
    struct rf_family family = {.ndim = ndim};
    struct rf_box box = piece->box;
    for (uint32_t d = 0; d < ndim; d++) {
        family.shape[d] = box.extent[RF_DIM_TENSOR + d];
        box.start[RF_DIM_TENSOR + d] = 0;
    }
    rf_runs_init(&walk, &family, &box, piece->stride, item_bytes);
    while (rf_runs_next(&walk, &run)) {
        uint64_t start = piece->offset + run.offset;
        if (!push_span(spans, start, start + run.elements * item_bytes)) {
            return false;
        }
    }
    return true;
}

static int compare_spans(const void *a, const void *b)
{
    const struct rf_byte_span *left = a, *right = b;
    return RF_COMPARE(left->start, right->start);
}

/* Turns covered ranges into the gaps between them, in place. */
static size_t complement(struct rf_byte_span *spans, size_t n, uint64_t bytes)
{
    uint64_t covered = 0;
    size_t gaps = 0;
    for (size_t i = 0; i < n; i++) {
        struct rf_byte_span span = spans[i];
        if (span.start > covered) {
            spans[gaps++] = (struct rf_byte_span){covered, span.start};
        }
        covered = RF_MAX(covered, span.end);
    }
    if (covered < bytes) {
        spans[gaps++] = (struct rf_byte_span){covered, bytes};
    }
    return gaps;
}

enum rf_status rf_runs_padding(const struct rf_rank_layout *layout,
                               const struct rf_family *families,
                               uint64_t arena_bytes, struct rf_byte_span **out,
                               size_t *n_out, struct rf_err *err)
{
    struct spans spans = {NULL, 0, 0};
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const struct rf_family *family = &families[piece->family];
        if (!push_piece(&spans, piece, family->ndim,
                        rf_dtype_bytes(family->dtype))) {
            goto nomem;
        }
    }
    /* Room for one more: the gap behind the last piece. */
    if (!push_span(&spans, UINT64_MAX, UINT64_MAX)) {
        goto nomem;
    }
    spans.n--;
    qsort(spans.items, spans.n, sizeof(*spans.items), compare_spans);
    for (size_t i = 0; i < spans.n; i++) {
        if (spans.items[i].end > arena_bytes) {
            free(spans.items);
            return rf_err_set(err, RF_ERR_INTERNAL,
                              "a piece lies outside its arena");
        }
    }
    *n_out = complement(spans.items, spans.n, arena_bytes);
    *out = spans.items;
    return RF_OK;
nomem:
    free(spans.items);
    return rf_err_set(err, RF_ERR_NOMEM, "no memory to list padding");
}
