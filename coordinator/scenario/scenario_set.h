/*
 * The scenarios of a command, all planned and proved before any node is
 * touched, and kept until their turn: planning a large one takes seconds.
 *
 * Plans and schedules are kept up to a memory budget. A scenario that does not
 * fit into the rest of it is planned again when taken. RF_SCENARIOS_BYTES holds
 * 4096 scenarios of 128 KiB each (16 ranks and 150 operations), or schedules
 * with a million operations in all.
 */
#ifndef RF_COORDINATOR_SCENARIO_SCENARIO_SET_H
#define RF_COORDINATOR_SCENARIO_SCENARIO_SET_H

#include "coordinator/scenario/scenario.h"

#define RF_SCENARIOS_BYTES ((uint64_t)512 << 20)

struct rf_scenario_set;

/* Builds scenario `index`, or the first after it that works. One that does not
 * work, and that the file allows to skip, is removed from `config`. *out stays
 * NULL if none follows; if none at all is left, that is RF_ERR_CONFIG. */
enum rf_status rf_scenario_set_try(struct rf_config *config,
                                   const struct rf_model *model, size_t index,
                                   struct rf_scenario **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Logs "12 of 15 scenarios, 1 skipped, 2 slow left out", unless the command
 * uses exactly the entries of the file, and why scenarios were skipped. */
void rf_scenario_set_announce(const struct rf_config *config);

/* Plans and proves every scenario of `config`. Borrows both; removes scenarios
 * from `config` as rf_scenario_set_try() does. Fails with the first required
 * scenario that cannot work; otherwise announces the set. */
enum rf_status rf_scenario_set_plan(struct rf_config *config,
                                    const struct rf_model *model,
                                    uint64_t budget_bytes,
                                    struct rf_scenario_set **out,
                                    struct rf_err *err) RF_MUST_CHECK;
/* The same while a run uses `config`, which keeps its scenarios: one that
 * cannot work is always an error. Callable from any thread. */
enum rf_status rf_scenario_set_plan_late(const struct rf_config *config,
                                         const struct rf_model *model,
                                         uint64_t budget_bytes,
                                         struct rf_scenario_set **out,
                                         struct rf_err *err) RF_MUST_CHECK;
void rf_scenario_set_destroy(
    struct rf_scenario_set *scenarios); /* NULL is fine */

/* Gives scenario `index` away; plans it again if it was not kept or was taken
 * before. Callable from any thread, one call at a time. */
enum rf_status rf_scenario_set_take(struct rf_scenario_set *scenarios,
                                    size_t index, struct rf_scenario **out,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Takes back a scenario that was taken: keeps it within the budget, or frees
 * it. */
void rf_scenario_set_return(struct rf_scenario_set *scenarios,
                            struct rf_scenario *scenario);

#endif
