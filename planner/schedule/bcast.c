/* Spreads listed as ops, and summed up without listing them. */
#include "planner/schedule/bcast.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"

struct rf_fold *rf_fold_create(uint32_t n_ranks)
{
    struct rf_fold *fold = rf_xcalloc(1, sizeof(*fold));
    size_t size = RF_MAX(n_ranks, 1) * sizeof(*fold->place);
    fold->n_ranks = n_ranks;
    fold->place = rf_xmalloc(size);
    memset(fold->place, 0xff, size);
    return fold;
}

void rf_fold_destroy(struct rf_fold *fold)
{
    if (fold == NULL) {
        return;
    }
    free(fold->hops);
    free(fold->place);
    free(fold->spreads);
    rf_unit_tasks_free(&fold->units);
    free(fold);
}

void rf_fold_add_hop(struct rf_fold *fold, uint32_t parent, uint32_t rank)
{
    struct rf_hop hop = {.rank = rank, .parent = parent};
    if (fold->n_hops > 0) {
        hop.depth = fold->hops[parent].depth + 1;
        fold->hops[parent].sends = true;
    }
    fold->height = RF_MAX(fold->height, hop.depth);
    fold->place[rank] = fold->n_hops;
    RF_PUSH(fold->hops, fold->n_hops, fold->hops_capacity, hop);
}

void rf_fold_rounds(const struct rf_fold *fold, uint32_t node, uint32_t *first,
                    uint32_t *end)
{
    const struct rf_hop *hop = &fold->hops[node];
    *first = node == 0 ? 0 : hop->depth - 1;
    *end = hop->depth + (hop->sends ? 1 : 0);
}

uint64_t rf_fold_ops(const struct rf_fold *fold, const struct rf_spread *spread)
{
    return (uint64_t)fold->n_hops - 1 + fold->units.of[spread->unit].n_dst;
}

struct rf_op rf_spread_op(const struct rf_spread *spread,
                          const struct rf_op *gathered)
{
    struct rf_op op = *gathered;
    op.id = spread->id;
    op.dep = gathered->id;
    op.task = spread->task;
    op.round = spread->round;
    op.src = gathered->dst;
    op.src_mem = gathered->dst_mem;
    op.src_item = gathered->dst_item;
    op.src_offset = gathered->dst_offset;
    memcpy(op.src_stride, gathered->dst_stride, sizeof(op.src_stride));
    op.cast = RF_CAST_NONE;
    op.cast_at_source = 0;
    return op;
}

const struct rf_op *rf_spread_gathered(const struct rf_op *ops,
                                       const struct rf_spread *spread)
{
    return &ops[spread->gathered];
}

uint64_t rf_spread_bytes(const struct rf_op *ops,
                         const struct rf_spread *spread)
{
    return rf_op_written(rf_spread_gathered(ops, spread));
}

/* The op that wrote the box at a node of the tree. */
static uint32_t writer_at(const struct rf_spread *spread,
                          const struct rf_op *gathered, uint32_t node)
{
    return node == 0 ? gathered->id : spread->id + node - 1;
}

static void make_hop(const struct rf_fold *fold, const struct rf_spread *spread,
                     const struct rf_op *gathered, uint32_t node,
                     struct rf_op *out)
{
    const struct rf_hop *hop = &fold->hops[node];
    const struct rf_hop *parent = &fold->hops[hop->parent];
    out->src = parent->rank;
    out->dst = hop->rank;
    out->dep = writer_at(spread, gathered, hop->parent);
    out->round += parent->depth;
}

static void make_take(const struct rf_fold *fold,
                      const struct rf_spread *spread,
                      const struct rf_op *gathered, uint64_t index,
                      struct rf_op *out)
{
    const struct rf_unit_task *unit = &fold->units.of[spread->unit];
    const struct rf_holder *to = &fold->units.holders[unit->first_dst + index];
    out->src = out->dst = to->rank;
    out->dep = writer_at(spread, gathered, fold->place[to->rank]);
    out->round = spread->take_round;
    out->dst_mem = RF_MEM_INFER;
    out->dst_item = spread->take_item;
    out->cast = spread->take_cast;
    out->dst_offset = rf_piece_offset(to->piece, gathered->box.start);
    memcpy(out->dst_stride, to->piece->stride, sizeof(out->dst_stride));
}

void rf_fold_op(const struct rf_fold *fold, const struct rf_spread *spread,
                const struct rf_op *gathered, uint64_t index, struct rf_op *out)
{
    uint32_t hops = fold->n_hops - 1;
    *out = rf_spread_op(spread, gathered);
    out->id += (uint32_t)index;
    if (index < hops) {
        make_hop(fold, spread, gathered, (uint32_t)index + 1, out);
    } else {
        make_take(fold, spread, gathered, index - hops, out);
    }
}
