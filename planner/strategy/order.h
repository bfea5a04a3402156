/*
 * The source of each work and the order of works. A work moves as a whole;
 * works compete for node links and, when serialised, for ranks.
 *
 *   none   the first replica; works in the order given
 *   size   the replica with the least loaded node link, then the least loaded
 *          itself
 *   time   the same, relative to capacity (planner/assign/link_weights.h)
 *   order  source and order such that no two works meet at a sender or
 *          receiver: exact search for few works, a list schedule for many, the
 *          better of all candidates by simulation
 *
 * Deterministic and pure.
 */
#ifndef RF_PLANNER_STRATEGY_ORDER_H
#define RF_PLANNER_STRATEGY_ORDER_H

#include "planner/assign/link_weights.h"
#include "planner/strategy/works.h"

/* Assumed speed inside a node relative to that between nodes, for comparing
 * orders. It affects only the order. */
#define RF_ORDER_NEAR_SPEED 16

/*
 * Sets `source` of every work and permutation[0 … n-1], the order of emission.
 * With balance size or time and ranks that do one thing at a time, `whole`
 * works leave a node from its first holder, so that two of them do not share
 * the node's link while both hold up all their receivers. `loads` has the bytes
 * of each node's link, then those of each rank, from works chosen before, and
 * gets those of these.
 */
void rf_order_choose(const struct rf_world *world, enum rf_balance balance,
                     const struct rf_link_weights *weights, bool serialize,
                     struct rf_works *works, uint64_t *loads,
                     uint32_t *permutation);
/* Loads of nothing. The caller frees them. */
uint64_t *rf_order_loads(const struct rf_world *world);

/*
 * The same for works of one sender and one receiver each, too many to compare:
 * sorted by the distance from sender to receiver, so that at any time every
 * rank sends to another rank. Sets only `permutation`.
 */
void rf_order_shift(const struct rf_world *world, const uint32_t *src,
                    const uint32_t *dst, size_t n, uint32_t *permutation);

#endif
