/* Private to the planner: what a plan keeps. Its size follows the distinct
 * layouts and the ranks, not the transfers. */
#ifndef RF_PLANNER_PLAN_PLAN_INTERNAL_H
#define RF_PLANNER_PLAN_PLAN_INTERNAL_H

#include "planner/assign/assign.h"

struct rf_plan_private {
    struct rf_layouts layouts[RF_SIDES];
    struct rf_shards source, target;
    struct rf_matches matches;
    uint64_t *match_elements;       /* that the shards of a match share */
    struct rf_link_weights weights; /* of links, with balance time */
    struct rf_assign *assign;
};

#endif
