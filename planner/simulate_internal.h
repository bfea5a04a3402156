/* What the files of the simulation share: flows, and the jobs they become. */
#ifndef RF_PLANNER_SIMULATE_INTERNAL_H
#define RF_PLANNER_SIMULATE_INTERNAL_H

#include "planner/servers.h"
#include "planner/simulate.h"

#define NO_FLOW UINT32_MAX

struct rf_flow {
    uint32_t src, dst;
    uint32_t after; /* the flow that its ops forward, or how many steps they
                       are from the first copy */
    uint32_t turn;  /* with "serialize": which of its ranks' turns, else 0 */
    uint32_t n_jobs;
    uint64_t bytes, n_ops; /* those that are moved */
    uint64_t first_job;
    uint64_t done;     /* bytes of ops in jobs so far */
    double latency_ms; /* before others may go on with what arrived */
};

struct rf_simulation {
    const struct rf_simulate_env *env;
    const struct rf_world *world;
    uint32_t *flow_of;     /* of each op; NO_FLOW: it stays in place */
    uint32_t *last_job_of; /* of each op: the one that ends with it */
    uint32_t *depth_of;    /* of each op; NULL: flows are told apart by the flow
                              that they forward */
    struct rf_flow *flows;
    size_t n_flows, flows_capacity;
    uint32_t *table; /* hash table of flows */
    size_t table_size;
    struct rf_job *jobs;
    uint64_t n_jobs;
    uint32_t *last_wait; /* of each job: what it came to wait for last */
    struct rf_job_edge *edges;
    size_t n_edges, edges_capacity;
    uint64_t in_place;
    uint32_t tasks_a_turn; /* 0: ranks need not take turns */
    /* Of ops that repeat over ranks (planner/fold.h): the flows of hops 1, 2,
     * …, and then those of the ranks that take something out, by rank. */
    size_t first_hop, first_take;
};

/* Adds a flow that no other is like; its `bytes` and `n_ops` are known. */
void rf_simulation_add_flow(struct rf_simulation *b,
                            const struct rf_flow *flow);

/* `job` starts `delay_ms` after `earlier` has ended. */
void rf_simulation_wait(struct rf_simulation *b, uint32_t job, uint32_t earlier,
                        double delay_ms);

/* The job of a flow in which a byte of it moves. */
uint32_t rf_simulation_job_at(const struct rf_flow *flow, uint64_t byte);

/* Adds the flows of the ops that repeat over ranks, if there are any. */
void rf_simulation_find_folded(struct rf_simulation *b);
/* Once all flows have jobs and those of single ops their places: what the
 * folded ones wait for. */
void rf_simulation_place_folded(struct rf_simulation *b);

#endif
