/*
 * The proof of layouts: no two pieces share a byte, and all lie inside the
 * arena. Time is O(n log n) in the pieces of a parameter. Any failure is
 * RF_ERR_INTERNAL with the place.
 */
#include "planner/plan/plan_prove.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"

struct boxes {
    struct rf_box *of;
    size_t n, cap;
};

/* Bytes of the contiguous memory of one instance of a piece; 0 when it is not
 * contiguous. */
static uint64_t dense_bytes(const struct rf_piece *piece, uint64_t item)
{
    uint64_t bytes = item;
    for (uint32_t d = RF_BOX_DIMS; d-- > RF_DIM_TENSOR;) {
        if (piece->box.extent[d] > 1 && piece->stride[d] != bytes) {
            return 0;
        }
        bytes *= piece->box.extent[d];
    }
    return bytes;
}

/* Whether the addresses of a piece of `bytes` are (layer, expert, rest) in
 * mixed radix. */
static bool in_mixed_radix(const struct rf_piece *piece, uint64_t base,
                           uint64_t bytes)
{
    uint64_t step = piece->stride[RF_DIM_LAYER];
    uint64_t expert = piece->stride[RF_DIM_EXPERT];
    return expert > 0 &&
           (piece->offset - base) % step % expert + bytes <= expert;
}

/* Adds the places of a piece's instances inside their parameter: one box of
 * (layer, expert, rest) or, where the radix differs between pieces, a box of
 * (layer, rest) for each expert. False when instances overlap. */
static bool place_piece(const struct rf_piece *piece, uint64_t base,
                        uint64_t bytes, bool mixed_radix, struct boxes *out)
{
    uint64_t step = piece->stride[RF_DIM_LAYER];
    uint64_t expert = piece->stride[RF_DIM_EXPERT];
    uint64_t from = piece->offset - base, rest = from % step;
    uint64_t experts = piece->box.extent[RF_DIM_EXPERT];
    struct rf_box box;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        box.start[d] = 0;
        box.extent[d] = 1;
    }
    box.start[0] = from / step;
    box.extent[0] = piece->box.extent[RF_DIM_LAYER];
    box.extent[2] = bytes;
    if ((experts > 1 && expert < bytes) ||
        rest + (experts - 1) * expert + bytes > step) {
        return false;
    }
    if (mixed_radix) {
        box.start[1] = rest / expert;
        box.extent[1] = experts;
        box.start[2] = rest % expert;
        RF_PUSH(out->of, out->n, out->cap, box);
        return true;
    }
    for (uint64_t e = 0; e < experts; e++) {
        box.start[2] = rest + e * expert;
        RF_PUSH(out->of, out->n, out->cap, box);
    }
    return true;
}

static int compare_places(const void *a, const void *b)
{
    const struct rf_piece *x = *(const struct rf_piece *const *)a;
    const struct rf_piece *y = *(const struct rf_piece *const *)b;
    return RF_THEN_BY(RF_COMPARE(x->param, y->param),
                      RF_COMPARE(x->offset, y->offset));
}

/* Checks the pieces of one parameter, sorted by offset. *end: the end of the
 * previous parameter and, on return, of this one. */
static bool check_param(const uint32_t *items,
                        const struct rf_piece *const *pieces, size_t n,
                        uint64_t *end, struct boxes *scratch)
{
    uint64_t base = pieces[0]->offset / RF_PARAM_ALIGN * RF_PARAM_ALIGN;
    uint64_t step = pieces[0]->stride[RF_DIM_LAYER], last = 0;
    uint64_t expert = pieces[0]->stride[RF_DIM_EXPERT];
    bool mixed_radix = true;
    if (base < *end || step == 0) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const struct rf_piece *piece = pieces[i];
        uint64_t bytes = dense_bytes(piece, items[piece->family]);
        if (bytes == 0 || piece->stride[RF_DIM_LAYER] != step) {
            return false;
        }
        mixed_radix &= piece->stride[RF_DIM_EXPERT] == expert &&
                       in_mixed_radix(piece, base, bytes);
    }
    scratch->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rf_piece *piece = pieces[i];
        const uint64_t *extent = piece->box.extent;
        uint64_t bytes = dense_bytes(piece, items[piece->family]);
        if (!place_piece(piece, base, bytes, mixed_radix, scratch)) {
            return false;
        }
        last = RF_MAX(last, piece->offset + (extent[RF_DIM_LAYER] - 1) * step +
                                (extent[RF_DIM_EXPERT] - 1) *
                                    piece->stride[RF_DIM_EXPERT] +
                                bytes);
    }
    *end = last;
    return rf_boxes_disjoint(scratch->of, scratch->n);
}

enum rf_status rf_plan_prove_layout(const struct rf_rank_layout *layout,
                                    const uint32_t *items, struct rf_err *err)
{
    struct boxes scratch = {.n = 0};
    const struct rf_piece **pieces =
        rf_xcalloc(layout->n_pieces, sizeof(*pieces));
    uint64_t end = 0;
    bool ok = true;
    size_t i, next;
    for (i = 0; i < layout->n_pieces; i++) {
        pieces[i] = &layout->pieces[i];
        ok &= pieces[i]->param < layout->n_params;
    }
    qsort(pieces, layout->n_pieces, sizeof(*pieces), compare_places);
    for (i = 0; i < layout->n_pieces && ok; i = next) {
        for (next = i + 1;
             next < layout->n_pieces && pieces[next]->param == pieces[i]->param;
             next++) {
        }
        ok = check_param(items, &pieces[i], next - i, &end, &scratch);
        if (!ok) {
            rf_err_set(err, RF_ERR_INTERNAL, "parameter %s: pieces overlap",
                       layout->params[pieces[i]->param].name);
        }
    }
    free(pieces);
    free(scratch.of);
    if (ok && end > layout->arena_bytes) {
        ok = false;
        rf_err_set(err, RF_ERR_INTERNAL, "the last piece ends at byte %llu",
                   (unsigned long long)end);
    }
    if (!ok) {
        rf_err_wrap(err, "proof: a layout of %llu bytes",
                    (unsigned long long)layout->arena_bytes);
    }
    return ok ? RF_OK : RF_ERR_INTERNAL;
}

enum rf_status rf_plan_prove_layouts(const struct rf_plan *plan,
                                     struct rf_err *err)
{
    const uint32_t n = plan->model->n_families;
    uint32_t *items = rf_xcalloc(n, sizeof(*items));
    enum rf_status status = RF_OK;
    for (unsigned side = 0; side < RF_SIDES; side++) {
        const struct rf_layouts *layouts = &plan->priv->layouts[side];
        for (uint32_t f = 0; f < n; f++) {
            items[f] = rf_form_item(rf_plan_form(plan, (enum rf_side)side, f));
        }
        for (uint32_t l = 0; l < layouts->n_layouts && status == RF_OK; l++) {
            status = rf_plan_prove_layout(&layouts->layouts[l], items, err);
        }
    }
    free(items);
    return status;
}
