/*
 * Layers for multi-token prediction and vision towers: what a rank holds of
 * each tensor, element by element against lists that say how vLLM's draft
 * models and vision classes and Megatron Bridge cut it (docs/MODELS.md).
 */

#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/unit.h"

#define HELD(tensor, ...)                                                      \
    {                                                                          \
        .name = (tensor), .cut = __VA_ARGS__                                   \
    }
#define L "model.layers.{L}."

#define HELD_OUTSIDE(prefix)                                                   \
    HELD(prefix "embed_tokens.weight", ORACLE_EMBEDDING),                      \
        HELD("lm_head.weight", ORACLE_HEAD),                                   \
        HELD(prefix "norm.weight", ORACLE_LAST)

/* The rest of each list: which layers the tensors are of. */
#define DECODER
#define MTP(number) , .stage = ORACLE_ON_LAST, .from = (number)

#define HELD_NORMS(prefix, of)                                                 \
    HELD(prefix "input_layernorm.weight", ORACLE_WHOLE of),                    \
        HELD(prefix "post_attention_layernorm.weight", ORACLE_WHOLE of)

#define HELD_ATTENTION(prefix, of)                                             \
    HELD(prefix "q_proj.weight", ORACLE_ROWS, .join = ORACLE_QKV of),          \
        HELD(prefix "k_proj.weight", ORACLE_KV, .join = ORACLE_QKV of),        \
        HELD(prefix "v_proj.weight", ORACLE_KV, .join = ORACLE_QKV of),        \
        HELD(prefix "q_proj.bias", ORACLE_ROWS, .join = ORACLE_QKV of),        \
        HELD(prefix "k_proj.bias", ORACLE_KV, .join = ORACLE_QKV of),          \
        HELD(prefix "v_proj.bias", ORACLE_KV, .join = ORACLE_QKV of),          \
        HELD(prefix "o_proj.weight", ORACLE_COLUMNS of),                       \
        HELD(prefix "o_proj.bias", ORACLE_WHOLE of),                           \
        HELD(prefix "q_norm.weight", ORACLE_WHOLE of),                         \
        HELD(prefix "k_norm.weight", ORACLE_WHOLE of)

#define HELD_LATENT(prefix, of)                                                \
    HELD(prefix "q_a_proj.weight", ORACLE_WHOLE, .join = ORACLE_LATENT of),    \
        HELD(prefix "kv_a_proj_with_mqa.weight", ORACLE_WHOLE,                 \
             .join = ORACLE_LATENT of),                                        \
        HELD(prefix "q_a_layernorm.weight", ORACLE_WHOLE of),                  \
        HELD(prefix "kv_a_layernorm.weight", ORACLE_WHOLE of),                 \
        HELD(prefix "q_b_proj.weight", ORACLE_ROWS of),                        \
        HELD(prefix "kv_b_proj.weight", ORACLE_ROWS of),                       \
        HELD(prefix "o_proj.weight", ORACLE_COLUMNS of)

#define HELD_MLP(prefix, of)                                                   \
    HELD(prefix "gate_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP of),   \
        HELD(prefix "up_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP of), \
        HELD(prefix "down_proj.weight", ORACLE_COLUMNS of)

#define HELD_EXPERTS(prefix, of)                                               \
    HELD(prefix "gate.weight", ORACLE_WHOLE of),                               \
        HELD(prefix "gate.e_score_correction_bias", ORACLE_WHOLE of),          \
        HELD(prefix "experts.{E}.gate_proj.weight", ORACLE_ROWS,               \
             .join = ORACLE_GATE_UP, .experts = true of),                      \
        HELD(prefix "experts.{E}.up_proj.weight", ORACLE_ROWS,                 \
             .join = ORACLE_GATE_UP, .experts = true of),                      \
        HELD(prefix "experts.{E}.down_proj.weight", ORACLE_COLUMNS,            \
             .experts = true of)

/* What is numbered after the decoder's four layers. */
#define NEXT MTP(4)
#define HELD_NUMBERED                                                          \
    HELD(L "enorm.weight", ORACLE_WHOLE NEXT),                                 \
        HELD(L "hnorm.weight", ORACLE_WHOLE NEXT),                             \
        HELD(L "eh_proj.weight", ORACLE_WHOLE NEXT),                           \
        HELD(L "embed_tokens.weight", ORACLE_EMBEDDING NEXT),                  \
        HELD(L "shared_head.norm.weight", ORACLE_WHOLE NEXT),                  \
        HELD(L "shared_head.head.weight", ORACLE_HEAD NEXT)

static const struct oracle_held held_deepseek_v3[] = {
    HELD_OUTSIDE("model."),
    HELD_NORMS(L, DECODER),
    HELD_LATENT(L "self_attn.", DECODER),
    HELD_MLP(L "mlp.", DECODER),
    HELD_EXPERTS(L "mlp.", DECODER),
    HELD_MLP(L "mlp.shared_experts.", DECODER),
    HELD_NORMS(L, NEXT),
    HELD_LATENT(L "self_attn.", NEXT),
    HELD_EXPERTS(L "mlp.", NEXT),
    HELD_MLP(L "mlp.shared_experts.", NEXT),
    HELD_NUMBERED,
    {.name = NULL},
};

static const struct oracle_held held_glm4_moe[] = {
    HELD_OUTSIDE("model."),
    HELD_NORMS(L, DECODER),
    HELD_ATTENTION(L "self_attn.", DECODER),
    HELD_MLP(L "mlp.", DECODER),
    HELD_EXPERTS(L "mlp.", DECODER),
    HELD_MLP(L "mlp.shared_experts.", DECODER),
    HELD_NORMS(L, NEXT),
    HELD_ATTENTION(L "self_attn.", NEXT),
    HELD_EXPERTS(L "mlp.", NEXT),
    HELD_MLP(L "mlp.shared_experts.", NEXT),
    HELD_NUMBERED,
    {.name = NULL},
};

/* Layers with names of their own are numbered from 0. */
#define OWN MTP(0)
#define M "mtp.layers.{L}."
#define HELD_FC                                                                \
    HELD("mtp.fc.weight", ORACLE_ROWS OWN),                                    \
        HELD("mtp.pre_fc_norm_embedding.weight", ORACLE_WHOLE OWN),            \
        HELD("mtp.pre_fc_norm_hidden.weight", ORACLE_WHOLE OWN),               \
        HELD("mtp.norm.weight", ORACLE_WHOLE OWN)
/* Gated delta nets with 8 key heads of 2 and 16 value heads of 3. */
#define DELTA_PARTS .parts = {{16, 8}, {16, 8}, {48, 8}}
#define HELD_DELTA_NET(prefix)                                                 \
    HELD(prefix "in_proj_qkvz.weight", ORACLE_ROWS),                           \
        HELD(prefix "in_proj_ba.weight", ORACLE_ROWS),                         \
        HELD(prefix "in_proj_qkv.weight", ORACLE_PARTS, DELTA_PARTS),          \
        HELD(prefix "in_proj_z.weight", ORACLE_ROWS),                          \
        HELD(prefix "in_proj_b.weight", ORACLE_ROWS),                          \
        HELD(prefix "in_proj_a.weight", ORACLE_ROWS),                          \
        HELD(prefix "conv1d.weight", ORACLE_PARTS, DELTA_PARTS),               \
        HELD(prefix "A_log", ORACLE_ROWS),                                     \
        HELD(prefix "dt_bias", ORACLE_ROWS),                                   \
        HELD(prefix "norm.weight", ORACLE_WHOLE),                              \
        HELD(prefix "out_proj.weight", ORACLE_COLUMNS)

static const struct oracle_held held_qwen3_next[] = {
    HELD_OUTSIDE("model."),
    HELD_NORMS(L, DECODER),
    HELD_DELTA_NET(L "linear_attn."),
    HELD_ATTENTION(L "self_attn.", DECODER),
    HELD_EXPERTS(L "mlp.", DECODER),
    HELD_MLP(L "mlp.shared_expert.", DECODER),
    HELD(L "mlp.shared_expert_gate.weight", ORACLE_WHOLE),
    HELD_NORMS(M, OWN),
    HELD_ATTENTION(M "self_attn.", OWN),
    HELD_EXPERTS(M "mlp.", OWN),
    HELD_MLP(M "mlp.shared_expert.", OWN),
    HELD(M "mlp.shared_expert_gate.weight", ORACLE_WHOLE OWN),
    HELD_FC,
    {.name = NULL},
};

#define V "model.language_model."
#define VL V "layers.{L}."

/* The experts of the decoder lie in one tensor, those of the others do not. */
static const struct oracle_held held_qwen3_5_moe[] = {
    HELD_OUTSIDE(V),
    HELD_NORMS(VL, DECODER),
    HELD_DELTA_NET(VL "linear_attn."),
    HELD_ATTENTION(VL "self_attn.", DECODER),
    HELD(VL "mlp.gate.weight", ORACLE_WHOLE),
    HELD(VL "mlp.experts.gate_up_proj", ORACLE_PARTS, .experts = true,
         .stacked = true, .parts = {{16, 16}, {16, 16}}),
    HELD(VL "mlp.experts.down_proj", ORACLE_COLUMNS, .experts = true,
         .stacked = true),
    HELD_MLP(VL "mlp.shared_expert.", DECODER),
    HELD(VL "mlp.shared_expert_gate.weight", ORACLE_WHOLE),
    HELD_NORMS(M, OWN),
    HELD_ATTENTION(M "self_attn.", OWN),
    HELD_EXPERTS(M "mlp.", OWN),
    HELD_MLP(M "mlp.shared_expert.", OWN),
    HELD(M "mlp.shared_expert_gate.weight", ORACLE_WHOLE OWN),
    HELD_FC,
    {.name = NULL},
};

#define N "model.mtp_"

static const struct oracle_held held_ernie4_5_moe[] = {
    HELD_OUTSIDE("model."),
    HELD_NORMS(L, DECODER),
    HELD_ATTENTION(L "self_attn.", DECODER),
    HELD_MLP(L "mlp.", DECODER),
    HELD_EXPERTS(L "mlp.", DECODER),
    HELD(L "mlp.moe_statics.e_score_correction_bias", ORACLE_WHOLE),
    HELD_MLP(L "mlp.shared_experts.", DECODER),
    HELD_NORMS(N "block.{L}.", OWN),
    HELD_ATTENTION(N "block.{L}.self_attn.", OWN),
    HELD_MLP(N "block.{L}.mlp.", OWN),
    HELD(N "emb_norm.{L}.weight", ORACLE_WHOLE OWN),
    HELD(N "hidden_norm.{L}.weight", ORACLE_WHOLE OWN),
    HELD(N "linear_proj.{L}.weight", ORACLE_WHOLE OWN),
    {.name = NULL},
};

/* Modules of an attention layer and one of experts. */
#define B "backbone.layers.{L}."
#define HELD_MIXED(prefix, of)                                                 \
    HELD(prefix "gate.weight", ORACLE_WHOLE of),                               \
        HELD(prefix "gate.e_score_correction_bias", ORACLE_WHOLE of),          \
        HELD(prefix "experts.{E}.up_proj.weight", ORACLE_ROWS,                 \
             .experts = true of),                                              \
        HELD(prefix "experts.{E}.down_proj.weight", ORACLE_COLUMNS,            \
             .experts = true of),                                              \
        HELD(prefix "shared_experts.up_proj.weight", ORACLE_ROWS of),          \
        HELD(prefix "shared_experts.down_proj.weight", ORACLE_COLUMNS of)

static const struct oracle_held held_nemotron_h[] = {
    HELD("backbone.embeddings.weight", ORACLE_EMBEDDING),
    HELD("lm_head.weight", ORACLE_HEAD),
    HELD("backbone.norm_f.weight", ORACLE_LAST),
    HELD(B "norm.weight", ORACLE_WHOLE),
    HELD_ATTENTION(B "mixer.", DECODER),
    HELD(B "mixer.up_proj.weight", ORACLE_ROWS),
    HELD(B "mixer.down_proj.weight", ORACLE_COLUMNS),
    HELD_MIXED(B "mixer.", DECODER),
    HELD(M "norm.weight", ORACLE_WHOLE OWN),
    HELD_ATTENTION(M "mixer.", OWN),
    HELD_MIXED(M "mixer.", OWN),
    HELD(M "enorm.weight", ORACLE_WHOLE OWN),
    HELD(M "hnorm.weight", ORACLE_WHOLE OWN),
    HELD(M "eh_proj.weight", ORACLE_ROWS OWN),
    HELD(M "final_layernorm.weight", ORACLE_WHOLE OWN),
    {.name = NULL},
};

#define GROUPED                                                                \
    "'hidden_size': 16, 'num_attention_heads': 8, 'num_key_value_heads': 2, "  \
    "'head_dim': 4, 'vocab_size': 96, 'num_hidden_layers': 4, "                \
    "'intermediate_size': 32, 'moe_intermediate_size': 16, "
#define DELTA_NET                                                              \
    "'linear_num_key_heads': 8, 'linear_key_head_dim': 2, "                    \
    "'linear_num_value_heads': 16, 'linear_value_head_dim': 3, "               \
    "'linear_conv_kernel_dim': 3, 'full_attention_interval': 2, "              \
    "'shared_expert_intermediate_size': 24, 'num_experts': 4"

struct model {
    const char *description;
    const struct oracle_held *held;
};

static const struct model mtp_models[] = {
    {"'mtp': true, 'config': {'model_type': 'deepseek_v3', "
     "'num_hidden_layers': 4, 'hidden_size': 16, 'num_attention_heads': 8, "
     "'q_lora_rank': 6, 'kv_lora_rank': 5, 'qk_nope_head_dim': 3, "
     "'qk_rope_head_dim': 2, 'v_head_dim': 4, 'vocab_size': 96, "
     "'intermediate_size': 32, 'moe_intermediate_size': 16, "
     "'n_routed_experts': 4, 'n_shared_experts': 1, "
     "'first_k_dense_replace': 2, 'num_nextn_predict_layers': 2}",
     held_deepseek_v3},
    {"'mtp': true, 'config': {'model_type': 'glm4_moe', " GROUPED
     "'n_routed_experts': 4, 'attention_bias': true, 'use_qk_norm': true, "
     "'tie_word_embeddings': true, 'num_nextn_predict_layers': 1}",
     held_glm4_moe},
    {"'mtp': true, 'config': {'model_type': 'qwen3_next', " GROUPED DELTA_NET
     "}",
     held_qwen3_next},
    {"'mtp': true, 'config': {'model_type': 'qwen3_5_moe', 'text_config': "
     "{'model_type': 'qwen3_5_moe_text', 'mtp_num_hidden_layers': 1, " GROUPED
         DELTA_NET "}}",
     held_qwen3_5_moe},
    {"'mtp': true, 'config': {'model_type': 'ernie4_5_moe', " GROUPED
     "'moe_num_experts': 4, 'moe_num_shared_experts': 1, "
     "'num_nextn_predict_layers': 1}",
     held_ernie4_5_moe},
    {"'mtp': true, 'config': {'model_type': 'nemotron_h', " GROUPED
     "'hybrid_override_pattern': '-*E*', 'n_routed_experts': 4, "
     "'moe_shared_expert_intermediate_size': 40, 'n_groups': 2, "
     "'num_nextn_predict_layers': 1, 'mtp_hybrid_override_pattern': '*E'}",
     held_nemotron_h},
};

/* --- Vision towers -------------------------------------------------------- */

#define QKV_PARTS .parts = {{32, 8}, {32, 8}, {32, 8}}
#define HELD_LINEAR(prefix, cut, bias)                                         \
    HELD(prefix "weight", cut TOWER), HELD(prefix "bias", bias TOWER)
#define HELD_WHOLE(prefix) HELD_LINEAR(prefix, ORACLE_WHOLE, ORACLE_WHOLE)
#define HELD_IN(prefix) HELD_LINEAR(prefix, ORACLE_ROWS, ORACLE_ROWS)
#define HELD_BACK(prefix) HELD_LINEAR(prefix, ORACLE_COLUMNS, ORACLE_WHOLE)
#define HELD_BLOCK(prefix)                                                     \
    HELD_WHOLE(prefix "norm1."), HELD_WHOLE(prefix "norm2."),                  \
        HELD_LINEAR(prefix "attn.qkv.", ORACLE_PARTS, ORACLE_PARTS),           \
        HELD_BACK(prefix "attn.proj.")

#define TOWER , .stage = ORACLE_ON_FIRST, .tower = true, QKV_PARTS

#define T "visual."
static const struct oracle_held held_qwen2_5_vl[] = {
    HELD_OUTSIDE("model."),
    HELD_NORMS(L, DECODER),
    HELD_ATTENTION(L "self_attn.", DECODER),
    HELD_MLP(L "mlp.", DECODER),
    HELD_WHOLE(T "patch_embed.proj."),
    HELD_BLOCK(T "blocks.{L}."),
    HELD_IN(T "blocks.{L}.mlp.gate_proj."),
    HELD_IN(T "blocks.{L}.mlp.up_proj."),
    HELD_BACK(T "blocks.{L}.mlp.down_proj."),
    HELD_WHOLE(T "merger.ln_q."),
    HELD_IN(T "merger.mlp.0."),
    HELD_BACK(T "merger.mlp.2."),
    {.name = NULL},
};

/* Its class cuts the rows of [q; k; v] as they are, and gathers them. */
static const struct oracle_held held_qwen2_vl[] = {
    HELD_OUTSIDE("model."),
    HELD_NORMS(L, DECODER),
    HELD_ATTENTION(L "self_attn.", DECODER),
    HELD_MLP(L "mlp.", DECODER),
    HELD_WHOLE(T "patch_embed.proj."),
    HELD_WHOLE(T "blocks.{L}.norm1."),
    HELD_WHOLE(T "blocks.{L}.norm2."),
    HELD_IN(T "blocks.{L}.attn.qkv."),
    HELD_BACK(T "blocks.{L}.attn.proj."),
    HELD_IN(T "blocks.{L}.mlp.fc1."),
    HELD_BACK(T "blocks.{L}.mlp.fc2."),
    HELD_WHOLE(T "merger.ln_q."),
    HELD_IN(T "merger.mlp.0."),
    HELD_BACK(T "merger.mlp.2."),
    {.name = NULL},
};
#undef T

#define T "model.visual."
static const struct oracle_held held_qwen3_vl[] = {
    HELD_OUTSIDE(V),
    HELD_NORMS(VL, DECODER),
    HELD_ATTENTION(VL "self_attn.", DECODER),
    HELD_MLP(VL "mlp.", DECODER),
    HELD_WHOLE(T "patch_embed.proj."),
    HELD_WHOLE(T "pos_embed."),
    HELD_BLOCK(T "blocks.{L}."),
    HELD_IN(T "blocks.{L}.mlp.linear_fc1."),
    HELD_BACK(T "blocks.{L}.mlp.linear_fc2."),
    HELD_WHOLE(T "merger.norm."),
    HELD_IN(T "merger.linear_fc1."),
    HELD_BACK(T "merger.linear_fc2."),
    HELD_WHOLE(T "deepstack_merger_list.{L}.norm."),
    HELD_IN(T "deepstack_merger_list.{L}.linear_fc1."),
    HELD_BACK(T "deepstack_merger_list.{L}.linear_fc2."),
    {.name = NULL},
};

/* With "replicate" no rank has less. */
#undef HELD_LINEAR
#define HELD_LINEAR(prefix, cut, bias)                                         \
    HELD(prefix "weight", ORACLE_WHOLE TOWER),                                 \
        HELD(prefix "bias", ORACLE_WHOLE TOWER)
static const struct oracle_held held_qwen3_vl_whole[] = {
    HELD_OUTSIDE(V),
    HELD_NORMS(VL, DECODER),
    HELD_ATTENTION(VL "self_attn.", DECODER),
    HELD_MLP(VL "mlp.", DECODER),
    HELD_WHOLE(T "patch_embed.proj."),
    HELD_WHOLE(T "pos_embed."),
    HELD_BLOCK(T "blocks.{L}."),
    HELD_IN(T "blocks.{L}.mlp.linear_fc1."),
    HELD_BACK(T "blocks.{L}.mlp.linear_fc2."),
    HELD_WHOLE(T "merger.norm."),
    HELD_IN(T "merger.linear_fc1."),
    HELD_BACK(T "merger.linear_fc2."),
    HELD_WHOLE(T "deepstack_merger_list.{L}.norm."),
    HELD_IN(T "deepstack_merger_list.{L}.linear_fc1."),
    HELD_BACK(T "deepstack_merger_list.{L}.linear_fc2."),
    {.name = NULL},
};

#define VISION                                                                 \
    "'depth': 3, 'num_heads': 8, 'patch_size': 2, 'in_channels': 1, "          \
    "'intermediate_size': 40, 'out_hidden_size': 16, "                         \
    "'num_position_embeddings': 9, 'deepstack_visual_indexes': [0, 2]"

static const struct model vision_models[] = {
    {"'vision': 'split', 'config': {'model_type': 'qwen2_5_vl', " GROUPED
     "'vision_config': {'hidden_size': 32, " VISION "}}",
     held_qwen2_5_vl},
    {"'vision': 'split', 'config': {'model_type': 'qwen2_vl', " GROUPED
     "'vision_config': {'embed_dim': 32, 'hidden_size': 16, " VISION "}}",
     held_qwen2_vl},
    {"'vision': 'split', 'config': {'model_type': 'qwen3_vl', 'text_config': {"
     "'model_type': 'qwen3_vl_text', 'attention_bias': true, " GROUPED
     "'rope_theta': 1}, 'vision_config': {'hidden_size': 32, " VISION "}}",
     held_qwen3_vl},
    {"'vision': 'replicate', 'config': {'model_type': 'qwen3_vl', "
     "'text_config': {'model_type': 'qwen3_vl_text', " GROUPED
     "'rope_theta': 1}, 'vision_config': {'hidden_size': 32, " VISION "}}",
     held_qwen3_vl_whole},
};

/* --- The tests ------------------------------------------------------------ */

static const char *const sides[] = {
    "'layout': 'hf'",
    "'tp': 2, 'layout': 'hf'",
    "'tp': 4, 'layout': 'hf'",
    "'tp': 8, 'layout': 'hf'",
    "'layout': 'vllm'",
    "'tp': 2, 'layout': 'vllm'",
    "'tp': 4, 'layout': 'vllm'",
    "'tp': 8, 'layout': 'vllm'",
    "'tp': 2, 'pp': 2, 'layout': 'vllm'",
    "'tp': 2, 'pp': 2",
    "'tp': 4",
    "'dp': 3, 'layout': 'fsdp'",
    /* of models with experts: */
    "'tp': 2, 'ep': 2, 'etp': 1, 'pp': 2, 'layout': 'hf'",
    "'tp': 2, 'ep': 4, 'layout': 'vllm'",
};
#define WITH_EXPERTS 2

static void check_model(const struct model *of)
{
    struct rf_model *model = quoted_model("{%s}", of->description);
    size_t n = RF_ARRAY_SIZE(sides) - (model->n_experts > 0 ? 0 : WITH_EXPERTS);
    oracle_plan_sides(model, of->held, sides, n);
    rf_model_destroy(model);
}

LIMIT(60)

LOOP_TEST(test_oracle_agrees_on_mtp_layers, RF_ARRAY_SIZE(mtp_models))
{
    check_model(&mtp_models[_i]);
}

LOOP_TEST(test_oracle_agrees_on_vision_towers, RF_ARRAY_SIZE(vision_models))
{
    check_model(&vision_models[_i]);
}
