/*
 * The source shards that meet each destination shard.
 *
 * The source shards of a family are sorted by box, dimension after dimension:
 * a tree whose levels are the dimensions. A query descends only into
 * overlapping branches, found by binary search, so its cost follows the number
 * of answers.
 */
#include "planner/assign/match.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"

/* Shards [low, high) agree in all dimensions before `dim`. */
struct branch {
    uint32_t low, high, dim;
};

struct query {
    const struct rf_shards *source;
    const struct rf_shard *wanted;
    struct branch *stack;
    size_t depth, cap;
    uint32_t *found;
    size_t n_found, found_cap;
};

/* First shard of [low, high) whose start in `dim` is at least `start`, or
 * equal starts with an extent of at least `extent`. */
static uint32_t lower_bound(const struct rf_shard *shards, uint32_t low,
                            uint32_t high, uint32_t dim, uint64_t start,
                            uint64_t extent)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct rf_box *box = &shards[middle].box;
        if (box->start[dim] < start ||
            (box->start[dim] == start && box->extent[dim] < extent)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Pushes the parts of `branch` that overlap the wanted box in its dimension. */
static void descend(struct query *q, struct branch branch)
{
    const struct rf_shard *shards = q->source->shards;
    const struct rf_box *wanted = &q->wanted->box;
    uint32_t dim = branch.dim;
    uint64_t most = q->source->max_extent[q->wanted->family][dim];
    uint64_t from = wanted->start[dim], end = from + wanted->extent[dim];
    uint32_t at = lower_bound(shards, branch.low, branch.high, dim,
                              from >= most ? from - most + 1 : 0, 0);
    while (at < branch.high && shards[at].box.start[dim] < end) {
        const struct rf_box *box = &shards[at].box;
        uint32_t next = lower_bound(shards, at, branch.high, dim,
                                    box->start[dim], box->extent[dim] + 1);
        if (box->start[dim] + box->extent[dim] > from) {
            struct branch part = {at, next, dim + 1};
            RF_PUSH(q->stack, q->depth, q->cap, part);
        }
        at = next;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return RF_COMPARE(x, y);
}

/* Appends the source shards that meet `wanted`, ascending. */
static void find(struct query *q, const struct rf_shard *wanted)
{
    size_t first = q->n_found;
    struct branch root = {
        .low = q->source->family_first[wanted->family],
        .high = q->source->family_first[wanted->family + 1],
    };
    q->wanted = wanted;
    RF_PUSH(q->stack, q->depth, q->cap, root);
    while (q->depth > 0) {
        struct branch branch = q->stack[--q->depth];
        if (branch.dim == RF_BOX_DIMS) {
            RF_PUSH(q->found, q->n_found, q->found_cap, branch.low);
        } else {
            descend(q, branch);
        }
    }
    if (q->n_found > first) {
        qsort(q->found + first, q->n_found - first, sizeof(*q->found),
              compare_numbers);
    }
}

void rf_matches_build(const struct rf_shards *source,
                      const struct rf_shards *destination,
                      struct rf_matches *out)
{
    struct query q = {.source = source};
    size_t *first =
        rf_xcalloc((size_t)destination->n_shards + 1, sizeof(*first));
    for (uint32_t s = 0; s < destination->n_shards; s++) {
        find(&q, &destination->shards[s]);
        first[s + 1] = q.n_found;
    }
    free(q.stack);
    *out =
        (struct rf_matches){.first = first, .source = q.found, .n = q.n_found};
}

void rf_matches_free(struct rf_matches *matches)
{
    free(matches->first);
    free(matches->source);
    *matches = (struct rf_matches){.first = NULL};
}
