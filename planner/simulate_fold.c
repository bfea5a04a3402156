/*
 * Ops that repeat over ranks (planner/fold.h): a flow for each hop of the tree
 * and for what each rank takes out of its staging memory. All hops carry the
 * same bytes in the same order, so job j of a hop waits for job j of the hop
 * before it. See simulate.h.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/fold.h"
#include "planner/simulate_internal.h"

/* Bytes and ops that each rank takes out. */
static void add_takes(struct rf_simulation *b, const struct rf_fold *fold)
{
    const struct rf_parcels *parcels = &fold->parcels;
    struct rf_flow *takes = rf_xcalloc(fold->n_ranks, sizeof(*takes));
    uint64_t *bytes = rf_xcalloc(parcels->n + 1, sizeof(*bytes));
    uint64_t *ops = rf_xcalloc(parcels->n + 1, sizeof(*ops));
    for (size_t i = 0; i < fold->n_spreads; i++) {
        const struct rf_spread *spread = &fold->spreads[i];
        bytes[spread->parcel] +=
            rf_box_elements(&spread->op.box) * spread->take_item;
        ops[spread->parcel]++;
    }
    for (size_t u = 0; u < parcels->n; u++) {
        const struct rf_parcel *parcel = &parcels->of[u];
        for (uint32_t i = 0; i < parcel->n_dst; i++) {
            uint32_t rank = parcels->holders[parcel->first_dst + i].rank;
            takes[rank].bytes += bytes[u];
            takes[rank].n_ops += ops[u];
        }
    }
    for (uint32_t r = 0; r < fold->n_ranks; r++) {
        takes[r].src = takes[r].dst = r;
        rf_simulation_add_flow(b, &takes[r]);
    }
    free(takes);
    free(bytes);
    free(ops);
}

void rf_simulation_find_folded(struct rf_simulation *b)
{
    const struct rf_fold *fold = b->env->schedule->fold;
    struct rf_flow flow = {.n_ops = 0};
    if (fold == NULL) {
        return;
    }
    for (size_t i = 0; i < fold->n_spreads; i++) {
        flow.bytes += rf_op_bytes(&fold->spreads[i].op);
    }
    flow.n_ops = fold->n_spreads;
    b->first_hop = b->n_flows;
    for (uint32_t h = 1; h < fold->n_hops; h++) {
        flow.src = fold->hops[fold->hops[h].parent].rank;
        flow.dst = fold->hops[h].rank;
        rf_simulation_add_flow(b, &flow);
    }
    b->first_take = b->n_flows;
    add_takes(b, fold);
}

/* The job that ends with the op that brings a spread's box to the root;
 * NO_FLOW: none has to. */
static uint32_t job_before(const struct rf_simulation *b,
                           const struct rf_spread *spread)
{
    const struct rf_schedule *schedule = b->env->schedule;
    const size_t at = rf_schedule_index(schedule, spread->op.dep);
    return at < schedule->n_ops && b->flow_of[at] != NO_FLOW
               ? b->last_job_of[at]
               : NO_FLOW;
}

/* What leaves the root, or is taken out there, waits for what has arrived. */
static void wait_for_gathering(struct rf_simulation *b,
                               const struct rf_flow *flow)
{
    const struct rf_fold *fold = b->env->schedule->fold;
    uint32_t last_job = NO_FLOW, last_wait = NO_FLOW;
    uint64_t at = 0, all = 0;
    for (size_t i = 0; i < fold->n_spreads; i++) {
        all += rf_op_bytes(&fold->spreads[i].op);
    }
    for (size_t i = 0; i < fold->n_spreads && flow->bytes > 0; i++) {
        const struct rf_spread *spread = &fold->spreads[i];
        const double share = (double)at / (double)all;
        uint32_t job =
            rf_simulation_job_at(flow, (uint64_t)(share * (double)flow->bytes));
        uint32_t earlier = job_before(b, spread);
        at += rf_op_bytes(&spread->op);
        if (earlier != NO_FLOW && (job != last_job || earlier != last_wait)) {
            rf_simulation_wait(b, job, earlier, 0);
            last_job = job;
            last_wait = earlier;
        }
    }
}

/* Each job for that which is as far along in the flow before. */
static void wait_in_step(struct rf_simulation *b, const struct rf_flow *flow,
                         const struct rf_flow *before)
{
    for (uint32_t j = 0; flow->bytes > 0 && j < flow->n_jobs; j++) {
        const uint64_t of = ((uint64_t)j + 1) * before->n_jobs / flow->n_jobs;
        rf_simulation_wait(b, (uint32_t)flow->first_job + j,
                           (uint32_t)(before->first_job + RF_MAX(of, 1) - 1),
                           before->latency_ms);
    }
}

void rf_simulation_place_folded(struct rf_simulation *b)
{
    const struct rf_fold *fold = b->env->schedule->fold;
    const struct rf_flow *hops, *takes;
    if (fold == NULL) {
        return;
    }
    hops = &b->flows[b->first_hop];
    takes = &b->flows[b->first_take];
    for (uint32_t h = 1; h < fold->n_hops; h++) {
        const uint32_t parent = fold->hops[h].parent;
        if (parent == 0) {
            wait_for_gathering(b, &hops[h - 1]);
        } else {
            wait_in_step(b, &hops[h - 1], &hops[parent - 1]);
        }
    }
    for (uint32_t r = 0; r < fold->n_ranks; r++) {
        const uint32_t place = fold->place[r];
        if (place == 0) {
            wait_for_gathering(b, &takes[r]);
        } else if (place != RF_NONE) {
            wait_in_step(b, &takes[r], &hops[place - 1]);
        }
    }
}
