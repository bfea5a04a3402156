/* Functions shared by the proofs of ops and of deliveries. See
 * schedule_proof.h. */
#include "planner/schedule/schedule_proof.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"

enum rf_status rf_schedule_proof_fault(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op, const char *what)
{
    return rf_err_set(proof->err, RF_ERR_INTERNAL,
                      "schedule: op %u (%s, rank %u to rank %u): %s", op->id,
                      op->family < proof->plan->model->n_families
                          ? proof->plan->model->families[op->family].name
                          : "?",
                      op->src, op->dst, what);
}

/* Whether two address rules agree on a box; strides of dimensions with an
 * extent of 1 do not matter. */
static bool same_places(const struct rf_box *box, uint64_t offset,
                        const uint64_t *stride, uint64_t other,
                        const uint64_t *other_stride)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        if (box->extent[d] > 1 && stride[d] != other_stride[d]) {
            return false;
        }
    }
    return offset == other;
}

bool rf_schedule_proof_lies_in(const struct rf_piece *piece,
                               const struct rf_op *op, uint64_t offset,
                               const uint64_t *stride)
{
    return piece->family == op->family &&
           rf_box_contains(&piece->box, &op->box) &&
           same_places(&op->box, offset, stride,
                       rf_piece_offset(piece, op->box.start), piece->stride);
}

bool rf_schedule_proof_held(const struct rf_rank_layout *layout,
                            const struct rf_op *op)
{
    size_t i = 0, end = layout->n_pieces;
    while (i < end) { /* find the first piece of the family */
        size_t middle = i + (end - i) / 2;
        if (layout->pieces[middle].family < op->family) {
            i = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; i < layout->n_pieces && layout->pieces[i].family == op->family;
         i++) {
        if (rf_schedule_proof_lies_in(&layout->pieces[i], op, op->src_offset,
                                      op->src_stride)) {
            return true;
        }
    }
    return false;
}

bool rf_schedule_proof_receives(struct rf_schedule_proof *proof,
                                const struct rf_holder *to, uint32_t family,
                                const struct rf_box *box)
{
    const struct rf_rank_layout *layout;
    if (to->rank >= proof->plan->world->n_ranks) {
        return false;
    }
    layout = rf_plan_layout(proof->plan, RF_INFER, to->rank);
    if (to->number >= layout->n_pieces ||
        to->piece != &layout->pieces[to->number]) {
        return false;
    }
    proof->writes[proof->n_writes++] = (struct rf_box_in){
        proof->ranks[to->rank].first_piece + to->number, box};
    return to->piece->family == family && rf_box_contains(&to->piece->box, box);
}

enum rf_status rf_schedule_proof_reads(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       const struct rf_op *dep)
{
    const uint64_t offset = rf_box_offset(dep->box.start, dep->dst_offset,
                                          dep->dst_stride, op->box.start);
    if (dep->dst != op->src || dep->dst_mem != op->src_mem ||
        dep->family != op->family || !rf_form_equal(dep->to, op->from) ||
        !rf_box_contains(&dep->box, &op->box)) {
        return rf_schedule_proof_fault(
            proof, op, "reads something else than its dep wrote");
    }
    if (!same_places(&op->box, op->src_offset, op->src_stride, offset,
                     dep->dst_stride)) {
        return rf_schedule_proof_fault(proof, op,
                                       "reads where its dep did not write");
    }
    if (op->src_mem == RF_MEM_STAGE && op->group != dep->group) {
        return rf_schedule_proof_fault(proof, op,
                                       "reads a group that is not there");
    }
    return RF_OK;
}

/* Whether the boxes `of` one whole are disjoint and have `left` elements. */
static bool is_filled(const struct rf_boxes_in *all, const size_t *of, size_t n,
                      uint64_t left, struct rf_box *scratch)
{
    for (size_t i = 0; i < n; i++) {
        scratch[i] = *all->boxes[of[i]].box;
        left -= rf_box_elements(&scratch[i]);
    }
    return left == 0 && rf_boxes_disjoint(scratch, n);
}

bool rf_schedule_proof_fill(const struct rf_boxes_in *all, size_t *bad)
{
    size_t *order = rf_xcalloc(all->n, sizeof(*order)), most = 0;
    size_t *first = rf_xcalloc(all->n_wholes + 2, sizeof(*first));
    struct rf_box *scratch;
    bool filled = true;
    /* first[i + 1]: the next free place of whole i; at the end, its end */
    for (size_t i = 0; i < all->n; i++) {
        const size_t n = ++first[all->boxes[i].whole + 2];
        most = RF_MAX(most, n);
    }
    for (size_t i = 0; i < all->n_wholes; i++) {
        first[i + 2] += first[i + 1];
    }
    for (size_t i = 0; i < all->n; i++) {
        order[first[all->boxes[i].whole + 1]++] = i;
    }
    scratch = rf_xcalloc(most, sizeof(*scratch));
    for (size_t whole = 0; whole < all->n_wholes && filled; whole++) {
        filled = is_filled(all, order + first[whole],
                           first[whole + 1] - first[whole],
                           all->elements[whole], scratch);
        *bad = whole;
    }
    free(order);
    free(first);
    free(scratch);
    return filled;
}
