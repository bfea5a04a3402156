/*
 * The proof of a schedule, in time proportional to its size (times a
 * logarithm):
 *
 *  - ops in ascending id can run as they stand: what an op reads is a piece of
 *    the training side, or was written by its dep, which comes before it in id
 *    and in round; elements have the type that their memory has, and are cast
 *    only between these;
 *  - into inference memory: every write lies in a piece, at the piece's
 *    address; per piece the writes are disjoint and add up to the piece, so
 *    each byte is written exactly once;
 *  - in staging memory: buckets are written one after the other, writes of a
 *    bucket have disjoint addresses inside the bucket's slot, and a slot is not
 *    written again before its last read;
 *  - with `serialize`: at each rank tasks follow one another, also in rounds.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"
#include "planner/schedule/schedule_proof.h"

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

bool rf_schedule_proof_same(const struct rf_box *box, uint64_t offset,
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

size_t rf_schedule_proof_piece(const struct rf_rank_layout *layout,
                               const struct rf_op *op, uint64_t offset,
                               const uint64_t *stride)
{
    size_t i = 0, end = layout->n_pieces;
    while (i < end) { /* the first piece of the family */
        size_t middle = i + (end - i) / 2;
        if (layout->pieces[middle].family < op->family) {
            i = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; i < layout->n_pieces && layout->pieces[i].family == op->family;
         i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        if (rf_box_contains(&piece->box, &op->box) &&
            rf_schedule_proof_same(&op->box, offset, stride,
                                   rf_piece_offset(piece, op->box.start),
                                   piece->stride)) {
            return i;
        }
    }
    return layout->n_pieces;
}

enum rf_status rf_schedule_proof_reads(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       const struct rf_op *dep)
{
    uint64_t offset = dep->dst_offset;
    if (dep->dst != op->src || dep->dst_mem != op->src_mem ||
        dep->family != op->family || dep->dst_item != op->src_item ||
        !rf_box_contains(&dep->box, &op->box)) {
        return rf_schedule_proof_fault(
            proof, op, "reads something else than its dep wrote");
    }
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        offset += (op->box.start[d] - dep->box.start[d]) * dep->dst_stride[d];
    }
    if (!rf_schedule_proof_same(&op->box, op->src_offset, op->src_stride,
                                offset, dep->dst_stride)) {
        return rf_schedule_proof_fault(proof, op,
                                       "reads where its dep did not write");
    }
    if (op->src_mem == RF_MEM_STAGE &&
        (op->bucket != dep->bucket ||
         proof->ranks[op->src].slot[op->bucket % RF_STAGE_SLOTS].bucket !=
             op->bucket)) {
        return rf_schedule_proof_fault(proof, op,
                                       "reads a bucket that is not there");
    }
    return RF_OK;
}

static enum rf_status check_read(struct rf_schedule_proof *proof,
                                 const struct rf_op *op)
{
    enum rf_status status;
    if (op->src_mem == RF_MEM_TRAIN) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(proof->plan, RF_TRAIN, op->src);
        if (rf_schedule_proof_piece(layout, op, op->src_offset,
                                    op->src_stride) == layout->n_pieces) {
            return rf_schedule_proof_fault(proof, op,
                                           "reads what its rank does not hold");
        }
        return RF_OK;
    }
    if (op->dep == RF_NO_OP || op->dep >= op->id) {
        return rf_schedule_proof_fault(proof, op,
                                       "reads what no earlier op wrote");
    }
    status = rf_schedule_proof_reads(proof, op, &proof->schedule->ops[op->dep]);
    if (status == RF_OK && op->src_mem == RF_MEM_STAGE) {
        uint32_t *read =
            &proof->ranks[op->src].slot[op->bucket % RF_STAGE_SLOTS].read_round;
        *read = RF_MAX(*read, op->round + 1);
    }
    return status;
}

static enum rf_status note_write(struct rf_schedule_proof *proof,
                                 const struct rf_stage_write *write)
{
    if (proof->n_stage == proof->stage_capacity) {
        const size_t capacity = 2 * proof->stage_capacity + 64;
        struct rf_stage_write *grown = rf_realloc_large(
            proof->stage, proof->stage_capacity * sizeof(*grown),
            capacity * sizeof(*grown));
        if (grown == NULL) {
            return rf_err_set(proof->err, RF_ERR_NOMEM,
                              "no memory for a proof");
        }
        proof->stage = grown;
        proof->stage_capacity = capacity;
    }
    proof->stage[proof->n_stage++] = *write;
    return RF_OK;
}

/* After the writes of the bucket before, which must be one of a lower number.
 */
static enum rf_status begin_bucket(struct rf_schedule_proof *proof,
                                   const struct rf_op *op)
{
    if (proof->n_stage == 0 || proof->bucket == op->bucket) {
        proof->bucket = op->bucket;
        return RF_OK;
    }
    if (proof->bucket > op->bucket) {
        return rf_schedule_proof_fault(proof, op,
                                       "writes an earlier bucket again");
    }
    enum rf_status status = rf_schedule_proof_bucket(proof);
    proof->bucket = op->bucket;
    return status;
}

enum rf_status rf_schedule_proof_stages(struct rf_schedule_proof *proof,
                                        const struct rf_op *op, uint32_t dst,
                                        uint32_t round)
{
    if (op->dst_mem != RF_MEM_STAGE || op->bucket == RF_NO_BUCKET) {
        return rf_schedule_proof_fault(proof, op,
                                       "writes where nothing may be written");
    }
    struct rf_slot_state *slot =
        &proof->ranks[dst].slot[op->bucket % RF_STAGE_SLOTS];
    enum rf_status status = begin_bucket(proof, op);
    if (status != RF_OK) {
        return status;
    }
    if (slot->bucket != op->bucket) {
        slot->bucket = op->bucket;
        slot->floor = slot->read_round;
    }
    if (round < slot->floor) {
        return rf_schedule_proof_fault(proof, op, "overwrites a bucket in use");
    }
    struct rf_stage_write write = {
        .dst = dst, .family = op->family, .origin = op->dst_offset, .op = op};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        write.origin -= op->box.start[d] * op->dst_stride[d];
    }
    return note_write(proof, &write);
}

static enum rf_status check_write(struct rf_schedule_proof *proof,
                                  const struct rf_op *op)
{
    const struct rf_rank_layout *layout;
    size_t piece;
    if (op->dst_mem != RF_MEM_INFER) {
        return rf_schedule_proof_stages(proof, op, op->dst, op->round);
    }
    layout = rf_plan_layout(proof->plan, RF_INFER, op->dst);
    piece = rf_schedule_proof_piece(layout, op, op->dst_offset, op->dst_stride);
    if (piece == layout->n_pieces) {
        return rf_schedule_proof_fault(proof, op,
                                       "writes outside of the layout");
    }
    proof->writes[proof->n_writes++] =
        (struct rf_box_in){proof->ranks[op->dst].first_piece + piece, &op->box};
    return RF_OK;
}

/* Rule 3: at one end of an op. */
static bool follows_tasks(struct rf_rank_state *rank, const struct rf_op *op)
{
    if (!rank->busy || op->task != rank->task) {
        if (rank->busy && op->task < rank->task) {
            return false;
        }
        rank->busy = true;
        rank->task = op->task;
        rank->first_round = rank->end_round;
    }
    rank->end_round = RF_MAX(rank->end_round, op->round + 1);
    return op->round >= rank->first_round;
}

/* The side whose elements a memory has. */
static enum rf_side side_in(const struct rf_plan *plan, uint8_t mem)
{
    const bool converted = mem == RF_MEM_INFER ||
                           (mem == RF_MEM_STAGE && plan->spec->cast_at_source);
    return converted ? RF_INFER : RF_TRAIN;
}

static bool elements_right(const struct rf_plan *plan, const struct rf_op *op)
{
    const enum rf_side from = side_in(plan, op->src_mem);
    const enum rf_side to = side_in(plan, op->dst_mem);
    const enum rf_cast cast =
        from == to ? RF_CAST_NONE : rf_plan_cast(plan, op->family);
    return op->src_item == rf_plan_item_bytes(plan, from, op->family) &&
           op->dst_item == rf_plan_item_bytes(plan, to, op->family) &&
           op->cast == cast &&
           op->cast_at_source ==
               (cast != RF_CAST_NONE && plan->spec->cast_at_source);
}

enum rf_status rf_schedule_proof_op(struct rf_schedule_proof *proof,
                                    const struct rf_op *op, uint64_t id)
{
    const struct rf_plan *plan = proof->plan;
    const struct rf_schedule *schedule = proof->schedule;
    if (op->id != id || op->src >= plan->world->n_ranks ||
        op->dst >= plan->world->n_ranks ||
        op->family >= plan->model->n_families ||
        op->round >= schedule->n_rounds) {
        return rf_schedule_proof_fault(proof, op, "has a number out of range");
    }
    if (!elements_right(plan, op)) {
        return rf_schedule_proof_fault(
            proof, op, "has elements of the wrong size or another cast");
    }
    if (op->dep != RF_NO_OP &&
        (op->dep >= id || schedule->ops[op->dep].round >= op->round)) {
        return rf_schedule_proof_fault(proof, op, "is not after its dep");
    }
    enum rf_status status = check_read(proof, op);
    if (status == RF_OK) {
        status = check_write(proof, op);
    }
    if (status == RF_OK && plan->spec->serialize && op->src != op->dst &&
        (!follows_tasks(&proof->ranks[op->src], op) ||
         !follows_tasks(&proof->ranks[op->dst], op))) {
        status = rf_schedule_proof_fault(
            proof, op, "comes before the end of an earlier task");
    }
    return status;
}

enum rf_status rf_schedule_proof_fill(const struct rf_boxes_in *all,
                                      size_t *bad, struct rf_err *err)
{
    struct rf_box *boxes = rf_calloc(all->n, sizeof(*boxes));
    size_t *first = rf_calloc(all->n_wholes + 2, sizeof(*first));
    enum rf_status status = RF_OK;
    if (boxes == NULL || first == NULL) {
        status = rf_err_set(err, RF_ERR_NOMEM, "no memory for a proof");
        goto free_boxes;
    }
    /* first[i + 1]: where the next box in whole i goes, in the end its end */
    for (size_t i = 0; i < all->n; i++) {
        first[all->boxes[i].whole + 2]++;
    }
    for (size_t i = 0; i < all->n_wholes; i++) {
        first[i + 2] += first[i + 1];
    }
    for (size_t i = 0; i < all->n; i++) {
        boxes[first[all->boxes[i].whole + 1]++] = *all->boxes[i].box;
    }
    for (size_t whole = 0; whole < all->n_wholes; whole++) {
        uint64_t left = all->elements[whole];
        for (size_t i = first[whole]; i < first[whole + 1]; i++) {
            left -= rf_box_elements(&boxes[i]);
        }
        if (left != 0 || !rf_boxes_disjoint(boxes + first[whole],
                                            first[whole + 1] - first[whole])) {
            *bad = whole;
            status = RF_ERR_INTERNAL;
            break;
        }
    }
free_boxes:
    free(boxes);
    free(first);
    return status;
}

static enum rf_status fail_piece(const struct rf_schedule_proof *proof,
                                 size_t piece)
{
    const struct rf_plan *plan = proof->plan;
    const struct rf_rank_layout *layout;
    uint32_t rank = plan->world->n_ranks;
    do {
        rank--;
        layout = rf_plan_layout(plan, RF_INFER, rank);
    } while (piece < proof->ranks[rank].first_piece || layout->n_pieces == 0);
    piece -= proof->ranks[rank].first_piece;
    return rf_err_set(
        proof->err, RF_ERR_INTERNAL,
        "schedule: rank %u, %s: not every byte is written exactly once", rank,
        plan->model->families[layout->pieces[piece].family].name);
}

/* Writes of every inference piece: disjoint, and together the piece. */
static enum rf_status check_pieces(struct rf_schedule_proof *proof)
{
    uint64_t *elements = rf_calloc(proof->n_pieces, sizeof(*elements));
    const struct rf_boxes_in all = {proof->writes, proof->n_writes, elements,
                                    proof->n_pieces};
    enum rf_status status;
    size_t bad = 0;
    if (elements == NULL) {
        return rf_err_set(proof->err, RF_ERR_NOMEM, "no memory for a proof");
    }
    for (uint32_t r = 0; r < proof->plan->world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(proof->plan, RF_INFER, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            elements[proof->ranks[r].first_piece + p] =
                rf_box_elements(&layout->pieces[p].box);
        }
    }
    status = rf_schedule_proof_fill(&all, &bad, proof->err);
    free(elements);
    return status == RF_ERR_INTERNAL ? fail_piece(proof, bad) : status;
}

/* Room for the writes of all that is stored. */
static enum rf_status allocate(struct rf_schedule_proof *proof)
{
    const struct rf_plan *plan = proof->plan;
    const struct rf_fold *fold = proof->schedule->fold;
    size_t writes = proof->schedule->n_ops;
    for (size_t u = 0; fold != NULL && u < fold->parcels.n; u++) {
        writes += fold->parcels.of[u].n_dst;
    }
    if (proof->schedule->rings != NULL) {
        writes += proof->schedule->rings->n_holders;
    }
    proof->ranks = rf_xcalloc(plan->world->n_ranks, sizeof(*proof->ranks));
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        proof->ranks[r].first_piece = proof->n_pieces;
        proof->n_pieces += rf_plan_layout(plan, RF_INFER, r)->n_pieces;
        for (uint32_t i = 0; i < RF_STAGE_SLOTS; i++) {
            proof->ranks[r].slot[i].bucket = RF_NO_BUCKET;
        }
    }
    proof->writes = rf_calloc(writes, sizeof(*proof->writes));
    return proof->writes != NULL
               ? RF_OK
               : rf_err_set(proof->err, RF_ERR_NOMEM, "no memory for a proof");
}

static enum rf_status check_ops(struct rf_schedule_proof *proof)
{
    const struct rf_schedule *schedule = proof->schedule;
    enum rf_status status = RF_OK;
    if (schedule->fold != NULL) {
        return rf_fold_prove(proof);
    }
    if (schedule->rings != NULL) {
        return rf_rings_prove(proof);
    }
    if (schedule->n_ops != schedule->n_world_ops) {
        return rf_err_set(proof->err, RF_ERR_INTERNAL,
                          "schedule: only whole worlds can be proved");
    }
    for (size_t i = 0; i < schedule->n_ops && status == RF_OK; i++) {
        status = rf_schedule_proof_op(proof, &schedule->ops[i], i);
    }
    return status;
}

enum rf_status rf_schedule_prove(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 struct rf_err *err)
{
    struct rf_schedule_proof proof = {
        .plan = plan, .schedule = schedule, .err = err};
    enum rf_status status = allocate(&proof);
    if (status == RF_OK) {
        status = check_ops(&proof);
    }
    if (status == RF_OK) {
        status = check_pieces(&proof);
    }
    if (status == RF_OK) {
        status = rf_schedule_proof_staging(&proof);
    }
    free(proof.ranks);
    free(proof.writes);
    free(proof.stage);
    return status;
}
