/* Private to the planner: what a plan keeps beside its transfers. */
#ifndef RF_PLANNER_PLAN_PRIVATE_H
#define RF_PLANNER_PLAN_PRIVATE_H

#include "planner/layout.h"

struct rf_plan_private {
    struct rf_layouts layouts[RF_SIDES];
};

#endif
