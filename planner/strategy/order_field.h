/*
 * Internal to order.c and order_search.c: the times at which links and ranks
 * become free while an order is tried out, and the candidates of each work.
 */
#ifndef RF_PLANNER_STRATEGY_ORDER_FIELD_H
#define RF_PLANNER_STRATEGY_ORDER_FIELD_H

#include "planner/scenario/world.h"
#include "planner/strategy/works.h"

/* The most works for which an exact search finds the best order. */
#define RF_ORDER_SEARCH_MAX 8

/* A work to order. */
struct rf_order_job {
    uint32_t work;
    size_t candidates;     /* positions in candidates[]: indices of sources */
    uint32_t n_candidates; /* one per node */
    size_t nodes;          /* positions in nodes[]: the receivers' nodes */
    uint32_t n_nodes;      /* distinct, ascending */
    double duration;
};

struct rf_order_field {
    const struct rf_world *world;
    const struct rf_works *works;
    bool serialize;
    struct rf_order_job *jobs;
    uint32_t n_jobs;
    uint32_t *candidates;
    size_t n_candidates, candidates_capacity;
    uint32_t *nodes;
    size_t n_nodes, nodes_capacity;
    double *free_at; /* link out by node, link in by node, ranks */
    size_t n_free;
    uint32_t *uses; /* scratch: the resources of one job */
};

/* A complete order: jobs in sequence with their chosen candidates. */
struct rf_order_answer {
    uint32_t *sequence; /* n_jobs entries each */
    uint32_t *candidate;
    double makespan;
};

uint32_t rf_order_source_rank(const struct rf_order_field *field, uint32_t job,
                              uint32_t candidate);

/* The time at which all resources of a job are free. */
double rf_order_start(const struct rf_order_field *field, uint32_t job,
                      uint32_t candidate);

/* Marks all resources of a job busy until `finish`. */
void rf_order_occupy(struct rf_order_field *field, uint32_t job,
                     uint32_t candidate, double finish);

/* Fills `answer` (the caller provides the arrays) and its makespan. */
void rf_order_list(struct rf_order_field *field,
                   struct rf_order_answer *answer);
/* Improves on `answer` by exact search; for few jobs. */
void rf_order_search(struct rf_order_field *field,
                     struct rf_order_answer *answer);

#endif
