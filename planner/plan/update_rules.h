/* The rules of a scenario's "update" that need the model. */
#ifndef RF_PLANNER_PLAN_UPDATE_RULES_H
#define RF_PLANNER_PLAN_UPDATE_RULES_H

#include "planner/plan/plan.h"

/* RF_ERR_CONFIG for the weights of a checkpoint, which have no second state, for
 * a dtype that differs between the sides, and for a "match" that no tensor
 * has. */
enum rf_status rf_update_check(const struct rf_plan *plan,
                               struct rf_err *err) RF_MUST_CHECK;

#endif
