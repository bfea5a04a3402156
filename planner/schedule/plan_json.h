/* The plan as JSON, the output of `plan --json [--full]`. Fields:
 * docs/RESULTS.md. */
#ifndef RF_PLANNER_SCHEDULE_PLAN_JSON_H
#define RF_PLANNER_SCHEDULE_PLAN_JSON_H

#include "planner/schedule/schedule.h"

/* The `plan` object of results: digest, transfers, bytes_*, max_*, bound_*,
 * unknown, plan_ms. A new reference. */
json_t *rf_plan_summary_json(const struct rf_plan *plan);

/* {"scenario", "plan", "meshes", "memory", "traffic", "ranks", "transfers",
 * "steps"}; the last three only with `full`. `node_names` by node. A new
 * reference. */
json_t *rf_plan_json(const struct rf_plan *plan,
                     const struct rf_schedule *schedule,
                     const char *const *node_names, bool full);

#endif
