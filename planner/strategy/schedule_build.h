/* Builds the schedule of a plan. */
#ifndef RF_PLANNER_STRATEGY_SCHEDULE_BUILD_H
#define RF_PLANNER_STRATEGY_SCHEDULE_BUILD_H

#include "planner/schedule/schedule.h"

/*
 * Makes the ops for the strategy, balance and chunking of plan->spec. With
 * `node` = RF_NONE those of the world, otherwise those whose source or
 * destination rank is on that node (ids, totals and digest are the world's
 * either way). Ops of the world that repeat over ranks are stored once (`tmpl`,
 * `rings`): rf_schedule_walk lists all ops, rf_schedule_pairs() and
 * rf_schedule_sizes() sum them up. A node's ops are all in `ops`. The plan must
 * outlive a schedule of the world.
 *
 * Temporary memory beside the stored ops: none for send_recv (36 bytes per
 * transfer of the world with balance order); else the world's unit tasks and
 * their holders, and 64 bytes for every work (allgather: one per part and
 * node). Strategy auto is RF_ERR_CONFIG: choose a strategy first.
 */
enum rf_status rf_schedule_build(const struct rf_plan *plan, uint32_t node,
                                 struct rf_schedule **out,
                                 struct rf_err *err) RF_MUST_CHECK;
/* The world's schedule, or NULL if its readers would visit more than `max_ops`
 * operations, which bound their memory and time. */
enum rf_status rf_schedule_build_up_to(const struct rf_plan *plan,
                                       uint64_t max_ops,
                                       struct rf_schedule **out,
                                       struct rf_err *err) RF_MUST_CHECK;

#endif
