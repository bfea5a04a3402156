/*
 * Choice of sources and order. Works are split into those that cross nodes,
 * those inside a node and those inside a rank, and emitted in that order, since
 * node links are the bottleneck. Within each group the balance decides.
 *
 * The model behind `order` is that of Zhuang et al., "On Optimizing the
 * Communication of Model Parallelism" (MLSys 2023): a work keeps the sender's
 * link and all receivers' links busy for its bytes, and works that share one do
 * not overlap. Here links are full duplex, a forwarding node's outgoing link is
 * counted, and ranks are resources too when they do one thing at a time.
 */
#include "planner/strategy/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/strategy/order_field.h"

/* The distance of a work; the farthest are emitted first. */
enum reach { FAR, NEAR, LOCAL, REACHES };

static uint32_t node_of(const struct rf_world *world,
                        const struct rf_works *works, size_t at)
{
    return world->ranks[works->pool[at].rank].node;
}

/* All of a work's sources have the same reach: callers do not mix sources on a
 * receiver's node with others. */
static enum reach reach_of(const struct rf_world *world,
                           const struct rf_works *works,
                           const struct rf_work *work)
{
    uint32_t node = node_of(world, works, work->sources);
    const struct rf_holder *to = works->pool + work->receivers;
    for (uint32_t i = 0; i < work->n_receivers; i++) {
        if (world->ranks[to[i].rank].node != node) {
            return FAR;
        }
    }
    if (work->n_receivers == 1 && to->rank == works->pool[work->sources].rank) {
        return LOCAL;
    }
    return NEAR;
}

/* Loads so far, for balance size or time. */
struct loads {
    const struct rf_world *world;
    const struct rf_link_weights *weights; /* of links, used by FAR works */
    uint64_t *node, *rank;
};

/* Whether rank `a`'s node link would be less loaded than `b`'s with `bytes`
 * more; 1: yes, -1: no, 0: equal. */
static int compare_links(const struct loads *loads, uint32_t a, uint32_t b,
                         uint64_t bytes)
{
    uint32_t x = loads->world->ranks[a].node, y = loads->world->ranks[b].node;
    uint64_t at_x = loads->node[x] + bytes, at_y = loads->node[y] + bytes;
    const uint32_t *weight = loads->weights->node;
    return rf_link_weights_less(weight, x, at_x, y, at_y) -
           rf_link_weights_less(weight, y, at_y, x, at_x);
}

static bool less_loaded(const struct loads *loads, enum reach reach, uint32_t a,
                        uint32_t b, uint64_t bytes)
{
    return rf_link_weights_less(reach == FAR ? loads->weights->rank : NULL, a,
                                loads->rank[a] + bytes, b,
                                loads->rank[b] + bytes);
}

static void choose_by_load(const struct rf_works *works, struct rf_work *work,
                           enum reach reach, bool serialize,
                           struct loads *loads)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < work->n_sources; i++) {
        uint32_t rank = works->pool[work->sources + i].rank;
        uint32_t known = works->pool[work->sources + best].rank;
        int link =
            reach == FAR ? compare_links(loads, rank, known, work->bytes) : 0;
        if (link != 0) {
            best = link > 0 ? i : best;
        } else if (less_loaded(loads, reach, rank, known, work->bytes) &&
                   !(reach == FAR && serialize && work->whole)) {
            best = i;
        }
    }
    work->source = best;
    uint32_t rank = works->pool[work->sources + best].rank;
    if (reach == FAR) {
        loads->node[loads->world->ranks[rank].node] += work->bytes;
    }
    loads->rank[rank] += work->bytes;
}

/* Scratch of add_candidates(): bytes that each rank would send if works were
 * divided evenly among their candidates, and each node's candidate in the
 * current job, if any. */
struct tally {
    uint64_t *load;
    uint32_t *job, *at; /* by node: last job + 1 with a candidate; its place */
};

/* The candidates of a job: on each node with a source, the one with the least
 * load if works were divided evenly. */
static void add_candidates(struct rf_order_field *field, uint32_t index,
                           struct tally *tally)
{
    struct rf_order_job *job = &field->jobs[index];
    const struct rf_work *work = &field->works->works[job->work];
    const struct rf_holder *from = field->works->pool + work->sources;
    job->candidates = field->n_candidates;
    for (uint32_t i = 0; i < work->n_sources; i++) {
        uint32_t node = field->world->ranks[from[i].rank].node;
        if (tally->job[node] != index + 1) {
            tally->job[node] = index + 1;
            tally->at[node] = job->n_candidates++;
            RF_PUSH(field->candidates, field->n_candidates,
                    field->candidates_capacity, i);
            continue;
        }
        uint32_t *known = &field->candidates[job->candidates + tally->at[node]];
        if (tally->load[from[i].rank] < tally->load[from[*known].rank]) {
            *known = i;
        }
    }
    assert(field->candidates != NULL); /* every work has a source */
    for (uint32_t k = 0; k < job->n_candidates; k++) {
        uint32_t source = field->candidates[job->candidates + k];
        tally->load[from[source].rank] += work->bytes / job->n_candidates;
    }
}

static void add_nodes(struct rf_order_field *field, struct rf_order_job *job)
{
    const struct rf_work *work = &field->works->works[job->work];
    job->nodes = field->n_nodes;
    for (uint32_t i = 0; i < work->n_receivers; i++) {
        uint32_t node =
            node_of(field->world, field->works, work->receivers + i);
        uint32_t at = job->n_nodes;
        while (at > 0 && field->nodes[job->nodes + at - 1] > node) {
            at--;
        }
        if (at > 0 && field->nodes[job->nodes + at - 1] == node) {
            continue;
        }
        RF_PUSH(field->nodes, field->n_nodes, field->nodes_capacity, 0);
        uint32_t *slot = field->nodes + job->nodes + at;
        memmove(slot + 1, slot, (job->n_nodes - at) * sizeof(*slot));
        *slot = node;
        job->n_nodes++;
    }
}

static void field_init(struct rf_order_field *field,
                       const struct rf_world *world,
                       const struct rf_works *works, bool serialize,
                       const uint32_t *chosen, uint32_t n)
{
    struct tally tally = {.load = rf_xcalloc(world->n_ranks, sizeof(uint64_t)),
                          .job = rf_xcalloc(world->n_nodes, sizeof(uint32_t)),
                          .at = rf_xcalloc(world->n_nodes, sizeof(uint32_t))};
    *field = (struct rf_order_field){
        .world = world, .works = works, .serialize = serialize, .n_jobs = n};
    field->jobs = rf_xcalloc(RF_MAX(n, 1), sizeof(*field->jobs));
    field->n_free = 2 * (size_t)world->n_nodes + world->n_ranks;
    field->free_at = rf_xcalloc(field->n_free, sizeof(double));
    size_t uses = 0; /* the most of any job */
    for (uint32_t i = 0; i < n; i++) {
        struct rf_order_job *job = &field->jobs[i];
        const struct rf_work *work = &works->works[chosen[i]];
        *job = (struct rf_order_job){.work = chosen[i],
                                     .duration = (double)work->bytes};
        if (reach_of(world, works, work) != FAR) {
            job->duration /= RF_ORDER_NEAR_SPEED;
        }
        add_candidates(field, i, &tally);
        add_nodes(field, job);
        uses = RF_MAX(uses, 3 * (size_t)job->n_nodes + 1 + work->n_receivers);
    }
    field->uses = rf_xcalloc(uses, sizeof(*field->uses));
    free(tally.load);
    free(tally.job);
    free(tally.at);
}

static void field_free(struct rf_order_field *field)
{
    free(field->jobs);
    free(field->candidates);
    free(field->nodes);
    free(field->free_at);
    free(field->uses);
}

/* Plays the jobs in the given order, each from the candidate that can start
 * first; records the choices in `candidate`. */
static double play_as_given(struct rf_order_field *field, uint32_t *candidate)
{
    double makespan = 0;
    memset(field->free_at, 0, field->n_free * sizeof(double));
    for (uint32_t i = 0; i < field->n_jobs; i++) {
        double start = rf_order_start(field, i, 0);
        candidate[i] = 0;
        for (uint32_t k = 1; k < field->jobs[i].n_candidates; k++) {
            double other = rf_order_start(field, i, k);
            if (other < start) {
                start = other;
                candidate[i] = k;
            }
        }
        double finish = start + field->jobs[i].duration;
        rf_order_occupy(field, i, candidate[i], finish);
        makespan = RF_MAX(makespan, finish);
    }
    return makespan;
}

/* Takes the given order if it is better than `answer`. */
static void compare_with_given(struct rf_order_field *field,
                               struct rf_order_answer *answer)
{
    uint32_t *candidate = rf_xcalloc(field->n_jobs, sizeof(*candidate));
    double makespan = play_as_given(field, candidate);
    if (makespan < answer->makespan) {
        answer->makespan = makespan;
        for (uint32_t i = 0; i < field->n_jobs; i++) {
            answer->sequence[i] = i;
            answer->candidate[i] = candidate[i];
        }
    }
    free(candidate);
}

/* Orders the works `chosen` (n of them) in place and sets their sources. */
static void order_works(const struct rf_world *world, struct rf_works *works,
                        bool serialize, uint32_t *chosen, uint32_t n)
{
    struct rf_order_field field;
    struct rf_order_answer answer = {
        .sequence = rf_xcalloc(n, sizeof(uint32_t)),
        .candidate = rf_xcalloc(n, sizeof(uint32_t))};
    field_init(&field, world, works, serialize, chosen, n);
    rf_order_list(&field, &answer);
    compare_with_given(&field, &answer);
    if (n <= RF_ORDER_SEARCH_MAX) {
        rf_order_search(&field, &answer);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct rf_order_job *job = &field.jobs[answer.sequence[i]];
        chosen[i] = job->work;
        works->works[job->work].source =
            field.candidates[job->candidates + answer.candidate[i]];
    }
    free(answer.sequence);
    free(answer.candidate);
    field_free(&field);
}

uint64_t *rf_order_loads(const struct rf_world *world)
{
    return rf_xcalloc((size_t)world->n_nodes + world->n_ranks,
                      sizeof(uint64_t));
}

void rf_order_choose(const struct rf_world *world, enum rf_balance balance,
                     const struct rf_link_weights *weights, bool serialize,
                     struct rf_works *works, uint64_t *of,
                     uint32_t *permutation)
{
    uint32_t placed = 0;
    struct loads loads = {.world = world,
                          .weights = weights,
                          .node = of,
                          .rank = of + world->n_nodes};
    for (unsigned reach = FAR; reach < REACHES; reach++) {
        uint32_t first = placed;
        for (uint32_t i = 0; i < works->n; i++) {
            struct rf_work *work = &works->works[i];
            if (reach_of(world, works, work) != reach) {
                continue;
            }
            permutation[placed++] = i;
            work->source = 0;
            if (balance != RF_BALANCE_NONE) {
                choose_by_load(works, work, reach, serialize, &loads);
            }
        }
        if (balance == RF_BALANCE_ORDER && reach != LOCAL && placed > first) {
            order_works(world, works, serialize, permutation + first,
                        placed - first);
        }
    }
}

struct shifted {
    uint64_t key;
    uint32_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct shifted *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->key, y->key),
                      RF_COMPARE(x->index, y->index));
}

void rf_order_shift(const struct rf_world *world, const uint32_t *src,
                    const uint32_t *dst, size_t n, uint32_t *permutation)
{
    struct shifted *all = rf_xcalloc(n, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        uint32_t distance = (dst[i] + world->n_ranks - src[i]) % world->n_ranks;
        /* Copies inside a rank come last. */
        all[i].key = distance == 0 ? world->n_ranks : distance;
        all[i].index = (uint32_t)i;
    }
    qsort(all, n, sizeof(*all), by_key);
    for (size_t i = 0; i < n; i++) {
        permutation[i] = all[i].index;
    }
    free(all);
}
