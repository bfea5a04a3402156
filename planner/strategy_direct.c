/*
 * send_recv: every transfer of the plan is one op. Sources are the plan's; the
 * strategy only chooses the order, which matters where ranks do one thing at a
 * time. With balance none and size the order is the plan's own and a walk over
 * the plan is all that is needed; with balance order all transfers of the world
 * are held in memory while they are put into theirs.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/order.h"
#include "planner/strategy.h"
#include "planner/walk.h"

/* Above so many transfers they are sorted instead of scheduled one by one. */
#define SCHEDULE_MAX 65536

static void emit_transfer(struct rf_builder *builder,
                          const struct rf_transfer *transfer)
{
    const struct rf_view src = {.rank = transfer->src,
                                .mem = RF_MEM_TRAIN,
                                .converted = false,
                                .offset = transfer->src_offset,
                                .start = transfer->box.start,
                                .stride = transfer->src_stride};
    const struct rf_view dst = {.rank = transfer->dst,
                                .mem = RF_MEM_INFER,
                                .converted = true,
                                .offset = transfer->dst_offset,
                                .start = transfer->box.start,
                                .stride = transfer->dst_stride};
    const struct rf_step step = {
        .family = transfer->family,
        .box = transfer->box,
        .dep = RF_NO_OP,
        .bucket = RF_NO_BUCKET,
        .round = rf_builder_round(builder, src.rank, dst.rank),
        .task = builder->next_task++};
    rf_builder_emit(builder, &step, &src, &dst);
}

/* One work a transfer, with the plan's source as the only one. */
static void schedule_few(const struct rf_plan *plan,
                         const struct rf_transfer *transfers, uint32_t *order)
{
    struct rf_works works = {.works = NULL};
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const struct rf_transfer *transfer = &transfers[i];
        struct rf_work work = {.sources = works.n_pool,
                               .receivers = works.n_pool + 1,
                               .n_sources = 1,
                               .n_receivers = 1};
        work.bytes = rf_box_elements(&transfer->box) *
                     rf_plan_item_bytes(plan, RF_TRAIN, transfer->family);
        RF_PUSH(works.pool, works.n_pool, works.pool_capacity,
                ((struct rf_holder){.rank = transfer->src}));
        RF_PUSH(works.pool, works.n_pool, works.pool_capacity,
                ((struct rf_holder){.rank = transfer->dst}));
        RF_PUSH(works.works, works.n, works.capacity, work);
    }
    rf_order_choose(plan->world, RF_BALANCE_ORDER, plan->spec->serialize,
                    &works, order);
    rf_works_free(&works);
}

static bool sort_many(const struct rf_plan *plan,
                      const struct rf_transfer *transfers, uint32_t *order)
{
    size_t n = plan->n_transfers;
    uint32_t *src = rf_calloc(n, sizeof(*src));
    uint32_t *dst = rf_calloc(n, sizeof(*dst));
    bool sorted = false;
    if (src != NULL && dst != NULL) {
        for (size_t i = 0; i < n; i++) {
            src[i] = transfers[i].src;
            dst[i] = transfers[i].dst;
        }
        sorted = rf_order_shift(plan->world, src, dst, n, order);
    }
    free(src);
    free(dst);
    return sorted;
}

static void emit_ordered(struct rf_builder *builder)
{
    const struct rf_plan *plan = builder->plan;
    size_t n = plan->n_transfers;
    struct rf_transfer *transfers = rf_calloc(n, sizeof(*transfers));
    uint32_t *order = rf_calloc(n, sizeof(*order));
    struct rf_walk walk;
    if (transfers == NULL || order == NULL) {
        rf_builder_fail(builder, RF_ERR_NOMEM, "no memory for an order");
        goto out;
    }
    rf_walk_start(&walk, plan);
    for (size_t i = 0; i < n; i++) {
        transfers[i] = *rf_walk_next(&walk);
    }
    if (n <= SCHEDULE_MAX) {
        schedule_few(plan, transfers, order);
    } else if (!sort_many(plan, transfers, order)) {
        rf_builder_fail(builder, RF_ERR_NOMEM, "no memory for an order");
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        emit_transfer(builder, &transfers[order[i]]);
    }
out:
    free(transfers);
    free(order);
}

void rf_strategy_direct(struct rf_builder *builder)
{
    struct rf_walk walk;
    const struct rf_transfer *transfer;
    if (builder->spec->balance == RF_BALANCE_ORDER) {
        emit_ordered(builder);
        return;
    }
    rf_walk_start(&walk, builder->plan);
    while ((transfer = rf_walk_next(&walk)) != NULL) {
        emit_transfer(builder, transfer);
    }
}
