/*
 * The proof of a schedule's staging memory, from its writes, one group at a
 * time: writes of a group have disjoint addresses inside the group's slot,
 * slots do not overlap, and all fit.
 */
#include "planner/schedule/schedule_proof.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"

/* By rank, keeping writes of one address rule together. */
static int by_place(const void *a, const void *b)
{
    const struct rf_stage_write *x = a, *y = b;
    int order = RF_COMPARE(x->dst, y->dst);
    order = RF_THEN_BY(order, RF_COMPARE(x->family, y->family));
    order = RF_THEN_BY(order, RF_COMPARE(x->origin, y->origin));
    return RF_THEN_BY(order, memcmp(x->op->dst_stride, y->op->dst_stride,
                                    sizeof(x->op->dst_stride)));
}

static int by_low(const void *a, const void *b)
{
    const struct rf_range *x = a, *y = b;
    return RF_COMPARE(x->low, y->low);
}

static bool same_rule(const struct rf_stage_write *a,
                      const struct rf_stage_write *b)
{
    return by_place(a, b) == 0;
}

/* Checks writes under one address rule: their boxes must be disjoint, and the
 * rule must give every element of their hull a distinct address. */
static bool rule_holds(const struct rf_stage_write *writes, size_t n,
                       struct rf_box *scratch, struct rf_range *out)
{
    const struct rf_op *first = writes[0].op;
    struct rf_box hull = first->box;
    uint64_t span = rf_form_item(first->to);
    *out = (struct rf_range){.low = first->dst_offset};
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

/* Checks all writes of the group at one rank. */
static bool rank_holds(struct rf_schedule_proof *proof,
                       const struct rf_stage_write *writes, size_t n,
                       struct rf_box *scratch, struct rf_range *ranges)
{
    size_t n_ranges = 0;
    struct rf_range *used =
        &proof->ranks[writes[0].dst]
             .used[proof->group % proof->schedule->in_flight];
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

/* Checks that staging fits and that its slots do not overlap. */
static bool slots_hold(const struct rf_schedule_proof *proof, uint32_t rank)
{
    const struct rf_range *used = proof->ranks[rank].used;
    const uint64_t bytes = rf_schedule_arena_bytes(proof->plan, proof->schedule,
                                                   rank, RF_MEM_STAGE);
    for (uint32_t i = 0; i < proof->schedule->in_flight; i++) {
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

enum rf_status rf_schedule_proof_group(struct rf_schedule_proof *proof)
{
    const size_t n = proof->n_stage;
    struct rf_box *scratch = rf_xcalloc(n, sizeof(*scratch));
    struct rf_range *ranges = rf_xcalloc(n, sizeof(*ranges));
    enum rf_status status = RF_OK;
    qsort(proof->stage, n, sizeof(*proof->stage), by_place);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n && proof->stage[first].dst == proof->stage[end].dst) {
            end++;
        }
        if (!rank_holds(proof, proof->stage + first, end - first, scratch,
                        ranges)) {
            status = rf_schedule_proof_fault(proof, proof->stage[first].op,
                                             "writes of its group overlap");
            break;
        }
    }
    proof->n_stage = 0;
    free(scratch);
    free(ranges);
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

enum rf_status rf_schedule_proof_enter(struct rf_schedule_proof *proof,
                                       const struct rf_op *op, uint64_t end)
{
    uint32_t *slot_end;
    if (op->group == RF_NO_GROUP) {
        return proof->plan->spec->group.by == RF_GROUP_NOTHING
                   ? RF_OK
                   : rf_schedule_proof_fault(proof, op, "has no group");
    }
    slot_end = &proof->ends[op->group % proof->schedule->in_flight];
    if (op->group != proof->group) {
        if (proof->group != RF_NO_GROUP && op->group < proof->group) {
            return rf_schedule_proof_fault(proof, op, "follows a later group");
        }
        RF_TRY(proof->n_stage > 0 ? rf_schedule_proof_group(proof) : RF_OK);
        proof->floor = *slot_end;
        proof->group = op->group;
    }
    *slot_end = (uint32_t)RF_MAX(*slot_end, end);
    return op->round >= proof->floor
               ? RF_OK
               : rf_schedule_proof_fault(
                     proof, op,
                     "does not wait for the group before in its slot");
}

enum rf_status rf_schedule_proof_stages(struct rf_schedule_proof *proof,
                                        const struct rf_op *op, uint32_t dst)
{
    if (op->dst_mem != RF_MEM_STAGE || op->group == RF_NO_GROUP ||
        op->dst_piece != RF_NONE) {
        return rf_schedule_proof_fault(proof, op,
                                       "writes where nothing may be written");
    }
    struct rf_stage_write write = {
        .dst = dst, .family = op->family, .origin = op->dst_offset, .op = op};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        write.origin -= op->box.start[d] * op->dst_stride[d];
    }
    return note_write(proof, &write);
}

enum rf_status rf_schedule_proof_slots(const struct rf_schedule_proof *proof)
{
    for (uint32_t r = 0; r < proof->plan->world->n_ranks; r++) {
        if (!slots_hold(proof, r)) {
            return rf_err_set(proof->err, RF_ERR_INTERNAL,
                              "schedule: rank %u: staging memory too small or "
                              "slots overlap",
                              r);
        }
    }
    return RF_OK;
}
