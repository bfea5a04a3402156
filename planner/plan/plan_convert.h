/* Plans of refits whose senders convert: what moves is already in the format of
 * "quantize". */
#ifndef RF_PLANNER_PLAN_PLAN_CONVERT_H
#define RF_PLANNER_PLAN_PLAN_CONVERT_H

#include "planner/plan/plan.h"

/* Replaces model and layouts of a plan, which has these and plan->converted, by
 * those after conversion; plan->weights is then the plan with what it had.
 * RF_ERR_CONFIG with the tensor and the rule. Also after an error,
 * rf_plan_destroy() frees all. */
enum rf_status rf_plan_convert(struct rf_plan *plan,
                               struct rf_err *err) RF_MUST_CHECK;

#endif
