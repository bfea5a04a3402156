/* The order in which a rank serves its peers. See peer_order.h. */
#include "planner/schedule/peer_order.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

uint32_t rf_peer_order_source(const struct rf_schedule *schedule, uint32_t rank)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < rank; r++) {
        n += schedule->rank_send == NULL || schedule->rank_send[r] > 0;
    }
    return n;
}

uint32_t rf_peer_order_number(uint32_t *turn, uint32_t n_ranks, uint32_t source)
{
    uint32_t n = 0, place = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        n += turn[r] != RF_NONE;
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        if (turn[r] != RF_NONE) {
            turn[r] = (place++ + n - source % n) % n;
        }
    }
    return n;
}

uint32_t *rf_peer_order_make(const struct rf_schedule *schedule, uint32_t rank)
{
    const uint32_t n = schedule->n_ranks;
    uint32_t *turn = rf_xcalloc(n, sizeof(*turn));
    memset(turn, 0xFF, n * sizeof(*turn));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == rank && op->dst != rank) {
            turn[op->dst] = 0;
        }
    }
    (void)rf_peer_order_number(turn, n, rf_peer_order_source(schedule, rank));
    turn[rank] = n;
    return turn;
}

struct peer_turn {
    uint32_t number;
    const struct rf_op *op;
};

static int by_round_turn_id(const void *a, const void *b)
{
    const struct peer_turn *x = a, *y = b;
    int order = RF_COMPARE(x->op->round, y->op->round);
    order = RF_THEN_BY(order, RF_COMPARE(x->number, y->number));
    return RF_THEN_BY(order, RF_COMPARE(x->op->id, y->op->id));
}

const struct rf_op **rf_peer_order_of(const struct rf_schedule *schedule,
                                      uint32_t rank, size_t *n)
{
    struct peer_turn *turns = rf_xcalloc(schedule->n_ops + 1, sizeof(*turns));
    const struct rf_op **ops;
    uint32_t *turn_to = rf_peer_order_make(schedule, rank);
    *n = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == rank) {
            turns[(*n)++] = (struct peer_turn){turn_to[op->dst], op};
        }
    }
    free(turn_to);
    qsort(turns, *n, sizeof(*turns), by_round_turn_id);
    ops = rf_xcalloc(*n + 1, sizeof(*ops));
    for (size_t i = 0; i < *n; i++) {
        ops[i] = turns[i].op;
    }
    free(turns);
    return ops;
}
