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

/* The transfers of a plan, or what of them is in the builder's group. */
struct group_walk {
    const struct rf_builder *builder;
    struct rf_plan_walk walk;
    const struct rf_transfer *transfer; /* the last one; NULL: none yet */
    size_t at;                          /* of its parts */
    struct rf_box box;                  /* the part */
};

static void start_walk(struct group_walk *walk,
                       const struct rf_builder *builder)
{
    *walk = (struct group_walk){.builder = builder};
    rf_plan_walk_start(&walk->walk, builder->plan);
}

/* The next transfer of a family with tensors in the group; NULL: none. */
static const struct rf_transfer *next_transfer(struct rf_plan_walk *walk,
                                               const struct rf_builder *builder)
{
    while (rf_plan_walk_step(walk)) {
        if (rf_tensor_groups_have(builder->groups, builder->group,
                                  walk->layout->pieces[walk->piece].family)) {
            return rf_plan_walk_transfer(walk);
        }
    }
    return NULL;
}

/* The transfer of the next part; NULL after the last, which ends the walk. */
static const struct rf_transfer *walk_next(struct group_walk *walk)
{
    while (walk->transfer == NULL ||
           !rf_builder_part(walk->builder, walk->transfer->family,
                            &walk->transfer->box, &walk->at, &walk->box)) {
        walk->transfer = next_transfer(&walk->walk, walk->builder);
        walk->at = 0;
        if (walk->transfer == NULL) {
            rf_plan_walk_end(&walk->walk);
            break;
        }
    }
    return walk->transfer;
}

/* Emits the part of a transfer where `walk` is. */
static void emit_part(struct rf_builder *builder, const struct group_walk *walk,
                      uint32_t round, uint32_t task)
{
    const struct rf_transfer *transfer = walk->transfer;
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
                                     .box = walk->box,
                                     .dep = RF_NO_OP,
                                     .round = round,
                                     .task = task};
    struct rf_op op;
    rf_builder_make(builder, &step, &src, &dst, &op);
    rf_builder_add(builder, &op);
}

/* Makes one work per transfer, with the plan's source as the only one. */
static void schedule_few(const struct rf_builder *builder, uint32_t *order)
{
    const struct rf_plan *plan = builder->plan;
    struct rf_works works = {.works = NULL};
    const struct rf_transfer *transfer;
    struct group_walk walk;
    start_walk(&walk, builder);
    while ((transfer = walk_next(&walk)) != NULL) {
        struct rf_work work = {.sources = works.n_pool,
                               .receivers = works.n_pool + 1,
                               .n_sources = 1,
                               .n_receivers = 1};
        work.bytes = rf_form_bytes(
            rf_plan_form(plan, RF_TRAIN, transfer->family), &walk.box);
        RF_PUSH(works.pool, works.n_pool, works.pool_capacity,
                ((struct rf_holder){.rank = transfer->src}));
        RF_PUSH(works.pool, works.n_pool, works.pool_capacity,
                ((struct rf_holder){.rank = transfer->dst}));
        RF_PUSH(works.works, works.n, works.capacity, work);
    }
    uint64_t *loads = rf_order_loads(plan->world);
    rf_order_choose(plan->world, RF_BALANCE_ORDER,
                    &(struct rf_link_weights){NULL}, plan->spec->serialize,
                    &works, loads, order);
    free(loads);
    rf_works_free(&works);
}

/* By part of a transfer, in walk order: its ends, the id and round of its op;
 * and the order of emission. One allocation. */
struct ordering {
    size_t n;
    uint32_t *src, *dst, *id, *round, *order;
};

static size_t count_parts(const struct rf_builder *builder)
{
    struct group_walk walk;
    size_t n = 0;
    if (builder->group == RF_NO_GROUP) {
        return builder->plan->n_transfers;
    }
    for (start_walk(&walk, builder); walk_next(&walk) != NULL; n++) {
    }
    return n;
}

static void list_ends(const struct rf_builder *builder,
                      struct ordering *ordering)
{
    const struct rf_transfer *transfer;
    struct group_walk walk;
    size_t n = 0;
    start_walk(&walk, builder);
    while ((transfer = walk_next(&walk)) != NULL) {
        ordering->src[n] = transfer->src;
        ordering->dst[n++] = transfer->dst;
    }
}

static void choose_order(const struct rf_builder *builder,
                         struct ordering *ordering)
{
    if (ordering->n <= SCHEDULE_MAX) {
        schedule_few(builder, ordering->order);
    } else {
        rf_order_shift(builder->world, ordering->src, ordering->dst,
                       ordering->n, ordering->order);
    }
}

/* Computes each part's id and round, as emitting them in order would. */
static void number(struct rf_builder *builder, struct ordering *ordering)
{
    for (size_t i = 0; i < ordering->n; i++) {
        uint32_t at = ordering->order[i];
        uint32_t src = ordering->src[at], dst = ordering->dst[at];
        ordering->id[at] = builder->first_id + (uint32_t)i;
        ordering->round[at] = rf_builder_round(builder, src, dst);
        rf_builder_occupy(builder, src, dst, ordering->round[at]);
    }
}

static void emit_numbered(struct rf_builder *builder,
                          const struct ordering *ordering)
{
    struct group_walk walk;
    builder->ids = ordering->id;
    start_walk(&walk, builder);
    for (size_t i = 0; walk_next(&walk) != NULL; i++) {
        emit_part(builder, &walk, ordering->round[i], ordering->id[i]);
    }
    builder->ids = NULL;
}

static void emit_ordered(struct rf_builder *builder)
{
    const size_t n = count_parts(builder);
    uint32_t *all = rf_xcalloc(n, 5 * sizeof(*all));
    struct ordering ordering = {.n = n,
                                .order = all,
                                .src = all + n,
                                .dst = all + 2 * n,
                                .id = all + 3 * n,
                                .round = all + 4 * n};
    builder->first_id = (uint32_t)builder->schedule->n_world_ops;
    list_ends(builder, &ordering);
    choose_order(builder, &ordering);
    number(builder, &ordering);
    emit_numbered(builder, &ordering);
    free(all);
}

static void emit_walked(struct rf_builder *builder)
{
    const struct rf_transfer *transfer;
    struct group_walk walk;
    start_walk(&walk, builder);
    while ((transfer = walk_next(&walk)) != NULL) {
        emit_part(builder, &walk,
                  rf_builder_round(builder, transfer->src, transfer->dst),
                  builder->next_task++);
    }
}

void rf_strategy_direct(struct rf_builder *builder)
{
    for (uint32_t g = 0;
         g < rf_builder_groups(builder) && builder->status == RF_OK; g++) {
        rf_builder_begin_group(builder, g);
        if (builder->spec->balance == RF_BALANCE_ORDER) {
            emit_ordered(builder);
        } else {
            emit_walked(builder);
        }
    }
}
