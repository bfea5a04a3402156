/*
 * The (tp, pp, ep) pairs that Megatron-LM's own refit tests, scripts and
 * example configurations use, and cases beyond them, element by element against
 * the oracle.
 */
#include <check.h>
#include <stdio.h>

#include "oracle.h"
#include "planner/world.h"
#include "quoted.h"

/* tp, pp, ep of both sides; etp 0: the default. */
struct pair {
    uint32_t from[3], to[3];
    uint32_t from_etp, to_etp;
};

static void side_text(const uint32_t *sizes, uint32_t etp, char *out,
                      size_t size)
{
    char expert[32] = "";
    if (etp > 0) {
        snprintf(expert, sizeof(expert), ", 'etp': %u", etp);
    }
    snprintf(out, size, "{'tp': %u, 'pp': %u, 'ep': %u%s}", sizes[0], sizes[1],
             sizes[2], expert);
}

static void check_pair(const struct rf_model *model, const struct pair *pair,
                       const char *mode)
{
    char from[128], to[128];
    side_text(pair->from, pair->from_etp, from, sizeof(from));
    side_text(pair->to, pair->to_etp, to, sizeof(to));
    oracle_plan(model, NULL, 0, "'mode': '%s', 'train': %s, 'infer': %s", mode,
                from, to);
}

#define MEGATRON                                                               \
    "'hidden_size': 32, 'num_attention_heads': 8, 'num_query_groups': %d, "    \
    "'vocab_size': 128"

static const struct pair dense_pairs[] = {
    {{2, 1, 1}, {1, 1, 1}, 0, 0},
    {{1, 1, 1}, {2, 1, 1}, 0, 0},
    {{2, 1, 1}, {4, 1, 1}, 0, 0},
    {{1, 2, 1}, {1, 1, 1}, 0, 0},
    {{1, 1, 1}, {1, 2, 1}, 0, 0},
    {{2, 2, 1}, {1, 1, 1}, 0, 0},
    {{1, 1, 1}, {2, 2, 1}, 0, 0},
    {{2, 1, 1}, {1, 2, 1}, 0, 0},
    {{1, 2, 1}, {2, 1, 1}, 0, 0},
    {{1, 2, 1}, {2, 4, 1}, 0, 0},
    /* scripts and examples */
    {{2, 2, 1}, {4, 1, 1}, 0, 0},
    {{4, 2, 1}, {8, 1, 1}, 0, 0},
    {{4, 1, 1}, {2, 1, 1}, 0, 0},
    {{4, 1, 1}, {4, 1, 1}, 0, 0},
    {{8, 1, 1}, {4, 1, 1}, 0, 0},
    {{1, 1, 1}, {8, 1, 1}, 0, 0},
};

START_TEST(test_oracle_agrees_on_dense_pairs)
{
    const struct pair *pair = &dense_pairs[_i / 2];
    struct rf_model *model =
        quoted_model("{'megatron': {'num_layers': 4, " MEGATRON "}}", 4);
    check_pair(model, pair, _i % 2 ? "disaggregated" : "colocated");
    rf_model_destroy(model);
}
END_TEST

static const struct pair expert_pairs[] = {
    {{1, 1, 2}, {1, 1, 4}, 0, 0},
    {{1, 1, 2}, {1, 1, 1}, 0, 0},
    {{1, 1, 1}, {1, 1, 2}, 0, 0},
    {{1, 1, 2}, {1, 2, 2}, 0, 0},
    {{2, 1, 2}, {1, 1, 1}, 0, 0},
    {{1, 1, 1}, {2, 1, 2}, 0, 0},
    {{4, 1, 1}, {2, 1, 2}, 0, 0},
    {{2, 1, 2}, {4, 1, 1}, 0, 0},
    {{4, 1, 1}, {1, 1, 4}, 0, 0},
    {{1, 1, 4}, {4, 1, 1}, 0, 0},
    /* eight GPUs, etp 1 */
    {{2, 1, 2}, {2, 1, 1}, 1, 1},
    {{2, 1, 2}, {2, 1, 2}, 1, 1},
    {{1, 1, 4}, {1, 1, 2}, 1, 1},
    {{4, 1, 2}, {2, 1, 4}, 1, 1},
    {{8, 1, 1}, {4, 1, 2}, 1, 1},
    {{4, 1, 2}, {4, 1, 1}, 1, 1},
    /* gated experts under a change of etp, where the reference goes wrong */
    {{1, 1, 1}, {4, 1, 1}, 1, 4},
    {{4, 1, 1}, {2, 1, 2}, 4, 1},
    {{2, 1, 2}, {4, 1, 1}, 1, 2},
};

START_TEST(test_oracle_agrees_on_expert_pairs)
{
    const struct pair *pair = &expert_pairs[_i / 2];
    struct rf_model *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON
        ", 'num_experts': 8, 'swiglu': true, 'moe_ffn_hidden_size': 16, "
        "'moe_shared_expert_intermediate_size': 24, "
        "'moe_router_enable_expert_bias': true}}",
        8);
    check_pair(model, pair, _i % 2 ? "disaggregated" : "colocated");
    rf_model_destroy(model);
}
END_TEST

/* The pairs of the 61-layer, 384-expert example, with the real numbers of heads
 * and experts' ratios but small matrices. */
static const struct pair kimi_pairs[] = {
    {{8, 1, 8}, {8, 1, 4}, 1, 1},   {{16, 1, 4}, {8, 1, 4}, 1, 1},
    {{16, 1, 4}, {16, 1, 2}, 1, 1}, {{16, 1, 4}, {32, 1, 2}, 1, 1},
    {{8, 1, 8}, {16, 1, 4}, 0, 0},  {{32, 1, 4}, {16, 1, 8}, 1, 1},
    {{16, 1, 8}, {8, 1, 16}, 0, 0},
};

#define LATENT                                                                 \
    "{'config': {'model_type': 'deepseek_v3', 'hidden_size': 32, "             \
    "'num_hidden_layers': 3, 'num_attention_heads': %d, "                      \
    "'num_key_value_heads': %d, 'intermediate_size': 64, 'vocab_size': 200, "  \
    "'q_lora_rank': 12, 'kv_lora_rank': 8, 'qk_nope_head_dim': 2, "            \
    "'qk_rope_head_dim': 1, 'v_head_dim': 2, 'n_routed_experts': %d, "         \
    "'n_shared_experts': 1, 'moe_intermediate_size': 32, "                     \
    "'first_k_dense_replace': 1, 'topk_method': 'noaux_tc', "                  \
    "'tie_word_embeddings': false}}"

START_TEST(test_oracle_agrees_on_latent_expert_pairs)
{
    struct rf_model *model = quoted_model(LATENT, 64, 64, 48);
    check_pair(model, &kimi_pairs[_i / 2],
               _i % 2 ? "disaggregated" : "colocated");
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_disaggregated_pipeline_to_none)
{
    const uint32_t slots[] = {4, 4};
    struct rf_model *model = quoted_model(
        "{'megatron': {'num_layers': 8, " MEGATRON ", 'swiglu': true}}", 2);
    struct rf_plan_totals totals = oracle_plan(
        model, slots, 2,
        "'mode': 'disaggregated', 'train': {'nodes': ['a'], 'tp': 2, 'pp': 2}, "
        "'infer': {'nodes': ['b'], 'tp': 4}");
    ck_assert_uint_eq(totals.bytes_local, 0);
    ck_assert_uint_eq(totals.bytes_inter_node, totals.bytes_total);
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_interleaved_and_uneven_stages)
{
    struct rf_model *model = quoted_model(
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
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_tp_four_to_six)
{
    struct rf_model *model = quoted_model(
        "{'megatron': {'num_layers': 2, 'hidden_size': 48, "
        "'num_attention_heads': 24, 'num_query_groups': 12, 'vocab_size': "
        "1500, 'swiglu': true, 'ffn_hidden_size': 96, 'untie': true}}");
    oracle_plan(model, NULL, 0,
                "'mode': 'disaggregated', 'train': {'tp': 4}, "
                "'infer': {'tp': 6}");
    oracle_plan(model, NULL, 0, "'train': {'tp': 4}, 'infer': {'tp': 6}");
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_tp_above_query_groups)
{
    static const char *const layouts[] = {"megatron", "hf", "vllm"};
    struct rf_model *model =
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
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_fully_sharded_to_engine)
{
    static const char *const kinds[] = {"fsdp", "fsdp1"};
    struct rf_model *model = quoted_model(
        "{'config': {'model_type': 'qwen3_moe', 'hidden_size': 20, "
        "'num_hidden_layers': 3, 'num_attention_heads': 4, 'head_dim': 6, "
        "'num_key_value_heads': 2, 'intermediate_size': 40, "
        "'moe_intermediate_size': 12, 'num_experts': 6, "
        "'num_experts_per_tok': 2, 'decoder_sparse_step': 2, "
        "'mlp_only_layers': [], 'norm_topk_prob': true, "
        "'vocab_size': 96, 'tie_word_embeddings': false}}");
    for (int i = 0; i < 2; i++) {
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
                    "'train': {'dp': 4, 'layout': 'fsdp'}, "
                    "'infer': {'dp': 6, 'layout': '%s'}",
                    kinds[i]);
    }
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_alpa_specs)
{
    static const char *const specs[][2] = {
        {"S0RRS1R", "RS0RRS1"},
        {"S01RRRR", "RRRRS01"},
        {"RRRRR", "S0S1RRR"},
        {"RS1S0RR", "S1RRRS0"},
    };
    for (int i = 0; i < 4; i++) {
        struct rf_model *model = quoted_model(
            "{'tensor': {'shape': [8, 7, 5, 6, 11], 'dtype': 'float32'}}");
        oracle_plan(model, NULL, 0,
                    "'mode': 'disaggregated', 'train': {'layout': 'spec', "
                    "'mesh': [2, 2], 'spec': '%s'}, 'infer': {'layout': "
                    "'spec', 'mesh': [2, 3], 'spec': '%s'}",
                    specs[i][0], specs[i][1]);
        rf_model_destroy(model);
    }
}
END_TEST

START_TEST(test_oracle_change_of_dtype)
{
    struct rf_model *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON ", 'swiglu': true}}", 4);
    struct rf_plan_totals totals =
        oracle_plan(model, NULL, 0,
                    "'train': {'tp': 2, 'dtype': 'float32'}, "
                    "'infer': {'tp': 4, 'dtype': 'bfloat16'}");
    /* Counted at the destination's two bytes, four times over TP 2 → 4. */
    ck_assert_uint_ge(totals.bytes_total, model->parameters * 2);
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_separate_processes_share_slots)
{
    const uint32_t slots[] = {2, 2};
    struct rf_model *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON ", 'swiglu': true}}", 4);
    struct rf_plan_totals totals =
        oracle_plan(model, slots, 2,
                    "'colocated_processes': 'separate', 'train': {'tp': 2}, "
                    "'infer': {'tp': 4}");
    ck_assert_uint_eq(totals.bytes_local, 0);
    ck_assert_uint_eq(totals.bytes_inter_node, 0);
    rf_model_destroy(model);
}
END_TEST

START_TEST(test_oracle_first_replica_without_balance)
{
    const uint32_t slots[] = {4, 4};
    struct rf_model *model = quoted_model(
        "{'megatron': {'num_layers': 2, " MEGATRON ", 'swiglu': true}}", 4);
    struct rf_plan_totals totals =
        oracle_plan(model, slots, 2,
                    "'balance': 'none', 'train': {'tp': 2}, 'infer': {'tp': "
                    "4}");
    ck_assert_uint_gt(totals.max_send_bytes, 3 * totals.bound_send_bytes);
    rf_model_destroy(model);
}
END_TEST

Suite *test_oracle_suite(void);
Suite *test_oracle_suite(void)
{
    Suite *suite = suite_create("oracle");
    TCase *tests = tcase_create("oracle");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_oracle_agrees_on_dense_pairs, 0,
                        2 * RF_ARRAY_SIZE(dense_pairs));
    tcase_add_loop_test(tests, test_oracle_agrees_on_expert_pairs, 0,
                        2 * RF_ARRAY_SIZE(expert_pairs));
    tcase_add_loop_test(tests, test_oracle_agrees_on_latent_expert_pairs, 0,
                        2 * RF_ARRAY_SIZE(kimi_pairs));
    tcase_add_test(tests, test_oracle_disaggregated_pipeline_to_none);
    tcase_add_test(tests, test_oracle_interleaved_and_uneven_stages);
    tcase_add_test(tests, test_oracle_tp_four_to_six);
    tcase_add_test(tests, test_oracle_tp_above_query_groups);
    tcase_add_test(tests, test_oracle_fully_sharded_to_engine);
    tcase_add_test(tests, test_oracle_alpa_specs);
    tcase_add_test(tests, test_oracle_change_of_dtype);
    tcase_add_test(tests, test_oracle_separate_processes_share_slots);
    tcase_add_test(tests, test_oracle_first_replica_without_balance);
    suite_add_tcase(suite, tests);
    return suite;
}
