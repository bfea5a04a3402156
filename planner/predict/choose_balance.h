/*
 * Balance "time": the figures of links become weights, and the plan by weights
 * is taken if its simulation is faster than that of the plan by size. So, in
 * the simulation, it is never worse than size. Pure and deterministic.
 */
#ifndef RF_PLANNER_PREDICT_CHOOSE_BALANCE_H
#define RF_PLANNER_PREDICT_CHOOSE_BALANCE_H

#include "planner/predict/choose_strategy.h"

/*
 * Weights of the NICs of all nodes, by what each sends: the smallest integers
 * within 1 % of the figures' ratios. A node without a figure counts as one with
 * the fastest NIC. False, with `out` untouched: no node has a figure.
 */
bool rf_capacities_weigh(const struct rf_capacities *links,
                         struct rf_link_weight *out);

struct rf_balance_choice {
    struct rf_strategy_candidate size,
        time; /* with the scenario's strategy; with auto, the fastest for
                 each */
    bool compared;
    enum rf_balance taken;
    char why[224]; /* in words */
};

/*
 * Compares `env->plan`, which is by size, with the plan by `weights`, one per
 * node or NULL. If that is faster, `plan` gets it; the caller then sets its
 * spec, to one that differs from that of `env->plan` by balance and weights
 * alone. Otherwise `plan` gets NULL.
 */
enum rf_status rf_choose_balance(const struct rf_choose_env *env,
                                 struct rf_link_weight *weights,
                                 struct rf_balance_choice *out,
                                 struct rf_plan **plan,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
