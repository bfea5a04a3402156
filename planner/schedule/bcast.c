/* Makes the ops of broadcasts, and counts them and their bytes. */
#include "planner/schedule/bcast.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"

struct rf_bcast_template *rf_bcast_template_create(uint32_t n_ranks)
{
    struct rf_bcast_template *tmpl = rf_xcalloc(1, sizeof(*tmpl));
    size_t size = RF_MAX(n_ranks, 1) * sizeof(*tmpl->place);
    tmpl->n_ranks = n_ranks;
    tmpl->place = rf_xmalloc(size);
    memset(tmpl->place, 0xff, size);
    return tmpl;
}

void rf_bcast_template_destroy(struct rf_bcast_template *tmpl)
{
    if (tmpl == NULL) {
        return;
    }
    free(tmpl->hops);
    free(tmpl->place);
    free(tmpl->bcasts);
    rf_unit_tasks_free(&tmpl->units);
    free(tmpl);
}

void rf_bcast_template_add_hop(struct rf_bcast_template *tmpl, uint32_t parent,
                               uint32_t rank)
{
    struct rf_hop hop = {.rank = rank, .parent = parent};
    if (tmpl->n_hops > 0) {
        hop.depth = tmpl->hops[parent].depth + 1;
        tmpl->hops[parent].sends = true;
    }
    tmpl->height = RF_MAX(tmpl->height, hop.depth);
    tmpl->place[rank] = tmpl->n_hops;
    RF_PUSH(tmpl->hops, tmpl->n_hops, tmpl->hops_capacity, hop);
}

void rf_bcast_template_rounds(const struct rf_bcast_template *tmpl,
                              uint32_t node, uint32_t *first, uint32_t *end)
{
    const struct rf_hop *hop = &tmpl->hops[node];
    *first = node == 0 ? 0 : hop->depth - 1;
    *end = hop->depth + (hop->sends ? 1 : 0);
}

uint64_t rf_bcast_template_ops(const struct rf_bcast_template *tmpl,
                               const struct rf_bcast *bcast)
{
    return (uint64_t)tmpl->n_hops - 1 + tmpl->units.of[bcast->unit].n_dst;
}

struct rf_op rf_bcast_op(const struct rf_bcast *bcast,
                         const struct rf_op *gathered)
{
    struct rf_op op = *gathered;
    op.id = bcast->id;
    op.dep = gathered->id;
    op.task = bcast->task;
    op.round = bcast->round;
    op.src = gathered->dst;
    op.src_mem = gathered->dst_mem;
    op.from = op.wire = gathered->to;
    op.src_offset = gathered->dst_offset;
    memcpy(op.src_stride, gathered->dst_stride, sizeof(op.src_stride));
    return op;
}

const struct rf_op *rf_bcast_gathered(const struct rf_op *ops,
                                      const struct rf_bcast *bcast)
{
    return &ops[bcast->gathered];
}

uint64_t rf_bcast_bytes(const struct rf_op *ops, const struct rf_bcast *bcast)
{
    return rf_op_written(rf_bcast_gathered(ops, bcast));
}

/* The op that wrote the box at a node of the tree. */
static uint32_t writer_at(const struct rf_bcast *bcast,
                          const struct rf_op *gathered, uint32_t node)
{
    return node == 0 ? gathered->id : bcast->id + node - 1;
}

static void make_hop(const struct rf_bcast_template *tmpl,
                     const struct rf_bcast *bcast, const struct rf_op *gathered,
                     uint32_t node, struct rf_op *out)
{
    const struct rf_hop *hop = &tmpl->hops[node];
    const struct rf_hop *parent = &tmpl->hops[hop->parent];
    out->src = parent->rank;
    out->dst = hop->rank;
    out->dep = writer_at(bcast, gathered, hop->parent);
    out->round += parent->depth;
}

static void make_take(const struct rf_bcast_template *tmpl,
                      const struct rf_bcast *bcast,
                      const struct rf_op *gathered, uint64_t index,
                      struct rf_op *out)
{
    const struct rf_unit_task *unit = &tmpl->units.of[bcast->unit];
    const struct rf_holder *to = &tmpl->units.holders[unit->first_dst + index];
    out->src = out->dst = to->rank;
    out->dep = writer_at(bcast, gathered, tmpl->place[to->rank]);
    out->round = bcast->take_round;
    out->dst_mem = RF_MEM_INFER;
    out->to = bcast->take;
    out->dst_piece = to->number;
    out->dst_offset = rf_piece_offset(to->piece, gathered->box.start);
    memcpy(out->dst_stride, to->piece->stride, sizeof(out->dst_stride));
}

void rf_bcast_template_op(const struct rf_bcast_template *tmpl,
                          const struct rf_bcast *bcast,
                          const struct rf_op *gathered, uint64_t index,
                          struct rf_op *out)
{
    uint32_t hops = tmpl->n_hops - 1;
    *out = rf_bcast_op(bcast, gathered);
    out->id += (uint32_t)index;
    if (index < hops) {
        make_hop(tmpl, bcast, gathered, (uint32_t)index + 1, out);
    } else {
        make_take(tmpl, bcast, gathered, index - hops, out);
    }
}
