/* Flows and edges of jobs, for all kinds of ops. See simulation.h. */
#include "planner/predict/simulation.h"

#include <math.h>

#include "common/mem.h"

#define NO_EDGE SIZE_MAX

/* --- Flows --------------------------------------------------------------- */

const struct rf_op *rf_simulation_op(const struct rf_simulation *b, size_t item)
{
    const struct rf_schedule *schedule = b->env->schedule;
    return schedule->deliveries != NULL ? &schedule->deliveries->of[item].op
                                        : &schedule->ops[item];
}

uint32_t rf_simulation_turn(const struct rf_simulation *b,
                            const struct rf_op *op)
{
    if (b->turn_slots == 0) {
        return 0;
    }
    return (b->by_group ? op->group : op->task) / b->a_turn + 1;
}

bool rf_simulation_crosses(const struct rf_simulation *b, uint32_t src,
                           uint32_t dst)
{
    return b->world->ranks[src].node != b->world->ranks[dst].node;
}

static bool is_flow(const struct rf_simulated_flow *a,
                    const struct rf_simulated_flow *b)
{
    return a->src == b->src && a->dst == b->dst && a->after == b->after &&
           a->turn == b->turn;
}

uint32_t rf_simulation_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *key)
{
    const uint64_t words[] = {key->src, key->dst, key->after, key->turn};
    struct rf_hash hash;
    uint32_t *first, flow;
    rf_hash_init(&hash);
    rf_hash_record(&hash, words, RF_ARRAY_SIZE(words));
    first = &b->buckets[hash.a % b->n_buckets];
    flow = *first;
    while (flow != NO_FLOW && !is_flow(&b->flows[flow], key)) {
        flow = b->flows[flow].next;
    }
    if (flow == NO_FLOW) {
        flow = (uint32_t)b->n_flows;
        rf_simulation_add_flow(b, key);
        b->flows[flow].next = *first;
        *first = flow;
    }
    return flow;
}

void rf_simulation_add_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *flow)
{
    RF_PUSH(b->flows, b->n_flows, b->flows_capacity, *flow);
    b->flows[b->n_flows - 1].turns = 1;
}

/* --- Edges --------------------------------------------------------------- */

void rf_simulation_add_edge(struct rf_simulation *b, struct rf_job_edge edge)
{
    b->jobs[edge.to].n_waits++;
    RF_PUSH(b->edges, b->n_edges, b->edges_capacity, edge);
}

void rf_simulation_cut(struct rf_cuts *cuts, const struct rf_delivery *delivery,
                       uint32_t part)
{
    const uint64_t chunks = rf_delivery_part_chunks(delivery, part);
    double at = cuts->at[cuts->n - 1];
    for (uint64_t k = 0; k < chunks; k++) {
        const struct rf_box box = rf_delivery_box(delivery, part, k);
        at += (double)rf_form_bytes(delivery->op.to, &box);
        RF_PUSH(cuts->at, cuts->n, cuts->capacity, at);
    }
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

static double byte_at(const struct rf_track *track, double cut)
{
    return track->start + cut * track->scale;
}

static struct flow_place place_of_start(const struct rf_track *track,
                                        const double *chunk)
{
    const struct rf_simulated_flow *flow = track->flow;
    const double at =
        byte_at(track, chunk[0]) / (double)flow->bytes * flow->n_jobs;
    const uint32_t job = job_at(flow, at);
    return (struct flow_place){(uint32_t)flow->first_job + job,
                               (float)(at - job)};
}

/* A chunk belongs to the job in which it begins, even if it ends in the next
 * one: so whatever forwards the chunks of a job waits for one job. */
static struct flow_place place_of_end(const struct rf_track *track,
                                      const double *chunk)
{
    const struct rf_simulated_flow *flow = track->flow;
    const double jobs = flow->n_jobs / (double)flow->bytes;
    const double start = byte_at(track, chunk[0]) * jobs;
    const double at = byte_at(track, chunk[1]) * jobs;
    const uint32_t job = job_at(flow, at - start <= 1 ? start : ceil(at) - 1);
    return (struct flow_place){(uint32_t)flow->first_job + job,
                               (float)(at - job)};
}

static struct rf_job_edge edge_of(const struct rf_track *to,
                                  const struct rf_track *from,
                                  const double *chunk)
{
    const struct flow_place at = place_of_start(to, chunk);
    const struct flow_place before = place_of_end(from, chunk);
    const struct rf_queueing_step step = {.of_from = before.share,
                                          .of_to = at.share};
    return (struct rf_job_edge){.from = before.job,
                                .to = at.job,
                                .delay_ms = from->flow->latency_ms,
                                .kind = RF_EDGE_IN_STEP,
                                .first = step,
                                .last = step};
}

static bool same_jobs(const struct rf_job_edge *a, const struct rf_job_edge *b)
{
    return a->from == b->from && a->to == b->to;
}

/* Successive chunks between the same jobs share one edge. */
static void share_edge(struct rf_simulation *b, const struct rf_job_edge *edge)
{
    size_t *last = &b->last_edge[edge->to];
    if (*last != NO_EDGE && same_jobs(&b->edges[*last], edge)) {
        b->edges[*last].last = edge->last;
        return;
    }
    *last = b->n_edges;
    rf_simulation_add_edge(b, *edge);
}

void rf_simulation_forward(struct rf_simulation *b, const struct rf_track *to,
                           const struct rf_track *from, const double *cuts,
                           size_t n)
{
    for (size_t k = 0, end; to->flow->bytes > 0 && k < n; k = end) {
        struct rf_job_edge edge = edge_of(to, from, &cuts[k]);
        for (end = n; end - k > 1;) {
            const size_t middle = k + (end - k) / 2;
            const struct rf_job_edge later = edge_of(to, from, &cuts[middle]);
            if (same_jobs(&edge, &later)) {
                edge.last = later.last;
                k = middle;
            } else {
                end = middle;
            }
        }
        share_edge(b, &edge);
    }
}
