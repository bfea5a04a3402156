/* Shared by the files of the simulation: flows, and the jobs they become.
 * Private to simulat*.c. */
#ifndef RF_PLANNER_PREDICT_SIMULATION_H
#define RF_PLANNER_PREDICT_SIMULATION_H

#include "planner/predict/queueing.h"
#include "planner/predict/simulate_env.h"
#include "planner/schedule/delivery.h"
#include "planner/schedule/in_place.h"

#define NO_FLOW UINT32_MAX
/* `after` of all that leaves staging memory, whatever filled it; what enters a
 * circle (simulate_ring.c) has a number below. */
#define RF_AFTER_STAGE (UINT32_MAX - 1)
/* The most flows of one kind: bounds memory and time. */
#define RF_SIMULATION_FLOWS 16384

struct rf_simulated_flow {
    uint32_t src, dst;
    uint32_t after; /* the flow that it forwards, or its distance from the first
                       copy in steps; or see RF_AFTER_STAGE */
    uint32_t turn;  /* with "serialize": its turn at its ranks; with "group":
                       its group, from 1; else 0 */
    uint32_t turns; /* that its ops take, at least 1 */
    uint32_t n_jobs;
    uint32_t next;         /* in its bucket */
    bool forwarded;        /* its bytes go on to other ranks */
    uint64_t bytes, n_ops; /* of ops that move */
    uint64_t first_job;
    uint64_t placed;   /* bytes of chunks already placed in jobs */
    double latency_ms; /* until others may forward what arrived */
};

/* A delivery or, in a schedule without, an op: its first hop. */
struct rf_simulated_item {
    uint32_t flow;  /* NO_FLOW: it stays in place */
    uint32_t depth; /* distance from the first copy in steps */
    uint64_t start; /* in the flow, once it is placed */
};

struct rf_ring_flows;

struct rf_simulation {
    const struct rf_simulate_env *env;
    const struct rf_world *world;
    struct rf_simulated_item *items;
    size_t n_items;
    bool by_depth; /* `after` is a distance, since there are many flows */
    struct rf_simulated_flow *flows;
    size_t n_flows, flows_capacity;
    uint32_t *buckets; /* the first flow by hash of its key */
    size_t n_buckets;
    struct rf_job *jobs;
    uint64_t n_jobs;
    size_t *last_edge; /* per job: the last in-step edge to it */
    struct rf_job_edge *edges;
    size_t n_edges, edges_capacity;
    uint64_t in_place;
    struct rf_in_place_set covered; /* with RF_LEFT_COVERED */
    uint32_t *n_ranks;              /* per node */
    uint32_t *n_copiers; /* per node: copying ranks; 0 unless RF_COPIER_DST */
    uint32_t turn_slots; /* turns under way at a rank; 0: there are none */
    bool by_group;       /* turns are groups, also of local copies; else tasks
                              between ranks */
    uint32_t a_turn;     /* groups or tasks in a turn */
    struct rf_ring_flows *rings; /* see simulate_ring.c */
};

/* The item's op or, of a delivery, what its ops have in common. */
const struct rf_op *rf_simulation_op(const struct rf_simulation *b,
                                     size_t item);
/* The turn of an op's flow. */
uint32_t rf_simulation_turn(const struct rf_simulation *b,
                            const struct rf_op *op);

/* The index of the flow with that source, destination, `after` and turn, which
 * is added unless it exists. */
uint32_t rf_simulation_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *key);
/* Adds a flow unlike any other; its `bytes` and `n_ops` are set. */
void rf_simulation_add_flow(struct rf_simulation *b,
                            const struct rf_simulated_flow *flow);
/* Whether the ranks are on different nodes. */
bool rf_simulation_crosses(const struct rf_simulation *b, uint32_t src,
                           uint32_t dst);

/* Makes one job wait for another. */
void rf_simulation_add_edge(struct rf_simulation *b, struct rf_job_edge edge);

/* Where chunks begin, one after another, and where the last one ends. */
struct rf_cuts {
    double *at;
    size_t n, capacity;
};
/* Adds the ends of the chunks of a part, in bytes as written. */
void rf_simulation_cut(struct rf_cuts *cuts, const struct rf_delivery *delivery,
                       uint32_t part);

/* Chunks in a flow: a cut at x is there at start + x * scale. */
struct rf_track {
    const struct rf_simulated_flow *flow;
    double start, scale;
};
/* Each of `n` chunks moves in `to` once it is there in `from`. */
void rf_simulation_forward(struct rf_simulation *b, const struct rf_track *to,
                           const struct rf_track *from, const double *cuts,
                           size_t n);

/* Adds the flows of trees and single ops. */
void rf_simulation_find_trees(struct rf_simulation *b);
/* Adds their dependencies, once all flows have jobs. */
void rf_simulation_place_trees(struct rf_simulation *b);

/* The same for rings. */
void rf_simulation_find_rings(struct rf_simulation *b);
void rf_simulation_place_rings(struct rf_simulation *b);
void rf_simulation_free_rings(struct rf_simulation *b);

#endif
