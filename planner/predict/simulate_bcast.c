/*
 * Ops that repeat over ranks (planner/schedule/bcast.h): one flow per hop of
 * the tree, and one per rank that takes bytes out of its staging memory. All
 * hops carry the same bytes in the same order, so an op of one hop waits for
 * the same op of the hop before. With "serialize" the root gathers and
 * broadcasts in turns, and each turn has its own flows. See simulate.h.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/predict/simulation.h"
#include "planner/schedule/bcast.h"

/* Cuts the broadcasts at ends of turns into batches of equally many turns, of
 * more than one if there would otherwise be too many flows. */
static void find_batches(struct rf_simulation *b)
{
    const struct rf_schedule *schedule = b->env->schedule;
    const struct rf_bcast_template *tmpl = schedule->tmpl;
    const struct rf_bcast *bcasts = tmpl->bcasts;
    struct rf_batch batch = {.bytes = 0};
    size_t turns = 1, of_batch = 0, most, capacity = 0;
    for (size_t i = 1; b->tasks_a_turn > 0 && i < tmpl->n_bcasts; i++) {
        turns += bcasts[i].task != bcasts[i - 1].task;
    }
    most = rf_div_up(turns * RF_MAX(tmpl->n_hops, tmpl->n_ranks),
                     RF_SIMULATION_FLOWS);
    for (size_t i = 0; i < tmpl->n_bcasts; i++) {
        const bool last = i + 1 == tmpl->n_bcasts;
        batch.bytes += rf_bcast_bytes(schedule->ops, &bcasts[i]);
        of_batch += last || bcasts[i].task != bcasts[i + 1].task;
        if (last || (b->tasks_a_turn > 0 && of_batch == most)) {
            batch.end = i + 1;
            RF_PUSH(b->batches, b->n_batches, capacity, batch);
            batch = (struct rf_batch){.first = i + 1};
            of_batch = 0;
        }
    }
}

/* Adds flows with the bytes and ops that each rank takes out. */
static void add_takes(struct rf_simulation *b, const struct rf_batch *batch)
{
    const struct rf_schedule *schedule = b->env->schedule;
    const struct rf_bcast_template *tmpl = schedule->tmpl;
    const struct rf_unit_tasks *units = &tmpl->units;
    struct rf_simulated_flow *takes = rf_xcalloc(tmpl->n_ranks, sizeof(*takes));
    uint64_t *bytes = rf_xcalloc(units->n + 1, sizeof(*bytes));
    uint64_t *ops = rf_xcalloc(units->n + 1, sizeof(*ops));
    for (size_t i = batch->first; i < batch->end; i++) {
        const struct rf_bcast *bcast = &tmpl->bcasts[i];
        bytes[bcast->unit] += rf_form_bytes(
            bcast->take, &rf_bcast_gathered(schedule->ops, bcast)->box);
        ops[bcast->unit]++;
    }
    for (size_t u = 0; u < units->n; u++) {
        const struct rf_unit_task *unit = &units->of[u];
        for (uint32_t i = 0; ops[u] > 0 && i < unit->n_dst; i++) {
            uint32_t rank = units->holders[unit->first_dst + i].rank;
            takes[rank].bytes += bytes[u];
            takes[rank].n_ops += ops[u];
        }
    }
    for (uint32_t r = 0; r < tmpl->n_ranks; r++) {
        takes[r].src = takes[r].dst = r;
        rf_simulation_add_flow(b, &takes[r]);
    }
    free(takes);
    free(bytes);
    free(ops);
}

static void add_hops(struct rf_simulation *b,
                     const struct rf_bcast_template *tmpl,
                     const struct rf_batch *batch)
{
    struct rf_simulated_flow flow = {.bytes = batch->bytes,
                                     .n_ops = batch->end - batch->first};
    flow.turn = rf_simulation_turn(b, tmpl->bcasts[batch->end - 1].task);
    for (uint32_t h = 1; h < tmpl->n_hops; h++) {
        flow.src = tmpl->hops[tmpl->hops[h].parent].rank;
        flow.dst = tmpl->hops[h].rank;
        flow.forwarded = tmpl->hops[h].sends;
        rf_simulation_add_flow(b, &flow);
    }
}

void rf_simulation_find_bcasts(struct rf_simulation *b)
{
    const struct rf_bcast_template *tmpl = b->env->schedule->tmpl;
    if (tmpl == NULL) {
        return;
    }
    find_batches(b);
    for (size_t i = 0; i < b->n_batches; i++) {
        struct rf_batch *batch = &b->batches[i];
        batch->first_hop = b->n_flows;
        add_hops(b, tmpl, batch);
        batch->first_take = b->n_flows;
        add_takes(b, batch);
    }
}

/* `op` as shares of all bytes of its batch. */
static struct rf_simulated_span span_in(const struct rf_simulated_span *op,
                                        const struct rf_simulated_flow *flow)
{
    const double bytes = (double)flow->bytes;
    return (struct rf_simulated_span){op->start * bytes, op->end * bytes};
}

/* What leaves the root or is taken out there forwards the gathered bytes. */
static void forward_gathered(struct rf_simulation *b,
                             const struct rf_batch *batch,
                             const struct rf_simulated_flow *flow)
{
    const struct rf_schedule *schedule = b->env->schedule;
    const double all = (double)batch->bytes;
    struct rf_simulated_span share = {0, 0};
    for (size_t i = batch->first; i < batch->end && flow->bytes > 0; i++) {
        const struct rf_bcast *bcast = &schedule->tmpl->bcasts[i];
        const uint32_t by = b->flow_of[bcast->gathered];
        share.end =
            share.start + (double)rf_bcast_bytes(schedule->ops, bcast) / all;
        if (by != NO_FLOW) {
            const struct rf_simulated_span span = span_in(&share, flow);
            const struct rf_simulated_span from =
                rf_simulation_span(b, bcast->gathered);
            rf_simulation_forward(b, flow, &span, &b->flows[by], &from);
        }
        share.start = share.end;
    }
}

/* Lists the first and the last op that begin in each of `n_jobs` equal parts,
 * as shares and in order; `n` of them, freed by the caller. */
static struct rf_simulated_span *list_spans(const struct rf_simulation *b,
                                            const struct rf_batch *batch,
                                            uint32_t n_jobs, size_t *n)
{
    const struct rf_schedule *schedule = b->env->schedule;
    const double all = (double)batch->bytes;
    struct rf_simulated_span *spans =
        rf_xcalloc(2 * (size_t)n_jobs + 1, sizeof(*spans));
    uint32_t before = UINT32_MAX; /* the previous op's part */
    uint64_t at = 0;
    *n = 0;
    for (size_t i = batch->first; i < batch->end; i++) {
        struct rf_simulated_span span = {.start = (double)at / all};
        const uint32_t part = (uint32_t)(span.start * n_jobs);
        at += rf_bcast_bytes(schedule->ops, &schedule->tmpl->bcasts[i]);
        span.end = (double)at / all; /* where the next op begins */
        if (part != before || i + 1 == batch->end ||
            part != (uint32_t)(span.end * n_jobs)) {
            spans[(*n)++] = span;
        }
        before = part;
    }
    return spans;
}

static void forward_spans(struct rf_simulation *b,
                          const struct rf_simulated_flow *flow,
                          const struct rf_simulated_flow *before,
                          const struct rf_simulated_span *spans, size_t n)
{
    for (size_t i = 0; flow->bytes > 0 && i < n; i++) {
        const struct rf_simulated_span span = span_in(&spans[i], flow);
        const struct rf_simulated_span from = span_in(&spans[i], before);
        rf_simulation_forward(b, flow, &span, before, &from);
    }
}

static void place_batch(struct rf_simulation *b,
                        const struct rf_bcast_template *tmpl,
                        const struct rf_batch *batch)
{
    const struct rf_simulated_flow *hops = &b->flows[batch->first_hop];
    const struct rf_simulated_flow *takes = &b->flows[batch->first_take];
    size_t n;
    struct rf_simulated_span *spans =
        list_spans(b, batch, tmpl->n_hops > 1 ? hops->n_jobs : 1, &n);
    for (uint32_t h = 1; h < tmpl->n_hops; h++) {
        const uint32_t parent = tmpl->hops[h].parent;
        if (parent == 0) {
            forward_gathered(b, batch, &hops[h - 1]);
        } else {
            forward_spans(b, &hops[h - 1], &hops[parent - 1], spans, n);
        }
    }
    for (uint32_t r = 0; r < tmpl->n_ranks; r++) {
        const uint32_t place = tmpl->place[r];
        if (place == 0) {
            forward_gathered(b, batch, &takes[r]);
        } else if (place != RF_NONE) {
            forward_spans(b, &takes[r], &hops[place - 1], spans, n);
        }
    }
    free(spans);
}

void rf_simulation_place_bcasts(struct rf_simulation *b)
{
    for (size_t i = 0; i < b->n_batches; i++) {
        place_batch(b, b->env->schedule->tmpl, &b->batches[i]);
    }
}
