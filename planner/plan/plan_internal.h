/* Private to the planner: the data of a plan. Its size grows with the distinct
 * layouts and the ranks, not with the transfers. */
#ifndef RF_PLANNER_PLAN_PLAN_INTERNAL_H
#define RF_PLANNER_PLAN_PLAN_INTERNAL_H

#include "planner/assign/assign.h"

struct rf_plan_private {
    struct rf_layouts layouts[RF_SIDES];
    struct rf_shards source, target;
    struct rf_matches matches;
    uint64_t *match_elements;       /* by match: elements that its two shards
                                       share */
    struct rf_link_weights weights; /* of links, with balance time */
    struct rf_assign *assign;
    struct rf_plan *before; /* plan->weights, if that is another one; it then
                               owns `converted` */
};

#endif
