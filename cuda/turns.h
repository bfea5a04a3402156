/*
 * In which order a rank serves its peers. If every source began with rank 0,
 * that one's link would carry all of them while the others idle; so each begins
 * with the rank behind it: in turn k rank r sends to r + k + 1, and no two
 * ranks send to the same one (a Latin square). Pure.
 */
#ifndef RF_CUDA_TURNS_H
#define RF_CUDA_TURNS_H

#include "planner/schedule.h"

/* The turn, from 0, in which `from` sends to `to`; itself last. */
static inline uint32_t rf_turn(uint32_t from, uint32_t to, uint32_t n_ranks)
{
    return (to + n_ranks - from + n_ranks - 1) % n_ranks;
}

/* The ops that `rank` sends, by round, turn and id; `n` of them, to be freed.
 */
const struct rf_op **rf_turns_of(const struct rf_schedule *schedule,
                                 uint32_t rank, size_t *n);

#endif
