/* Flows and edges of jobs, for all kinds of ops. See simulation.h. */
#include "planner/predict/simulation.h"

#include <math.h>

#include "common/mem.h"

#define NO_EDGE SIZE_MAX

void rf_simulation_add_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *flow)
{
    RF_PUSH(b->flows, b->n_flows, b->flows_capacity, *flow);
}

uint32_t rf_simulation_turn(const struct rf_simulation *b, uint32_t task)
{
    return b->tasks_a_turn == 0 ? 0 : task / b->tasks_a_turn + 1;
}

void rf_simulation_add_edge(struct rf_simulation *b, struct rf_job_edge edge)
{
    b->jobs[edge.to].n_waits++;
    RF_PUSH(b->edges, b->n_edges, b->edges_capacity, edge);
}

/* A byte of a flow: its job and its place in the job, from 0 to 1. */
struct flow_place {
    uint32_t job;
    float share;
};

static uint32_t job_at(const struct rf_simulated_flow *flow, double at)
{
    return (uint32_t)RF_MAX(RF_MIN(floor(at), flow->n_jobs - 1.0), 0);
}

static struct flow_place place_of_start(const struct rf_simulated_flow *flow,
                                        const struct rf_simulated_span *span)
{
    const double at = span->start / (double)flow->bytes * flow->n_jobs;
    const uint32_t job = job_at(flow, at);
    return (struct flow_place){(uint32_t)flow->first_job + job,
                               (float)(at - job)};
}

/* An op belongs to the job in which it begins, even if it ends in the next one:
 * so whatever forwards the ops of a job waits for one job. */
static struct flow_place place_of_end(const struct rf_simulated_flow *flow,
                                      const struct rf_simulated_span *span)
{
    const double jobs = flow->n_jobs / (double)flow->bytes;
    const double at = span->end * jobs;
    const uint32_t job = at - span->start * jobs <= 1
                             ? job_at(flow, span->start * jobs)
                             : job_at(flow, ceil(at) - 1);
    return (struct flow_place){(uint32_t)flow->first_job + job,
                               (float)(at - job)};
}

/* Successive forwarded ops share one edge. */
void rf_simulation_forward(struct rf_simulation *b,
                           const struct rf_simulated_flow *flow,
                           const struct rf_simulated_span *what,
                           const struct rf_simulated_flow *before,
                           const struct rf_simulated_span *from_what)
{
    const struct flow_place to = place_of_start(flow, what);
    const struct flow_place from = place_of_end(before, from_what);
    const struct rf_queueing_step step = {.of_from = from.share,
                                          .of_to = to.share};
    size_t *last = &b->last_edge[to.job];
    if (*last != NO_EDGE && b->edges[*last].from == from.job) {
        b->edges[*last].last = step;
        return;
    }
    *last = b->n_edges;
    rf_simulation_add_edge(b,
                           (struct rf_job_edge){.from = from.job,
                                                .to = to.job,
                                                .delay_ms = before->latency_ms,
                                                .kind = RF_EDGE_IN_STEP,
                                                .first = step,
                                                .last = step});
}
