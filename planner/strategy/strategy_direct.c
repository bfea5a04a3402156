/*
 * send_recv: every transfer of the plan is one op. The sources are the plan's;
 * the strategy only chooses the order, which matters when ranks do one thing at
 * a time. Except with balance order, the order is the plan's, and one walk over
 * the plan suffices. With balance order, a first walk lists who sends to whom,
 * which gives the ids and rounds of all ops (20 bytes for each transfer of the
 * world); a second one emits the ops with these.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_walk.h"
#include "planner/strategy/order.h"
#include "planner/strategy/strategy.h"

/* More transfers than this are sorted instead of scheduled one by one. */
#define SCHEDULE_MAX 65536

static void emit_transfer(struct rf_builder *builder,
                          const struct rf_transfer *transfer, uint32_t round,
                          uint32_t task)
{
    const struct rf_op_end src = {
        .rank = transfer->src,
        .mem = RF_MEM_TRAIN,
        .form = rf_plan_form(builder->plan, RF_TRAIN, transfer->family),
        .piece = transfer->src_piece,
        .offset = transfer->src_offset,
        .start = transfer->box.start,
        .stride = transfer->src_stride};
    const struct rf_op_end dst = {
        .rank = transfer->dst,
        .mem = RF_MEM_INFER,
        .form = rf_plan_form(builder->plan, RF_INFER, transfer->family),
        .piece = transfer->dst_piece,
        .offset = transfer->dst_offset,
        .start = transfer->box.start,
        .stride = transfer->dst_stride};
    const struct rf_op_draft step = {.family = transfer->family,
                                     .box = transfer->box,
                                     .dep = RF_NO_OP,
                                     .group = RF_NO_GROUP,
                                     .round = round,
                                     .task = task};
    struct rf_op op;
    rf_builder_make(builder, &step, &src, &dst, &op);
    rf_builder_add(builder, &op);
}

/* Makes one work per transfer, with the plan's source as the only one. */
static void schedule_few(const struct rf_plan *plan, uint32_t *order)
{
    struct rf_works works = {.works = NULL};
    const struct rf_transfer *transfer;
    struct rf_plan_walk walk;
    rf_plan_walk_start(&walk, plan);
    while ((transfer = rf_plan_walk_next(&walk)) != NULL) {
        struct rf_work work = {.sources = works.n_pool,
                               .receivers = works.n_pool + 1,
                               .n_sources = 1,
                               .n_receivers = 1};
        work.bytes = rf_form_bytes(
            rf_plan_form(plan, RF_TRAIN, transfer->family), &transfer->box);
        RF_PUSH(works.pool, works.n_pool, works.pool_capacity,
                ((struct rf_holder){.rank = transfer->src}));
        RF_PUSH(works.pool, works.n_pool, works.pool_capacity,
                ((struct rf_holder){.rank = transfer->dst}));
        RF_PUSH(works.works, works.n, works.capacity, work);
    }
    rf_plan_walk_end(&walk);
    rf_order_choose(plan->world, RF_BALANCE_ORDER,
                    &(struct rf_link_weights){NULL}, plan->spec->serialize,
                    &works, order);
    rf_works_free(&works);
}

/* By transfer, in walk order: its ends, the id and round of its op; and the
 * order of emission. One allocation. */
struct ordering {
    uint32_t *src, *dst, *id, *round, *order;
};

static void list_ends(const struct rf_plan *plan, struct ordering *ordering)
{
    const struct rf_transfer *transfer;
    struct rf_plan_walk walk;
    size_t n = 0;
    rf_plan_walk_start(&walk, plan);
    while ((transfer = rf_plan_walk_next(&walk)) != NULL) {
        ordering->src[n] = transfer->src;
        ordering->dst[n++] = transfer->dst;
    }
    rf_plan_walk_end(&walk);
}

static void choose_order(const struct rf_plan *plan, struct ordering *ordering)
{
    if (plan->n_transfers <= SCHEDULE_MAX) {
        schedule_few(plan, ordering->order);
    } else {
        rf_order_shift(plan->world, ordering->src, ordering->dst,
                       plan->n_transfers, ordering->order);
    }
}

/* Computes each transfer's id and round, as emitting them in order would. */
static void number(struct rf_builder *builder, struct ordering *ordering)
{
    for (size_t i = 0; i < builder->plan->n_transfers; i++) {
        uint32_t at = ordering->order[i];
        uint32_t src = ordering->src[at], dst = ordering->dst[at];
        ordering->id[at] = (uint32_t)i;
        ordering->round[at] = rf_builder_round(builder, src, dst);
        rf_builder_occupy(builder, src, dst, ordering->round[at]);
    }
}

static void emit_numbered(struct rf_builder *builder,
                          const struct ordering *ordering)
{
    const struct rf_transfer *transfer;
    struct rf_plan_walk walk;
    rf_plan_walk_start(&walk, builder->plan);
    builder->ids = ordering->id;
    for (size_t i = 0; (transfer = rf_plan_walk_next(&walk)) != NULL; i++) {
        emit_transfer(builder, transfer, ordering->round[i], ordering->id[i]);
    }
    builder->ids = NULL;
    rf_plan_walk_end(&walk);
}

static void emit_ordered(struct rf_builder *builder)
{
    size_t n = builder->plan->n_transfers;
    uint32_t *all = rf_xcalloc(n, 5 * sizeof(*all));
    struct ordering ordering = {.order = all,
                                .src = all + n,
                                .dst = all + 2 * n,
                                .id = all + 3 * n,
                                .round = all + 4 * n};
    list_ends(builder->plan, &ordering);
    choose_order(builder->plan, &ordering);
    number(builder, &ordering);
    emit_numbered(builder, &ordering);
    free(all);
}

void rf_strategy_direct(struct rf_builder *builder)
{
    const struct rf_transfer *transfer;
    struct rf_plan_walk walk;
    if (builder->spec->balance == RF_BALANCE_ORDER) {
        emit_ordered(builder);
        return;
    }
    rf_plan_walk_start(&walk, builder->plan);
    while ((transfer = rf_plan_walk_next(&walk)) != NULL) {
        emit_transfer(builder, transfer,
                      rf_builder_round(builder, transfer->src, transfer->dst),
                      builder->next_task++);
    }
    rf_plan_walk_end(&walk);
}
