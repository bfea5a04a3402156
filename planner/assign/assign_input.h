/* The input of source choice. */
#ifndef RF_PLANNER_ASSIGN_ASSIGN_INPUT_H
#define RF_PLANNER_ASSIGN_ASSIGN_INPUT_H

#include "planner/assign/link_weights.h"
#include "planner/assign/match.h"

struct rf_assign_input {
    const struct rf_world *world;
    enum rf_balance balance;
    const struct rf_layouts *source_layouts, *target_layouts;
    const struct rf_shards *source, *target;
    const struct rf_matches *matches;
    const uint64_t *match_bytes; /* of each match, at the destination's dtype */
    const struct rf_link_weights *weights; /* of links, with balance time */
};

#endif
