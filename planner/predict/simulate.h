/*
 * Predicted times: a schedule becomes jobs of a few ops each, with their order
 * and dependencies, and the memories, copy engines, ports and links become
 * servers (planner/predict/queueing.h). An estimate, not a bound;
 * docs/MEASURING.md, "Predictions", lists what it leaves out.
 */
#ifndef RF_PLANNER_PREDICT_SIMULATE_H
#define RF_PLANNER_PREDICT_SIMULATE_H

#include "planner/predict/simulate_env.h"

/* Where the time goes: the kind of server held longest. */
enum rf_path {
    RF_PATH_IN_PLACE, /* none: nothing moves */
    RF_PATH_INSIDE,   /* memory and ports of a node, both ends of its copies */
    RF_PATH_RANK,     /* one rank of a node, copying for itself */
    RF_PATH_BETWEEN,  /* links and NICs between nodes */
    RF_PATH_CPU,      /* the cost of each operation */
    RF_PATH_CHANGES,  /* comparing, encoding, writing (encoded.h) */
    RF_PATH_CONVERSION, /* of weights ("quantize") */
};

struct rf_simulated {
    double ms;
    double busy_ms;    /* of the server held longest */
    char busiest[96];  /* "link gpu-a out", "nothing" */
    enum rf_path path; /* of that server */
    uint64_t in_place; /* bytes that stay in place */
};

/* Conversions come before or after the rest; with "overlap" they take turns
 * with what passes on links, group after group. Nodes without a rate of
 * conversions convert in no time. RF_ERR_INTERNAL: the links do not match the
 * plan's nodes, or the schedule can never end. */
enum rf_status rf_simulate(const struct rf_simulate_env *env,
                           struct rf_simulated *out,
                           struct rf_err *err) RF_MUST_CHECK;

#endif
