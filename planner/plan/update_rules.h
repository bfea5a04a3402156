/* The rules of a scenario's "update" that need the model. */
#ifndef RF_PLANNER_PLAN_UPDATE_RULES_H
#define RF_PLANNER_PLAN_UPDATE_RULES_H

#include "planner/plan/plan.h"

/* RF_ERR_CONFIG for a density where the model is a checkpoint, whose weights have
 * no second state, and for checkpoints where it is none, for a dtype that differs between the sides, and for a "match" that no tensor
 * has. */
enum rf_status rf_update_check(const struct rf_plan *plan,
                               struct rf_err *err) RF_MUST_CHECK;

#endif
