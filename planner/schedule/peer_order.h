/*
 * The order in which a rank serves its peers. If every source began with the
 * same destination, that one's link would carry all of them while the others
 * idle. So each source begins with another: of the D ranks that it serves, in
 * ascending order and without itself, the i-th sending rank begins with number
 * i mod D and wraps around. When all serve all, this is a Latin square: in no
 * turn do two sources serve one rank while another idles, whether the sources
 * are among the destinations (rank r begins with r + 1) or apart from them, and
 * for any number of each. Pure.
 *
 * A source's turns follow from its own ops and from totals of the world, so its
 * node can compute them. Other nodes do not need them: a destination accepts
 * ops in any order.
 */
#ifndef RF_PLANNER_SCHEDULE_PEER_ORDER_H
#define RF_PLANNER_SCHEDULE_PEER_ORDER_H

#include "planner/schedule/schedule.h"

/* The index of `rank` among the sending ranks, from 0; in a schedule without
 * totals, all ranks send. */
uint32_t rf_peer_order_source(const struct rf_schedule *schedule,
                              uint32_t rank);

/* Numbers the turns of source number `source`: turn[r] stays RF_NONE for a rank
 * that it does not serve, and otherwise becomes the turn, from 0. Returns the
 * number of ranks served. */
uint32_t rf_peer_order_number(uint32_t *turn, uint32_t n_ranks,
                              uint32_t source);

/* By world rank, the turn in which `rank` sends to it: itself last, RF_NONE:
 * never. The schedule must have all ops of `rank`. The caller frees it. */
uint32_t *rf_peer_order_make(const struct rf_schedule *schedule, uint32_t rank);

/* The `n` ops that `rank` sends, by round, turn and id. The caller frees the
 * array; the ops belong to the schedule. */
const struct rf_op **rf_peer_order_of(const struct rf_schedule *schedule,
                                      uint32_t rank, size_t *n);

#endif
