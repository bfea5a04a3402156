/* The proof of one stored op. See schedule_prove.c. */
#include "planner/schedule/schedule_proof.h"

#include "common/mem.h"

static enum rf_status check_read(const struct rf_schedule_proof *proof,
                                 const struct rf_op *op)
{
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
    return rf_schedule_proof_reads(proof, op, &proof->schedule->ops[op->dep]);
}

static enum rf_status check_write(struct rf_schedule_proof *proof,
                                  const struct rf_op *op)
{
    const struct rf_rank_layout *layout;
    if (op->dst_mem != RF_MEM_INFER) {
        return rf_schedule_proof_stages(proof, op, op->dst);
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

/* The form of a family's elements in a memory. */
static struct rf_form form_in(const struct rf_plan *plan, uint8_t mem,
                              uint32_t family)
{
    return mem == RF_MEM_STAGE
               ? rf_plan_wire(plan, family)
               : rf_plan_form(plan, mem == RF_MEM_INFER ? RF_INFER : RF_TRAIN,
                              family);
}

bool rf_schedule_proof_forms(const struct rf_plan *plan, const struct rf_op *op)
{
    const struct rf_form from = form_in(plan, op->src_mem, op->family);
    const struct rf_form to = form_in(plan, op->dst_mem, op->family);
    return rf_form_equal(op->from, from) && rf_form_equal(op->to, to) &&
           rf_form_equal(op->wire, plan->spec->cast_at_source ? to : from);
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
    if (!rf_schedule_proof_forms(plan, op)) {
        return rf_schedule_proof_fault(
            proof, op, "has elements of the wrong size or another cast");
    }
    if (op->dep != RF_NO_OP &&
        (op->dep >= id || schedule->ops[op->dep].round >= op->round)) {
        return rf_schedule_proof_fault(proof, op, "is not after its dep");
    }
    enum rf_status status =
        rf_schedule_proof_enter(proof, op, (uint64_t)op->round + 1);
    RF_THEN(status, check_read(proof, op));
    RF_THEN(status, check_write(proof, op));
    if (status == RF_OK && plan->spec->serialize && op->src != op->dst &&
        (!follows_tasks(&proof->ranks[op->src], op) ||
         !follows_tasks(&proof->ranks[op->dst], op))) {
        status = rf_schedule_proof_fault(
            proof, op, "comes before the end of an earlier task");
    }
    return status;
}
