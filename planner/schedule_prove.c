/*
 * The proof of a schedule, in time proportional to its size (times a
 * logarithm):
 *
 *  - ops in ascending id can run as they stand: what an op reads is a piece of
 *    the training side, or was written by its dep, which comes before it in id
 *    and in round;
 *  - into inference memory: every write lies in a piece, at the piece's
 * address; per piece the writes are disjoint and add up to the piece, so each
 * byte is written exactly once;
 *  - in staging memory: writes of a bucket have disjoint addresses inside the
 *    bucket's slot, and a slot is not written again before its last read;
 *  - with `serialize`: at each rank tasks follow one another, also in rounds.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/box.h"
#include "planner/schedule.h"

/* Addresses [low, high). */
struct range {
    uint64_t low, high;
};

/* The staging memory of one rank while ops are read in order. */
struct slot_state {
    uint32_t bucket;     /* in the slot now, RF_NO_BUCKET: none */
    uint32_t read_round; /* first round after its reads */
    uint32_t floor;      /* first round in which it may be written */
};

struct rank_state {
    struct slot_state slot[RF_STAGE_SLOTS];
    uint32_t task, first_round, end_round;
    bool busy;
    size_t first_piece; /* of its inference pieces, counted over all ranks */
    struct range used[RF_STAGE_SLOTS]; /* addresses of all buckets there */
};

/* One write to staging memory; the fields of its op that it is sorted by are
 * repeated here, so that sorting need not look at the ops. */
struct stage_write {
    uint32_t bucket, dst, family;
    uint64_t origin; /* address of element 0 of the family, modulo 2^64 */
    const struct rf_op *op;
};

struct proof {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule;
    struct rank_state *ranks;
    size_t n_pieces;
    uint32_t *writes_of; /* by piece: number of writes */
    uint32_t *piece_of;  /* by op: piece + 1, or 0 */
    struct stage_write *stage;
    size_t n_stage;
    struct rf_err *err;
};

static enum rf_status fault(const struct proof *proof, const struct rf_op *op,
                            const char *what)
{
    return rf_err_set(proof->err, RF_ERR_INTERNAL,
                      "schedule: op %u (%s, rank %u to rank %u): %s", op->id,
                      op->family < proof->plan->model->n_families
                          ? proof->plan->model->families[op->family].name
                          : "?",
                      op->src, op->dst, what);
}

/* Whether two address rules agree on a box; strides of dimensions that the box
 * does not extend in do not matter. */
static bool same_address(const struct rf_box *box, uint64_t offset,
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

/* The piece of a rank's side that an end of an op lies in; n_pieces if none. */
static size_t find_piece(const struct rf_rank_layout *layout,
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
            same_address(&op->box, offset, stride,
                         rf_piece_offset(piece, op->box.start),
                         piece->stride)) {
            return i;
        }
    }
    return layout->n_pieces;
}

static enum rf_status check_read(struct proof *proof, const struct rf_op *op)
{
    const struct rf_op *ops = proof->schedule->ops;
    if (op->src_mem == RF_MEM_TRAIN) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(proof->plan, RF_TRAIN, op->src);
        if (find_piece(layout, op, op->src_offset, op->src_stride) ==
            layout->n_pieces) {
            return fault(proof, op, "reads what its rank does not hold");
        }
        return RF_OK;
    }
    if (op->dep == RF_NO_OP || op->dep >= op->id) {
        return fault(proof, op, "reads what no earlier op wrote");
    }
    const struct rf_op *dep = &ops[op->dep];
    if (dep->dst != op->src || dep->dst_mem != op->src_mem ||
        dep->family != op->family || dep->dst_item != op->src_item ||
        !rf_box_contains(&dep->box, &op->box)) {
        return fault(proof, op, "reads something else than its dep wrote");
    }
    uint64_t offset = dep->dst_offset;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        offset += (op->box.start[d] - dep->box.start[d]) * dep->dst_stride[d];
    }
    if (!same_address(&op->box, op->src_offset, op->src_stride, offset,
                      dep->dst_stride)) {
        return fault(proof, op, "reads where its dep did not write");
    }
    if (op->src_mem == RF_MEM_STAGE) {
        struct slot_state *slot =
            &proof->ranks[op->src].slot[op->bucket % RF_STAGE_SLOTS];
        if (op->bucket != dep->bucket || slot->bucket != op->bucket) {
            return fault(proof, op, "reads a bucket that is not there");
        }
        slot->read_round = RF_MAX(slot->read_round, op->round + 1);
    }
    return RF_OK;
}

static enum rf_status check_write(struct proof *proof, const struct rf_op *op)
{
    struct rank_state *rank = &proof->ranks[op->dst];
    if (op->dst_mem == RF_MEM_INFER) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(proof->plan, RF_INFER, op->dst);
        size_t piece = find_piece(layout, op, op->dst_offset, op->dst_stride);
        if (piece == layout->n_pieces) {
            return fault(proof, op, "writes outside of the layout");
        }
        proof->piece_of[op->id] = (uint32_t)(rank->first_piece + piece + 1);
        proof->writes_of[rank->first_piece + piece]++;
        return RF_OK;
    }
    if (op->dst_mem != RF_MEM_STAGE || op->bucket == RF_NO_BUCKET) {
        return fault(proof, op, "writes where nothing may be written");
    }
    struct slot_state *slot = &rank->slot[op->bucket % RF_STAGE_SLOTS];
    if (slot->bucket != op->bucket) {
        if (slot->bucket != RF_NO_BUCKET && slot->bucket > op->bucket) {
            return fault(proof, op, "writes an earlier bucket again");
        }
        slot->bucket = op->bucket;
        slot->floor = slot->read_round;
    }
    if (op->round < slot->floor) {
        return fault(proof, op, "overwrites a bucket in use");
    }
    struct stage_write *write = &proof->stage[proof->n_stage++];
    *write = (struct stage_write){.bucket = op->bucket,
                                  .dst = op->dst,
                                  .family = op->family,
                                  .origin = op->dst_offset,
                                  .op = op};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        write->origin -= op->box.start[d] * op->dst_stride[d];
    }
    return RF_OK;
}

/* Rule 3: at one end of an op. */
static bool follows_tasks(struct rank_state *rank, const struct rf_op *op)
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

static enum rf_status check_op(struct proof *proof, size_t index)
{
    const struct rf_plan *plan = proof->plan;
    const struct rf_schedule *schedule = proof->schedule;
    const struct rf_op *op = &schedule->ops[index];
    enum rf_side from = op->src_mem == RF_MEM_TRAIN ? RF_TRAIN : RF_INFER;
    if (op->id != index || op->src >= plan->world->n_ranks ||
        op->dst >= plan->world->n_ranks ||
        op->family >= plan->model->n_families ||
        op->round >= schedule->n_rounds) {
        return fault(proof, op, "has a number out of range");
    }
    if (op->src_mem != RF_MEM_STAGE &&
        op->src_item != rf_plan_item_bytes(plan, from, op->family)) {
        return fault(proof, op, "reads elements of the wrong size");
    }
    if (op->dst_mem == RF_MEM_INFER &&
        op->dst_item != rf_plan_item_bytes(plan, RF_INFER, op->family)) {
        return fault(proof, op, "writes elements of the wrong size");
    }
    if (op->dep != RF_NO_OP &&
        (op->dep >= index || schedule->ops[op->dep].round >= op->round)) {
        return fault(proof, op, "is not after its dep");
    }
    enum rf_status status = check_read(proof, op);
    if (status == RF_OK) {
        status = check_write(proof, op);
    }
    if (status == RF_OK && plan->spec->serialize && op->src != op->dst &&
        (!follows_tasks(&proof->ranks[op->src], op) ||
         !follows_tasks(&proof->ranks[op->dst], op))) {
        status = fault(proof, op, "comes before the end of an earlier task");
    }
    return status;
}

/* Writes of every inference piece: disjoint, and together the piece. */
static enum rf_status check_pieces(struct proof *proof)
{
    const struct rf_schedule *schedule = proof->schedule;
    struct rf_box *boxes = rf_calloc(schedule->n_ops, sizeof(*boxes));
    size_t *first = rf_calloc(proof->n_pieces + 1, sizeof(*first));
    enum rf_status status = RF_OK;
    if (boxes == NULL || first == NULL) {
        status = rf_err_set(proof->err, RF_ERR_NOMEM, "no memory for a proof");
        goto free_boxes;
    }
    for (size_t i = 0; i < proof->n_pieces; i++) {
        first[i + 1] = first[i] + proof->writes_of[i];
    }
    for (size_t i = schedule->n_ops; i-- > 0;) {
        if (proof->piece_of[i] > 0) {
            size_t piece = proof->piece_of[i] - 1;
            boxes[first[piece] + --proof->writes_of[piece]] =
                schedule->ops[i].box;
        }
    }
    for (uint32_t r = 0; r < proof->plan->world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(proof->plan, RF_INFER, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            size_t at = proof->ranks[r].first_piece + p;
            uint64_t left = rf_box_elements(&layout->pieces[p].box);
            for (size_t i = first[at]; i < first[at + 1]; i++) {
                left -= rf_box_elements(&boxes[i]);
            }
            if (left != 0 || !rf_boxes_disjoint(boxes + first[at],
                                                first[at + 1] - first[at])) {
                status = rf_err_set(
                    proof->err, RF_ERR_INTERNAL,
                    "schedule: rank %u, %s: not every byte is written "
                    "exactly once",
                    r,
                    proof->plan->model->families[layout->pieces[p].family]
                        .name);
                goto free_boxes;
            }
        }
    }
free_boxes:
    free(boxes);
    free(first);
    return status;
}

/* By bucket, the order in which ops are made, and rank; then writes that follow
 * one address rule together. */
static int by_place(const void *a, const void *b)
{
    const struct stage_write *x = a, *y = b;
    if (x->bucket != y->bucket) {
        return x->bucket < y->bucket ? -1 : 1;
    }
    if (x->dst != y->dst) {
        return x->dst < y->dst ? -1 : 1;
    }
    if (x->family != y->family) {
        return x->family < y->family ? -1 : 1;
    }
    if (x->origin != y->origin) {
        return x->origin < y->origin ? -1 : 1;
    }
    return memcmp(x->op->dst_stride, y->op->dst_stride,
                  sizeof(x->op->dst_stride));
}

static int by_low(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static bool same_bucket(const struct stage_write *a,
                        const struct stage_write *b)
{
    return a->dst == b->dst && a->bucket == b->bucket;
}

static bool same_rule(const struct stage_write *a, const struct stage_write *b)
{
    return by_place(a, b) == 0;
}

/* Writes under one address rule: their boxes must be disjoint and the rule must
 * give every element of their hull an address of its own. */
static bool rule_holds(const struct stage_write *writes, size_t n,
                       struct rf_box *scratch, struct range *out)
{
    const struct rf_op *first = writes[0].op;
    struct rf_box hull = first->box;
    uint64_t span = first->dst_item;
    *out = (struct range){.low = first->dst_offset};
    for (size_t i = 0; i < n; i++) {
        const struct rf_op *op = writes[i].op;
        scratch[i] = op->box;
        out->low = RF_MIN(out->low, op->dst_offset);
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            uint64_t end = hull.start[d] + hull.extent[d];
            end = RF_MAX(end, op->box.start[d] + op->box.extent[d]);
            hull.start[d] = RF_MIN(hull.start[d], op->box.start[d]);
            hull.extent[d] = end - hull.start[d];
        }
    }
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        if (hull.extent[d] > 1) {
            if (first->dst_stride[d] < span) {
                return false;
            }
            span += (hull.extent[d] - 1) * first->dst_stride[d];
        }
    }
    out->high = out->low + span;
    return rf_boxes_disjoint(scratch, n);
}

/* All writes of one bucket at one rank. */
static bool bucket_holds(struct proof *proof, const struct stage_write *writes,
                         size_t n, struct rf_box *scratch, struct range *ranges)
{
    size_t n_ranges = 0;
    struct range *used = &proof->ranks[writes[0].op->dst]
                              .used[writes[0].op->bucket % RF_STAGE_SLOTS];
    for (size_t first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n && same_rule(&writes[first], &writes[end])) {
            end++;
        }
        if (!rule_holds(writes + first, end - first, scratch,
                        &ranges[n_ranges++])) {
            return false;
        }
    }
    qsort(ranges, n_ranges, sizeof(*ranges), by_low);
    for (size_t i = 0; i < n_ranges; i++) {
        if (i > 0 && ranges[i].low < ranges[i - 1].high) {
            return false;
        }
        used->low =
            used->high == 0 ? ranges[i].low : RF_MIN(used->low, ranges[i].low);
        used->high = RF_MAX(used->high, ranges[i].high);
    }
    return true;
}

/* Staging fits, and its slots are apart. */
static bool slots_hold(const struct proof *proof, uint32_t rank)
{
    const uint64_t *stage_bytes = proof->schedule->stage_bytes;
    const struct range *used = proof->ranks[rank].used;
    uint64_t bytes = stage_bytes == NULL ? 0 : stage_bytes[rank];
    for (uint32_t i = 0; i < RF_STAGE_SLOTS; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (used[i].low < used[k].high && used[k].low < used[i].high) {
                return false;
            }
        }
        if (used[i].high > bytes) {
            return false;
        }
    }
    return true;
}

static enum rf_status check_stage(struct proof *proof)
{
    size_t n = proof->n_stage;
    struct rf_box *scratch = rf_calloc(n, sizeof(*scratch));
    struct range *ranges = rf_calloc(n, sizeof(*ranges));
    enum rf_status status = RF_OK;
    if (scratch == NULL || ranges == NULL) {
        status = rf_err_set(proof->err, RF_ERR_NOMEM, "no memory for a proof");
        goto free_scratch;
    }
    qsort(proof->stage, n, sizeof(*proof->stage), by_place);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n &&
               same_bucket(&proof->stage[first], &proof->stage[end])) {
            end++;
        }
        if (!bucket_holds(proof, proof->stage + first, end - first, scratch,
                          ranges)) {
            status = fault(proof, proof->stage[first].op,
                           "writes of its bucket overlap");
            goto free_scratch;
        }
    }
    for (uint32_t r = 0; r < proof->plan->world->n_ranks; r++) {
        if (!slots_hold(proof, r)) {
            status = rf_err_set(proof->err, RF_ERR_INTERNAL,
                                "schedule: rank %u: staging memory too small "
                                "or slots overlap",
                                r);
            goto free_scratch;
        }
    }
free_scratch:
    free(scratch);
    free(ranges);
    return status;
}

enum rf_status rf_schedule_prove(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 struct rf_err *err)
{
    struct proof proof = {.plan = plan, .schedule = schedule, .err = err};
    enum rf_status status = RF_OK;
    if (schedule->n_ops != schedule->n_world_ops) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "schedule: only whole worlds can be proved");
    }
    proof.ranks = rf_xcalloc(plan->world->n_ranks, sizeof(*proof.ranks));
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        proof.ranks[r].first_piece = proof.n_pieces;
        proof.n_pieces += rf_plan_layout(plan, RF_INFER, r)->n_pieces;
        for (uint32_t i = 0; i < RF_STAGE_SLOTS; i++) {
            proof.ranks[r].slot[i].bucket = RF_NO_BUCKET;
        }
    }
    proof.writes_of = rf_calloc(proof.n_pieces, sizeof(*proof.writes_of));
    proof.piece_of = rf_calloc(schedule->n_ops, sizeof(*proof.piece_of));
    proof.stage = rf_calloc(schedule->n_ops, sizeof(*proof.stage));
    if (proof.writes_of == NULL || proof.piece_of == NULL ||
        proof.stage == NULL) {
        status = rf_err_set(err, RF_ERR_NOMEM, "no memory for a proof");
    }
    for (size_t i = 0; i < schedule->n_ops && status == RF_OK; i++) {
        status = check_op(&proof, i);
    }
    if (status == RF_OK) {
        status = check_pieces(&proof);
    }
    if (status == RF_OK) {
        status = check_stage(&proof);
    }
    free(proof.ranks);
    free(proof.writes_of);
    free(proof.piece_of);
    free(proof.stage);
    return status;
}
