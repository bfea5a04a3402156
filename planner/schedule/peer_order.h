/*
 * In which order a rank serves its peers. If every source began with the same
 * destination, that one's link would carry all of them while the others idle.
 * So each begins with another: of the D ranks that it serves, in ascending
 * order and without itself, the i-th of the ranks that send begins with number
 * i mod D and goes round. Where all serve all this is a Latin square: in no
 * turn do two sources serve one rank while another idles, whether the sources
 * are among the destinations (rank r begins with r + 1) or apart from them, and
 * however many there are of each. Pure.
 *
 * A source's turns follow from its own ops and from totals of the world, so its
 * node knows them. Others need not: a destination takes what comes.
 */
#ifndef RF_PLANNER_SCHEDULE_PEER_ORDER_H
#define RF_PLANNER_SCHEDULE_PEER_ORDER_H

#include "planner/schedule/schedule.h"

/* Which of the ranks that send `rank` is, from 0; where the schedule has no
 * totals, all do. */
uint32_t rf_peer_order_source(const struct rf_schedule *schedule,
                              uint32_t rank);

/* Numbers the turns of source number `source`: turn[r] is RF_NONE for a rank
 * that it does not serve, and stays so; else it becomes the turn, from 0.
 * Returns how many it serves. */
uint32_t rf_peer_order_number(uint32_t *turn, uint32_t n_ranks,
                              uint32_t source);

/* By world rank the turn in which `rank` sends to it, all of whose ops the
 * schedule has; to itself last, RF_NONE: never. To be freed. */
uint32_t *rf_peer_order_make(const struct rf_schedule *schedule, uint32_t rank);

/* The ops that `rank` sends, by round, turn and id; `n` of them, to be freed.
 */
const struct rf_op **rf_peer_order_of(const struct rf_schedule *schedule,
                                      uint32_t rank, size_t *n);

#endif
