/* Builds the schedule of a plan with its strategy. */
#include "planner/strategy/schedule_build.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/strategy/strategy.h"

static int by_id(const void *a, const void *b)
{
    const struct rf_op *x = a, *y = b;
    return RF_COMPARE(x->id, y->id);
}

static void sort_ops(struct rf_schedule *schedule)
{
    size_t i = 1;
    while (i < schedule->n_ops &&
           schedule->ops[i].id > schedule->ops[i - 1].id) {
        i++;
    }
    if (i < schedule->n_ops) {
        qsort(schedule->ops, schedule->n_ops, sizeof(*schedule->ops), by_id);
    }
}

#define BUILDER(capitals, name, builder) rf_strategy_##builder,
static void (*const builders[])(struct rf_builder *builder) = {
    RF_STRATEGY_MAP(BUILDER)};
#undef BUILDER

/* Returns RF_OK with *out = NULL when the schedule would exceed `max_ops`. */
static enum rf_status build(const struct rf_plan *plan, uint32_t node,
                            uint64_t max_ops, struct rf_schedule **out,
                            struct rf_err *err)
{
    struct rf_tensor_groups groups;
    struct rf_builder builder = {
        .plan = plan,
        .world = plan->world,
        .spec = plan->spec,
        .node = node,
        .max_ops = max_ops,
        .groups = &groups,
        .group = RF_NO_GROUP,
        .chunk_bytes = plan->spec->chunk_bytes,
        .err = err,
    };
    *out = NULL;
    rf_tensor_groups_make(plan, &groups);
    builder.schedule = rf_schedule_create(plan->world);
    if (groups.n > 0) {
        builder.schedule->in_flight = plan->spec->group.in_flight;
        rf_hash_u64(&builder.schedule->digest, plan->spec->group.in_flight);
    }
    builder.next_round =
        rf_xcalloc(RF_MAX(plan->world->n_ranks, 1), sizeof(uint32_t));
    if (plan->spec->strategy == RF_STRATEGY_AUTO) {
        rf_builder_fail(&builder, RF_ERR_CONFIG,
                        "strategy auto: no strategy has been chosen yet");
    } else {
        builders[plan->spec->strategy](&builder);
    }
    rf_tensor_groups_free(&groups);
    free(builder.next_round);
    free(builder.routes);
    free(builder.near);
    if (node != RF_NONE) { /* its ops are in the list */
        rf_deliveries_destroy(builder.schedule->deliveries);
        builder.schedule->deliveries = NULL;
    }
    if (builder.status != RF_OK) {
        rf_schedule_destroy(builder.schedule);
        return builder.full ? RF_OK : builder.status;
    }
    sort_ops(builder.schedule);
    *out = builder.schedule;
    return RF_OK;
}

enum rf_status rf_schedule_build(const struct rf_plan *plan, uint32_t node,
                                 struct rf_schedule **out, struct rf_err *err)
{
    return build(plan, node, UINT64_MAX, out, err);
}

enum rf_status rf_schedule_build_up_to(const struct rf_plan *plan,
                                       uint64_t max_ops,
                                       struct rf_schedule **out,
                                       struct rf_err *err)
{
    return build(plan, RF_NONE, max_ops, out, err);
}
