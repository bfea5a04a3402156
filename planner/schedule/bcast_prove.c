/*
 * The proof of a schedule with ops that repeat over ranks (bcast.h), in time
 * proportional to the stored data. It proves the properties in schedule_prove.c
 * for every op, from four facts:
 *
 *  - the tree has every rank once, a parent before its children, and a hop
 *    writes the same place that it reads: so what holds for the box that an op
 *    put into the root's staging memory holds for the input of each hop;
 *  - the staging memory of every rank except the root sees the same writes, so
 *    one rank represents them all, from the first hop's round to the takes';
 *  - a rank takes part in a broadcast's hops for as many rounds after its first
 *    as the tree says, so a task's first and last broadcast bound it;
 *  - every receiver of a unit task takes all boxes of its broadcasts, so these
 *    must fill the unit task once, and the unit tasks must fill each piece.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/schedule/schedule_proof.h"

struct bcast_proof {
    struct rf_schedule_proof *of;
    const struct rf_bcast_template *tmpl;
    uint32_t root;
    uint64_t next_id;
    /* the task of the current broadcasts, and the rounds in which they begin */
    bool in_task;
    uint32_t task, first_round, last_round;
};

static enum rf_status fault(const struct bcast_proof *proof, const char *what)
{
    return rf_err_set(proof->of->err, RF_ERR_INTERNAL, "schedule: %s", what);
}

static enum rf_status check_tree(const struct bcast_proof *proof)
{
    const struct rf_bcast_template *tmpl = proof->tmpl;
    for (uint32_t i = 0; i < tmpl->n_hops; i++) {
        const struct rf_hop *hop = &tmpl->hops[i], *parent = &tmpl->hops[0];
        if (hop->rank >= tmpl->n_ranks || tmpl->place[hop->rank] != i ||
            hop->depth > tmpl->height || (i == 0 && hop->depth > 0)) {
            return fault(proof, "a rank is in the tree twice or too deep");
        }
        if (i > 0 && hop->parent < i) {
            parent = &tmpl->hops[hop->parent];
        }
        if (i > 0 && (hop->parent >= i || hop->depth != parent->depth + 1 ||
                      !parent->sends)) {
            return fault(proof, "a rank's parent in the tree is behind it");
        }
    }
    return tmpl->n_hops > 0 && tmpl->n_ranks == proof->of->plan->world->n_ranks
               ? RF_OK
               : fault(proof, "the tree has no root or other ranks");
}

/* Whether a receiver is in the tree and has a piece that contains the unit
 * task; notes the piece as written. */
static bool check_receiver(struct bcast_proof *proof,
                           const struct rf_unit_task *unit,
                           const struct rf_holder *to)
{
    return to->rank < proof->tmpl->n_ranks &&
           proof->tmpl->place[to->rank] < proof->tmpl->n_hops &&
           rf_schedule_proof_receives(proof->of, to, unit->family, &unit->box);
}

static enum rf_status check_unit_tasks(struct bcast_proof *proof)
{
    const struct rf_unit_tasks *units = &proof->tmpl->units;
    for (size_t u = 0; u < units->n; u++) {
        const struct rf_unit_task *unit = &units->of[u];
        if (unit->n_dst > units->n_holders - unit->first_dst) {
            return fault(proof,
                         "a unit task has more receivers than there are");
        }
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            if (!check_receiver(proof, unit,
                                &units->holders[unit->first_dst + i])) {
                return fault(proof,
                             "a receiver has no place for its unit task");
            }
        }
    }
    return RF_OK;
}

/* Ranks of a task's broadcasts are busy until the last one is over. */
static void end_task(struct bcast_proof *proof)
{
    for (uint32_t i = 0; proof->in_task && i < proof->tmpl->n_hops; i++) {
        struct rf_rank_state *rank =
            &proof->of->ranks[proof->tmpl->hops[i].rank];
        uint32_t first, end;
        rf_bcast_template_rounds(proof->tmpl, i, &first, &end);
        if (end > first) {
            rank->end_round = RF_MAX(rank->end_round, proof->last_round + end);
        }
    }
    proof->in_task = false;
}

/* Checks rule 3 at all ranks of the tree, for the first broadcast of a task. */
static bool begin_task(struct bcast_proof *proof, const struct rf_bcast *bcast)
{
    for (uint32_t i = 0; i < proof->tmpl->n_hops; i++) {
        struct rf_rank_state *rank =
            &proof->of->ranks[proof->tmpl->hops[i].rank];
        uint32_t first, end;
        rf_bcast_template_rounds(proof->tmpl, i, &first, &end);
        if (end == first) {
            continue;
        }
        if ((rank->busy && bcast->task <= rank->task) ||
            bcast->round + first < rank->end_round) {
            return false;
        }
        rank->busy = true;
        rank->task = bcast->task;
        rank->first_round = rank->end_round;
    }
    proof->in_task = true;
    proof->task = bcast->task;
    proof->first_round = proof->last_round = bcast->round;
    return true;
}

static bool follows_tasks(struct bcast_proof *proof,
                          const struct rf_bcast *bcast)
{
    if (!proof->of->plan->spec->serialize) {
        return true;
    }
    if (!proof->in_task || proof->task != bcast->task) {
        end_task(proof);
        return begin_task(proof, bcast);
    }
    proof->last_round = RF_MAX(proof->last_round, bcast->round);
    return bcast->round >= proof->first_round;
}

/* Checks the numbers of a broadcast. Its gathering op has passed check_op(). */
static bool is_sound(const struct bcast_proof *proof,
                     const struct rf_bcast *bcast, const struct rf_op *gathered)
{
    const struct rf_plan *plan = proof->of->plan;
    const struct rf_unit_task *unit = &proof->tmpl->units.of[bcast->unit];
    return bcast->take_round < proof->of->schedule->n_rounds &&
           bcast->take_round >= bcast->round &&
           bcast->take_round - bcast->round >= proof->tmpl->height &&
           gathered->family == unit->family &&
           rf_form_equal(bcast->take,
                         rf_plan_form(plan, RF_INFER, gathered->family)) &&
           rf_box_contains(&unit->box, &gathered->box);
}

static void note_read(struct rf_rank_state *rank, uint32_t bucket,
                      const struct rf_bcast *bcast)
{
    uint32_t *read = &rank->slot[bucket % RF_STAGE_SLOTS].read_round;
    *read = RF_MAX(*read, bcast->take_round + 1);
}

/* Checks a broadcast, of a box that one of the first `n_ops` stored ops
 * gathered. */
static enum rf_status check_bcast(struct bcast_proof *proof,
                                  const struct rf_bcast *bcast, size_t n_ops)
{
    struct rf_schedule_proof *of = proof->of;
    const struct rf_op *gathered;
    struct rf_op op;
    enum rf_status status;
    if (bcast->id != proof->next_id || bcast->gathered >= n_ops ||
        bcast->unit >= proof->tmpl->units.n) {
        return rf_err_set(
            of->err, RF_ERR_INTERNAL,
            "schedule: what op %u begins to broadcast has a number "
            "out of range",
            bcast->id);
    }
    gathered = rf_bcast_gathered(of->schedule->ops, bcast);
    op = rf_bcast_op(bcast, gathered);
    if (!is_sound(proof, bcast, gathered)) {
        return rf_schedule_proof_fault(of, &op, "has a number out of range");
    }
    if (gathered->round >= op.round) {
        return rf_schedule_proof_fault(of, &op, "is not after its dep");
    }
    status = rf_schedule_proof_reads(of, &op, gathered); /* still there */
    if (status != RF_OK) {
        return status;
    }
    note_read(&of->ranks[proof->root], op.bucket, bcast);
    if (proof->tmpl->n_hops > 1) {
        uint32_t other = proof->tmpl->hops[1].rank;
        status = rf_schedule_proof_stages(of, gathered, other, op.round);
        note_read(&of->ranks[other], op.bucket, bcast);
    }
    if (status == RF_OK && !follows_tasks(proof, bcast)) {
        status = rf_schedule_proof_fault(
            of, &op, "comes before the end of an earlier task");
    }
    proof->next_id += rf_bcast_template_ops(proof->tmpl, bcast);
    return status;
}

/* Stored ops may only fill the root's staging memory. */
static enum rf_status check_op(struct bcast_proof *proof,
                               const struct rf_op *op)
{
    if (op->dst != proof->root || op->src_mem != RF_MEM_TRAIN ||
        op->dst_mem != RF_MEM_STAGE || op->dep != RF_NO_OP) {
        return rf_schedule_proof_fault(proof->of, op,
                                       "does not gather at the root");
    }
    end_task(proof);
    return rf_schedule_proof_op(proof->of, op, proof->next_id++);
}

/* Checks that each unit task is broadcast once. */
static enum rf_status check_takes(const struct bcast_proof *proof)
{
    const struct rf_bcast_template *tmpl = proof->tmpl;
    struct rf_box_in *boxes = rf_xcalloc(tmpl->n_bcasts, sizeof(*boxes));
    uint64_t *elements = rf_xcalloc(tmpl->units.n, sizeof(*elements));
    size_t bad = 0;
    for (size_t i = 0; i < tmpl->n_bcasts; i++) {
        const struct rf_bcast *bcast = &tmpl->bcasts[i];
        boxes[i] = (struct rf_box_in){
            bcast->unit,
            &rf_bcast_gathered(proof->of->schedule->ops, bcast)->box};
    }
    for (size_t u = 0; u < tmpl->units.n; u++) {
        elements[u] = rf_box_elements(&tmpl->units.of[u].box);
    }
    const struct rf_boxes_in all = {boxes, tmpl->n_bcasts, elements,
                                    tmpl->units.n};
    const bool filled = rf_schedule_proof_fill(&all, &bad);
    free(boxes);
    free(elements);
    return filled ? RF_OK
                  : fault(proof, "a unit task is not broadcast exactly once");
}

enum rf_status rf_bcast_prove(struct rf_schedule_proof *of)
{
    const struct rf_schedule *schedule = of->schedule;
    const struct rf_bcast_template *tmpl = schedule->tmpl;
    struct bcast_proof proof = {.of = of, .tmpl = tmpl};
    size_t at = 0, bcast = 0;
    enum rf_status status = check_tree(&proof);
    if (status == RF_OK) {
        proof.root = tmpl->hops[0].rank;
        status = check_unit_tasks(&proof);
    }
    while (status == RF_OK &&
           (at < schedule->n_ops || bcast < tmpl->n_bcasts)) {
        bool is_op = at < schedule->n_ops &&
                     (bcast == tmpl->n_bcasts ||
                      schedule->ops[at].id < tmpl->bcasts[bcast].id);
        status = is_op ? check_op(&proof, &schedule->ops[at++])
                       : check_bcast(&proof, &tmpl->bcasts[bcast++], at);
    }
    if (status == RF_OK && proof.next_id != schedule->n_world_ops) {
        status = fault(&proof, "has lost or gained ops");
    }
    return status == RF_OK ? check_takes(&proof) : status;
}

void rf_bcast_prove_alike(struct rf_schedule_proof *of)
{
    const struct rf_bcast_template *tmpl = of->schedule->tmpl;
    for (uint32_t i = 2; i < tmpl->n_hops; i++) {
        memcpy(of->ranks[tmpl->hops[i].rank].used,
               of->ranks[tmpl->hops[1].rank].used, sizeof(of->ranks->used));
    }
}
