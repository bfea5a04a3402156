/*
 * The proof of a schedule, in time proportional to its size (times a
 * logarithm):
 *
 *  - ops can run in ascending id: an op reads a piece of the training side, or
 *    the result of its dep, which precedes it in id and in round; elements have
 *    the type of their memory, and casts only convert between these types;
 *  - inference memory: every write lies in a piece, at the piece's address; per
 *    piece the writes are disjoint and add up to the piece, so each byte is
 *    written exactly once;
 *  - groups follow one another in id, and in rounds those that rule 2 keeps
 *    apart; their writes to staging memory have disjoint addresses inside the
 *    group's slot;
 *  - with `serialize`: at each rank tasks follow one another, also in rounds.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"
#include "planner/schedule/schedule_proof.h"

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

/* Checks that the writes of every inference piece are disjoint and fill it. */
static enum rf_status check_pieces(struct rf_schedule_proof *proof)
{
    uint64_t *elements = rf_xcalloc(proof->n_pieces, sizeof(*elements));
    const struct rf_boxes_in all = {proof->writes, proof->n_writes, elements,
                                    proof->n_pieces};
    size_t bad = 0;
    for (uint32_t r = 0; r < proof->plan->world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(proof->plan, RF_INFER, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            elements[proof->ranks[r].first_piece + p] =
                rf_box_elements(&layout->pieces[p].box);
        }
    }
    const bool filled = rf_schedule_proof_fill(&all, &bad);
    free(elements);
    return filled ? RF_OK : fail_piece(proof, bad);
}

/* Allocates room for the writes to pieces, by ops and by routes; check_pieces()
 * needs an index for each as well. */
static enum rf_status allocate(struct rf_schedule_proof *proof)
{
    const struct rf_plan *plan = proof->plan;
    const struct rf_deliveries *all = proof->schedule->deliveries;
    size_t writes = proof->schedule->n_ops;
    for (size_t i = 0; all != NULL && i < all->n_routes; i++) {
        writes += RF_MIN(all->routes[i].n, all->n_stops);
    }
    RF_TRY(rf_memory_admit(writes * (sizeof(*proof->writes) + sizeof(size_t)),
                           "the proof of the schedule", proof->err));
    proof->ranks = rf_xcalloc(plan->world->n_ranks, sizeof(*proof->ranks));
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        proof->ranks[r].first_piece = proof->n_pieces;
        proof->n_pieces += rf_plan_layout(plan, RF_INFER, r)->n_pieces;
    }
    proof->writes = rf_xcalloc(writes, sizeof(*proof->writes));
    return RF_OK;
}

static enum rf_status check_ops(struct rf_schedule_proof *proof)
{
    const struct rf_schedule *schedule = proof->schedule;
    if (schedule->deliveries != NULL) {
        return rf_deliveries_prove(proof);
    }
    if (schedule->n_ops != schedule->n_world_ops) {
        return rf_err_set(proof->err, RF_ERR_INTERNAL,
                          "schedule: only whole worlds can be proved");
    }
    for (size_t i = 0; i < schedule->n_ops; i++) {
        RF_TRY(rf_schedule_proof_op(proof, &schedule->ops[i], i));
    }
    return RF_OK;
}

/* Checks the last group, then the addresses used by all of them. */
static enum rf_status check_staging(struct rf_schedule_proof *proof)
{
    RF_TRY(proof->n_stage > 0 ? rf_schedule_proof_group(proof) : RF_OK);
    if (proof->schedule->deliveries != NULL) {
        rf_deliveries_prove_alike(proof);
    }
    return rf_schedule_proof_slots(proof);
}

enum rf_status rf_schedule_prove(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 struct rf_err *err)
{
    struct rf_schedule_proof proof = {
        .plan = plan, .schedule = schedule, .group = RF_NO_GROUP, .err = err};
    const struct rf_group_spec *group = &plan->spec->group;
    const uint32_t in_flight =
        group->by != RF_GROUP_NOTHING ? group->in_flight : RF_IN_FLIGHT;
    if (schedule->in_flight != in_flight) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "schedule: %u groups in flight instead of %u",
                          schedule->in_flight, in_flight);
    }
    enum rf_status status = allocate(&proof);
    RF_THEN(status, check_ops(&proof));
    RF_THEN(status, check_pieces(&proof));
    RF_THEN(status, check_staging(&proof));
    free(proof.ranks);
    free(proof.writes);
    free(proof.stage);
    return status;
}
