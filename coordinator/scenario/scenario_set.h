/*
 * The scenarios of a command, each planned and proved before any node is
 * touched, and kept until it is their turn: planning a large one takes seconds.
 *
 * Memory is bounded: plans and schedules are kept up to a budget. A scenario
 * that does not fit in what is left of it is planned again when it is taken.
 * Within RF_SCENARIOS_BYTES are 4096 scenarios of 128 KiB each (16 ranks and
 * 150 operations), or schedules with a million operations in all.
 */
#ifndef RF_COORDINATOR_SCENARIO_SCENARIO_SET_H
#define RF_COORDINATOR_SCENARIO_SCENARIO_SET_H

#include "coordinator/scenario/scenario.h"

#define RF_SCENARIOS_BYTES ((uint64_t)512 << 20)

struct rf_scenario_set;

/* Builds scenario `index`, or the first behind it that can work: one that
 * cannot and that the file allows to be left out is taken out of `config`. *out
 * stays NULL where none is behind it; where none at all is left, that is
 * RF_ERR_CONFIG. */
enum rf_status rf_scenario_set_try(struct rf_config *config,
                                   const struct rf_model *model, size_t index,
                                   struct rf_scenario **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Logs "12 of 15 scenarios, 1 skipped, 2 slow left out", where that says
 * anything, and what was skipped why. */
void rf_scenario_set_announce(const struct rf_config *config);

/* Plans and proves every scenario of `config`; both are borrowed, and `config`
 * loses scenarios as in rf_scenario_set_try(). Fails with the first that cannot
 * work and must, or else announces what there is. */
enum rf_status rf_scenario_set_plan(struct rf_config *config,
                                    const struct rf_model *model,
                                    uint64_t budget_bytes,
                                    struct rf_scenario_set **out,
                                    struct rf_err *err) RF_MUST_CHECK;
/* The same while a run works with `config`, which keeps its scenarios: one that
 * cannot work is an error in any case. From any thread. */
enum rf_status rf_scenario_set_plan_late(const struct rf_config *config,
                                         const struct rf_model *model,
                                         uint64_t budget_bytes,
                                         struct rf_scenario_set **out,
                                         struct rf_err *err) RF_MUST_CHECK;
void rf_scenario_set_destroy(
    struct rf_scenario_set *scenarios); /* NULL is fine */

/* Gives scenario `index` away, planned again where it was not kept or has been
 * taken before. From any thread, one call at a time. */
enum rf_status rf_scenario_set_take(struct rf_scenario_set *scenarios,
                                    size_t index, struct rf_scenario **out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Takes one back that was given away. */
void rf_scenario_set_return(struct rf_scenario_set *scenarios,
                            struct rf_scenario *scenario);

/* How often a scenario was planned so far. */
size_t rf_scenario_set_planned(const struct rf_scenario_set *scenarios);

#endif
