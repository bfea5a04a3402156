/*
 * What goes out of the root's staging memory (deliveries with takes,
 * planner/schedule/delivery.h): one flow per stop of the tree, and one per rank
 * that takes bytes out of its staging memory. All hops carry the same bytes in
 * the same order, so an op of one hop waits for the same op of the hop before.
 * With "serialize" the root gathers and broadcasts in turns, and each turn has
 * its own flows. See simulate.h.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/predict/simulation.h"

/* Walks the chunks of a batch. */
struct chunk_walk {
    const struct rf_deliveries *all;
    const struct rf_delivery *delivery; /* of the chunk */
    size_t next, end;
    uint64_t chunk, n_chunks; /* of the delivery */
    uint64_t bytes;           /* of the chunk on a hop */
};

static struct chunk_walk walk_chunks(const struct rf_simulation *b,
                                     const struct rf_batch *batch)
{
    return (struct chunk_walk){.all = b->env->schedule->deliveries,
                               .next = batch->first,
                               .end = batch->end};
}

static bool next_chunk(struct chunk_walk *walk)
{
    struct rf_box box;
    if (walk->delivery != NULL && walk->chunk + 1 < walk->n_chunks) {
        walk->chunk++;
    } else {
        while (walk->next < walk->end &&
               walk->all->of[walk->next].takes == RF_NONE) {
            walk->next++;
        }
        if (walk->next == walk->end) {
            return false;
        }
        walk->delivery = &walk->all->of[walk->next++];
        walk->chunk = 0;
        walk->n_chunks = rf_delivery_chunks(walk->delivery);
    }
    box = rf_delivery_box(walk->delivery, 0, walk->chunk);
    walk->bytes = rf_form_bytes(walk->delivery->op.to, &box);
    return true;
}

/* The next delivery with takes after `at`; all->n: none. */
static size_t next_spread(const struct rf_deliveries *all, size_t at)
{
    for (at++; at < all->n && all->of[at].takes == RF_NONE;) {
        at++;
    }
    return at;
}

/* Cuts the broadcasts at ends of turns into batches of equally many turns, of
 * more than one if there would otherwise be too many flows. */
static void find_batches(struct rf_simulation *b, size_t begin)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    const struct rf_delivery *of = all->of;
    const struct rf_delivery_route *tree = rf_route_of(all, &of[begin]);
    struct rf_batch batch = {.first = begin};
    size_t turns = 1, of_batch = 0, most, capacity = 0, next;
    for (size_t i = begin; b->tasks_a_turn > 0 && i < all->n; i = next) {
        next = next_spread(all, i);
        turns += next < all->n && of[i].op.task != of[next].op.task;
    }
    most = rf_div_up(turns * RF_MAX(tree->n + 1, b->world->n_ranks),
                     RF_SIMULATION_FLOWS);
    for (size_t i = begin; i < all->n; i = next) {
        bool last;
        next = next_spread(all, i);
        last = next == all->n;
        batch.bytes += rf_form_bytes(of[i].op.to, &of[i].op.box);
        batch.n_ops += rf_delivery_chunks(&of[i]);
        of_batch += last || of[i].op.task != of[next].op.task;
        if (last || (b->tasks_a_turn > 0 && of_batch == most)) {
            batch.end = i + 1;
            RF_PUSH(b->batches, b->n_batches, capacity, batch);
            batch = (struct rf_batch){.first = next};
            of_batch = 0;
        }
    }
}

/* The tree that all broadcasts take. */
static const struct rf_delivery_route *tree_of(const struct rf_simulation *b)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    return rf_route_of(all, &all->of[b->batches[0].first]);
}

/* Adds flows with the bytes and ops that each rank takes out. */
static void add_takes(struct rf_simulation *b, const struct rf_batch *batch)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    const uint32_t n_ranks = b->world->n_ranks;
    struct rf_simulated_flow *takes = rf_xcalloc(n_ranks, sizeof(*takes));
    uint64_t *bytes = rf_xcalloc(all->n_routes, sizeof(*bytes));
    uint64_t *ops = rf_xcalloc(all->n_routes, sizeof(*ops));
    for (size_t i = batch->first; i < batch->end; i++) {
        const struct rf_delivery *delivery = &all->of[i];
        if (delivery->takes != RF_NONE) {
            bytes[delivery->takes] +=
                rf_form_bytes(delivery->take, &delivery->op.box);
            ops[delivery->takes] += rf_delivery_chunks(delivery);
        }
    }
    for (size_t i = 0; i < all->n_routes; i++) {
        const struct rf_delivery_route *route = &all->routes[i];
        for (uint32_t k = 0; ops[i] > 0 && k < route->n; k++) {
            uint32_t rank = rf_route_stops(all, route)[k].at.rank;
            takes[rank].bytes += bytes[i];
            takes[rank].n_ops += ops[i];
        }
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        takes[r].src = takes[r].dst = r;
        rf_simulation_add_flow(b, &takes[r]);
    }
    free(takes);
    free(bytes);
    free(ops);
}

static void add_hops(struct rf_simulation *b, const struct rf_batch *batch)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    const struct rf_delivery_route *tree = tree_of(b);
    const struct rf_stop *stops = rf_route_stops(all, tree);
    struct rf_simulated_flow flow = {.bytes = batch->bytes,
                                     .n_ops = batch->n_ops};
    flow.turn = rf_simulation_turn(b, all->of[batch->end - 1].op.task);
    for (uint32_t i = 0; i < tree->n; i++) {
        flow.src = stops[i].parent == RF_NONE ? tree->from
                                              : stops[stops[i].parent].at.rank;
        flow.dst = stops[i].at.rank;
        flow.forwarded = stops[i].sends;
        rf_simulation_add_flow(b, &flow);
    }
}

void rf_simulation_find_bcasts(struct rf_simulation *b)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    size_t begin = 0;
    while (all != NULL && begin < all->n && all->of[begin].takes == RF_NONE) {
        begin++;
    }
    if (all == NULL || begin == all->n) {
        return;
    }
    find_batches(b, begin);
    for (size_t i = 0; i < b->n_batches; i++) {
        struct rf_batch *batch = &b->batches[i];
        batch->first_hop = b->n_flows;
        add_hops(b, batch);
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
    const double all = (double)batch->bytes;
    struct chunk_walk walk = walk_chunks(b, batch);
    struct rf_simulated_span share = {0, 0};
    const struct rf_delivery *gathered = NULL, *of = NULL;
    while (flow->bytes > 0 && next_chunk(&walk)) {
        if (walk.delivery != of) {
            of = walk.delivery;
            gathered = rf_delivery_find(walk.all, of->op.dep);
        }
        share.end = share.start + (double)walk.bytes / all;
        if (gathered != NULL) {
            const size_t at =
                b->first_listed[gathered - walk.all->of] + walk.chunk;
            const struct rf_simulated_span span = span_in(&share, flow);
            rf_simulation_forward(b, flow, &span, &b->flows[b->flow_of[at]],
                                  &b->span_of[at]);
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
    const double all = (double)batch->bytes;
    struct rf_simulated_span *spans =
        rf_xcalloc(2 * (size_t)n_jobs + 1, sizeof(*spans));
    struct chunk_walk walk = walk_chunks(b, batch);
    uint32_t before = UINT32_MAX; /* the previous op's part */
    uint64_t at = 0;
    *n = 0;
    while (next_chunk(&walk)) {
        struct rf_simulated_span span = {.start = (double)at / all};
        const uint32_t part = (uint32_t)(span.start * n_jobs);
        at += walk.bytes;
        span.end = (double)at / all; /* where the next op begins */
        if (part != before || at == batch->bytes ||
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

static void place_batch(struct rf_simulation *b, const struct rf_batch *batch)
{
    const struct rf_deliveries *all = b->env->schedule->deliveries;
    const struct rf_delivery_route *tree = tree_of(b);
    const struct rf_stop *stops = rf_route_stops(all, tree);
    const struct rf_simulated_flow *hops = &b->flows[batch->first_hop];
    const struct rf_simulated_flow *takes = &b->flows[batch->first_take];
    size_t n;
    struct rf_simulated_span *spans =
        list_spans(b, batch, tree->n > 0 ? hops->n_jobs : 1, &n);
    for (uint32_t i = 0; i < tree->n; i++) {
        if (stops[i].parent == RF_NONE) {
            forward_gathered(b, batch, &hops[i]);
        } else {
            forward_spans(b, &hops[i], &hops[stops[i].parent], spans, n);
        }
    }
    forward_gathered(b, batch, &takes[tree->from]);
    for (uint32_t i = 0; i < tree->n; i++) {
        forward_spans(b, &takes[stops[i].at.rank], &hops[i], spans, n);
    }
    free(spans);
}

void rf_simulation_place_bcasts(struct rf_simulation *b)
{
    for (size_t i = 0; i < b->n_batches; i++) {
        place_batch(b, &b->batches[i]);
    }
}
