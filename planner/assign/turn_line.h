/*
 * Lines: members with shares, which serve in turn along a row of transfers. A
 * transfer across the end of a share is cut there, unless one side may take all
 * of it.
 */
#ifndef RF_PLANNER_ASSIGN_TURN_LINE_H
#define RF_PLANNER_ASSIGN_TURN_LINE_H

#include "planner/layout/piece.h"

/* Members in line: entries [first, first + count) of a pool. */
struct rf_turn_line {
    uint32_t first, count;
    uint32_t at;  /* the member that serves now, relative to first */
    uint64_t pos; /* bytes handed out */
    uint64_t end; /* end of the share of `at` */
};

/* The entries of several lines. */
struct rf_pool {
    uint32_t *owner;
    uint64_t *amount;
};

/* Appends a member if its share is above 0. The line's members are in the pool
 * from `position` of its first member on. */
void rf_turn_line_join(struct rf_turn_line *line, struct rf_pool *pool,
                       uint32_t position, uint32_t owner, uint64_t amount);

/* How many of the next `bytes` the current member takes; moves on to the next
 * member if little is left of a share. A member may exceed its share by
 * slack[owner], or by `flat` when `slack` is NULL. */
uint64_t rf_turn_line_turn(struct rf_turn_line *line,
                           const struct rf_pool *pool, uint64_t bytes,
                           const uint64_t *slack, uint64_t flat);

/* Ends the turn of a member other than the last. */
void rf_turn_line_next(struct rf_turn_line *line, const struct rf_pool *pool);

static inline uint32_t rf_turn_line_owner(const struct rf_turn_line *line,
                                          const struct rf_pool *pool)
{
    return pool->owner[line->first + line->at];
}

/* `bytes` from the start of `box`, rounded to whole slices of the outermost
 * dimension whose slices are no larger than `fine`. */
uint64_t rf_turn_line_round(const struct rf_box *box, uint64_t bytes,
                            uint32_t item, uint64_t fine);

#endif
