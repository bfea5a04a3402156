/* Models: exact totals, names and shapes of real checkpoints, bad input. */
#include <string.h>

#include "planner/model/model.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

static const struct {
    const char *file;
    uint64_t parameters, tensors;
    uint32_t families;
} totals[] = {
    {"llama-3.1-8b", 8030261248, 291, 12},
    {"llama-3.2-3b", 3212749824, 254, 11},
    {"llama-3.1-70b", 70553706496, 723, 12},
    {"qwen2.5-7b", 7615616512, 339, 15},
    {"qwen3-0.6b", 596049920, 310, 13},
    {"qwen3-8b", 8190735360, 399, 14},
    {"qwen3-30b-a3b", 30532122624, 18867, 15},
    {"qwen3-235b-a22b", 235093634560, 36945, 15},
    {"mixtral-8x7b", 46702792704, 995, 13},
    {"deepseek-v3", 671026419200, 45395, 23},
    {"kimi-k2", 1026408232448, 69975, 23},
};

LOOP_TEST(test_model_totals_are_those_of_the_checkpoint, RF_ARRAY_SIZE(totals))
{
    AUTO(rf_model) *model = file_model(totals[_i].file, "");
    ck_assert_uint_eq(model->parameters, totals[_i].parameters);
    ck_assert_uint_eq(model->n_tensors, totals[_i].tensors);
    ck_assert_uint_eq(model->n_families, totals[_i].families);
    ck_assert_uint_eq(model->bytes, 2 * totals[_i].parameters);
    ck_assert_int_eq(model->dtype, RF_BF16);
    ck_assert_ptr_null(model->files);
    for (uint32_t i = 0; i < model->n_families; i++) {
        ck_assert_int_ne(model->families[i].role, RF_ROLE_OTHER);
    }
}

/* The tensor of that name with that shape is in the model, once. */
static void assert_tensor(const struct rf_model *model, const char *name,
                          enum rf_role role, uint64_t rows, uint64_t cols)
{
    char text[256];
    unsigned found = 0;
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        for (uint32_t l = 0; l < family->n_layers; l++) {
            for (uint32_t e = 0; e < family->n_experts; e++) {
                rf_family_tensor_name(family, l, e, text, sizeof(text));
                if (strcmp(text, name) != 0) {
                    continue;
                }
                found++;
                ck_assert_int_eq(family->role, role);
                ck_assert_uint_eq(family->ndim, cols == 0 ? 1 : 2);
                ck_assert_uint_eq(family->shape[0], rows);
                ck_assert_uint_eq(family->shape[1], cols);
            }
        }
    }
    ck_assert_msg(found == 1, "%s found %u times", name, found);
}

static bool has_tensor(const struct rf_model *model, const char *name)
{
    char text[256];
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        for (uint32_t l = 0; l < family->n_layers; l++) {
            for (uint32_t e = 0; e < family->n_experts; e++) {
                rf_family_tensor_name(family, l, e, text, sizeof(text));
                if (strcmp(text, name) == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

TEST(test_model_dense_names_shapes_roles)
{
    AUTO(rf_model) *model = file_model("qwen2.5-7b", "");
    assert_tensor(model, "model.embed_tokens.weight", RF_ROLE_EMBED, 152064,
                  3584);
    assert_tensor(model, "model.layers.0.self_attn.q_proj.weight", RF_ROLE_Q,
                  3584, 3584);
    assert_tensor(model, "model.layers.27.self_attn.k_proj.weight", RF_ROLE_K,
                  512, 3584);
    assert_tensor(model, "model.layers.9.self_attn.v_proj.bias", RF_ROLE_V, 512,
                  0);
    assert_tensor(model, "model.layers.9.self_attn.o_proj.weight", RF_ROLE_O,
                  3584, 3584);
    assert_tensor(model, "model.layers.9.mlp.gate_proj.weight", RF_ROLE_GATE,
                  18944, 3584);
    assert_tensor(model, "model.layers.9.mlp.down_proj.weight", RF_ROLE_DOWN,
                  3584, 18944);
    assert_tensor(model, "model.layers.9.post_attention_layernorm.weight",
                  RF_ROLE_NORM, 3584, 0);
    assert_tensor(model, "model.norm.weight", RF_ROLE_FINAL_NORM, 3584, 0);
    assert_tensor(model, "lm_head.weight", RF_ROLE_LM_HEAD, 152064, 3584);
    ck_assert(!has_tensor(model, "model.layers.28.mlp.up_proj.weight"));
    ck_assert(!has_tensor(model, "model.layers.0.self_attn.o_proj.bias"));
    ck_assert_uint_eq(model->heads, 28);
    ck_assert_uint_eq(model->kv_heads, 4);
    ck_assert_uint_eq(model->head_dim, 128);
    ck_assert_uint_eq(model->n_layers, 28);
    ck_assert_str_eq(model->model_type, "qwen2");
}

TEST(test_model_tied_embeddings_have_no_output_matrix)
{
    AUTO(rf_model) *model = file_model("qwen3-0.6b", "");
    ck_assert(model->tied_embeddings);
    ck_assert(!has_tensor(model, "lm_head.weight"));
    assert_tensor(model, "model.layers.3.self_attn.q_norm.weight", RF_ROLE_NORM,
                  128, 0);
    assert_tensor(model, "model.layers.3.self_attn.q_proj.weight", RF_ROLE_Q,
                  2048, 1024);
}

TEST(test_model_mixtral_uses_its_own_names)
{
    AUTO(rf_model) *model = file_model("mixtral-8x7b", "");
    assert_tensor(model, "model.layers.31.block_sparse_moe.gate.weight",
                  RF_ROLE_ROUTER, 8, 4096);
    assert_tensor(model, "model.layers.0.block_sparse_moe.experts.7.w1.weight",
                  RF_ROLE_EXPERT_GATE, 14336, 4096);
    assert_tensor(model, "model.layers.0.block_sparse_moe.experts.0.w2.weight",
                  RF_ROLE_EXPERT_DOWN, 4096, 14336);
    assert_tensor(model, "model.layers.1.block_sparse_moe.experts.3.w3.weight",
                  RF_ROLE_EXPERT_UP, 14336, 4096);
}

TEST(test_model_deepseek_latent_attention_and_experts)
{
    AUTO(rf_model) *model = file_model("deepseek-v3", "'num_layers': 5");
    assert_tensor(model, "model.layers.0.self_attn.q_a_proj.weight",
                  RF_ROLE_MLA_Q_A, 1536, 7168);
    assert_tensor(model, "model.layers.4.self_attn.q_b_proj.weight",
                  RF_ROLE_MLA_Q_B, UINT64_C(128) * 192, 1536);
    assert_tensor(model, "model.layers.4.self_attn.kv_a_proj_with_mqa.weight",
                  RF_ROLE_MLA_KV_A, 576, 7168);
    assert_tensor(model, "model.layers.4.self_attn.kv_b_proj.weight",
                  RF_ROLE_MLA_KV_B, UINT64_C(128) * 256, 512);
    assert_tensor(model, "model.layers.4.self_attn.o_proj.weight", RF_ROLE_O,
                  7168, UINT64_C(128) * 128);
    assert_tensor(model, "model.layers.2.mlp.gate_proj.weight", RF_ROLE_GATE,
                  18432, 7168);
    assert_tensor(model, "model.layers.3.mlp.gate.weight", RF_ROLE_ROUTER, 256,
                  7168);
    assert_tensor(model, "model.layers.3.mlp.gate.e_score_correction_bias",
                  RF_ROLE_ROUTER_BIAS, 256, 0);
    assert_tensor(model, "model.layers.3.mlp.experts.255.down_proj.weight",
                  RF_ROLE_EXPERT_DOWN, 7168, 2048);
    assert_tensor(model, "model.layers.4.mlp.shared_experts.up_proj.weight",
                  RF_ROLE_SHARED_UP, 2048, 7168);
    ck_assert(!has_tensor(model, "model.layers.2.mlp.gate.weight"));
    ck_assert(!has_tensor(model, "model.layers.3.mlp.gate_proj.weight"));
    ck_assert(model->mla);
    ck_assert_uint_eq(model->n_experts, 256);
    ck_assert_uint_eq(model->n_layers, 5);
}

TEST(test_model_latent_attention_without_query_compression)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'deepseek_v3', 'hidden_size': 64, "
        "'num_hidden_layers': 2, 'vocab_size': 32, 'num_attention_heads': 4, "
        "'intermediate_size': 128, 'q_lora_rank': null, 'n_shared_experts': "
        "0, 'kv_lora_rank': 16, "
        "'qk_nope_head_dim': 8, 'qk_rope_head_dim': 4, 'v_head_dim': 8, "
        "'n_routed_experts': 4, 'moe_intermediate_size': 32, "
        "'first_k_dense_replace': 0, 'moe_layer_freq': 2, "
        "'attention_bias': true, 'topk_method': 'greedy'}}");
    assert_tensor(model, "model.layers.0.self_attn.q_proj.weight",
                  RF_ROLE_MLA_Q_B, 48, 64);
    assert_tensor(model, "model.layers.0.self_attn.o_proj.bias", RF_ROLE_NORM,
                  64, 0);
    assert_tensor(model, "model.layers.0.self_attn.kv_a_proj_with_mqa.bias",
                  RF_ROLE_MLA_KV_A, 20, 0);
    assert_tensor(model, "model.layers.0.mlp.experts.3.up_proj.weight",
                  RF_ROLE_EXPERT_UP, 32, 64);
    assert_tensor(model, "model.layers.1.mlp.up_proj.weight", RF_ROLE_UP, 128,
                  64);
    ck_assert(
        !has_tensor(model, "model.layers.0.mlp.gate.e_score_correction_bias"));
    ck_assert(
        !has_tensor(model, "model.layers.0.mlp.shared_experts.up_proj.weight"));
}

TEST(test_model_sparse_layers_of_qwen3_moe)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'qwen3_moe', 'hidden_size': 64, "
        "'num_hidden_layers': 6, 'vocab_size': 32, 'num_attention_heads': 8, "
        "'num_key_value_heads': 4, 'intermediate_size': 128, "
        "'num_experts': 4, 'moe_intermediate_size': 32, "
        "'decoder_sparse_step': 2, 'mlp_only_layers': [3, 40]}}");
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (family->role == RF_ROLE_EXPERT_UP) {
            ck_assert_uint_eq(family->n_layers, 2);
            ck_assert_uint_eq(family->layers[0], 1);
            ck_assert_uint_eq(family->layers[1], 5);
        } else if (family->role == RF_ROLE_UP) {
            ck_assert_uint_eq(family->n_layers, 4);
            ck_assert_uint_eq(family->layers[2], 3);
        }
    }
    ck_assert_uint_eq(model->head_dim, 8);
}

#define TINY                                                                   \
    "'hidden_size': 64, 'num_hidden_layers': 2, 'vocab_size': 32, "            \
    "'num_attention_heads': 4, 'intermediate_size': 128"

TEST(test_model_defaults_of_transformers)
{
    struct rf_model *model =
        quoted_model("{'config': {'model_type': 'llama', 'head_dim': null, "
                     "'num_key_value_heads': null, " TINY "}}");
    ck_assert_uint_eq(model->head_dim, 16);
    ck_assert_uint_eq(model->kv_heads, 4);
    ck_assert(!model->tied_embeddings);
    ck_assert_int_eq(model->dtype, RF_BF16);
    ck_assert(!has_tensor(model, "model.layers.0.mlp.up_proj.bias"));
    rf_model_destroy(model);
    model = quoted_model("{'config': {'model_type': 'qwen3', "
                         "'num_key_value_heads': 2, " TINY "}}");
    ck_assert_uint_eq(model->head_dim, 128);
    rf_model_destroy(model);
}

TEST(test_model_biases_of_llama)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'llama', 'attention_bias': true, "
        "'mlp_bias': true, 'tie_word_embeddings': true, " TINY "}}");
    assert_tensor(model, "model.layers.1.self_attn.q_proj.bias", RF_ROLE_Q, 64,
                  0);
    assert_tensor(model, "model.layers.1.self_attn.o_proj.bias", RF_ROLE_NORM,
                  64, 0);
    assert_tensor(model, "model.layers.1.mlp.gate_proj.bias", RF_ROLE_GATE, 128,
                  0);
    assert_tensor(model, "model.layers.1.mlp.down_proj.bias", RF_ROLE_NORM, 64,
                  0);
    ck_assert(!has_tensor(model, "lm_head.weight"));
}

TEST(test_model_overrides_replace_fields)
{
    struct rf_model *model = file_model(
        "qwen3-30b-a3b",
        "'num_layers': 2, 'dtype': 'float32', 'num_experts': 8, "
        "'vocab_size': 1000, 'name': 'small', 'tie_word_embeddings': true");
    ck_assert_str_eq(model->name, "small");
    ck_assert_uint_eq(model->n_layers, 2);
    ck_assert_uint_eq(model->n_experts, 8);
    ck_assert_uint_eq(model->vocab, 1000);
    ck_assert_uint_eq(model->bytes, 4 * model->parameters);
    ck_assert(!has_tensor(model, "lm_head.weight"));
    rf_model_destroy(model);
    /* fewer layers than dense ones: no experts are left */
    model = file_model("deepseek-v3", "'num_hidden_layers': 2");
    ck_assert_uint_eq(model->n_experts, 0);
    rf_model_destroy(model);
}

TEST(test_model_tells_what_of_its_config_is_not_counted)
{
    struct rf_model *model = file_model("deepseek-v3", "'dtype': 'float16'");
    ck_assert_uint_eq(model->n_not_counted, 2);
    ck_assert_str_eq(model->not_counted[0], "1 multi-token-prediction layer");
    ck_assert_str_eq(model->not_counted[1],
                     "quantisation scales (weights counted as float16)");
    rf_model_destroy(model);
    model = file_model("kimi-k2", ""); /* no such layers */
    ck_assert_uint_eq(model->n_not_counted, 0);
    rf_model_destroy(model);
}

/* What a model is called that has no name of its own. */
static const struct {
    const char *overrides, *name;
} scaled[] = {
    {"'dtype': 'float32', 'num_layers': 1",
     "qwen3 (num_layers 1, dtype float32)"},
    {"'tie_word_embeddings': true", "qwen3 (tie_word_embeddings true)"},
    /* what the config says, in other words */
    {"'num_layers': 2, 'hidden_size': 64", "qwen3"},
    {"'name': 'mine', 'num_layers': 1", "mine"},
    {"'num_layers': 1, 'dtype': 'float32', 'vocab_size': 8, 'hidden_size': 32, "
     "'intermediate_size': 16, 'num_attention_heads': 8, "
     "'num_key_value_heads': 4, 'head_dim': 4, 'tie_word_embeddings': true",
     "qwen3 (num_layers 1, dtype float32, vocab_size 8, hidden_size 32, "
     "intermediate_size 16, num_attention_heads 8, num_key_value_heads 4, "
     "head_dim 4, tie_word_embeddings true)"},
};

LOOP_TEST(test_model_name_tells_the_overrides, RF_ARRAY_SIZE(scaled))
{
    AUTO(rf_model) *model =
        quoted_model("{'config': {'model_type': 'qwen3', "
                     "'num_key_value_heads': 2, " TINY "}, %s}",
                     scaled[_i].overrides);
    ck_assert_str_eq(model->name, scaled[_i].name);
}

TEST(test_model_megatron_defaults)
{
    AUTO(rf_model) *model =
        quoted_model("{'megatron': {'num_layers': 4, 'hidden_size': 1024, "
                     "'num_attention_heads': 8, 'vocab_size': 50257}}");
    assert_tensor(model, "model.layers.3.mlp.up_proj.weight", RF_ROLE_UP, 4096,
                  1024);
    ck_assert(!has_tensor(model, "model.layers.3.mlp.gate_proj.weight"));
    ck_assert(!has_tensor(model, "lm_head.weight"));
    ck_assert(!has_tensor(model, "model.layers.0.self_attn.q_norm.weight"));
    ck_assert_uint_eq(model->kv_heads, 8);
    ck_assert_uint_eq(model->head_dim, 128);
    ck_assert_int_eq(model->dtype, RF_BF16);
    ck_assert_str_eq(model->model_type, "megatron");
    /* 12·h² a layer, two norms, the final norm, the embedding */
    ck_assert_uint_eq(model->parameters, 4 * (12ull * 1024 * 1024 + 2048) +
                                             1024 + 50257ull * 1024);
}

/* What one field adds to a block of 4 layers, 64 wide, with 8 heads of 8 and 2
 * query groups, a feed-forward of 256 and a vocabulary of 128. */
static const struct {
    const char *field;
    int64_t parameters;
} added[] = {
    {"'untie': true", 128 * 64},
    /* of [q; k; v], the attention's output, and both of the feed-forward */
    {"'add_bias_linear': true", 4 * (64 + 2 * 16 + 64 + 256 + 64)},
    {"'add_qkv_bias': true", 4 * (64 + 2 * 16)},
    {"'add_bias_linear': true, 'add_qkv_bias': true",
     4 * (64 + 2 * 16 + 64 + 256 + 64)},
    /* with a gate, as large as the other half */
    {"'swiglu': true", 4 * 256 * 64},
    {"'swiglu': true, 'add_bias_linear': true",
     4 * (256 * 64 + 64 + 2 * 16 + 64 + 2 * 256 + 64)},
    /* two norms a layer, the last one */
    {"'normalization': 'LayerNorm'", 4 * 2 * 64 + 64},
    {"'qk_layernorm': true", 4 * 2 * 8},
    {"'qk_layernorm': true, 'normalization': 'LayerNorm'",
     4 * 2 * 64 + 64 + 4 * 2 * 2 * 8},
    {"'position_embedding_type': 'learned_absolute', "
     "'max_position_embeddings': 512",
     512 * 64},
    {"'position_embedding_type': 'rope'", 0},
    /* each expert as large as the feed-forward that it replaces; a router */
    {"'num_experts': 4", 4 * (3 * 2 * 256 * 64 + 4 * 64)},
    {"'num_experts': 4, 'moe_ffn_hidden_size': 32",
     4 * (4 * 2 * 32 * 64 + 4 * 64) - 4 * 2 * 256 * 64},
    {"'num_experts': 4, 'add_bias_linear': true",
     4 * (3 * 2 * 256 * 64 + 4 * 64) +
         4 * (64 + 2 * 16 + 64 + 4 * (256 + 64) + 4)},
    {"'num_experts': 4, 'moe_shared_expert_intermediate_size': 16",
     4 * (3 * 2 * 256 * 64 + 4 * 64 + 2 * 16 * 64)},
    {"'num_experts': 4, 'moe_shared_expert_intermediate_size': 16, "
     "'moe_shared_expert_gate': true",
     4 * (3 * 2 * 256 * 64 + 4 * 64 + 2 * 16 * 64 + 64)},
    {"'num_experts': 4, 'moe_router_enable_expert_bias': true",
     4 * (3 * 2 * 256 * 64 + 4 * 64 + 4)},
};

TEST(test_model_megatron_keys_beside_the_block_win)
{
    AUTO(rf_model) *inside = quoted_model(
        "{'megatron': {'num_layers': 2, 'hidden_size': 128, "
        "'num_attention_heads': 8, 'vocab_size': 128, 'swiglu': true}}");
    AUTO(rf_model) *beside = quoted_model(
        "{'megatron': {'num_layers': 9, 'hidden_size': 64, "
        "'num_attention_heads': 8, 'vocab_size': 128}, 'num_layers': 2, "
        "'hidden_size': 128, 'swiglu': true}");
    ck_assert_uint_eq(beside->n_layers, 2);
    ck_assert_uint_eq(beside->parameters, inside->parameters);
}

LOOP_TEST(test_model_megatron_fields_add_what_they_have, RF_ARRAY_SIZE(added))
{
    static const char block[] =
        "{'megatron': {'num_layers': 4, 'hidden_size': 64, "
        "'num_attention_heads': 8, 'num_query_groups': 2, "
        "'ffn_hidden_size': 256, 'vocab_size': 128%s%s}}";
    AUTO(rf_model) *plain = quoted_model(block, "", "");
    AUTO(rf_model) *model = quoted_model(block, ", ", added[_i].field);
    ck_assert_int_eq((int64_t)model->parameters,
                     (int64_t)plain->parameters + added[_i].parameters);
}

/* The compressed vectors have norms unless qk_layernorm is false. */
TEST(test_model_megatron_latent_norms_can_be_left_out)
{
    static const char block[] =
        "{'megatron': {'num_layers': 2, 'hidden_size': 64, "
        "'num_attention_heads': 8, 'vocab_size': 128, "
        "'multi_latent_attention': true, 'q_lora_rank': 24, "
        "'kv_lora_rank': 16%s}}";
    AUTO(rf_model) *usual = quoted_model(block, "");
    AUTO(rf_model) *with = quoted_model(block, ", 'qk_layernorm': true");
    AUTO(rf_model) *without = quoted_model(block, ", 'qk_layernorm': false");
    AUTO(rf_model) *biased =
        quoted_model(block, ", 'normalization': 'LayerNorm'");
    ck_assert_uint_eq(usual->parameters, with->parameters);
    ck_assert_uint_eq(usual->parameters, without->parameters + 2 * (24 + 16));
    ck_assert_uint_eq(biased->parameters,
                      usual->parameters + 2 * (2 * 64 + 24 + 16) + 64);
}

TEST(test_model_megatron_swiglu_experts)
{
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 4, 'hidden_size': 1024, "
        "'num_attention_heads': 8, 'num_query_groups': 2, 'vocab_size': 128, "
        "'swiglu': true, 'untie': true, 'num_experts': 8, "
        "'moe_layer_freq': [0, 1, 1, 0], 'dtype': 'float32', "
        "'moe_shared_expert_intermediate_size': 512}}");
    /* ⌊8·1024/3/64⌋·64 = 2688 */
    assert_tensor(model, "model.layers.0.mlp.gate_proj.weight", RF_ROLE_GATE,
                  2688, 1024);
    assert_tensor(model, "model.layers.2.mlp.experts.7.up_proj.weight",
                  RF_ROLE_EXPERT_UP, 2688, 1024);
    assert_tensor(model, "model.layers.1.mlp.gate.weight", RF_ROLE_ROUTER, 8,
                  1024);
    assert_tensor(model, "model.layers.1.mlp.shared_experts.down_proj.weight",
                  RF_ROLE_SHARED_DOWN, 1024, 512);
    assert_tensor(model, "model.layers.1.self_attn.k_proj.weight", RF_ROLE_K,
                  256, 1024);
    assert_tensor(model, "lm_head.weight", RF_ROLE_LM_HEAD, 128, 1024);
    ck_assert(!has_tensor(model, "model.layers.3.mlp.gate.weight"));
    ck_assert_int_eq(model->dtype, RF_F32);
}

TEST(test_model_single_tensor)
{
    AUTO(rf_model) *model = quoted_model(
        "{'tensor': {'shape': [1024, 1024, 512], 'dtype': 'int32'}}");
    ck_assert_uint_eq(model->n_families, 1);
    ck_assert_uint_eq(model->parameters, UINT64_C(1) << 29);
    ck_assert_uint_eq(model->bytes, UINT64_C(1) << 31);
    ck_assert_int_eq(model->families[0].role, RF_ROLE_OTHER);
    ck_assert_uint_eq(model->families[0].ndim, 3);
    ck_assert_uint_eq(model->families[0].n_layers, 1);
    ck_assert_uint_eq(model->families[0].shape[2], 512);
    ck_assert_str_eq(model->families[0].name, "tensor");
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"{}", "needs one of"},
    {"[]", "must be an object"},
    {"{'config': 3}", "$.config: must be the object of a config.json"},
    {"{'config': {}}", "\"model_type\" is missing"},
    {"{'config': {'model_type': 'nonesuch'}}",
     "$.config.model_type: unknown model type \"nonesuch\"; add \"rules\" "
     "beside \"config\" (\"rules\": {\"like\": \"llama\"} for one like Llama), "
     "or use \"checkpoint\", \"manifest\" or \"megatron\" instead; known: "},
    {"{'config': {'model_type': 'qwen3_mo'}}",
     "unknown model type \"qwen3_mo\" (did you mean \"qwen3_moe\"?); add "},
    {"{'config': {'model_type': 'x'}, 'rules': {'like': 'llama'}}",
     "\"num_hidden_layers\" is missing"},
    {"{'config': {'model_type': 'llama', " TINY "}, 'layers': 2}",
     "unknown key \"layers\""},
    {"{'config': {'model_type': 'llama', " TINY "}, 'num_experts': 2}",
     "$.num_experts: does not apply to model type llama"},
    {"{'config': {'model_type': 'llama', " TINY "}, 'num_layers': 2, "
     "'num_hidden_layers': 2}",
     "are the same override"},
    {"{'config': {'model_type': 'llama', " TINY "}, 'num_layers': 0}",
     "$.num_layers: must be an integer from 1 to"},
    {"{'config': {'model_type': 'llama', " TINY "}, 'num_layers': -1}",
     "$.num_layers: must be an integer"},
    {"{'config': {'model_type': 'llama', " TINY "}, 'dtype': 'int3'}",
     "$.dtype: unknown dtype \"int3\""},
    {"{'config': {'model_type': 'llama', " TINY "}, 'num_layers': null}",
     "$.num_layers: must be an integer"},
    {"{'config': {'model_type': 'llama', " TINY ", 'num_key_value_heads': 3}}",
     "multiple of num_key_value_heads"},
    {"{'config': {'model_type': 'llama', " TINY "}, 'num_attention_heads': 5}",
     "\"hidden_size / num_attention_heads\", column 13: 64 / 5 leaves a "
     "remainder"},
    {"{'config': {'num_key_value_heads': 2, " TINY
     "}, 'rules': {'like': 'qwen3_moe'}}",
     "\"num_experts\" is missing"},
    {"{'config': {'model_type': 'qwen3_moe', 'num_key_value_heads': 2, " TINY
     ", 'num_experts': 2, 'moe_intermediate_size': 8, 'mlp_only_layers': "
     "['x']}}",
     "mlp_only_layers)\", column 70: item 0 of the list is 'x'"},
    {"{'config': {'model_type': 'llama', " TINY
     "}, 'vocab_size': 1099511627776, 'hidden_size': 1099511627776, "
     "'head_dim': 2}",
     "2^63 - 1 bytes"},
    {"{'config': {'model_type': 'qwen3_next', 'layer_types': "
     "['linear_attention', 'linear_atention']}}",
     "$.config.layer_types[1]: unknown kind of layer \"linear_atention\" (did "
     "you mean \"linear_attention\"?"},
    {"{'config': {'model_type': 'gemma3', 'text_config': {'layer_types': "
     "['slidng_attention']}}}",
     "$.config.text_config.layer_types[0]: unknown kind of layer "
     "\"slidng_attention\" (did you mean \"sliding_attention\"?"},
    {"{'config': {'model_type': 'glm_moe_dsa', 'mlp_layer_types': ['dens']}}",
     "\"dense\"?"},
    {"{'megatron': {'num_layers': 2}}", "\"hidden_size\" is missing"},
    {"{'megatron': {'num_layers': 2}, 'num_layer': 3}", "num_layers"},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 6, 'vocab_size': 64}}",
     "without kv_channels"},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 4, 'num_query_groups': 3, 'vocab_size': 64}}",
     "multiple of num_query_groups"},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 4, 'vocab_size': 64, 'moe_layer_freq': 2}}",
     "$.megatron.moe_layer_freq: needs num_experts"},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 4, 'vocab_size': 64, 'num_experts': 2, "
     "'moe_layer_freq': [1]}}",
     "an entry for each of the 2 layers"},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 4, 'vocab_size': 64, 'kv_lora_rank': 2}}",
     "needs multi_latent_attention"},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 4, 'vocab_size': 64, "
     "'max_position_embeddings': 8}}",
     "needs position_embedding_type \"learned_absolute\""},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 64, "
     "'num_attention_heads': 4, 'vocab_size': 64, "
     "'position_embedding_type': 'learned_absolute'}}",
     "\"max_position_embeddings\" is missing"},
    {"{'megatron': {'num_layers': 2, 'hidden_sise': 64}}",
     "did you mean \"hidden_size\"?"},
    {"{'tensor': {'shape': []}}", "$.tensor.shape: must be an array of 1 to 5"},
    {"{'tensor': {'shape': [1,1,1,1,1,1]}}", "must be an array of 1 to 5"},
    {"{'tensor': {'shape': [4, 0]}}", "$.tensor.shape[1]: must be a positive"},
    {"{'tensor': {'shape': [4, -2]}}", "must be a positive integer"},
    {"{'tensor': {'shape': [4, 2.5]}}", "must be a positive integer"},
    {"{'tensor': {'shape': [9223372036854775807, 2]}}", "2^63 - 1 bytes"},
    {"{'tensor': {'shape': [9223372036854775807], 'dtype': 'U8'}}", NULL},
    {"{'tensor': {'shape': [2305843009213693952], 'dtype': 'F32'}}",
     "2^63 - 1 bytes"},
    {"{'tensor': {'name': 'a{L}', 'shape': [1]}}", "braces"},
};

LOOP_TEST(test_model_refuses_bad_input_with_the_rule, RF_ARRAY_SIZE(refused))
{
    if (refused[_i].says == NULL) { /* just below the limit */
        rf_model_destroy(quoted_model("%s", refused[_i].text));
        return;
    }
    assert_says(model_error("%s", refused[_i].text), refused[_i].says);
}

TEST(test_model_dtypes_have_both_spellings)
{
    enum rf_dtype dtype = RF_F64;
    ck_assert(rf_dtype_parse("bfloat16", &dtype) && dtype == RF_BF16);
    ck_assert(rf_dtype_parse("F8_E4M3", &dtype) && dtype == RF_F8_E4M3);
    ck_assert(!rf_dtype_parse("bf16", &dtype));
    ck_assert_uint_eq(rf_dtype_bytes(RF_I64), 8);
    ck_assert_str_eq(rf_dtype_name(RF_F8_E5M2), "float8_e5m2");
}

TEST(test_model_tensor_name_is_cut_at_the_buffer)
{
    AUTO(rf_model) *model = file_model("qwen3-0.6b", "'num_layers': 1");
    char text[8];
    rf_family_tensor_name(&model->families[1], 0, 0, text, sizeof(text));
    ck_assert_str_eq(text, "model.l");
}
