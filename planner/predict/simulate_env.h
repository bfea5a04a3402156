/* The input of a simulation. */
#ifndef RF_PLANNER_PREDICT_SIMULATE_ENV_H
#define RF_PLANNER_PREDICT_SIMULATE_ENV_H

#include "planner/predict/bounds.h"
#include "planner/predict/intra_node.h"

struct rf_simulate_env {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule; /* of the world */
    const struct rf_capacities *links;  /* figures of 0: no limit */
    const char *const *node_names;
    double per_op_us; /* of the processors of both ranks */
    struct rf_intra_node inside;
};

#endif
