/*
 * How long the steps of a scenario may take before a rank counts as hanging,
 * where that depends on how much there is to do. In seconds. Pure.
 */
#ifndef RF_COORDINATOR_RUN_LIMITS_H
#define RF_COORDINATOR_RUN_LIMITS_H

#include "coordinator/scenario/scenario.h"

/* Making the plan, opening the method. */
int64_t rf_run_limit_prepare_s(const struct rf_scenario *scenario);

/* Touching all of the busiest node's memory: fill, verify, close. */
int64_t rf_run_limit_memory_s(const struct rf_scenario *scenario);

/* Writing a copy of the inference side to a slow disk. */
int64_t rf_run_limit_export_s(const struct rf_scenario *scenario);

/*
 * An iteration: the scenario's timeout_s if it has one. Otherwise 40 times
 * `bound_ms`, what the probed links allow (0: not known), or each byte at a
 * rate below which nobody would measure, whichever is more.
 */
int64_t rf_run_limit_iteration_s(const struct rf_scenario *scenario,
                                 double bound_ms);

#endif
