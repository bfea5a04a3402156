/*
 * The proof of transfers. With that of the layouts it says that each
 * destination byte is written exactly once, from a rank that holds it. Time is
 * O(n log n) in the transfers into a piece.
 */
#include "tests/lib/plan_proof.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_prove.h"
#include "planner/plan/plan_walk.h"

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

static enum rf_status fail_twice(const struct plan_proof *proof,
                                 const struct rf_piece *piece,
                                 struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_INTERNAL,
                      "proof: rank %u receives parts of %s twice", proof->rank,
                      proof->plan->model->families[piece->family].name);
}

/* The current piece; NULL after the last. */
static const struct rf_piece *piece_at_hand(const struct plan_proof *proof)
{
    return proof->rank < proof->plan->world->n_ranks
               ? &rf_plan_layout(proof->plan, RF_INFER, proof->rank)
                      ->pieces[proof->piece]
               : NULL;
}

/* Moves to the first existing piece from (rank, piece) on; all of it is
 * missing. */
static void find_piece(struct plan_proof *proof)
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
    proof->n_boxes = 0;
}

static enum rf_status fail_lacking(const struct plan_proof *proof,
                                   const struct rf_piece *piece,
                                   struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_INTERNAL,
                      "proof: rank %u lacks %llu elements of %s", proof->rank,
                      (unsigned long long)proof->missing,
                      proof->plan->model->families[piece->family].name);
}

void plan_proof_start(struct plan_proof *proof, const struct rf_plan *plan)
{
    *proof = (struct plan_proof){.plan = plan};
    find_piece(proof);
}

enum rf_status plan_proof_add(struct plan_proof *proof,
                              const struct rf_transfer *t, struct rf_err *err)
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
    RF_PUSH(proof->boxes, proof->n_boxes, proof->cap, t->box);
    if (proof->missing > 0) {
        return RF_OK;
    }
    if (proof->n_boxes > 1 &&
        !rf_boxes_disjoint(proof->boxes, proof->n_boxes)) {
        return fail_twice(proof, piece, err);
    }
    proof->piece++;
    find_piece(proof);
    return RF_OK;
}

enum rf_status plan_proof_end(struct plan_proof *proof, struct rf_err *err)
{
    const struct rf_piece *piece = piece_at_hand(proof);
    return piece == NULL ? RF_OK : fail_lacking(proof, piece, err);
}

void plan_proof_free(struct plan_proof *proof)
{
    free(proof->boxes);
    *proof = (struct plan_proof){.plan = NULL};
}

enum rf_status plan_prove(const struct rf_plan *plan, struct rf_err *err)
{
    struct plan_proof proof;
    struct rf_plan_walk walk;
    enum rf_status status = RF_OK;
    RF_TRY(rf_plan_prove_layouts(plan, err));
    rf_plan_walk_start(&walk, plan);
    plan_proof_start(&proof, plan);
    while (status == RF_OK && rf_plan_walk_step(&walk)) {
        status = plan_proof_add(&proof, rf_plan_walk_transfer(&walk), err);
    }
    RF_THEN(status, plan_proof_end(&proof, err));
    plan_proof_free(&proof);
    rf_plan_walk_end(&walk);
    return status;
}
