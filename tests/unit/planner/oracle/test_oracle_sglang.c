/*
 * Where SGLang's shares differ from vLLM's, element by element against the
 * oracle: groups of ranks for attention, experts cut over what EP leaves of
 * TP, padding of the vocabulary. What single models keep whole is in
 * test_oracle_hybrids.c.
 */
#include <stdio.h>

#include "planner/layout/layout.h"
#include "planner/layout/mesh_rules.h"
#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/unit.h"

#define SIZES                                                                  \
    "'hidden_size': 20, 'num_hidden_layers': 2, 'intermediate_size': 48, "

/* 8 heads; 2 key/value heads, which repeat from 4 ranks on; latent ones. */
static const char *const models[] = {
    "'model_type': 'qwen2', " SIZES "'num_attention_heads': 8, "
    "'num_key_value_heads': 2, 'head_dim': 6, 'vocab_size': 97, "
    "'tie_word_embeddings': true",
    "'model_type': 'qwen3_moe', " SIZES "'num_attention_heads': 8, "
    "'num_key_value_heads': 2, 'head_dim': 6, 'vocab_size': 97, "
    "'moe_intermediate_size': 24, 'num_experts': 8, 'decoder_sparse_step': 2",
    "'model_type': 'deepseek_v3', " SIZES "'num_attention_heads': 8, "
    "'num_key_value_heads': 8, 'vocab_size': 97, 'q_lora_rank': 6, "
    "'kv_lora_rank': 5, 'qk_nope_head_dim': 3, 'qk_rope_head_dim': 2, "
    "'v_head_dim': 4, 'moe_intermediate_size': 24, 'n_routed_experts': 8, "
    "'n_shared_experts': 1, 'first_k_dense_replace': 1",
};

static const uint32_t powers[] = {1, 2, 4, 8};

/* All sizes of TP, groups and EP, from Megatron and between engines. */
static void sweep(const struct rf_model *model, uint32_t tp, uint32_t groups)
{
    for (size_t e = 0; e < RF_ARRAY_SIZE(powers) && powers[e] <= tp; e++) {
        uint32_t ep = powers[e];
        if (ep > 1 && model->n_experts == 0) {
            break;
        }
        for (uint32_t etp = tp / ep; etp > 0; etp /= 2) {
            char side[96];
            snprintf(side, sizeof(side),
                     "'layout': 'sglang', 'tp': %u, 'attention_dp': %u, 'ep': "
                     "%u, 'etp': %u",
                     tp, groups, ep, etp);
            oracle_plan(model, NULL, 0,
                        "'mode': 'disaggregated', 'train': {'tp': 2, 'pp': 2}, "
                        "'infer': {%s, 'dp': 2}",
                        side);
            oracle_plan(model, NULL, 0,
                        "'train': {%s}, 'infer': {'tp': %u, 'layout': 'vllm'}",
                        side, tp);
        }
    }
}

LIMIT(60)

LOOP_TEST(test_oracle_agrees_on_sglang, RF_ARRAY_SIZE(models))
{
    AUTO(rf_model) *model = quoted_model("{'config': {%s}}", models[_i]);
    for (size_t t = 0; t < RF_ARRAY_SIZE(powers); t++) {
        for (size_t g = 0; g <= t; g++) {
            sweep(model, powers[t], powers[g]);
        }
    }
}

/* 97 rows become 128, which 3 and 6 ranks do not divide, and then 64 a rank;
 * 190 become 192, which they do. */
TEST(test_oracle_sglang_pads_a_vocabulary_until_it_splits)
{
    static const uint32_t rows[] = {97, 190};
    for (size_t r = 0; r < RF_ARRAY_SIZE(rows); r++) {
        for (uint32_t tp = 3; tp <= 6; tp += 3) {
            AUTO(rf_model) *model = quoted_model(
                "{'config': {'model_type': 'qwen2', 'hidden_size': 24, "
                "'num_hidden_layers': 2, 'intermediate_size': 48, "
                "'num_attention_heads': 6, 'num_key_value_heads': 3, "
                "'vocab_size': %u}}",
                rows[r]);
            oracle_plan(model, NULL, 0,
                        "'train': {}, 'infer': {'tp': %u, 'layout': 'sglang'}",
                        tp);
            oracle_plan(model, NULL, 0,
                        "'train': {'tp': 6, 'attention_dp': 2, 'layout': "
                        "'sglang'}, 'infer': {'tp': %u}",
                        tp);
        }
    }
}

/* Tied to an embedding that is whole on the first stage, the output head of
 * the last one is cut. */
TEST(test_sglang_cuts_the_head_that_is_tied_to_a_whole_embedding)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'gemma4_text', 'num_hidden_layers': 2, "
        "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': "
        "2, 'head_dim': 4, 'global_head_dim': 4, 'vocab_size': 90, "
        "'intermediate_size': 24, 'hidden_size_per_layer_input': 0}}");
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {}, 'infer': {'tp': 2, 'pp': 2, 'layout': 'sglang'}");
    AUTO(rf_world) *world = NULL;
    struct rf_layouts made = {.layouts = NULL};
    uint64_t rows[4] = {0};
    ck_assert_int_eq(rf_mesh_rules_place(spec, model, NULL, 0, &world, NULL),
                     RF_OK);
    ck_assert_int_eq(
        rf_layouts_build(model, world, spec, RF_INFER, &made, NULL), RF_OK);
    for (uint32_t rank = 0; rank < 4; rank++) {
        const struct rf_rank_layout *layout =
            &made.layouts[made.of_index[rank]];
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            if (model->families[piece->family].role == RF_ROLE_EMBED) {
                rows[rank] += piece->box.extent[RF_DIM_TENSOR];
            }
        }
    }
    ck_assert_uint_eq(rows[0], 90);
    ck_assert_uint_eq(rows[1], 90);
    ck_assert_uint_eq(rows[2], 64);
    ck_assert_uint_eq(rows[3], 26);
    rf_layouts_free(&made);
}
