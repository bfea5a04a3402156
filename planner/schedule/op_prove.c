/* The proof of one stored op. See schedule_prove.c. */
#include "planner/schedule/schedule_proof.h"

#include "common/mem.h"

static enum rf_status check_read(struct rf_schedule_proof *proof,
                                 const struct rf_op *op)
{
    enum rf_status status;
    if (op->src_mem == RF_MEM_TRAIN) {
        return rf_schedule_proof_held(
                   rf_plan_layout(proof->plan, RF_TRAIN, op->src), op)
                   ? RF_OK
                   : rf_schedule_proof_fault(
                         proof, op, "reads what its rank does not hold");
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

static enum rf_status check_write(struct rf_schedule_proof *proof,
                                  const struct rf_op *op)
{
    const struct rf_rank_layout *layout;
    if (op->dst_mem != RF_MEM_INFER) {
        return rf_schedule_proof_stages(proof, op, op->dst, op->round);
    }
    layout = rf_plan_layout(proof->plan, RF_INFER, op->dst);
    if (op->dst_piece >= layout->n_pieces ||
        !rf_schedule_proof_lies_in(&layout->pieces[op->dst_piece], op,
                                   op->dst_offset, op->dst_stride)) {
        return rf_schedule_proof_fault(proof, op,
                                       "writes outside of the layout");
    }
    proof->writes[proof->n_writes++] = (struct rf_box_in){
        proof->ranks[op->dst].first_piece + op->dst_piece, &op->box};
    return RF_OK;
}

/* Checks rule 3 at one end of an op. */
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

/* The side whose element types a memory uses. */
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
    RF_THEN(status, check_write(proof, op));
    if (status == RF_OK && plan->spec->serialize && op->src != op->dst &&
        (!follows_tasks(&proof->ranks[op->src], op) ||
         !follows_tasks(&proof->ranks[op->dst], op))) {
        status = rf_schedule_proof_fault(
            proof, op, "comes before the end of an earlier task");
    }
    return status;
}
