/* In which order a rank serves its peers. See turns.h. */
#include "cuda/turns.h"

#include <stdlib.h>

#include "common/mem.h"

struct turn {
    uint32_t number;
    const struct rf_op *op;
};

static int compare(uint32_t x, uint32_t y)
{
    return (x > y) - (x < y);
}

static int by_round_turn_id(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    int order = compare(x->op->round, y->op->round);
    order = order != 0 ? order : compare(x->number, y->number);
    return order != 0 ? order : compare(x->op->id, y->op->id);
}

const struct rf_op **rf_turns_of(const struct rf_schedule *schedule,
                                 uint32_t rank, size_t *n)
{
    struct turn *turns = rf_xcalloc(schedule->n_ops + 1, sizeof(*turns));
    const struct rf_op **ops;
    *n = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == rank) {
            turns[(*n)++] =
                (struct turn){rf_turn(rank, op->dst, schedule->n_ranks), op};
        }
    }
    qsort(turns, *n, sizeof(*turns), by_round_turn_id);
    ops = rf_xcalloc(*n + 1, sizeof(*ops));
    for (size_t i = 0; i < *n; i++) {
        ops[i] = turns[i].op;
    }
    free(turns);
    return ops;
}
