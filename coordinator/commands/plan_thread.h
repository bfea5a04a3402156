/*
 * Plans beside the event loop: takes a scenario, which may have to be planned
 * again, or plans all of a model that only nodes had. That takes longer than
 * agents wait for a sign of life from their coordinator, and signals must be
 * answered meanwhile.
 */
#ifndef RF_COORDINATOR_COMMANDS_PLAN_THREAD_H
#define RF_COORDINATOR_COMMANDS_PLAN_THREAD_H

#include <uv.h>

#include "coordinator/scenario/scenario_set.h"

/* Gets the scenario, which it owns, or NULL and why there is none. */
typedef void (*rf_planned_fn)(struct rf_scenario *scenario,
                              const struct rf_err *why, void *data);

/*
 * Calls rf_scenario_set_take() for scenario `index` on a thread of libuv's,
 * then `planned` on the loop. It cannot be cancelled: the loop and `scenarios`
 * must live until then.
 */
void rf_plan_thread_start(uv_loop_t *loop, struct rf_scenario_set *scenarios,
                          size_t index, rf_planned_fn planned, void *data);

/* Gets the model and its scenarios, which it owns, or NULL twice and why there
 * are none. */
typedef void (*rf_all_planned_fn)(struct rf_model *model,
                                  struct rf_scenario_set *scenarios,
                                  const struct rf_err *why, void *data);

/* The same for rf_load_model() and rf_scenario_set_plan_late(); `config` is
 * borrowed and must not change until then. */
void rf_plan_thread_start_all(uv_loop_t *loop, const struct rf_config *config,
                              rf_all_planned_fn planned, void *data);

#endif
