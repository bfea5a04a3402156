/* Works: the items to order. */
#ifndef RF_PLANNER_STRATEGY_WORKS_H
#define RF_PLANNER_STRATEGY_WORKS_H

#include "planner/layout/box.h"
#include "planner/plan/unit_task.h"

/* Data that moves as a whole from one of its sources to all of its receivers,
 * through the receivers' nodes one after another. */
struct rf_work {
    uint64_t bytes;
    /* Positions in the pool of holders. If a source is on the receivers' node,
     * only sources of that node are listed. */
    size_t sources, receivers;
    uint32_t n_sources, n_receivers;
    uint32_t source;     /* chosen, < n_sources */
    uint32_t unit, part; /* caller's data: the unit task and the part of it … */
    struct rf_split split; /* … under this split */
    uint32_t turn; /* caller's data: the receiver of a node that comes first */
    bool whole;    /* keeps all receivers busy; see rf_order_choose() */
};

struct rf_works {
    struct rf_work *works;
    size_t n, capacity;
    struct rf_holder *pool;
    size_t n_pool, pool_capacity;
};

void rf_works_free(struct rf_works *works);

#endif
