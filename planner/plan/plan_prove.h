/* The proof of layouts (plan_prove.c). Internal to the planner and its tests. */
#ifndef RF_PLANNER_PLAN_PLAN_PROVE_H
#define RF_PLANNER_PLAN_PLAN_PROVE_H

#include "planner/plan/plan.h"

/* Proves one layout; `items`: bytes of an element, by family. */
enum rf_status rf_plan_prove_layout(const struct rf_rank_layout *layout,
                                    const uint32_t *items,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Proves all layouts of a plan. */
enum rf_status rf_plan_prove_layouts(const struct rf_plan *plan,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif
