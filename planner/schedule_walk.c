/*
 * Walks over a schedule's ops, and sums over them. Spreads (fold.h) are made
 * into ops one at a time, where their ids come up.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/fold.h"

void rf_schedule_walk_start(struct rf_schedule_walk *walk,
                            const struct rf_schedule *schedule)
{
    *walk = (struct rf_schedule_walk){.schedule = schedule};
}

/* The spread whose ops come next; NULL when `ops` has the next one. */
static const struct rf_spread *
spread_at_hand(const struct rf_schedule_walk *walk)
{
    const struct rf_schedule *schedule = walk->schedule;
    const struct rf_spread *spread;
    if (schedule->fold == NULL || walk->spread == schedule->fold->n_spreads) {
        return NULL;
    }
    spread = &schedule->fold->spreads[walk->spread];
    return walk->op < schedule->n_ops &&
                   schedule->ops[walk->op].id < spread->op.id
               ? NULL
               : spread;
}

const struct rf_op *rf_schedule_walk_next(struct rf_schedule_walk *walk)
{
    const struct rf_schedule *schedule = walk->schedule;
    const struct rf_spread *spread = spread_at_hand(walk);
    if (spread == NULL) {
        return walk->op < schedule->n_ops ? &schedule->ops[walk->op++] : NULL;
    }
    rf_fold_op(schedule->fold, spread, walk->at++, &walk->folded);
    if (walk->at == rf_fold_ops(schedule->fold, spread)) {
        walk->spread++;
        walk->at = 0;
    }
    return &walk->folded;
}

/* Spreads have as many ids as they have ops. */
static bool find_folded(const struct rf_fold *fold, uint32_t id,
                        struct rf_op *out)
{
    size_t first = 0, n = fold->n_spreads;
    while (n > 0) {
        const struct rf_spread *spread = &fold->spreads[first + n / 2];
        if (id < spread->op.id) {
            n /= 2;
        } else if (id - spread->op.id >= rf_fold_ops(fold, spread)) {
            first += n / 2 + 1;
            n -= n / 2 + 1;
        } else {
            rf_fold_op(fold, spread, id - spread->op.id, out);
            return true;
        }
    }
    return false;
}

static int compare_op(const void *id, const void *op)
{
    const uint32_t wanted = *(const uint32_t *)id;
    const uint32_t found = ((const struct rf_op *)op)->id;
    return (wanted > found) - (wanted < found);
}

size_t rf_schedule_index(const struct rf_schedule *schedule, uint32_t id)
{
    const struct rf_op *op = schedule->n_ops > 0
                                 ? bsearch(&id, schedule->ops, schedule->n_ops,
                                           sizeof(*op), compare_op)
                                 : NULL;
    return op != NULL ? (size_t)(op - schedule->ops) : schedule->n_ops;
}

bool rf_schedule_find(const struct rf_schedule *schedule, uint32_t id,
                      struct rf_op *out)
{
    const size_t at = rf_schedule_index(schedule, id);
    if (at < schedule->n_ops) {
        *out = schedule->ops[at];
        return true;
    }
    return schedule->fold != NULL && find_folded(schedule->fold, id, out);
}

void rf_schedule_pairs(const struct rf_schedule *schedule,
                       rf_schedule_pair_fn each, void *data)
{
    const struct rf_fold *fold = schedule->fold;
    uint64_t bytes = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src != op->dst) {
            each(op->src, op->dst, 1, rf_op_bytes(op), data);
        }
    }
    for (size_t i = 0; fold != NULL && i < fold->n_spreads; i++) {
        bytes += rf_op_bytes(&fold->spreads[i].op);
    }
    for (uint32_t i = 1; fold != NULL && i < fold->n_hops; i++) {
        const struct rf_hop *hop = &fold->hops[i];
        each(fold->hops[hop->parent].rank, hop->rank, fold->n_spreads, bytes,
             data);
    }
}

void rf_schedule_sizes(const struct rf_schedule *schedule,
                       rf_schedule_size_fn each, void *data)
{
    const struct rf_fold *fold = schedule->fold;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src != op->dst) {
            each(rf_op_bytes(op), 1, data);
        }
    }
    for (size_t i = 0; fold != NULL && fold->n_hops > 1 && i < fold->n_spreads;
         i++) {
        each(rf_op_bytes(&fold->spreads[i].op), fold->n_hops - 1, data);
    }
}

uint64_t rf_schedule_memory(const struct rf_schedule *schedule)
{
    const struct rf_fold *fold = schedule->fold;
    uint64_t bytes = schedule->n_ops * sizeof(*schedule->ops);
    if (fold != NULL) {
        bytes += fold->n_spreads * sizeof(*fold->spreads) +
                 fold->parcels.n * sizeof(*fold->parcels.of) +
                 fold->parcels.n_holders * sizeof(*fold->parcels.holders) +
                 fold->n_hops * sizeof(*fold->hops);
    }
    return 2 * bytes;
}
