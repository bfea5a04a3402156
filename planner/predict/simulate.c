/*
 * From flows to jobs. Ops from one rank to another that forward the same flow
 * form a flow, which moves one op after the other. It is cut into jobs of equal
 * size, one after the other, so that a chain forwards one part while it
 * receives the next, and flows take turns on a link. See simulate.h; flows are
 * made by simulate_tree.c and simulate_ring.c.
 */
#include "planner/predict/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/plan/tensor_groups.h"
#include "planner/predict/conversion.h"
#include "planner/predict/queueing.h"
#include "planner/predict/simulation.h"

/* Enough to show how a pipeline fills; fewer in worlds so large that memory and
 * time would suffer. */
#define JOBS_A_FLOW 256
#define MAX_JOBS (UINT64_C(1) << 18)
#define BYTES_A_MS 1e6 /* of 1 GB/s */
#define LEAST_JOB_BYTES (64 << 10)
/* More jobs for forwarded flows: they decide how long a chain takes to fill. */
#define FORWARDED_SHARE 8
/* The unit that links and memories pass on, like a packet or two. */
#define GRAIN_BYTES 4096
/* The most jobs of a flow under way at once: one for each server on its way, so
 * that none of them idles. */
#define WINDOW 6
#define MAX_TURNS (UINT32_C(1) << 16)
#define LEAST_TURNS 64

/* --- Servers ------------------------------------------------------------- */

/* A world has one of each kind per node, pair of nodes, NIC or rank, one kind
 * after the other. */
enum resource_kind {
    MEMORY, /* of a node, all its ranks at once */
    PAIR,   /* from one node to another */
    NIC_OUT,
    NIC_IN,
    ENGINE, /* a rank's own copying */
    PORT_OUT,
    PORT_IN, /* between the GPUs of a node */
    CPU,
    KINDS
};

/* NIC slots per node: as many as the node with the most NICs has. */
static uint32_t most_nics(const struct rf_capacities *links)
{
    uint32_t most = 1;
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        most = RF_MAX(most, links->nics[n]);
    }
    return most;
}

static uint32_t count_of(const struct rf_simulate_env *env,
                         enum resource_kind kind)
{
    const struct rf_world *world = env->plan->world;
    switch (kind) {
    case MEMORY:
        return world->n_nodes;
    case PAIR:
        return world->n_nodes * world->n_nodes;
    case NIC_OUT:
    case NIC_IN:
        return world->n_nodes * most_nics(env->links);
    default:
        return world->n_ranks;
    }
}

static uint32_t first_of(const struct rf_simulate_env *env, unsigned kind)
{
    uint32_t first = 0;
    for (unsigned k = 0; k < kind; k++) {
        first += count_of(env, (enum resource_kind)k);
    }
    return first;
}

static enum resource_kind kind_of(const struct rf_simulate_env *env,
                                  uint32_t server)
{
    unsigned kind = KINDS - 1;
    while (server < first_of(env, kind)) {
        kind--;
    }
    return (enum resource_kind)kind;
}

/* ENGINE has its own path: a probe measures the copying of one rank alone, and
 * an error in the memory's figure says nothing about that one. If both ends
 * work on a copy, the rates are the method's. */
static enum rf_path path_of(const struct rf_simulate_env *env,
                            enum resource_kind kind)
{
    switch (kind) {
    case ENGINE:
        return env->inside.copier == RF_COPIER_BOTH ? RF_PATH_INSIDE
                                                    : RF_PATH_RANK;
    case PAIR:
    case NIC_OUT:
    case NIC_IN:
        return RF_PATH_BETWEEN;
    case CPU:
        return RF_PATH_CPU;
    default:
        return RF_PATH_INSIDE;
    }
}

static void name_server(const struct rf_simulate_env *env, uint32_t server,
                        char *out, size_t size)
{
    static const char *const of_rank[KINDS][2] = {
        [ENGINE] = {"copying by", ""},
        [PORT_OUT] = {"port of", " out"},
        [PORT_IN] = {"port of", " in"},
        [CPU] = {"operations of", ""},
    };
    const char *const *names = env->node_names;
    const uint32_t n_nodes = env->plan->world->n_nodes;
    const uint32_t n_nics = most_nics(env->links);
    const enum resource_kind kind = kind_of(env, server);
    server -= first_of(env, kind);
    if (kind == MEMORY) {
        snprintf(out, size, "%smemory of %s", env->links->devices ? "GPU " : "",
                 names[server]);
    } else if (kind == PAIR) {
        snprintf(out, size, "link from %s to %s", names[server / n_nodes],
                 names[server % n_nodes]);
    } else if (kind == NIC_OUT || kind == NIC_IN) {
        snprintf(out, size, "link %s %s", names[server / n_nics],
                 kind == NIC_OUT ? "out" : "in");
    } else {
        snprintf(out, size, "%s rank %u%s", of_rank[kind][0], server,
                 of_rank[kind][1]);
    }
}

/* --- What a flow needs --------------------------------------------------- */

/* Adds the need of one byte; none without a figure. */
static void need(const struct rf_simulation *b, struct rf_job *job,
                 enum resource_kind kind, uint32_t index, double gbytes_per_s,
                 double share)
{
    if (gbytes_per_s > 0) {
        job->needs[job->n_needs++] =
            (struct rf_need){.server = first_of(b->env, kind) + index,
                             .ms = share / gbytes_per_s / BYTES_A_MS};
    }
}

static uint32_t nic_of(const struct rf_simulation *b, uint32_t rank)
{
    const struct rf_capacities *links = b->env->links;
    const struct rf_rank *at = &b->world->ranks[rank];
    return at->node * most_nics(links) +
           at->slot % rf_capacities_nics(links, at->node);
}

static void need_link(const struct rf_simulation *b,
                      const struct rf_simulated_flow *flow, struct rf_job *job)
{
    const struct rf_capacities *links = b->env->links;
    const uint32_t from = b->world->ranks[flow->src].node;
    const uint32_t to = b->world->ranks[flow->dst].node;
    const uint32_t pair = from * links->n_nodes + to;
    const double out = rf_capacities_nic_capacity(links, from, true);
    const double in = rf_capacities_nic_capacity(links, to, false);
    if (links->pair_gbytes_per_s[pair] < RF_MIN(out, in)) {
        need(b, job, PAIR, pair, links->pair_gbytes_per_s[pair], 1);
    }
    need(b, job, NIC_OUT, nic_of(b, flow->src), out, 1);
    need(b, job, NIC_IN, nic_of(b, flow->dst), in, 1);
}

/* Adds the needs of a copy. Memory limits all ranks of a node together, their
 * own rates a few of them. If a single rank of a node copies, only its own rate
 * limits it: where processors share a core, it may get more than a probe found
 * for all. What passes sockets takes memory, too, so copies of ranks to
 * themselves share it at their own rate. */
static void need_copiers(const struct rf_simulation *b,
                         const struct rf_simulated_flow *flow,
                         struct rf_job *job)
{
    const uint32_t node = b->world->ranks[flow->src].node;
    const double alone = b->env->links->copy1_gbytes_per_s[node];
    const double together = b->env->links->copy_gbytes_per_s[node];
    const enum rf_copier copier = b->env->inside.copier;
    const bool own = flow->src == flow->dst;
    double memory = together;
    if (own && b->env->links->own_gbytes_per_s[node] > 0) {
        need(b, job, MEMORY, node, b->env->links->own_gbytes_per_s[node], 1);
        return;
    }
    if (copier == RF_COPIER_ANY && alone > 0) {
        memory = RF_MIN(together, alone * b->n_ranks[node]);
    }
    if (b->n_copiers[node] != 1 || alone <= 0) {
        need(b, job, MEMORY, node, memory, 1);
    }
    if (copier == RF_COPIER_SRC || copier == RF_COPIER_BOTH) {
        need(b, job, ENGINE, flow->src, alone, 1);
    }
    if (copier == RF_COPIER_DST || (copier == RF_COPIER_BOTH && !own)) {
        need(b, job, ENGINE, flow->dst, alone, 1);
    }
}

static void need_memory(const struct rf_simulation *b,
                        const struct rf_simulated_flow *flow,
                        struct rf_job *job)
{
    const struct rf_capacities *links = b->env->links;
    if (links->devices && flow->src != flow->dst &&
        links->port_gbytes_per_s > 0) {
        need(b, job, PORT_OUT, flow->src, links->port_gbytes_per_s, 1);
        need(b, job, PORT_IN, flow->dst, links->port_gbytes_per_s, 1);
        return;
    }
    need_copiers(b, flow, job);
}

/* One of a flow's jobs, all alike except for the processors' needs. */
static struct rf_job job_of_flow(const struct rf_simulation *b,
                                 const struct rf_simulated_flow *flow)
{
    const double bytes = (double)flow->bytes / flow->n_jobs;
    struct rf_job job = {.grains = bytes / GRAIN_BYTES};
    if (b->world->ranks[flow->src].node == b->world->ranks[flow->dst].node) {
        need_memory(b, flow, &job);
    } else {
        need_link(b, flow, &job);
    }
    for (uint32_t i = 0; i < job.n_needs; i++) {
        job.needs[i].ms *= bytes;
    }
    return job;
}

static double latency_of(const struct rf_simulation *b,
                         const struct rf_simulated_flow *flow)
{
    const struct rf_capacities *links = b->env->links;
    const uint32_t from = b->world->ranks[flow->src].node;
    const uint32_t to = b->world->ranks[flow->dst].node;
    return links->pair_latency_us[(size_t)from * links->n_nodes + to] / 1e3;
}

/* --- Flows --------------------------------------------------------------- */

/* Chooses as many turns as there is room for. */
static void choose_turns(struct rf_simulation *b)
{
    const struct rf_spec *spec = b->env->plan->spec;
    uint32_t most = 0, turns = MAX_TURNS;
    b->by_group = !spec->serialize && spec->group.by != RF_GROUP_NOTHING;
    b->turn_slots = spec->serialize ? 1
                    : b->by_group   ? spec->group.in_flight
                                    : 0;
    for (size_t i = 0; i < b->n_items && b->turn_slots > 0; i++) {
        const struct rf_op *op = rf_simulation_op(b, i);
        most = RF_MAX(most, b->by_group ? op->group : op->task);
    }
    if (b->by_group) { /* a flow is of one turn */
        turns = RF_MAX(RF_SIMULATION_FLOWS / RF_MAX(b->world->n_ranks, 1),
                       LEAST_TURNS);
    }
    b->a_turn = most / turns + 1;
}

static void count_ranks(struct rf_simulation *b)
{
    b->n_ranks = rf_xcalloc(b->world->n_nodes, sizeof(*b->n_ranks));
    for (uint32_t r = 0; r < b->world->n_ranks; r++) {
        b->n_ranks[b->world->ranks[r].node]++;
    }
}

/* Counts the copying ranks of each node, if the receiver copies. */
static void count_copiers(struct rf_simulation *b)
{
    bool *copies = rf_xcalloc(b->world->n_ranks, sizeof(*copies));
    b->n_copiers = rf_xcalloc(b->world->n_nodes, sizeof(*b->n_copiers));
    for (size_t f = 0; b->env->inside.copier == RF_COPIER_DST && f < b->n_flows;
         f++) {
        const struct rf_simulated_flow *flow = &b->flows[f];
        const uint32_t node = b->world->ranks[flow->dst].node;
        if (b->world->ranks[flow->src].node == node && flow->bytes > 0 &&
            !copies[flow->dst]) {
            copies[flow->dst] = true;
            b->n_copiers[node]++;
        }
    }
    free(copies);
}

/* --- Jobs ---------------------------------------------------------------- */

static uint64_t share_of(const struct rf_simulated_flow *flow)
{
    return flow->forwarded ? FORWARDED_SHARE : 1;
}

/* The jobs of one of its turns. Jobs end where ops end, as far as ops are alike:
 * a forwarded op is available at its own end and must not wait for another job.
 */
static uint32_t jobs_of(const struct rf_simulated_flow *flow, uint64_t most)
{
    const uint64_t bytes = flow->bytes / flow->turns;
    const uint64_t n_ops = flow->n_ops / flow->turns;
    most = RF_MIN(RF_MIN(most, JOBS_A_FLOW), bytes / LEAST_JOB_BYTES + 1);
    if (n_ops == 0 || n_ops >= most) {
        return (uint32_t)most;
    }
    return (uint32_t)(flow->forwarded ? n_ops : most / n_ops * n_ops);
}

/* Gives each flow as many jobs as there is room for, none too small to pay. */
static void divide_flows(struct rf_simulation *b)
{
    uint64_t shares = 1;
    for (size_t f = 0; f < b->n_flows; f++) {
        shares += share_of(&b->flows[f]) * b->flows[f].turns;
    }
    for (size_t f = 0; f < b->n_flows; f++) {
        struct rf_simulated_flow *flow = &b->flows[f];
        const uint64_t most = RF_MAX(MAX_JOBS * share_of(flow) / shares, 1);
        flow->first_job = b->n_jobs;
        flow->latency_ms = latency_of(b, flow);
        flow->n_jobs = flow->turns * jobs_of(flow, most);
        b->n_jobs += flow->n_jobs;
    }
    b->jobs = rf_xcalloc(b->n_jobs, sizeof(*b->jobs));
    b->last_edge = rf_xcalloc(b->n_jobs, sizeof(*b->last_edge));
    memset(b->last_edge, 0xff, b->n_jobs * sizeof(*b->last_edge));
}

/* `job` starts after `earlier` ends. */
static void add_wait(struct rf_simulation *b, uint32_t job, uint32_t earlier)
{
    rf_simulation_add_edge(b, (struct rf_job_edge){.from = earlier, .to = job});
}

static void fill_flow(struct rf_simulation *b,
                      const struct rf_simulated_flow *flow)
{
    const struct rf_job job = job_of_flow(b, flow);
    const uint32_t a_turn = flow->n_jobs / flow->turns;
    for (uint32_t j = 0; j < flow->n_jobs; j++) {
        const uint32_t at = (uint32_t)flow->first_job + j;
        b->jobs[at] = job;
        if (j > 0) {
            rf_simulation_add_edge(
                b, (struct rf_job_edge){
                       .from = at - 1,
                       .to = at,
                       .kind = j % a_turn > 0 ? RF_EDGE_LEFT : RF_EDGE_ENDED});
        }
        if (j >= WINDOW) {
            add_wait(b, at, at - WINDOW);
        }
    }
}

/* Spreads ops over a flow's jobs as evenly as its bytes. */
static void need_processors(struct rf_simulation *b)
{
    const uint32_t cpus = first_of(b->env, CPU);
    for (size_t f = 0; f < b->n_flows; f++) {
        const struct rf_simulated_flow *flow = &b->flows[f];
        const double ms =
            (double)flow->n_ops / flow->n_jobs * b->env->per_op_us / 1e3;
        for (uint32_t j = 0; ms > 0 && j < flow->n_jobs; j++) {
            struct rf_job *job = &b->jobs[flow->first_job + j];
            job->needs[job->n_needs++] = (struct rf_need){cpus + flow->src, ms};
            if (flow->dst != flow->src) {
                job->needs[job->n_needs++] =
                    (struct rf_need){cpus + flow->dst, ms};
            }
        }
    }
}

static void make_jobs(struct rf_simulation *b)
{
    divide_flows(b);
    for (size_t f = 0; f < b->n_flows; f++) {
        fill_flow(b, &b->flows[f]);
    }
    rf_simulation_place_trees(b);
    rf_simulation_place_rings(b);
    need_processors(b);
}

/* --- Turns --------------------------------------------------------------- */

/* A job at one of its ranks. */
struct turn_job {
    uint32_t rank, turn, job;
};

static int by_rank_and_turn(const void *a, const void *b)
{
    const struct turn_job *x = a, *y = b;
    int order = RF_COMPARE(x->rank, y->rank);
    order = RF_THEN_BY(order, RF_COMPARE(x->turn, y->turn));
    return RF_THEN_BY(order, RF_COMPARE(x->job, y->job));
}

/* Lists all jobs between ranks, once for each rank. */
static struct turn_job *list_places(const struct rf_simulation *b, size_t *n)
{
    struct turn_job *places = rf_xcalloc(2 * b->n_jobs, sizeof(*places));
    *n = 0;
    for (size_t f = 0; f < b->n_flows; f++) {
        const struct rf_simulated_flow *flow = &b->flows[f];
        const bool waits =
            flow->turn > 0 && (b->by_group || flow->src != flow->dst);
        for (uint32_t j = 0; waits && j < flow->n_jobs; j++) {
            const uint32_t job = (uint32_t)flow->first_job + j;
            places[(*n)++] = (struct turn_job){flow->src, flow->turn, job};
            places[(*n)++] = (struct turn_job){flow->dst, flow->turn, job};
        }
    }
    qsort(places, *n, sizeof(*places), by_rank_and_turn);
    return places;
}

/* Puts a job without needs between a rank's turn and the next in its slot: it
 * waits for all of the one, and all of the other wait for it. */
static void take_turns(struct rf_simulation *b)
{
    uint32_t between[RF_IN_FLIGHT_MAX];
    size_t n, end;
    struct turn_job *places = list_places(b, &n);
    b->jobs = rf_xrealloc(b->jobs, b->n_jobs + n, sizeof(*b->jobs));
    for (size_t first = 0; first < n; first = end) {
        const struct turn_job *turn = &places[first];
        const uint32_t next = (uint32_t)b->n_jobs;
        uint32_t *slot = &between[turn->turn % b->turn_slots];
        if (first == 0 || places[first - 1].rank != turn->rank) {
            memset(between, 0xff, sizeof(between)); /* NO_FLOW */
        }
        b->jobs[b->n_jobs++] = (struct rf_job){.n_needs = 0};
        for (end = first; end < n && places[end].rank == turn->rank &&
                          places[end].turn == turn->turn;
             end++) {
            if (*slot != NO_FLOW) {
                add_wait(b, places[end].job, *slot);
            }
            add_wait(b, next, places[end].job);
        }
        *slot = next;
    }
    free(places);
}

/* --- All together -------------------------------------------------------- */

/* The longest latency of any flow, added at the very end. */
static double latency_of_last(const struct rf_simulation *b)
{
    double most = 0;
    for (size_t f = 0; f < b->n_flows; f++) {
        most = RF_MAX(most, b->flows[f].latency_ms);
    }
    return most;
}

static enum rf_status run(struct rf_simulation *b, struct rf_simulated *out,
                          struct rf_err *err)
{
    struct rf_queueing_result result;
    rf_queueing_run(b->jobs, b->n_jobs, b->edges, b->n_edges,
                    first_of(b->env, KINDS), &result);
    out->ms = result.ms + latency_of_last(b);
    out->busy_ms = result.busy_ms;
    out->in_place = b->in_place;
    out->path = RF_PATH_IN_PLACE;
    snprintf(out->busiest, sizeof(out->busiest), "nothing");
    if (result.busy_ms > 0) {
        out->path = path_of(b->env, kind_of(b->env, result.busiest));
        name_server(b->env, result.busiest, out->busiest, sizeof(out->busiest));
    }
    return result.n_stuck == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_INTERNAL,
                            "%zu parts of the schedule wait for each other",
                            result.n_stuck);
}

/* Groups of the scenario, at least 1. */
static uint32_t count_groups(const struct rf_plan *plan)
{
    struct rf_tensor_groups groups;
    uint32_t n;
    rf_tensor_groups_make(plan, &groups);
    n = RF_MAX(groups.n, 1);
    rf_tensor_groups_free(&groups);
    return n;
}

/* Adds the slowest rank's conversions: a pipeline of two stages with "overlap",
 * but copies inside a node and conversions need the same processors. */
static enum rf_status add_conversions(const struct rf_simulate_env *env,
                                      struct rf_simulated *out,
                                      struct rf_err *err)
{
    const struct rf_plan *plan = env->plan;
    struct rf_conversion_times times;
    struct rf_unit_tasks units;
    double saved = 0;
    if (rf_spec_quantize(plan->spec)->format == NULL) {
        return RF_OK;
    }
    RF_TRY(rf_unit_tasks_build(plan, &units, err));
    rf_conversion_times(plan, &units, env->links->convert_gbytes_per_s, false,
                        &times);
    rf_unit_tasks_free(&units);
    if (rf_spec_quantize(plan->spec)->overlaps &&
        out->path == RF_PATH_BETWEEN) {
        saved = RF_MIN(out->ms, times.most_ms) * (1 - 1. / count_groups(plan));
    }
    out->ms += times.most_ms - saved;
    if (times.most_ms > out->busy_ms) {
        const uint32_t node = env->plan->world->ranks[times.slowest].node;
        out->busy_ms = times.most_ms;
        out->path = RF_PATH_CONVERSION;
        snprintf(out->busiest, sizeof(out->busiest), "conversion on %s",
                 env->node_names[node]);
    }
    return RF_OK;
}

enum rf_status rf_simulate(const struct rf_simulate_env *env,
                           struct rf_simulated *out, struct rf_err *err)
{
    struct rf_simulation b = {.env = env, .world = env->plan->world};
    enum rf_status status;
    if (env->links->n_nodes != b.world->n_nodes) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "link figures of %u nodes for a world of %u",
                          env->links->n_nodes, b.world->n_nodes);
    }
    b.n_items = env->schedule->deliveries != NULL ? env->schedule->deliveries->n
                                                  : env->schedule->n_ops;
    RF_TRY(
        rf_memory_admit(b.n_items * sizeof(*b.items), "the prediction", err));
    b.items = rf_xcalloc(b.n_items, sizeof(*b.items));
    b.flows_capacity = 64;
    b.flows = rf_xcalloc(b.flows_capacity, sizeof(*b.flows));
    b.n_buckets =
        RF_MAX((size_t)2 * RF_SIMULATION_FLOWS, (size_t)128 * b.world->n_ranks);
    b.n_buckets = RF_MAX(b.n_buckets, b.n_items);
    b.buckets = rf_xcalloc(b.n_buckets, sizeof(*b.buckets));
    if (env->inside.left == RF_LEFT_COVERED) {
        rf_in_place_find(env->plan, env->schedule, RF_NONE, &b.covered);
    }
    count_ranks(&b);
    choose_turns(&b);
    rf_simulation_find_trees(&b);
    rf_simulation_find_rings(&b);
    count_copiers(&b);
    make_jobs(&b);
    if (b.turn_slots > 0) {
        take_turns(&b);
    }
    status = run(&b, out, err);
    RF_THEN(status, add_conversions(env, out, err));
    rf_in_place_free(&b.covered);
    free(b.n_ranks);
    free(b.n_copiers);
    free(b.items);
    free(b.flows);
    rf_simulation_free_rings(&b);
    free(b.buckets);
    free(b.jobs);
    free(b.last_edge);
    free(b.edges);
    return status;
}
