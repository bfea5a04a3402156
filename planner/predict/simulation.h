/* Shared by the files of the simulation: flows, and the jobs they become.
 * Private to simulat*.c. */
#ifndef RF_PLANNER_PREDICT_SIMULATION_H
#define RF_PLANNER_PREDICT_SIMULATION_H

#include "planner/predict/queueing.h"
#include "planner/predict/simulate_env.h"
#include "planner/schedule/delivery.h"
#include "planner/schedule/in_place.h"

#define NO_FLOW UINT32_MAX
/* The most flows of one kind: bounds memory and time. */
#define RF_SIMULATION_FLOWS 16384

/* A range of a flow's bytes. */
struct rf_simulated_span {
    double start, end;
};

struct rf_simulated_flow {
    uint32_t src, dst;
    uint32_t after; /* the flow that its ops forward, or their distance from the
                       first copy in steps */
    uint32_t turn;  /* with "serialize": its turn at its ranks, else 0 */
    uint32_t n_jobs;
    uint32_t next;         /* in its bucket */
    bool forwarded;        /* its bytes go on to other ranks */
    uint64_t bytes, n_ops; /* of ops that move */
    uint64_t first_job;
    uint64_t done;     /* bytes of ops already placed in jobs */
    double latency_ms; /* until others may forward what arrived */
};

/* What goes out of the root's staging memory in deliveries [first, end), not
 * separated by turns of ranks: the first flow of the tree's stops, and the
 * first flow of the ranks that take bytes out. */
struct rf_batch {
    size_t first, end;
    uint64_t bytes, n_ops; /* of each hop */
    size_t first_hop, first_take;
};

struct rf_ring_flows;

struct rf_simulation {
    const struct rf_simulate_env *env;
    const struct rf_world *world;
    /* Listed are all ops but those of rings and of what goes out of staging
     * memory, in the order of their ids. */
    size_t n_listed, *first_listed; /* the latter by delivery */
    uint32_t *flow_of; /* per listed op; NO_FLOW: it stays in place */
    struct rf_simulated_span *span_of; /* per listed op, once it is placed */
    uint32_t *depth_of; /* per listed op; NULL: flows are told apart by the flow
                           that they forward */
    struct rf_simulated_flow *flows;
    size_t n_flows, flows_capacity;
    uint32_t *buckets; /* the first flow by hash of its key */
    struct rf_job *jobs;
    uint64_t n_jobs;
    size_t *last_edge; /* per job: the last in-step edge to it */
    struct rf_job_edge *edges;
    size_t n_edges, edges_capacity;
    uint64_t in_place;
    struct rf_in_place_set covered; /* with RF_LEFT_COVERED */
    uint32_t *n_ranks;              /* per node */
    uint32_t *n_copiers;   /* per node: copying ranks; 0 unless RF_COPIER_DST */
    uint32_t tasks_a_turn; /* 0: ranks take no turns */
    struct rf_batch *batches;
    size_t n_batches;
    struct rf_ring_flows *rings; /* see simulate_ring.c */
};

/* Adds a flow unlike any other; its `bytes` and `n_ops` are set. */
void rf_simulation_add_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *flow);

/* With "serialize": the turn of an op between ranks, numbered from 1 in the
 * order of its ranks' turns; else 0. */
uint32_t rf_simulation_turn(const struct rf_simulation *b, uint32_t task);

/* Makes one job wait for another. */
void rf_simulation_add_edge(struct rf_simulation *b, struct rf_job_edge edge);

/* An op of `flow` forwards one of `before`. */
void rf_simulation_forward(struct rf_simulation *b,
                           const struct rf_simulated_flow *flow,
                           const struct rf_simulated_span *what,
                           const struct rf_simulated_flow *before,
                           const struct rf_simulated_span *from_what);

/* Walks the listed ops. */
struct rf_listed_walk {
    const struct rf_op *op; /* NULL: the end */
    size_t at, dep;         /* the numbers of `op` and, if it has one, its
                               dependency */
    size_t next, delivery;
    uint64_t index;
    size_t first_dep; /* of the delivery's dependency */
    struct rf_op made;
};
void rf_simulation_next(const struct rf_simulation *b,
                        struct rf_listed_walk *walk);

/* Adds the flows of what goes out of staging memory, if anything. */
void rf_simulation_find_bcasts(struct rf_simulation *b);
/* Adds its dependencies, once all flows have jobs and listed ops are placed. */
void rf_simulation_place_bcasts(struct rf_simulation *b);

/* The same for rings. */
void rf_simulation_find_rings(struct rf_simulation *b);
void rf_simulation_place_rings(struct rf_simulation *b);
void rf_simulation_free_rings(struct rf_simulation *b);

#endif
