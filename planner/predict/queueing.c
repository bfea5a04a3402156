/*
 * Event-driven: an event is a job's arrival at a server or its departure. Once
 * a job gets a server, its departure is known; the next step is put off until
 * then or, with grains, until the earliest time from which it can run without a
 * break. See queueing.h.
 */
#include "planner/predict/queueing.h"

#include <stdlib.h>

#include "common/mem.h"

#define NOBODY UINT32_MAX

enum event_kind { COMES, LEAVES };

struct event {
    double ms;
    uint64_t order; /* breaks ties: order of creation */
    uint32_t job;
    uint16_t stage; /* index of the job's need */
    uint16_t kind;
};

struct server {
    double busy_ms;
    bool busy;
    uint32_t first, last; /* jobs in the queue */
};

/* A job's progress. It arrives at its next server at `ready_ms`; its input from
 * other jobs, or from its own last server, starts to arrive at `head_ms`. */
struct state {
    double ready_ms, head_ms;
    double busy_ms; /* the longest that the job holds one server */
    uint32_t waits; /* edges still to be met */
    uint32_t stage; /* index of the next need */
    uint32_t next;  /* next job in the server's queue */
};

struct simulation {
    const struct rf_job *jobs;
    struct rf_job_edge *edges; /* by the job they start from */
    size_t *first_edge;        /* per job, in `edges` */
    struct state *states;
    struct server *servers;
    struct event *heap;
    size_t n_events, capacity;
    uint64_t n_made;
    double now_ms, end_ms;
    size_t n_ended;
};

/* The arrival times of a job's grains. */
struct arrival {
    double head_ms, tail_ms; /* of the first and the last grain */
    double grains, hold_ms;  /* number of grains; time on the server */
};

static bool is_before(const struct event *a, const struct event *b)
{
    return a->ms < b->ms || (a->ms <= b->ms && a->order < b->order);
}

static void push(struct simulation *sim, double ms, enum event_kind kind,
                 uint32_t job)
{
    struct event event = {.ms = RF_MAX(ms, sim->now_ms),
                          .order = sim->n_made++,
                          .job = job,
                          .stage = (uint16_t)sim->states[job].stage,
                          .kind = (uint16_t)kind};
    size_t at = sim->n_events;
    RF_PUSH(sim->heap, sim->n_events, sim->capacity, event);
    while (at > 0 && is_before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

static struct event pop(struct simulation *sim)
{
    struct event first = sim->heap[0], moved = sim->heap[--sim->n_events];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < sim->n_events &&
            is_before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (child >= sim->n_events || !is_before(&sim->heap[child], &moved)) {
            break;
        }
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = moved;
    return first;
}

/* The longest that a job's remaining needs hold one server. */
static double longest_left(const struct rf_job *job, uint32_t stage)
{
    double most = 0;
    for (; stage < job->n_needs; stage++) {
        most = RF_MAX(most, job->needs[stage].ms);
    }
    return most;
}

/* Bytes after the job's end follow at the server's rate. */
static double arrival_of(const struct arrival *of, double share)
{
    const double first = 1 / of->grains;
    if (share >= 1 || of->grains <= 1) {
        return of->tail_ms + (RF_MAX(share, 1) - 1) * of->hold_ms;
    }
    return of->head_ms + (of->tail_ms - of->head_ms) *
                             (RF_MAX(share, first) - first) / (1 - first);
}

/* `to` may start before the input of its part is there, by the time that it
 * takes for what precedes that part. */
static void heed(struct simulation *sim, const struct rf_job_edge *edge,
                 const struct arrival *from)
{
    const struct rf_queueing_step *steps[] = {&edge->first, &edge->last};
    const struct rf_queueing_step whole = {1, 0};
    struct state *to = &sim->states[edge->to];
    if (edge->kind == RF_EDGE_ENDED) {
        steps[0] = steps[1] = &whole;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(steps); i++) {
        const double there =
            arrival_of(from, (double)steps[i]->of_from) + edge->delay_ms;
        const double before = (double)steps[i]->of_to;
        to->ready_ms = RF_MAX(to->ready_ms, there - before * to->busy_ms);
        if (before <= 0) {
            to->head_ms = RF_MAX(to->head_ms, there);
        }
    }
}

static void end_wait(struct simulation *sim, uint32_t job)
{
    if (--sim->states[job].waits == 0) {
        push(sim, sim->states[job].ready_ms, COMES, job);
    }
}

/* Notifies waiting jobs that a job has left its first server. */
static void tell_left(struct simulation *sim, uint32_t job)
{
    for (size_t e = sim->first_edge[job]; e < sim->first_edge[job + 1]; e++) {
        const struct rf_job_edge *edge = &sim->edges[e];
        if (edge->kind == RF_EDGE_LEFT) {
            struct state *to = &sim->states[edge->to];
            to->ready_ms = RF_MAX(to->ready_ms, sim->now_ms);
            to->head_ms = RF_MAX(to->head_ms, sim->now_ms);
            end_wait(sim, edge->to);
        }
    }
}

/* Notifies waiting jobs of a job's end and of the arrival of its parts. */
static void tell_end(struct simulation *sim, uint32_t job,
                     const struct arrival *arrival)
{
    sim->end_ms = RF_MAX(sim->end_ms, arrival->tail_ms);
    sim->n_ended++;
    for (size_t e = sim->first_edge[job]; e < sim->first_edge[job + 1]; e++) {
        const struct rf_job_edge *edge = &sim->edges[e];
        if (edge->kind != RF_EDGE_LEFT) {
            heed(sim, edge, arrival);
            end_wait(sim, edge->to);
        }
    }
}

/* Gives a job the server of its present stage. Grains that came while the
 * server was free have been passed on as they came. */
static void hold(struct simulation *sim, uint32_t job)
{
    const struct rf_job *it = &sim->jobs[job];
    struct state *state = &sim->states[job];
    const struct rf_need *need = &it->needs[state->stage];
    struct server *server = &sim->servers[need->server];
    const double grains = RF_MAX(it->grains, 1);
    const struct arrival out = {
        .head_ms = RF_MIN(state->head_ms, sim->now_ms) + need->ms / grains,
        .tail_ms = sim->now_ms + need->ms,
        .grains = grains,
        .hold_ms = need->ms,
    };
    server->busy = true;
    server->busy_ms += need->ms;
    push(sim, out.tail_ms, LEAVES, job);
    state->stage++;
    if (state->stage == it->n_needs) {
        tell_end(sim, job, &out);
        return;
    }
    state->head_ms = out.head_ms;
    push(sim,
         RF_MAX(out.head_ms, out.tail_ms - longest_left(it, state->stage) *
                                               (1 - 1 / out.grains)),
         COMES, job);
}

static void enqueue(struct simulation *sim, struct server *server, uint32_t job)
{
    sim->states[job].next = NOBODY;
    if (server->first == NOBODY) {
        server->first = job;
    } else {
        sim->states[server->last].next = job;
    }
    server->last = job;
}

/* First come, first served. */
static void let_go(struct simulation *sim, struct server *server)
{
    const uint32_t job = server->first;
    server->busy = false;
    if (job != NOBODY) {
        server->first = sim->states[job].next;
        sim->states[job].head_ms = sim->now_ms;
        hold(sim, job);
    }
}

static void comes(struct simulation *sim, uint32_t job)
{
    const struct rf_job *it = &sim->jobs[job];
    const uint32_t stage = sim->states[job].stage;
    struct server *server;
    if (it->n_needs == 0) {
        tell_left(sim, job);
        tell_end(sim, job,
                 &(struct arrival){.head_ms = sim->now_ms,
                                   .tail_ms = sim->now_ms,
                                   .grains = 1});
        return;
    }
    server = &sim->servers[it->needs[stage].server];
    if (server->busy) {
        enqueue(sim, server, job);
    } else {
        hold(sim, job);
    }
}

static void leaves(struct simulation *sim, const struct event *event)
{
    const struct rf_need *need = &sim->jobs[event->job].needs[event->stage];
    let_go(sim, &sim->servers[need->server]);
    if (event->stage == 0) {
        tell_left(sim, event->job);
    }
}

/* Groups the edges by job, each job's in their order. This copies them, since
 * jumping to them costs more than anything else here. */
static void sort_edges(struct simulation *sim, const struct rf_job_edge *edges,
                       size_t n_jobs, size_t n_edges)
{
    size_t *first = rf_xcalloc(n_jobs + 2, sizeof(*first));
    sim->edges = rf_xcalloc(n_edges, sizeof(*sim->edges));
    for (size_t e = 0; e < n_edges; e++) {
        first[edges[e].from + 2]++;
    }
    for (size_t j = 0; j < n_jobs; j++) {
        first[j + 2] += first[j + 1];
    }
    for (size_t e = 0; e < n_edges; e++) {
        sim->edges[first[edges[e].from + 1]++] = edges[e];
    }
    sim->first_edge = first;
}

static void prepare(struct simulation *sim, size_t n_jobs, uint32_t n_servers)
{
    sim->states = rf_xcalloc(n_jobs, sizeof(*sim->states));
    sim->servers = rf_xcalloc(n_servers, sizeof(*sim->servers));
    for (size_t j = 0; j < n_jobs; j++) {
        sim->states[j].waits = sim->jobs[j].n_waits;
        sim->states[j].busy_ms = longest_left(&sim->jobs[j], 0);
    }
    for (uint32_t s = 0; s < n_servers; s++) {
        sim->servers[s].first = NOBODY;
    }
}

void rf_queueing_run(const struct rf_job *jobs, size_t n_jobs,
                     const struct rf_job_edge *edges, size_t n_edges,
                     uint32_t n_servers, struct rf_queueing_result *out)
{
    struct simulation sim = {.jobs = jobs};
    sort_edges(&sim, edges, n_jobs, n_edges);
    prepare(&sim, n_jobs, n_servers);
    for (size_t j = 0; j < n_jobs; j++) {
        if (jobs[j].n_waits == 0) {
            push(&sim, 0, COMES, (uint32_t)j);
        }
    }
    while (sim.n_events > 0) {
        struct event event = pop(&sim);
        sim.now_ms = event.ms;
        if (event.kind == COMES) {
            comes(&sim, event.job);
        } else {
            leaves(&sim, &event);
        }
    }
    *out = (struct rf_queueing_result){.ms = sim.end_ms,
                                       .n_stuck = n_jobs - sim.n_ended};
    for (uint32_t s = 0; s < n_servers; s++) {
        if (sim.servers[s].busy_ms > out->busy_ms) {
            out->busy_ms = sim.servers[s].busy_ms;
            out->busiest = s;
        }
    }
    free(sim.edges);
    free(sim.first_edge);
    free(sim.states);
    free(sim.servers);
    free(sim.heap);
}
