/*
 * Strategy "auto" (balance "time": choose_balance.h): simulates the schedule of
 * every strategy on the same links and takes the fastest. Only the order
 * matters, so links without figures get assumed ones. Pure and deterministic.
 */
#ifndef RF_PLANNER_PREDICT_CHOOSE_STRATEGY_H
#define RF_PLANNER_PREDICT_CHOOSE_STRATEGY_H

#include "planner/predict/simulate.h"

/* Assumed if the cost of an operation is not given. */
#define RF_CHOOSE_PER_OP_US 2
/* A schedule with more operations is not compared. */
#define RF_CHOOSE_MAX_OPS (UINT64_C(1) << 20)

struct rf_choose_env {
    const struct rf_plan *plan; /* of any strategy */
    const struct rf_capacities *links;
    const char *const *node_names;
    double per_op_us;
    struct rf_intra_node inside; /* how the method moves inside a node */
    bool crosses_nodes;          /* operations may go from node to node */
    uint64_t max_ops;            /* RF_CHOOSE_MAX_OPS */
};

struct rf_strategy_candidate {
    enum rf_strategy strategy;
    double ms;        /* predicted; meaningless with `why_not` */
    uint64_t ops;     /* simulated for it */
    char busiest[96]; /* see struct rf_simulated */
    char why_not[96]; /* why it is no candidate; empty: a candidate */
};

struct rf_choice {
    struct rf_strategy_candidate candidates[RF_STRATEGIES];
    enum rf_strategy taken; /* send_recv if there are none */
};

/* Of the strategies less than 1 % slower than the fastest, takes the first in
 * the order of enum rf_strategy: a smaller gain does not justify relays. */
enum rf_status rf_choose_strategy(const struct rf_choose_env *env,
                                  struct rf_choice *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Predicts the time of `env->plan` by out->strategy, or sets why it cannot. */
enum rf_status rf_choose_strategy_try(const struct rf_choose_env *env,
                                      struct rf_strategy_candidate *out,
                                      struct rf_err *err) RF_MUST_CHECK;

/* Figures that were assumed, the largest of each kind; 0: none. */
struct rf_assumed {
    double copy_gbytes_per_s, link_gbytes_per_s, link_latency_us;
    double per_op_us; /* set by callers that assume it */
};

/*
 * Fills in missing figures so that the usual order holds: links between nodes
 * are as fast as the fastest known one, or a tenth of the fastest memory, or 10
 * GB/s, and take 50 us to arrive; memory is ten times as fast as all links of
 * its node. Returns whether any rate was missing; `out` may be NULL.
 */
bool rf_capacities_assume(struct rf_capacities *links, struct rf_assumed *out);

#endif
