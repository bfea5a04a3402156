/* Unit tasks of layouts whose boxes overlap in every way. */
#include <stdio.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/unit_task.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define COLUMNS 10

static uint64_t pick(uint64_t *state, uint64_t limit)
{
    *state += 0x9E3779B97F4A7C15u;
    return rf_mix64(*state) % limit;
}

/* Gives mesh rank `index` of a side one dense piece. */
static void give(struct rf_layouts *layouts, uint32_t index, uint64_t row,
                 uint64_t rows, uint64_t column, uint64_t columns)
{
    struct rf_rank_layout *layout = &layouts->layouts[index];
    struct rf_piece *piece = rf_xcalloc(1, sizeof(*piece));
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        piece->box.extent[d] = 1;
        piece->stride[d] = 4;
    }
    piece->box.start[RF_DIM_TENSOR] = row;
    piece->box.extent[RF_DIM_TENSOR] = rows;
    piece->box.start[RF_DIM_TENSOR + 1] = column;
    piece->box.extent[RF_DIM_TENSOR + 1] = columns;
    piece->stride[RF_DIM_TENSOR] = columns * 4;
    layout->pieces = piece;
    layout->n_pieces = 1;
    layout->arena_bytes = rows * columns * 4;
    layouts->of_index[index] = index;
}

static void renew(struct rf_layouts *layouts, uint32_t n)
{
    rf_layouts_free(layouts);
    layouts->layouts = rf_xcalloc(n, sizeof(*layouts->layouts));
    layouts->of_index = rf_xcalloc(n, sizeof(uint32_t));
    layouts->n_layouts = n;
    layouts->n_indices = n;
}

/* What the plan knows of its layouts, made anew. */
static void learn(struct planned *lab)
{
    struct rf_plan_private *priv = lab->plan->priv;
    rf_shards_free(&priv->source);
    rf_shards_free(&priv->target);
    rf_matches_free(&priv->matches);
    ck_assert_int_eq(rf_shards_build(lab->model, lab->world,
                                     &priv->layouts[RF_TRAIN], RF_TRAIN,
                                     &priv->source, NULL),
                     RF_OK);
    ck_assert_int_eq(rf_shards_build(lab->model, lab->world,
                                     &priv->layouts[RF_INFER], RF_INFER,
                                     &priv->target, NULL),
                     RF_OK);
    rf_matches_build(&priv->source, &priv->target, &priv->matches);
}

/* Three training ranks that overlap and together hold everything; six inference
 * ranks on three nodes with any boxes at all. */
static void make_overlapping(struct planned *lab, const char *strategy,
                             uint64_t *state)
{
    const uint32_t slots[] = {3, 3, 2, 1};
    char scenario[1024];
    snprintf(scenario, sizeof(scenario),
             "{\"mode\": \"disaggregated\", \"strategy\": \"%s\", "
             "\"chunk_bytes\": 4096, \"bucket_bytes\": 4096, "
             "\"train\": {\"layout\": \"spec\", \"mesh\": [1, 3], \"spec\": "
             "\"RR\", \"nodes\": [\"n0\"]}, \"infer\": {\"layout\": \"spec\", "
             "\"mesh\": [1, 6], \"spec\": \"RR\", \"nodes\": [\"n1\", \"n2\", "
             "\"n3\"]}}",
             strategy);
    ck_assert_int_eq(lab_make(lab,
                              "{\"tensor\": {\"name\": \"w\", \"shape\": "
                              "[12, 10], \"dtype\": \"float32\"}}",
                              scenario, slots, 4),
                     RF_OK);
    struct rf_layouts *train = &lab->plan->priv->layouts[RF_TRAIN];
    struct rf_layouts *infer = &lab->plan->priv->layouts[RF_INFER];
    renew(train, 3);
    give(train, 0, 0, 8, 0, COLUMNS);
    give(train, 1, 4, 8, 0, COLUMNS);
    give(train, 2, pick(state, 6), 1 + pick(state, 6), pick(state, 5),
         1 + pick(state, 5));
    renew(infer, 6);
    for (uint32_t i = 0; i < 6; i++) {
        give(infer, i, pick(state, 6), 1 + pick(state, 6), pick(state, 5),
             1 + pick(state, 5));
    }
    learn(lab);
}

LIMIT(30)

LOOP_TEST(test_unit_task_boxes_are_disjoint_and_cover_every_piece, 20)
{
    uint64_t state = (uint64_t)_i;
    struct rf_unit_tasks units;
    AUTO(planned) lab;
    uint64_t written[9] = {0};
    make_overlapping(&lab, "broadcast", &state);
    ck_assert_int_eq(rf_unit_tasks_build(lab.plan, &units, NULL), RF_OK);
    AUTO_FREE struct rf_box *boxes = rf_xcalloc(units.n, sizeof(*boxes));
    for (size_t u = 0; u < units.n; u++) {
        const struct rf_unit_task *unit = &units.of[u];
        boxes[u] = unit->box;
        ck_assert_uint_ge(unit->n_src, 1);
        ck_assert_uint_ge(unit->n_dst, 1);
        for (uint32_t i = 0; i < unit->n_src; i++) {
            const struct rf_holder *holder =
                &units.holders[unit->first_src + i];
            ck_assert(rf_box_contains(&holder->piece->box, &unit->box));
            ck_assert(i == 0 || holder[-1].rank < holder->rank);
        }
        for (uint32_t i = 0; i < unit->n_dst; i++) {
            const struct rf_holder *holder =
                &units.holders[unit->first_dst + i];
            ck_assert(rf_box_contains(&holder->piece->box, &unit->box));
            written[holder->rank] += rf_box_elements(&unit->box);
        }
    }
    ck_assert(rf_boxes_disjoint(boxes, units.n));
    for (uint32_t r = 3; r < 9; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(lab.plan, RF_INFER, r);
        ck_assert_uint_eq(written[r], rf_box_elements(&layout->pieces[0].box));
    }
    rf_unit_tasks_free(&units);
}

LOOP_TEST(test_unit_task_strategies_serve_overlapping_boxes, 10)
{
    uint64_t state = (uint64_t)_i;
    for (unsigned s = RF_BROADCAST; s < RF_STRATEGIES; s++) {
        const char *name = rf_strategy_name((enum rf_strategy)s);
        AUTO(planned) lab;
        make_overlapping(&lab, name, &state);
        rf_schedule_destroy(lab.schedule);
        lab.schedule = NULL;
        ck_assert_int_eq(
            rf_schedule_build(lab.plan, RF_NONE, &lab.schedule, NULL), RF_OK);
        enum rf_status status =
            rf_schedule_prove(lab.plan, lab.schedule, &lab.err);
        lab_list_ops(lab.schedule);
        ck_assert_msg(status == RF_OK, "%s: %s", name, lab.err.text);
        const char *fault = lab_execute(&lab, (unsigned)_i);
        ck_assert_msg(fault == NULL, "%s: %s", name, fault);
    }
}

TEST(test_unit_task_without_a_holder_is_an_error)
{
    uint64_t state = 1;
    struct rf_unit_tasks units;
    struct rf_err err;
    AUTO(planned) lab;
    make_overlapping(&lab, "broadcast", &state);
    renew(&lab.plan->priv->layouts[RF_TRAIN], 3);
    give(&lab.plan->priv->layouts[RF_TRAIN], 0, 0, 1, 0, 1);
    give(&lab.plan->priv->layouts[RF_TRAIN], 1, 0, 1, 0, 1);
    give(&lab.plan->priv->layouts[RF_TRAIN], 2, 0, 1, 0, 1);
    learn(&lab);
    assert_fails(rf_unit_tasks_build(lab.plan, &units, &err), RF_ERR_INTERNAL,
                 err, "no training rank");
}
