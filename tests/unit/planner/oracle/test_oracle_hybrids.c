/*
 * Models whose layers differ in kind, and experts that lie in one tensor: what
 * a rank of SGLang, Hugging Face's layout and FSDP holds of each tensor, element
 * by element against lists that say how they cut it (docs/MODELS.md, "Who
 * splits what"). tests/models/check-splits has Megatron and vLLM.
 */

#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle_held.h"
#include "tests/unit/unit.h"

#define L "model.layers.{L}."
#define ATTENTION                                                              \
    "'hidden_size': 16, 'num_attention_heads': 8, 'num_key_value_heads': 2, "  \
    "'head_dim': 4, 'vocab_size': 96, "

#define HELD_NORMS                                                             \
    HELD(L "input_layernorm.weight", ORACLE_WHOLE),                            \
        HELD(L "post_attention_layernorm.weight", ORACLE_WHOLE)

#define HELD_OUTSIDE                                                           \
    HELD("model.embed_tokens.weight", ORACLE_EMBEDDING),                       \
        HELD("lm_head.weight", ORACLE_HEAD),                                   \
        HELD("model.norm.weight", ORACLE_LAST)

/* Gated delta nets with 8 key heads of 2 and 16 value heads of 3. */
#define DELTA_NET                                                              \
    "'linear_num_key_heads': 8, 'linear_key_head_dim': 2, "                    \
    "'linear_num_value_heads': 16, 'linear_value_head_dim': 3, "               \
    "'linear_conv_kernel_dim': 3, 'full_attention_interval': 2, "
#define DELTA_PARTS .parts = {{16, 8}, {16, 8}, {48, 8}}

static const struct oracle_held held_qwen3_next[] = {
    HELD_OUTSIDE,
    HELD_NORMS,
    HELD(L "linear_attn.in_proj_qkvz.weight", ORACLE_ROWS, .heads = true),
    HELD(L "linear_attn.in_proj_ba.weight", ORACLE_ROWS, .heads = true),
    HELD(L "linear_attn.conv1d.weight", ORACLE_PARTS, .heads = true,
         DELTA_PARTS),
    HELD(L "linear_attn.A_log", ORACLE_ROWS, .heads = true),
    HELD(L "linear_attn.dt_bias", ORACLE_ROWS, .heads = true),
    HELD(L "linear_attn.norm.weight", ORACLE_WHOLE),
    HELD(L "linear_attn.out_proj.weight", ORACLE_COLUMNS, .heads = true),
    HELD_ATTENTION(L "self_attn."),
    HELD(L "self_attn.q_norm.weight", ORACLE_WHOLE),
    HELD(L "self_attn.k_norm.weight", ORACLE_WHOLE),
    HELD_MLP(L "mlp."),
    HELD(L "mlp.gate.weight", ORACLE_WHOLE),
    HELD_EXPERTS(L "mlp.experts.{E}."),
    HELD_MLP(L "mlp.shared_expert."),
    HELD(L "mlp.shared_expert_gate.weight", ORACLE_WHOLE),
    {.name = NULL},
};

#define V "model.language_model."
#define VL V "layers.{L}."

static const struct oracle_held held_qwen3_5_moe[] = {
    HELD(V "embed_tokens.weight", ORACLE_EMBEDDING),
    HELD("lm_head.weight", ORACLE_HEAD),
    HELD(V "norm.weight", ORACLE_LAST),
    HELD(VL "input_layernorm.weight", ORACLE_WHOLE),
    HELD(VL "post_attention_layernorm.weight", ORACLE_WHOLE),
    HELD(VL "linear_attn.in_proj_qkv.weight", ORACLE_PARTS, .heads = true,
         DELTA_PARTS),
    HELD(VL "linear_attn.in_proj_z.weight", ORACLE_ROWS, .heads = true),
    HELD(VL "linear_attn.in_proj_b.weight", ORACLE_ROWS, .heads = true),
    HELD(VL "linear_attn.in_proj_a.weight", ORACLE_ROWS, .heads = true),
    HELD(VL "linear_attn.conv1d.weight", ORACLE_PARTS, .heads = true,
         DELTA_PARTS),
    HELD(VL "linear_attn.A_log", ORACLE_ROWS, .heads = true),
    HELD(VL "linear_attn.dt_bias", ORACLE_ROWS, .heads = true),
    HELD(VL "linear_attn.norm.weight", ORACLE_WHOLE),
    HELD(VL "linear_attn.out_proj.weight", ORACLE_COLUMNS, .heads = true),
    HELD_ATTENTION(VL "self_attn."),
    HELD(VL "self_attn.q_norm.weight", ORACLE_WHOLE),
    HELD(VL "self_attn.k_norm.weight", ORACLE_WHOLE),
    HELD_MLP(VL "mlp."), /* of qwen3_5 */
    HELD(VL "mlp.gate.weight", ORACLE_WHOLE),
    HELD(VL "mlp.experts.gate_up_proj", ORACLE_PARTS, .experts = true,
         .stacked = true, .parts = {{16, 16}, {16, 16}}),
    HELD(VL "mlp.experts.down_proj", ORACLE_COLUMNS, .experts = true,
         .stacked = true),
    HELD_MLP(VL "mlp.shared_expert."),
    HELD(VL "mlp.shared_expert_gate.weight", ORACLE_WHOLE),
    {.name = NULL},
};

/* The experts of gpt_oss are [in, out] in bfloat16, gate and up taking turns in
 * both forms. */
static const struct oracle_held held_gpt_oss[] = {
    HELD_OUTSIDE,
    HELD_NORMS,
    HELD_ATTENTION(L "self_attn."),
    HELD(L "self_attn.sinks", ORACLE_ROWS, .heads = true),
    HELD(L "mlp.router.weight", ORACLE_WHOLE),
    HELD(L "mlp.router.bias", ORACLE_WHOLE),
    HELD(L "mlp.experts.gate_up_proj", ORACLE_COLUMNS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.gate_up_proj_blocks", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.gate_up_proj_scales", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.gate_up_proj_bias", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.down_proj", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.down_proj_blocks", ORACLE_COLUMNS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.down_proj_scales", ORACLE_COLUMNS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.down_proj_bias", ORACLE_WHOLE, .experts = true,
         .stacked = true),
    {.name = NULL},
};

static const struct oracle_held held_llama4[] = {
    HELD_OUTSIDE,
    HELD_NORMS,
    HELD_ATTENTION(L "self_attn."),
    HELD_MLP(L "feed_forward."),
    HELD(L "feed_forward.router.weight", ORACLE_WHOLE),
    HELD(L "feed_forward.experts.gate_up_proj", ORACLE_HALVES, .experts = true,
         .stacked = true),
    HELD(L "feed_forward.experts.down_proj", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD_MLP(L "feed_forward.shared_expert."),
    {.name = NULL},
};

/* Mamba-2 with 8 heads of 2 and groups of 3: in_proj is [z, x, B, C, dt],
 * conv1d [x, B, C]. */
#define GROUP_ROWS(groups)                                                     \
    {                                                                          \
        3 * (groups), groups                                                   \
    }
#define IN_PARTS(groups)                                                       \
    .parts = {{16, 8}, {16, 8}, GROUP_ROWS(groups), GROUP_ROWS(groups), {8, 8}}
#define CONV_PARTS(groups)                                                     \
    .parts = {{16, 8}, GROUP_ROWS(groups), GROUP_ROWS(groups)}
#define HELD_MAMBA(prefix, groups)                                             \
    HELD(prefix "in_proj.weight", ORACLE_PARTS, .heads = true,                 \
         IN_PARTS(groups)),                                                    \
        HELD(prefix "in_proj.bias", ORACLE_PARTS, .heads = true,               \
             IN_PARTS(groups)),                                                \
        HELD(prefix "conv1d.weight", ORACLE_PARTS, .heads = true,              \
             CONV_PARTS(groups)),                                              \
        HELD(prefix "conv1d.bias", ORACLE_PARTS, .heads = true,                \
             CONV_PARTS(groups)),                                              \
        HELD(prefix "A_log", ORACLE_ROWS, .heads = true),                      \
        HELD(prefix "D", ORACLE_ROWS, .heads = true),                          \
        HELD(prefix "dt_bias", ORACLE_ROWS, .heads = true),                    \
        HELD(prefix "norm.weight", ORACLE_ROWS, .heads = true),                \
        HELD(prefix "out_proj.weight", ORACLE_COLUMNS, .heads = true),         \
        HELD(prefix "out_proj.bias", ORACLE_WHOLE)

#define B "backbone.layers.{L}."

/* Its MLPs and experts have no gate. */
static const struct oracle_held held_nemotron_h[] = {
    HELD("backbone.embeddings.weight", ORACLE_EMBEDDING),
    HELD("lm_head.weight", ORACLE_HEAD),
    HELD("backbone.norm_f.weight", ORACLE_LAST),
    HELD(B "norm.weight", ORACLE_WHOLE),
    HELD_MAMBA(B "mixer.", 8),
    HELD_ATTENTION(B "mixer."),
    HELD(B "mixer.up_proj.weight", ORACLE_ROWS),
    HELD(B "mixer.up_proj.bias", ORACLE_ROWS),
    HELD(B "mixer.down_proj.weight", ORACLE_COLUMNS),
    HELD(B "mixer.down_proj.bias", ORACLE_WHOLE),
    HELD(B "mixer.gate.weight", ORACLE_WHOLE),
    HELD(B "mixer.gate.e_score_correction_bias", ORACLE_WHOLE),
    HELD(B "mixer.fc1_latent_proj.weight", ORACLE_WHOLE),
    HELD(B "mixer.fc1_latent_proj.bias", ORACLE_WHOLE),
    HELD(B "mixer.fc2_latent_proj.weight", ORACLE_WHOLE),
    HELD(B "mixer.fc2_latent_proj.bias", ORACLE_WHOLE),
    HELD(B "mixer.experts.{E}.up_proj.weight", ORACLE_ROWS, .experts = true),
    HELD(B "mixer.experts.{E}.down_proj.weight", ORACLE_COLUMNS,
         .experts = true),
    HELD(B "mixer.shared_experts.up_proj.weight", ORACLE_ROWS),
    HELD(B "mixer.shared_experts.up_proj.bias", ORACLE_ROWS),
    HELD(B "mixer.shared_experts.down_proj.weight", ORACLE_COLUMNS),
    HELD(B "mixer.shared_experts.down_proj.bias", ORACLE_WHOLE),
    {.name = NULL},
};

#define HELD_FALCON(groups)                                                    \
    HELD("model.embed_tokens.weight", ORACLE_EMBEDDING),                       \
        HELD("model.final_layernorm.weight", ORACLE_LAST),                     \
        HELD(L "input_layernorm.weight", ORACLE_WHOLE),                        \
        HELD(L "pre_ff_layernorm.weight", ORACLE_WHOLE),                       \
        HELD_MAMBA(L "mamba.", groups), HELD_ATTENTION(L "self_attn."),        \
        HELD_MLP(L "feed_forward.")

static const struct oracle_held held_falcon_h1[] = {HELD_FALCON(8),
                                                    {.name = NULL}};
static const struct oracle_held held_one_group[] = {HELD_FALCON(1),
                                                    {.name = NULL}};

static const struct oracle_held held_longcat_flash[] = {
    HELD_OUTSIDE,
    HELD(L "input_layernorm.0.weight", ORACLE_WHOLE),
    HELD(L "input_layernorm.1.weight", ORACLE_WHOLE),
    HELD(L "post_attention_layernorm.0.weight", ORACLE_WHOLE),
    HELD(L "post_attention_layernorm.1.weight", ORACLE_WHOLE),
    HELD_LATENT(L "self_attn.0."),
    HELD_OUTPUT(L "self_attn.0."),
    HELD_LATENT(L "self_attn.1."),
    HELD_OUTPUT(L "self_attn.1."),
    HELD_MLP(L "mlps.0."),
    HELD_MLP(L "mlps.1."),
    HELD(L "mlp.router.classifier.weight", ORACLE_WHOLE),
    HELD(L "mlp.router.e_score_correction_bias", ORACLE_WHOLE),
    HELD_EXPERTS(L "mlp.experts.{E}."),
    {.name = NULL},
};

#define D "layers.{L}."

static const struct oracle_held held_deepseek_v4[] = {
    HELD("embed.weight", ORACLE_EMBEDDING),
    HELD("head.weight", ORACLE_HEAD),
    HELD("norm.weight", ORACLE_LAST),
    HELD("hc_head_fn", ORACLE_LAST),
    HELD("hc_head_base", ORACLE_LAST),
    HELD("hc_head_scale", ORACLE_LAST),
    HELD(D "hc_attn_fn", ORACLE_WHOLE),
    HELD(D "hc_attn_base", ORACLE_WHOLE),
    HELD(D "hc_attn_scale", ORACLE_WHOLE),
    HELD(D "hc_ffn_fn", ORACLE_WHOLE),
    HELD(D "hc_ffn_base", ORACLE_WHOLE),
    HELD(D "hc_ffn_scale", ORACLE_WHOLE),
    HELD(D "attn_norm.weight", ORACLE_WHOLE),
    HELD(D "ffn_norm.weight", ORACLE_WHOLE),
    HELD(D "attn.wq_a.weight", ORACLE_WHOLE, .join = ORACLE_LATENT),
    HELD(D "attn.wkv.weight", ORACLE_WHOLE, .join = ORACLE_LATENT),
    HELD(D "attn.q_norm.weight", ORACLE_WHOLE),
    HELD(D "attn.kv_norm.weight", ORACLE_WHOLE),
    HELD(D "attn.wq_b.weight", ORACLE_ROWS, .heads = true),
    HELD(D "attn.attn_sink", ORACLE_ROWS, .plain = true),
    HELD(D "attn.wo_a.weight", ORACLE_ROWS, .heads = true),
    HELD(D "attn.wo_b.weight", ORACLE_COLUMNS, .heads = true),
    HELD(D "attn.compressor.wkv.weight", ORACLE_WHOLE),
    HELD(D "attn.compressor.wgate.weight", ORACLE_WHOLE),
    HELD(D "attn.compressor.ape", ORACLE_WHOLE),
    HELD(D "attn.compressor.norm.weight", ORACLE_WHOLE),
    HELD(D "attn.indexer.compressor.wkv.weight", ORACLE_WHOLE),
    HELD(D "attn.indexer.compressor.wgate.weight", ORACLE_WHOLE),
    HELD(D "attn.indexer.compressor.ape", ORACLE_WHOLE),
    HELD(D "attn.indexer.compressor.norm.weight", ORACLE_WHOLE),
    HELD(D "attn.indexer.wq_b.weight", ORACLE_WHOLE),
    HELD(D "attn.indexer.weights_proj.weight", ORACLE_WHOLE),
    HELD(D "ffn.gate.weight", ORACLE_WHOLE),
    HELD(D "ffn.gate.bias", ORACLE_WHOLE),
    HELD(D "ffn.experts.{E}.w1.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP,
         .experts = true),
    HELD(D "ffn.experts.{E}.w3.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP,
         .experts = true),
    HELD(D "ffn.experts.{E}.w2.weight", ORACLE_COLUMNS, .experts = true),
    HELD(D "ffn.shared_experts.w1.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP),
    HELD(D "ffn.shared_experts.w3.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP),
    HELD(D "ffn.shared_experts.w2.weight", ORACLE_COLUMNS),
    {.name = NULL},
};

#define HELD_GEMMA                                                             \
    HELD_NORMS, HELD(L "pre_feedforward_layernorm.weight", ORACLE_WHOLE),      \
        HELD(L "post_feedforward_layernorm.weight", ORACLE_WHOLE),             \
        HELD_ATTENTION(L "self_attn."),                                        \
        HELD(L "self_attn.q_norm.weight", ORACLE_WHOLE),                       \
        HELD(L "self_attn.k_norm.weight", ORACLE_WHOLE), HELD_MLP(L "mlp.")

/* SGLang's have embeddings without padding, whole. */
static const struct oracle_held held_gemma[] = {
    HELD("model.embed_tokens.weight", ORACLE_EMBEDDING, .plain = true),
    HELD("lm_head.weight", ORACLE_HEAD),
    HELD("model.norm.weight", ORACLE_LAST),
    HELD("model.embed_tokens_per_layer.weight", ORACLE_TABLE, .plain = true),
    HELD("model.per_layer_model_projection.weight", ORACLE_FIRST_ROWS,
         .plain = true),
    HELD("model.per_layer_projection_norm.weight", ORACLE_FIRST),
    HELD_GEMMA,
    HELD(L "per_layer_input_gate.weight", ORACLE_WHOLE),
    HELD(L "per_layer_projection.weight", ORACLE_WHOLE),
    HELD(L "post_per_layer_input_norm.weight", ORACLE_WHOLE),
    HELD(L "layer_scalar", ORACLE_WHOLE),
    {.name = NULL},
};

#define EXPERTS "'num_experts': 4, 'moe_intermediate_size': 16, "
#define MAMBA                                                                  \
    "'mamba_num_heads': 8, 'mamba_head_dim': 2, 'n_groups': 8, "               \
    "'ssm_state_size': 3, 'conv_kernel': 3, "

#define FALCON                                                                 \
    "'model_type': 'falcon_h1', 'num_hidden_layers': 4, " ATTENTION            \
    "'intermediate_size': 24, 'mamba_n_heads': 8, 'mamba_d_head': 2, "         \
    "'mamba_d_ssm': 16, 'mamba_d_state': 3, 'mamba_d_conv': 3, "               \
    "'mamba_rms_norm': true, 'mamba_proj_bias': true, "                        \
    "'projectors_bias': true, 'mlp_bias': true, 'attention_bias': true, "      \
    "'tie_word_embeddings': true, "

static const struct {
    const char *config;
    const struct oracle_held *held;
} models[] = {
    {"'model_type': 'qwen3_next', 'num_hidden_layers': 4, " ATTENTION DELTA_NET
         EXPERTS "'attention_bias': true, 'decoder_sparse_step': 2, "
     "'intermediate_size': 32, 'shared_expert_intermediate_size': 24",
     held_qwen3_next},
    {"'model_type': 'qwen3_5', 'text_config': {'num_hidden_layers': 4, "
     "'model_type': 'qwen3_5_text', " ATTENTION DELTA_NET
     "'intermediate_size': 24}",
     held_qwen3_5_moe},
    {"'model_type': 'qwen3_5_moe', 'text_config': {'num_hidden_layers': 4, "
     "'model_type': 'qwen3_5_moe_text', " ATTENTION DELTA_NET EXPERTS
     "'attention_bias': true, 'shared_expert_intermediate_size': 24}",
     held_qwen3_5_moe},
    {"'model_type': 'gpt_oss', 'num_hidden_layers': 2, " ATTENTION
     "'num_local_experts': 4, 'intermediate_size': 24",
     held_gpt_oss},
    /* One dtype for all, as the oracle needs it. */
    {"'model_type': 'gpt_oss', 'num_hidden_layers': 2, 'hidden_size': 32, "
     "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, "
     "'vocab_size': 96, 'num_local_experts': 2, 'intermediate_size': 256, "
     "'dtype': 'uint8', 'quantization_config': {'quant_method': 'mxfp4'}",
     held_gpt_oss},
    {"'model_type': 'llama4_text', 'num_hidden_layers': 4, " ATTENTION
     "'num_local_experts': 4, 'intermediate_size': 24, "
     "'intermediate_size_mlp': 40, 'interleave_moe_layer_step': 2",
     held_llama4},
    {"'model_type': 'nemotron_h', 'hybrid_override_pattern': 'M-*EM*E-', "
     "'intermediate_size': 24, 'n_routed_experts': 4, 'mlp_bias': true, "
     "'use_bias': true, 'moe_intermediate_size': 16, 'moe_latent_size': 12, "
     "'moe_shared_expert_intermediate_size': 40, " ATTENTION MAMBA
     "'use_conv_bias': true",
     held_nemotron_h},
    {FALCON "'mamba_n_groups': 8", held_falcon_h1},
    {"'model_type': 'longcat_flash', 'num_layers': 2, 'hidden_size': 16, "
     "'num_attention_heads': 8, 'q_lora_rank': 6, 'kv_lora_rank': 5, "
     "'qk_nope_head_dim': 3, 'qk_rope_head_dim': 2, 'v_head_dim': 4, "
     "'vocab_size': 96, 'ffn_hidden_size': 24, 'expert_ffn_hidden_size': 16, "
     "'n_routed_experts': 4, 'zero_expert_num': 3, 'attention_bias': true",
     held_longcat_flash},
    {"'model_type': 'deepseek_v4', 'num_hidden_layers': 4, 'head_dim': 4, "
     "'hidden_size': 16, 'num_attention_heads': 8, 'q_lora_rank': 6, "
     "'o_groups': 8, 'o_lora_rank': 3, 'hc_mult': 2, 'index_n_heads': 3, "
     "'index_head_dim': 4, 'moe_intermediate_size': 16, 'vocab_size': 96, "
     "'n_routed_experts': 4, 'num_hash_layers': 0, 'dtype': 'float32', "
     "'compress_ratios': [0, 4, 128, 4]",
     held_deepseek_v4},
    {"'model_type': 'gemma3_text', 'num_hidden_layers': 4, 'hidden_size': 16, "
     "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, "
     "'vocab_size': 96, 'intermediate_size': 24, 'tie_word_embeddings': false",
     held_gemma},
    {"'model_type': 'gemma4_text', 'num_hidden_layers': 4, 'hidden_size': 16, "
     "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, "
     "'global_head_dim': 4, 'vocab_size': 96, 'intermediate_size': 24, "
     "'hidden_size_per_layer_input': 6, 'tie_word_embeddings': false, "
     "'vocab_size_per_layer_input': 96",
     held_gemma},
};

/* Layers 0 and 2 have queries, keys and values, 1 and 3 keys for both, 4 and 5
 * those of a layer before. */
#define KEYS_ARE_VALUES                                                        \
    "'model_type': 'gemma4_text', 'num_hidden_layers': 6, "                    \
    "'hidden_size': 16, 'num_attention_heads': 8, 'num_key_value_heads': 2, "  \
    "'head_dim': 4, 'global_head_dim': 4, 'vocab_size': 96, "                  \
    "'intermediate_size': 24, 'hidden_size_per_layer_input': 0, "              \
    "'tie_word_embeddings': false, 'attention_bias': true, "                   \
    "'attention_k_eq_v': true, 'num_kv_shared_layers': 2, 'layer_types': ["    \
    "'sliding_attention', 'full_attention', 'sliding_attention', "             \
    "'full_attention', 'sliding_attention', 'full_attention']"

static const char *const sides[] = {
    "'layout': 'hf'",
    "'tp': 8, 'layout': 'hf'",
    "'tp': 2, 'pp': 2, 'layout': 'hf'",
    "'tp': 4, 'layout': 'sglang'",
    "'tp': 8, 'attention_dp': 2, 'layout': 'sglang'",
    "'tp': 2, 'pp': 2, 'layout': 'sglang'",
    "'dp': 3, 'layout': 'fsdp'",
    "'dp': 5, 'layout': 'fsdp1'",
    /* of models with experts: */
    "'tp': 2, 'ep': 2, 'etp': 1, 'pp': 2, 'layout': 'hf'",
    "'tp': 8, 'ep': 2, 'attention_dp': 4, 'layout': 'sglang'",
};
#define WITH_EXPERTS 2

LIMIT(60)

LOOP_TEST(test_oracle_agrees_on_hybrids, RF_ARRAY_SIZE(models))
{
    AUTO(rf_model) *model = quoted_model("{'config': {%s}}", models[_i].config);
    size_t n = RF_ARRAY_SIZE(sides) - (model->n_experts > 0 ? 0 : WITH_EXPERTS);
    oracle_plan_sides(model, models[_i].held, sides, n);
}

TEST(test_oracle_agrees_on_keys_that_are_values)
{
    AUTO(rf_model) *model = quoted_model("{'config': {" KEYS_ARE_VALUES "}}");
    oracle_plan_sides(model, held_gemma, sides,
                      RF_ARRAY_SIZE(sides) - WITH_EXPERTS);
}

TEST(test_oracle_agrees_on_the_only_group_of_a_state_space)
{
    AUTO(rf_model) *model =
        quoted_model("{'config': {" FALCON "'mamba_n_groups': 1}}");
    oracle_plan_sides(model, held_one_group, sides,
                      RF_ARRAY_SIZE(sides) - WITH_EXPERTS);
}
