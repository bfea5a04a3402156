/* What the files of the simulation share: flows, and the jobs they become.
 * Private to simulat*.c. */
#ifndef RF_PLANNER_PREDICT_SIMULATION_H
#define RF_PLANNER_PREDICT_SIMULATION_H

#include "planner/predict/queueing.h"
#include "planner/predict/simulate_env.h"
#include "planner/schedule/in_place.h"

#define NO_FLOW UINT32_MAX
/* How many flows there are at most, of one kind: memory and time. */
#define RF_SIMULATION_FLOWS 16384

struct rf_simulated_flow {
    uint32_t src, dst;
    uint32_t after; /* the flow that its ops forward, or how many steps they
                       are from the first copy */
    uint32_t turn;  /* with "serialize": which of its ranks' turns, else 0 */
    uint32_t n_jobs;
    bool forwarded;        /* what it brings goes on to other ranks */
    uint64_t bytes, n_ops; /* those that are moved */
    uint64_t first_job;
    uint64_t done;     /* bytes of ops in jobs so far */
    double latency_ms; /* before others may go on with what arrived */
};

/* Of ops that repeat over ranks (planner/schedule/bcast.h): broadcasts [first,
 * end), which no turn of ranks parts, and where the flows of hops 1, 2, … and
 * those of the ranks that take something out begin. */
struct rf_batch {
    size_t first, end;
    uint64_t bytes; /* of each hop */
    size_t first_hop, first_take;
};

struct rf_ring_flows;

struct rf_simulation {
    const struct rf_simulate_env *env;
    const struct rf_world *world;
    uint32_t *flow_of;  /* of each op; NO_FLOW: it stays in place */
    uint64_t *end_of;   /* of each op: where it ends in its flow, in bytes */
    uint32_t *depth_of; /* of each op; NULL: flows are told apart by the flow
                           that they forward */
    struct rf_simulated_flow *flows;
    size_t n_flows, flows_capacity;
    uint32_t *table; /* hash table of flows */
    size_t table_size;
    struct rf_job *jobs;
    uint64_t n_jobs;
    size_t *last_edge; /* of each job: the last op that it came to wait for */
    struct rf_job_edge *edges;
    size_t n_edges, edges_capacity;
    uint64_t in_place;
    struct rf_in_place_set covered; /* with RF_LEFT_COVERED */
    uint32_t *n_ranks;              /* of each node */
    uint32_t *n_copiers;   /* likewise, with RF_COPIER_DST those that copy */
    uint32_t tasks_a_turn; /* 0: ranks need not take turns */
    struct rf_batch *batches;
    size_t n_batches;
    struct rf_ring_flows *rings; /* see simulate_ring.c; NULL: none */
};

/* Adds a flow that no other is like; its `bytes` and `n_ops` are known. */
void rf_simulation_add_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *flow);

/* With "serialize": which of its ranks' turns an op between ranks belongs to,
 * numbered from 1 in the order in which a rank has them; else 0. */
uint32_t rf_simulation_turn(const struct rf_simulation *b, uint32_t task);

/* One job waits for another. */
void rf_simulation_add_edge(struct rf_simulation *b, struct rf_job_edge edge);

/* Bytes of a flow. */
struct rf_simulated_span {
    double start, end;
};

/* Those of a single op, once it has its place. */
struct rf_simulated_span rf_simulation_span(const struct rf_simulation *b,
                                            size_t op);

/* An op of `flow` forwards one of `before`. */
void rf_simulation_forward(struct rf_simulation *b,
                           const struct rf_simulated_flow *flow,
                           const struct rf_simulated_span *what,
                           const struct rf_simulated_flow *before,
                           const struct rf_simulated_span *from_what);

/* Adds the flows of the ops that repeat over ranks, if there are any. */
void rf_simulation_find_bcasts(struct rf_simulation *b);
/* Once all flows have jobs and those of single ops their places: what the
 * broadcasts wait for. */
void rf_simulation_place_bcasts(struct rf_simulation *b);

/* The same of the schedule's rings. */
void rf_simulation_find_rings(struct rf_simulation *b);
void rf_simulation_place_rings(struct rf_simulation *b);
void rf_simulation_free_rings(struct rf_simulation *b);

#endif
