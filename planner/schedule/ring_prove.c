/*
 * The proof of a schedule with rings (ring.h), in time proportional to their
 * receivers and boxes. It proves the properties in schedule_prove.c for every
 * op, from these facts about each ring:
 *
 *  - the source has the whole box where the first hops read it, and every
 *    receiver has a piece that contains the whole box, so what holds for the
 *    box holds for everything cut from it;
 *  - a hop reads at a receiver what the previous hop wrote there: rf_ring_op()
 *    makes both ends from the same piece, an earlier id and an earlier round;
 *  - the boxes of all parts and chunks, as the ops have them, make up the whole
 *    box once; every receiver gets each of them once, which counts as one write
 *    of the whole box there;
 *  - a rank takes part in a ring from its first round at the earliest until
 *    rf_ring_busy() at the latest, with one task.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"
#include "planner/schedule/schedule_proof.h"

static enum rf_status fault(const struct rf_schedule_proof *proof,
                            const struct rf_ring *ring, const char *what)
{
    return rf_schedule_proof_fault(proof, &ring->op, what);
}

/* Checks the assumptions of rf_ring_*(), and bounds of ids and rounds. */
static bool is_sound(const struct rf_schedule_proof *proof,
                     const struct rf_ring *ring, uint64_t id)
{
    const struct rf_schedule *schedule = proof->schedule;
    const struct rf_op *op = &ring->op;
    if (op->id != id || id > schedule->n_world_ops ||
        op->src >= proof->plan->world->n_ranks ||
        op->family >= proof->plan->model->n_families || ring->n == 0 ||
        ring->turn >= ring->n || ring->first > schedule->rings->n_holders ||
        ring->n > schedule->rings->n_holders - ring->first ||
        ring->split.dim >= RF_BOX_DIMS || ring->split.parts == 0 ||
        ring->split.parts > op->box.extent[ring->split.dim] ||
        ring->larger != op->box.extent[ring->split.dim] % ring->split.parts) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (ring->chunking[i].dim >= RF_BOX_DIMS ||
            ring->chunking[i].step == 0 || ring->chunking[i].count == 0) {
            return false;
        }
    }
    return rf_ring_ops(ring) <= schedule->n_world_ops - id &&
           op->round < schedule->n_rounds &&
           rf_ring_chunks(ring) + ring->n - 1 <= schedule->n_rounds - op->round;
}

/* Checks the source, memories and element sizes of the first hops. */
static bool check_source(const struct rf_schedule_proof *proof,
                         const struct rf_ring *ring)
{
    const struct rf_op *op = &ring->op;
    const struct rf_rank_layout *layout =
        rf_plan_layout(proof->plan, RF_TRAIN, op->src);
    return op->src_mem == RF_MEM_TRAIN && op->dst_mem == RF_MEM_INFER &&
           op->dep == RF_NO_OP && rf_schedule_proof_forms(proof->plan, op) &&
           rf_schedule_proof_held(layout, op);
}

/* Checks that the boxes on the ring make up the whole box, exactly once. */
static enum rf_status check_boxes(const struct rf_schedule_proof *proof,
                                  const struct rf_ring *ring)
{
    const size_t most = (size_t)rf_ring_boxes(ring);
    uint64_t bytes = UINT64_MAX;
    (void)rf_mul_u64(most, sizeof(struct rf_box), &bytes);
    RF_TRY(rf_memory_admit(bytes, "the proof of a ring", proof->err));
    struct rf_box *boxes = rf_xcalloc(most, sizeof(*boxes));
    uint64_t left = rf_box_elements(&ring->op.box);
    bool holds = true;
    size_t n = 0;
    for (uint32_t p = 0; p < ring->split.parts; p++) {
        const uint64_t chunks = rf_ring_part_chunks(ring, p);
        for (uint64_t k = 0; k < chunks; k++) {
            boxes[n] = rf_ring_box(ring, p, k);
            holds &= rf_box_contains(&ring->op.box, &boxes[n]);
            left -= rf_box_elements(&boxes[n++]);
        }
    }
    holds = holds && left == 0 && rf_boxes_disjoint(boxes, n);
    free(boxes);
    return holds ? RF_OK
                 : fault(proof, ring, "its ring loses or repeats elements");
}

/* Checks rule 3 at one rank that a ring keeps busy for some rounds. */
static bool follows_tasks(struct rf_rank_state *rank, const struct rf_op *op,
                          uint64_t rounds)
{
    if ((rank->busy && op->task <= rank->task) || op->round < rank->end_round) {
        return false;
    }
    rank->busy = true;
    rank->task = op->task;
    rank->first_round = rank->end_round;
    rank->end_round = op->round + (uint32_t)rounds;
    return true;
}

static bool check_tasks(struct rf_schedule_proof *proof,
                        const struct rf_ring *ring, const struct rf_holder *to)
{
    bool holds = follows_tasks(&proof->ranks[ring->op.src], &ring->op,
                               rf_ring_chunks(ring));
    for (uint32_t i = 0; holds && i < ring->n; i++) {
        holds = follows_tasks(&proof->ranks[to[i].rank], &ring->op,
                              rf_ring_busy(ring, i));
    }
    return holds;
}

static enum rf_status check_ring(struct rf_schedule_proof *proof,
                                 const struct rf_ring *ring, uint64_t id)
{
    const struct rf_holder *to;
    enum rf_status status;
    if (!is_sound(proof, ring, id)) {
        return fault(proof, ring, "has a number out of range");
    }
    if (!check_source(proof, ring)) {
        return fault(proof, ring, "reads what its rank does not hold");
    }
    to = proof->schedule->rings->holders + ring->first;
    for (uint32_t i = 0; i < ring->n; i++) {
        if (!rf_schedule_proof_receives(proof, &to[i], ring->op.family,
                                        &ring->op.box)) {
            return fault(proof, ring, "a receiver has no place for its box");
        }
    }
    status = check_boxes(proof, ring);
    if (status == RF_OK && proof->plan->spec->serialize &&
        !check_tasks(proof, ring, to)) {
        status = fault(proof, ring, "comes before the end of an earlier task");
    }
    return status;
}

/* Checks a stored op, which brings a box inside a node: from one side to the
 * other, without a dependency. */
static enum rf_status check_op(struct rf_schedule_proof *proof,
                               const struct rf_op *op, uint64_t id)
{
    if (op->src_mem != RF_MEM_TRAIN || op->dst_mem != RF_MEM_INFER ||
        op->dep != RF_NO_OP) {
        return rf_schedule_proof_fault(proof, op,
                                       "is not from one side to the other");
    }
    return rf_schedule_proof_op(proof, op, id);
}

enum rf_status rf_rings_prove(struct rf_schedule_proof *proof)
{
    const struct rf_schedule *schedule = proof->schedule;
    const struct rf_rings *rings = schedule->rings;
    enum rf_status status = RF_OK;
    uint64_t id = 0;
    size_t at = 0, ring = 0;
    while (status == RF_OK && (at < schedule->n_ops || ring < rings->n)) {
        if (at < schedule->n_ops &&
            (ring == rings->n ||
             schedule->ops[at].id < rings->of[ring].op.id)) {
            status = check_op(proof, &schedule->ops[at++], id++);
        } else {
            status = check_ring(proof, &rings->of[ring], id);
            id += status == RF_OK ? rf_ring_ops(&rings->of[ring]) : 0;
            ring++;
        }
    }
    if (status == RF_OK && id != schedule->n_world_ops) {
        status = rf_err_set(proof->err, RF_ERR_INTERNAL,
                            "schedule: has lost or gained ops");
    }
    return status;
}
