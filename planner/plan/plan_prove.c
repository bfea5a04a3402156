/*
 * The proof of a plan, from its layouts and transfers alone:
 *
 *  1. no two pieces of a layout share a byte, and all lie inside the arena;
 *  2. each transfer lies in a piece of its source's training layout and in one
 *     of its destination's inference layout, at the addresses these give it;
 *  3. the transfers into each piece do not overlap, and their volumes add up
 *     to the piece's.
 *
 * So each destination byte is written exactly once, from a rank that holds it.
 * Time is O(n log n) in pieces and transfers, where n is the number per
 * parameter or piece. Any failure is RF_ERR_INTERNAL with the place.
 */
#include "planner/plan/plan_prove.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"

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
                        uint64_t bytes, bool mixed_radix,
                        struct rf_plan_proof_boxes *out)
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
                        uint64_t *end, struct rf_plan_proof_boxes *scratch)
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
    struct rf_plan_proof_boxes scratch = {.n = 0};
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

static bool same_place(const struct rf_piece *piece, const struct rf_box *box,
                       uint64_t offset, const uint64_t *stride)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        if (stride[d] != piece->stride[d]) {
            return false;
        }
    }
    return rf_box_contains(&piece->box, box) &&
           rf_piece_offset(piece, box->start) == offset;
}

static bool source_holds(const struct rf_plan *plan,
                         const struct rf_transfer *t)
{
    const struct rf_rank_layout *layout;
    if (t->src >= plan->world->n_ranks) {
        return false;
    }
    layout = rf_plan_layout(plan, RF_TRAIN, t->src);
    return t->src_piece < layout->n_pieces &&
           layout->pieces[t->src_piece].family == t->family &&
           same_place(&layout->pieces[t->src_piece], &t->box, t->src_offset,
                      t->src_stride);
}

static enum rf_status fail_twice(const struct rf_plan_proof *proof,
                                 const struct rf_piece *piece,
                                 struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_INTERNAL,
                      "proof: rank %u receives parts of %s twice", proof->rank,
                      proof->plan->model->families[piece->family].name);
}

/* The current piece; NULL after the last. */
static const struct rf_piece *piece_at_hand(const struct rf_plan_proof *proof)
{
    return proof->rank < proof->plan->world->n_ranks
               ? &rf_plan_layout(proof->plan, RF_INFER, proof->rank)
                      ->pieces[proof->piece]
               : NULL;
}

/* Moves to the first existing piece from (rank, piece) on; all of it is
 * missing. */
static void find_piece(struct rf_plan_proof *proof)
{
    const struct rf_piece *piece;
    while (proof->rank < proof->plan->world->n_ranks &&
           proof->piece >=
               rf_plan_layout(proof->plan, RF_INFER, proof->rank)->n_pieces) {
        proof->rank++;
        proof->piece = 0;
    }
    piece = piece_at_hand(proof);
    proof->missing = piece != NULL ? rf_box_elements(&piece->box) : 0;
    proof->scratch.n = 0;
}

static enum rf_status fail_lacking(const struct rf_plan_proof *proof,
                                   const struct rf_piece *piece,
                                   struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_INTERNAL,
                      "proof: rank %u lacks %llu elements of %s", proof->rank,
                      (unsigned long long)proof->missing,
                      proof->plan->model->families[piece->family].name);
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

void rf_plan_proof_start(struct rf_plan_proof *proof,
                         const struct rf_plan *plan)
{
    *proof = (struct rf_plan_proof){.plan = plan};
    find_piece(proof);
}

enum rf_status rf_plan_proof_add(struct rf_plan_proof *proof,
                                 const struct rf_transfer *t,
                                 struct rf_err *err)
{
    const struct rf_piece *piece = piece_at_hand(proof);
    uint64_t elements = rf_box_elements(&t->box);
    if (piece == NULL) {
        return rf_err_set(
            err, RF_ERR_INTERNAL,
            "proof: transfer %zu writes outside of rank %u, or is out of order",
            proof->n, t->dst);
    }
    if (t->dst != proof->rank || t->family != piece->family ||
        !rf_box_contains(&piece->box, &t->box)) {
        return fail_lacking(proof, piece, err);
    }
    if (!source_holds(proof->plan, t) ||
        !same_place(piece, &t->box, t->dst_offset, t->dst_stride)) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "proof: transfer %zu of %s, rank %u to %u, does not "
                          "match the layouts",
                          proof->n,
                          proof->plan->model->families[t->family].name, t->src,
                          t->dst);
    }
    if (elements == 0 || elements > proof->missing) {
        return fail_twice(proof, piece, err);
    }
    proof->n++;
    proof->missing -= elements;
    RF_PUSH(proof->scratch.of, proof->scratch.n, proof->scratch.cap, t->box);
    if (proof->missing > 0) {
        return RF_OK;
    }
    if (proof->scratch.n > 1 &&
        !rf_boxes_disjoint(proof->scratch.of, proof->scratch.n)) {
        return fail_twice(proof, piece, err);
    }
    proof->piece++;
    find_piece(proof);
    return RF_OK;
}

enum rf_status rf_plan_proof_end(struct rf_plan_proof *proof,
                                 struct rf_err *err)
{
    const struct rf_piece *piece = piece_at_hand(proof);
    return piece == NULL ? RF_OK : fail_lacking(proof, piece, err);
}

void rf_plan_proof_free(struct rf_plan_proof *proof)
{
    free(proof->scratch.of);
    *proof = (struct rf_plan_proof){.plan = NULL};
}

enum rf_status rf_plan_prove(const struct rf_plan *plan, struct rf_err *err)
{
    struct rf_plan_proof proof;
    struct rf_plan_walk walk;
    enum rf_status status = RF_OK;
    RF_TRY(rf_plan_prove_layouts(plan, err));
    rf_plan_walk_start(&walk, plan);
    rf_plan_proof_start(&proof, plan);
    while (status == RF_OK && rf_plan_walk_step(&walk)) {
        status = rf_plan_proof_add(&proof, rf_plan_walk_transfer(&walk), err);
    }
    RF_THEN(status, rf_plan_proof_end(&proof, err));
    rf_plan_proof_free(&proof);
    rf_plan_walk_end(&walk);
    return status;
}
