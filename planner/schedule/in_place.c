/*
 * Finds pieces that can stay in place. See in_place.h.
 *
 * A piece can be used in place when ops from one rank's training memory cover
 * it without casts, every element lies where the piece's own strides would put
 * it (layers and experts, which are separate parameters, may be anywhere), and
 * nobody forwards it.
 */
#include "planner/schedule/in_place.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/schedule/delivery.h"

static bool has_same_strides(const struct rf_op *op,
                             const struct rf_piece *piece)
{
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        if (piece->box.extent[d] > 1 && op->src_stride[d] != piece->stride[d]) {
            return false;
        }
    }
    return true;
}

static void add_to_cover(struct rf_in_place *cover, const struct rf_op *op,
                         const struct rf_piece *piece, bool forwarded)
{
    const uint64_t offset = rf_box_offset(op->box.start, op->src_offset,
                                          op->src_stride, piece->box.start);
    if (cover->elements == 0) {
        cover->src = op->src;
        cover->offset = offset;
        memcpy(cover->stride, op->src_stride, sizeof(cover->stride));
        cover->usable = true;
    }
    cover->elements += rf_box_elements(&op->box);
    cover->usable =
        cover->usable && !forwarded && op->dep == RF_NO_OP &&
        op->src_mem == RF_MEM_TRAIN && rf_form_equal(op->from, op->to) &&
        op->src == cover->src && offset == cover->offset &&
        memcmp(cover->stride, op->src_stride, sizeof(cover->stride)) == 0 &&
        has_same_strides(op, piece);
}

static struct rf_rank_in_place *set_of_rank(const struct rf_in_place_set *set,
                                            const struct rf_op *op)
{
    return op->dst_piece != RF_NONE &&
                   (set->only == RF_NONE || set->only == op->dst)
               ? &set->ranks[op->dst]
               : NULL;
}

static void add_op(struct rf_in_place_set *set, const struct rf_plan *plan,
                   const struct rf_op *op, bool forwarded)
{
    struct rf_rank_in_place *of = set_of_rank(set, op);
    if (of == NULL) {
        return;
    }
    if (of->layout == NULL) {
        of->layout = rf_plan_layout(plan, RF_INFER, op->dst);
        of->by_piece = rf_xcalloc(of->layout->n_pieces, sizeof(*of->by_piece));
    }
    add_to_cover(&of->by_piece[op->dst_piece], op,
                 &of->layout->pieces[op->dst_piece], forwarded);
}

/* A piece with a part from elsewhere cannot stay. */
static void rule_out_parts(const struct rf_rank_in_place *of)
{
    for (size_t p = 0; of->layout != NULL && p < of->layout->n_pieces; p++) {
        of->by_piece[p].usable =
            of->by_piece[p].usable &&
            of->by_piece[p].elements ==
                rf_box_elements(&of->layout->pieces[p].box);
    }
}

static void add_ops(struct rf_in_place_set *set, const struct rf_plan *plan,
                    const struct rf_schedule *schedule)
{
    bool *forwarded = rf_xcalloc(schedule->n_ops, sizeof(*forwarded));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const uint32_t dep = schedule->ops[i].dep;
        const size_t at = dep == RF_NO_OP ? schedule->n_ops
                                          : rf_schedule_index(schedule, dep);
        if (at < schedule->n_ops) {
            forwarded[at] = true;
        }
    }
    for (size_t i = 0; i < schedule->n_ops; i++) {
        add_op(set, plan, &schedule->ops[i], forwarded[i]);
    }
    free(forwarded);
}

/* Only what goes to a single stop can stay: on longer routes a stop sends, or
 * reads what another has. */
static void add_deliveries(struct rf_in_place_set *set,
                           const struct rf_plan *plan,
                           const struct rf_deliveries *all)
{
    bool *forwarded = rf_xcalloc(all->n, sizeof(*forwarded));
    for (size_t i = 0; i < all->n; i++) {
        const uint32_t dep = all->of[i].op.dep;
        const struct rf_delivery *before =
            dep == RF_NO_OP ? NULL : rf_delivery_find(all, dep);
        if (before != NULL) {
            forwarded[before - all->of] = true;
        }
    }
    for (size_t i = 0; i < all->n; i++) {
        const struct rf_delivery *delivery = &all->of[i];
        if (rf_route_of(all, delivery)->n == 1) {
            struct rf_op op;
            rf_delivery_op(all, delivery, &(struct rf_delivery_step){0, 0, 0},
                           &op);
            op.box =
                delivery->op.box; /* it begins where the first chunk does */
            add_op(set, plan, &op, forwarded[i]);
        }
    }
    free(forwarded);
}

void rf_in_place_find(const struct rf_plan *plan,
                      const struct rf_schedule *schedule, uint32_t rank,
                      struct rf_in_place_set *out)
{
    *out =
        (struct rf_in_place_set){.n_ranks = plan->world->n_ranks, .only = rank};
    out->ranks = rf_xcalloc(out->n_ranks, sizeof(*out->ranks));
    if (schedule->deliveries != NULL) {
        add_deliveries(out, plan, schedule->deliveries);
    } else {
        add_ops(out, plan, schedule);
    }
    for (uint32_t r = 0; r < out->n_ranks; r++) {
        rule_out_parts(&out->ranks[r]);
    }
}

const struct rf_in_place *rf_in_place_of_op(const struct rf_in_place_set *set,
                                            const struct rf_op *op)
{
    const struct rf_rank_in_place *of = set_of_rank(set, op);
    return of != NULL && of->layout != NULL ? &of->by_piece[op->dst_piece]
                                            : NULL;
}

void rf_in_place_free(struct rf_in_place_set *set)
{
    for (uint32_t r = 0; r < set->n_ranks; r++) {
        free(set->ranks[r].by_piece);
    }
    free(set->ranks);
}

bool rf_in_place_in_slot(const struct rf_plan *plan, const struct rf_op *op)
{
    return plan->spec->strategy == RF_SEND_RECV &&
           rf_form_equal(op->from, op->to) && op->src_mem == RF_MEM_TRAIN &&
           op->dst_piece != RF_NONE &&
           rf_same_slot(plan->world, op->src, op->dst) &&
           memcmp(op->src_stride, op->dst_stride, sizeof(op->src_stride)) ==
               0 &&
           rf_box_compare(&op->box, &rf_plan_layout(plan, RF_INFER, op->dst)
                                         ->pieces[op->dst_piece]
                                         .box) == 0;
}
