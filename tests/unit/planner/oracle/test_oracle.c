/*
 * The pairs of meshes that Megatron-LM names (tests/lib/mesh_pairs.c), and
 * cases beyond them, element by element against the oracle.
 */

#include "planner/scenario/world.h"
#include "tests/lib/mesh_pairs.h"
#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/unit.h"

#define MEGATRON                                                               \
    "'hidden_size': 32, 'num_attention_heads': 8, 'num_query_groups': %d, "    \
    "'vocab_size': 128"

LIMIT(60)

LOOP_TEST(test_oracle_agrees_on_megatron_pairs, mesh_case_count())
{
    struct mesh_case what;
    AUTO(rf_model) *model;
    char members[512];
    ck_assert(mesh_case_at((size_t)_i, false, &what));
    mesh_case_members(&what, members, sizeof(members));
    model = quoted_model("%s", what.model);
    oracle_plan(model, NULL, 0, "%s", members);
}

TEST(test_oracle_disaggregated_pipeline_to_none)
{
    const uint32_t slots[] = {4, 4};
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 8, " MEGATRON ", 'swiglu': true}}", 2);
    struct rf_plan_totals totals = oracle_plan(
        model, slots, 2,
        "'mode': 'disaggregated', 'train': {'nodes': ['a'], 'tp': 2, 'pp': 2}, "
        "'infer': {'nodes': ['b'], 'tp': 4}");
    ck_assert_uint_eq(totals.bytes_local, 0);
    ck_assert_uint_eq(totals.bytes_inter_node, totals.bytes_total);
}

TEST(test_oracle_interleaved_and_uneven_stages)
{
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 8, " MEGATRON ", 'swiglu': true}}", 4);
    oracle_plan(model, NULL, 0,
                "'train': {'tp': 2, 'pp': 2, 'vpp': 2}, 'infer': {'tp': 4}");
    oracle_plan(model, NULL, 0,
                "'train': {'tp': 2}, 'infer': {'tp': 1, 'pp': 2, 'vpp': 4}");
    oracle_plan(model, NULL, 0,
                "'train': {'pp': 4, 'num_layers_in_first_pipeline_stage': 1, "
                "'num_layers_in_last_pipeline_stage': 3}, 'infer': {'tp': 4}");
    oracle_plan(model, NULL, 0,
                "'train': {'pp_layers': [5, 0, 3]}, "
                "'infer': {'tp': 1, 'pp': 2, 'layout': 'vllm'}");
    oracle_plan(model, NULL, 0,
                "'train': {'pp_layers': [6, 2], 'vpp': 3}, "
                "'infer': {'pp': 3, 'layout': 'vllm'}");
    oracle_plan(model, NULL, 0,
                "'train': {'pp': 2, 'vpp': 2, 'pp_layers': [1, 3, 4, 0]}, "
                "'infer': {'pp': 3, 'layout': 'sglang'}");
}

TEST(test_oracle_tp_four_to_six)
{
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 2, 'hidden_size': 48, "
        "'num_attention_heads': 24, 'num_query_groups': 12, 'vocab_size': "
        "1500, 'swiglu': true, 'ffn_hidden_size': 96, 'untie': true}}");
    oracle_plan(model, NULL, 0,
                "'mode': 'disaggregated', 'train': {'tp': 4}, "
                "'infer': {'tp': 6}");
    oracle_plan(model, NULL, 0, "'train': {'tp': 4}, 'infer': {'tp': 6}");
    oracle_plan(model, NULL, 0,
                "'train': {'tp': 4, 'make_vocab_size_divisible_by': 0}, "
                "'infer': {'tp': 6}");
    oracle_plan(model, NULL, 0,
                "'train': {'tp': 4, 'make_vocab_size_divisible_by': 33}, "
                "'infer': {'tp': 6, 'make_vocab_size_divisible_by': 1}");
}

TEST(test_oracle_tp_above_query_groups)
{
    static const char *const layouts[] = {"megatron", "hf", "vllm"};
    AUTO(rf_model) *model =
        quoted_model("{'config': {'model_type': 'qwen2', 'hidden_size': 64, "
                     "'num_hidden_layers': 2, 'num_attention_heads': 16, "
                     "'num_key_value_heads': 2, 'intermediate_size': 48, "
                     "'vocab_size': 128, 'tie_word_embeddings': true}}");
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            oracle_plan(model, NULL, 0,
                        "'train': {'tp': 8, 'layout': '%s'}, "
                        "'infer': {'tp': 2, 'layout': '%s'}",
                        layouts[i], layouts[k]);
            oracle_plan(model, NULL, 0,
                        "'train': {'tp': 4, 'pp': 2, 'layout': '%s'}, "
                        "'infer': {'tp': 8, 'layout': '%s'}",
                        layouts[i], layouts[k]);
        }
    }
}

/* Layers for multi-token prediction and towers are sharded like the others. */
LOOP_TEST(test_oracle_fully_sharded_beside_the_decoder, 2)
{
    static const char *const models[] = {
        "{'mtp': true, 'config': {'model_type': 'deepseek_v3', "
        "'num_hidden_layers': 4, 'hidden_size': 16, 'num_attention_heads': 8, "
        "'q_lora_rank': 6, 'kv_lora_rank': 5, 'qk_nope_head_dim': 3, "
        "'qk_rope_head_dim': 2, 'v_head_dim': 4, 'vocab_size': 96, "
        "'intermediate_size': 32, 'moe_intermediate_size': 16, "
        "'n_routed_experts': 4, 'n_shared_experts': 1, "
        "'first_k_dense_replace': 2, 'num_nextn_predict_layers': 2}}",
        "{'vision': 'split', 'config': {'model_type': 'qwen3_vl', "
        "'text_config': {'model_type': 'qwen3_vl_text', 'hidden_size': 16, "
        "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, "
        "'vocab_size': 96, 'num_hidden_layers': 4, 'intermediate_size': 32}, "
        "'vision_config': {'hidden_size': 32, 'depth': 3, 'num_heads': 8, "
        "'patch_size': 2, 'in_channels': 1, 'intermediate_size': 40, "
        "'out_hidden_size': 16, 'num_position_embeddings': 9, "
        "'deepstack_visual_indexes': [0, 2]}}}",
    };
    AUTO(rf_model) *model = quoted_model("%s", models[_i]);
    ck_assert_uint_eq(model->n_not_counted, 0);
    oracle_plan(model, NULL, 0,
                "'mode': 'disaggregated', 'train': {'dp': 3, 'layout': "
                "'fsdp'}, 'infer': {'dp': 2, 'layout': 'zero3'}");
}

TEST(test_oracle_fully_sharded_to_engine)
{
    static const char *const kinds[] = {"fsdp", "fsdp1", "zero3"};
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'qwen3_moe', 'hidden_size': 20, "
        "'num_hidden_layers': 3, 'num_attention_heads': 4, 'head_dim': 6, "
        "'num_key_value_heads': 2, 'intermediate_size': 40, "
        "'moe_intermediate_size': 12, 'num_experts': 6, "
        "'num_experts_per_tok': 2, 'decoder_sparse_step': 2, "
        "'mlp_only_layers': [], 'norm_topk_prob': true, "
        "'vocab_size': 96, 'tie_word_embeddings': false}}");
    for (size_t i = 0; i < RF_ARRAY_SIZE(kinds); i++) {
        oracle_plan(model, NULL, 0,
                    "'train': {'dp': 8, 'layout': '%s'}, "
                    "'infer': {'tp': 4, 'layout': 'vllm'}",
                    kinds[i]);
        oracle_plan(model, NULL, 0,
                    "'mode': 'disaggregated', "
                    "'train': {'dp': 7, 'layout': '%s'}, "
                    "'infer': {'tp': 2, 'ep': 2, 'layout': 'vllm'}",
                    kinds[i]);
        oracle_plan(model, NULL, 0,
                    "'train': {'tp': 2, 'ep': 2, 'etp': 1}, "
                    "'infer': {'dp': 6, 'layout': '%s'}",
                    kinds[i]);
        oracle_plan(model, NULL, 0,
                    "'train': {'dp': 6, 'dp_replicate': 2, 'layout': '%s'}, "
                    "'infer': {'dp': 4, 'dp_replicate': 4, 'layout': '%s'}",
                    kinds[i], kinds[i]);
        oracle_plan(model, NULL, 0,
                    "'train': {'dp': 4, 'layout': 'fsdp'}, "
                    "'infer': {'dp': 6, 'layout': '%s'}",
                    kinds[i]);
    }
}

TEST(test_oracle_alpa_specs)
{
    static const char *const specs[][2] = {
        {"S0RRS1R", "RS0RRS1"},
        {"S01RRRR", "RRRRS01"},
        {"RRRRR", "S0S1RRR"},
        {"RS1S0RR", "S1RRRS0"},
    };
    for (int i = 0; i < 4; i++) {
        AUTO(rf_model) *model = quoted_model(
            "{'tensor': {'shape': [8, 7, 5, 6, 11], 'dtype': 'float32'}}");
        oracle_plan(model, NULL, 0,
                    "'mode': 'disaggregated', 'train': {'layout': 'spec', "
                    "'mesh': [2, 2], 'spec': '%s'}, 'infer': {'layout': "
                    "'spec', 'mesh': [2, 3], 'spec': '%s'}",
                    specs[i][0], specs[i][1]);
    }
}

TEST(test_oracle_change_of_dtype)
{
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON ", 'swiglu': true}}", 4);
    struct rf_plan_totals totals =
        oracle_plan(model, NULL, 0,
                    "'train': {'tp': 2, 'dtype': 'float32'}, "
                    "'infer': {'tp': 4, 'dtype': 'bfloat16'}");
    /* Counted at the destination's two bytes, four times over TP 2 → 4. */
    ck_assert_uint_ge(totals.bytes_total, model->parameters * 2);
}

TEST(test_oracle_separate_processes_share_slots)
{
    const uint32_t slots[] = {2, 2};
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON ", 'swiglu': true}}", 4);
    struct rf_plan_totals totals =
        oracle_plan(model, slots, 2,
                    "'colocated_processes': 'separate', 'train': {'tp': 2}, "
                    "'infer': {'tp': 4}");
    ck_assert_uint_eq(totals.bytes_local, 0);
    ck_assert_uint_eq(totals.bytes_inter_node, 0);
}

TEST(test_oracle_first_replica_without_balance)
{
    const uint32_t slots[] = {4, 4};
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON ", 'swiglu': true}}", 4);
    struct rf_plan_totals totals =
        oracle_plan(model, slots, 2,
                    "'balance': 'none', 'train': {'tp': 2}, 'infer': {'tp': "
                    "4}");
    ck_assert_uint_gt(totals.max_send_bytes, 3 * totals.bound_send_bytes);
}
