/*
 * Lines. Ends of shares are absolute places in the row of transfers, so that
 * one member's excess or deficit does not add up along the line.
 */
#include "planner/assign/turn_line.h"

#include "planner/layout/box.h"

void rf_turn_line_join(struct rf_turn_line *line, struct rf_pool *pool,
                       uint32_t position, uint32_t owner, uint64_t amount)
{
    if (amount == 0) {
        return;
    }
    if (line->count == 0) {
        line->first = position;
        line->end = amount;
    }
    pool->owner[line->first + line->count] = owner;
    pool->amount[line->first + line->count] = amount;
    line->count++;
}

void rf_turn_line_next(struct rf_turn_line *line, const struct rf_pool *pool)
{
    line->at++;
    line->end += pool->amount[line->first + line->at];
}

uint64_t rf_turn_line_turn(struct rf_turn_line *line,
                           const struct rf_pool *pool, uint64_t bytes,
                           const uint64_t *slack, uint64_t flat)
{
    const uint32_t *owner = pool->owner + line->first;
    while (line->at + 1 < line->count) {
        uint64_t left = line->end > line->pos ? line->end - line->pos : 0;
        uint64_t here = slack ? slack[owner[line->at]] : flat;
        uint64_t there = slack ? slack[owner[line->at + 1]] : flat;
        if (bytes <= left) {
            return bytes;
        }
        if (left > 0 && bytes - left <= here) {
            return bytes;
        }
        if (left > there) {
            return left;
        }
        rf_turn_line_next(line, pool);
    }
    return bytes;
}

uint64_t rf_turn_line_round(const struct rf_box *box, uint64_t bytes,
                            uint32_t item, uint64_t fine)
{
    uint64_t step = 1;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        step = rf_box_step(box, d);
        if (step * item <= fine) {
            break;
        }
    }
    step *= item;
    return (bytes + step / 2) / step * step;
}
