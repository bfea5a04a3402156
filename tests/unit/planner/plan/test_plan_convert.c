/* Plans whose senders convert: each value and scale moves once, what is not
 * converted moves as before, and what cannot be cut or taken apart is
 * refused. */
#include "planner/plan/plan_convert.h"

#include <stdio.h>
#include <string.h>

#include "planner/layout/box.h"
#include "planner/plan/plan_walk.h"
#include "planner/plan/quantize.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/plan_proof.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

#define MOE                                                                    \
    "{'config': {'model_type': 'qwen3_moe', 'hidden_size': 256, "              \
    "'intermediate_size': 512, 'moe_intermediate_size': 512, 'num_experts': "  \
    "4, 'num_experts_per_tok': 2, 'num_attention_heads': 4, "                  \
    "'num_key_value_heads': 4, 'head_dim': 128, 'num_hidden_layers': 2, "      \
    "'vocab_size': 512, 'torch_dtype': 'bfloat16'%s}}"
#define SIDES                                                                  \
    "'mode': 'disaggregated', 'train': {'tp': 2, 'ep': 2, 'etp': 1}, "         \
    "'infer': {'layout': 'vllm', 'tp': 4}"

static const uint32_t slots[] = {2, 4};

static void make(struct planned *planned, const char *config,
                 const char *format, const char *rest)
{
    char model[800], scenario[400];
    snprintf(model, sizeof(model), MOE, config);
    snprintf(scenario, sizeof(scenario),
             "{'name': 's', 'quantize': {'format': '%s', 'at': 'sender'}, %s}",
             format, rest);
    assert_ok(planned_make(planned, model, scenario, slots, 2), planned->err);
}

LOOP_TEST(test_converted_plans_move_each_part_once, RF_QUANTS)
{
    AUTO(planned) planned;
    const struct rf_plan *plan;
    uint64_t bytes = 0;
    make(&planned, "", rf_quant_names[_i], SIDES);
    plan = planned.plan;
    assert_ok(plan_prove(plan, &planned.err), planned.err);
    ck_assert_ptr_eq(plan->model, &plan->converted[RF_TRAIN]->model);
    ck_assert_ptr_eq(plan->weights->model, planned.model);
    for (uint32_t r = 0; r < planned.world->n_ranks; r++) {
        const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            bytes += rf_box_elements(&piece->box) *
                     rf_form_item(rf_plan_form(plan, RF_INFER, piece->family));
        }
    }
    ck_assert_uint_eq(plan->totals.bytes_total, bytes);
}

/* On both sides: the same elements as before, and the parts of the others. */
LOOP_TEST(test_converted_layouts_hold_what_those_of_weights_hold, RF_QUANTS)
{
    AUTO(planned) planned;
    make(&planned, "", rf_quant_names[_i], SIDES);
    for (int side = 0; side < RF_SIDES; side++) {
        for (uint32_t r = 0; r < planned.world->n_ranks; r++) {
            const struct rf_plan *plan = planned.plan;
            const struct rf_rank_layout *before =
                rf_plan_layout(plan->weights, (enum rf_side)side, r);
            const struct rf_rank_layout *after =
                rf_plan_layout(plan, (enum rf_side)side, r);
            size_t found = 0;
            for (size_t p = 0; p < before->n_pieces; p++) {
                const struct rf_piece *piece = &before->pieces[p];
                const bool converts =
                    rf_family_converted(
                        &planned.model->families[piece->family]) > 0;
                const uint32_t n_parts =
                    converts ? plan->converted[RF_TRAIN]->format->n_parts : 1;
                for (uint32_t k = 0; k < n_parts; k++) {
                    const struct rf_box box =
                        converts
                            ? rf_converted_box(
                                  &plan->converted[RF_TRAIN]->format->parts[k],
                                  piece->box)
                            : piece->box;
                    size_t at = 0;
                    while (
                        at < after->n_pieces &&
                        (after->pieces[at].family !=
                             rf_converted_number(plan->converted[RF_TRAIN],
                                                 piece->family, k) ||
                         rf_box_compare(&after->pieces[at].box, &box) != 0)) {
                        at++;
                    }
                    ck_assert_uint_lt(at, after->n_pieces);
                    found++;
                }
            }
            ck_assert_uint_eq(found, after->n_pieces);
        }
    }
}

/* Matrices of rf_quantize_plan() lie where the pieces of the plan say. */
LOOP_TEST(test_results_lie_in_the_pieces_that_move, RF_QUANTS *RF_SIDES)
{
    const enum rf_side side = (enum rf_side)(_i % RF_SIDES);
    AUTO(planned) planned;
    make(&planned, "", rf_quant_names[_i / RF_SIDES], SIDES);
    for (uint32_t r = 0; r < planned.world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(planned.plan, side, r);
        struct rf_quantize all;
        assert_ok(rf_quantize_plan(planned.plan, side, r, &all, &planned.err),
                  planned.err);
        ck_assert_uint_eq(all.n > 0,
                          planned.world->ranks[r].index[side] != RF_NONE);
        for (size_t i = 0; i < all.result.n_pieces; i++) {
            const struct rf_piece *part = &all.result.pieces[i];
            size_t at = 0;
            while (at < layout->n_pieces &&
                   (layout->pieces[at].family != part->family ||
                    !rf_box_contains(&layout->pieces[at].box, &part->box) ||
                    rf_piece_offset(&layout->pieces[at], part->box.start) !=
                        part->offset)) {
                at++;
            }
            ck_assert_uint_lt(at, layout->n_pieces);
        }
        ck_assert_uint_le(all.result.arena_bytes, layout->arena_bytes);
        rf_quantize_free(&all);
    }
}

LOOP_TEST(test_converted_plans_have_schedules, RF_STRATEGIES)
{
    AUTO(planned) planned;
    char rest[400];
    snprintf(rest, sizeof(rest), SIDES ", 'strategy': '%s'",
             rf_strategy_name((enum rf_strategy)_i));
    make(&planned, "", "nvfp4", rest);
    assert_ok(rf_schedule_build(planned.plan, RF_NONE, &planned.schedule,
                                &planned.err),
              planned.err);
    assert_ok(rf_schedule_prove(planned.plan, planned.schedule, &planned.err),
              planned.err);
}

static const struct {
    const char *config, *format, *rest, *rule;
} refused[] = {
    {", 'quantization_config': {'ignore': ['model.layers.1.self_attn']}",
     "mxfp8", SIDES, "leaves out some tensors of model.layers.{L}.self_attn"},
    {"", "fp8_block128",
     "'mode': 'disaggregated', 'train': {'layout': 'fsdp', 'dp': 4}, "
     "'infer': {'layout': 'hf'}",
     "(train); shards must end at multiples of 128"},
    {"", "fp8_tensor",
     "'mode': 'disaggregated', 'train': {'dtype': 'float32'}, 'infer': "
     "{'layout': 'hf', 'dtype': 'bfloat16'}",
     "is trained as float32"},
};

LOOP_TEST(test_conversions_that_senders_cannot_make_are_refused,
          RF_ARRAY_SIZE(refused))
{
    struct planned planned;
    char model[800], scenario[400];
    snprintf(model, sizeof(model), MOE, refused[_i].config);
    snprintf(scenario, sizeof(scenario),
             "{'name': 's', 'quantize': {'format': '%s', 'at': 'sender'}, %s}",
             refused[_i].format, refused[_i].rest);
    ck_assert_int_eq(planned_make(&planned, model, scenario, slots, 2),
                     RF_ERR_CONFIG);
    assert_says(planned.err.text, refused[_i].rule);
}
