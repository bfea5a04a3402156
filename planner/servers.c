/* Event-driven: an event is a job that leaves a server or stops waiting. See
 * servers.h. */
#include "planner/servers.h"

#include <stdlib.h>

#include "common/mem.h"

#define NOBODY UINT32_MAX

enum event_kind { SERVED, WAITED };

struct event {
    double ms;
    uint64_t order; /* equal times: as they were made */
    enum event_kind kind;
    uint32_t job;
};

struct server {
    double busy_ms;
    bool busy;
    uint32_t first, last; /* jobs that queue here */
};

struct simulation {
    const struct rf_job *jobs;
    const struct rf_job_edge *edges;
    size_t *first_edge; /* of each job, in `edges` */
    uint32_t *waits;    /* of each job: edges that are left */
    uint32_t *stage;    /* of each job: which need is its present one */
    uint32_t *next;     /* in a server's queue */
    struct server *servers;
    struct event *heap;
    size_t n_events, capacity;
    uint64_t n_made;
    double now_ms, end_ms;
    size_t n_ended;
};

static bool is_before(const struct event *a, const struct event *b)
{
    return a->ms < b->ms || (a->ms <= b->ms && a->order < b->order);
}

static void push(struct simulation *sim, double ms, enum event_kind kind,
                 uint32_t job)
{
    struct event event = {ms, sim->n_made++, kind, job};
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

static void hold(struct simulation *sim, uint32_t job)
{
    const struct rf_need *need = &sim->jobs[job].needs[sim->stage[job]];
    struct server *server = &sim->servers[need->server];
    server->busy = true;
    server->busy_ms += need->ms;
    push(sim, sim->now_ms + need->ms, SERVED, job);
}

static void enqueue(struct simulation *sim, struct server *server, uint32_t job)
{
    sim->next[job] = NOBODY;
    if (server->first == NOBODY) {
        server->first = job;
    } else {
        sim->next[server->last] = job;
    }
    server->last = job;
}

/* Whoever has come first gets a server that has become free. */
static void let_go(struct simulation *sim, struct server *server)
{
    const uint32_t job = server->first;
    server->busy = false;
    if (job != NOBODY) {
        server->first = sim->next[job];
        hold(sim, job);
    }
}

/* A job without needs counts as one that has left its first server. */
static void go_on(struct simulation *sim, uint32_t job)
{
    const struct rf_job *it = &sim->jobs[job];
    struct server *server;
    if (sim->stage[job] == it->n_needs) {
        push(sim, sim->now_ms, SERVED, job);
        return;
    }
    server = &sim->servers[it->needs[sim->stage[job]].server];
    if (server->busy) {
        enqueue(sim, server, job);
    } else {
        hold(sim, job);
    }
}

static void end_wait(struct simulation *sim, uint32_t job)
{
    if (--sim->waits[job] == 0) {
        go_on(sim, job);
    }
}

static void release(struct simulation *sim, uint32_t job, bool first)
{
    for (size_t e = sim->first_edge[job]; e < sim->first_edge[job + 1]; e++) {
        const struct rf_job_edge *edge = &sim->edges[e];
        if (edge->first != first) {
            continue;
        }
        if (edge->delay_ms > 0) {
            push(sim, sim->now_ms + edge->delay_ms, WAITED, edge->to);
        } else {
            end_wait(sim, edge->to);
        }
    }
}

static void served(struct simulation *sim, uint32_t job)
{
    const struct rf_job *it = &sim->jobs[job];
    const uint32_t stage = sim->stage[job];
    if (stage < it->n_needs) {
        let_go(sim, &sim->servers[it->needs[stage].server]);
        sim->stage[job]++;
    }
    if (stage == 0) {
        release(sim, job, true);
    }
    if (sim->stage[job] < it->n_needs) {
        go_on(sim, job);
        return;
    }
    sim->end_ms = sim->now_ms;
    sim->n_ended++;
    release(sim, job, false);
}

static int by_from(const void *a, const void *b)
{
    const struct rf_job_edge *x = a, *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    return (x->to > y->to) - (x->to < y->to);
}

static void prepare(struct simulation *sim, size_t n_jobs,
                    struct rf_job_edge *edges, size_t n_edges,
                    uint32_t n_servers)
{
    size_t e = 0;
    qsort(edges, n_edges, sizeof(*edges), by_from);
    sim->edges = edges;
    sim->first_edge = rf_xcalloc(n_jobs + 1, sizeof(*sim->first_edge));
    sim->waits = rf_xcalloc(n_jobs, sizeof(*sim->waits));
    sim->stage = rf_xcalloc(n_jobs, sizeof(*sim->stage));
    sim->next = rf_xcalloc(n_jobs, sizeof(*sim->next));
    sim->servers = rf_xcalloc(n_servers, sizeof(*sim->servers));
    for (size_t j = 0; j < n_jobs; j++) {
        sim->first_edge[j] = e;
        while (e < n_edges && edges[e].from == j) {
            e++;
        }
        sim->waits[j] = sim->jobs[j].n_waits;
    }
    sim->first_edge[n_jobs] = e;
    for (uint32_t s = 0; s < n_servers; s++) {
        sim->servers[s].first = NOBODY;
    }
}

void rf_servers_run(const struct rf_job *jobs, size_t n_jobs,
                    struct rf_job_edge *edges, size_t n_edges,
                    uint32_t n_servers, struct rf_servers_result *out)
{
    struct simulation sim = {.jobs = jobs};
    prepare(&sim, n_jobs, edges, n_edges, n_servers);
    for (size_t j = 0; j < n_jobs; j++) {
        if (sim.waits[j] == 0) {
            go_on(&sim, (uint32_t)j);
        }
    }
    while (sim.n_events > 0) {
        struct event event = pop(&sim);
        sim.now_ms = event.ms;
        if (event.kind == WAITED) {
            end_wait(&sim, event.job);
        } else {
            served(&sim, event.job);
        }
    }
    *out = (struct rf_servers_result){.ms = sim.end_ms,
                                      .n_stuck = n_jobs - sim.n_ended};
    for (uint32_t s = 0; s < n_servers; s++) {
        if (sim.servers[s].busy_ms > out->busy_ms) {
            out->busy_ms = sim.servers[s].busy_ms;
            out->busiest = s;
        }
    }
    free(sim.first_edge);
    free(sim.waits);
    free(sim.stage);
    free(sim.next);
    free(sim.servers);
    free(sim.heap);
}
