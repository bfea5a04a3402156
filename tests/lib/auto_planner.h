/* The planner's objects, for AUTO(). */
#ifndef RF_TESTS_LIB_AUTO_PLANNER_H
#define RF_TESTS_LIB_AUTO_PLANNER_H

#include "planner/model/model.h"
#include "planner/plan/plan_walk.h"
#include "planner/predict/bounds.h"
#include "planner/schedule/schedule.h"
#include "tests/lib/auto.h"

AUTO_POINTER(rf_model, rf_model_destroy)
AUTO_POINTER(rf_spec, rf_spec_destroy)
AUTO_POINTER(rf_world, rf_world_destroy)
AUTO_POINTER(rf_plan, rf_plan_destroy)
AUTO_STRUCT(rf_plan_walk, rf_plan_walk_end)
AUTO_POINTER(rf_schedule, rf_schedule_destroy)
AUTO_STRUCT(rf_capacities, rf_capacities_free)

#endif
