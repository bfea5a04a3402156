/*
 * Megatron-LM's GPT with all that its flags add: biases, LayerNorm, a position
 * table, norms of queries and keys, dense layers and such with experts; element
 * by element against a list of how Megatron-Core cuts each tensor.
 */

#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/unit.h"

#define HELD(tensor, ...)                                                      \
    {                                                                          \
        .name = (tensor), .cut = __VA_ARGS__                                   \
    }
#define NORM(tensor, cut) HELD(tensor ".weight", cut), HELD(tensor ".bias", cut)
#define A "model.layers.{L}.self_attn."
#define M "model.layers.{L}.mlp."
#define E M "experts.{E}."

static const struct oracle_held held[] = {
    HELD("model.embed_tokens.weight", ORACLE_EMBEDDING),
    HELD("model.embed_positions.weight", ORACLE_FIRST),
    NORM("model.norm", ORACLE_LAST),
    NORM("model.layers.{L}.input_layernorm", ORACLE_WHOLE),
    HELD(A "q_proj.weight", ORACLE_ROWS, .join = ORACLE_QKV),
    HELD(A "k_proj.weight", ORACLE_KV, .join = ORACLE_QKV),
    HELD(A "v_proj.weight", ORACLE_KV, .join = ORACLE_QKV),
    HELD(A "q_proj.bias", ORACLE_ROWS, .join = ORACLE_QKV),
    HELD(A "k_proj.bias", ORACLE_KV, .join = ORACLE_QKV),
    HELD(A "v_proj.bias", ORACLE_KV, .join = ORACLE_QKV),
    NORM(A "q_norm", ORACLE_WHOLE),
    NORM(A "k_norm", ORACLE_WHOLE),
    HELD(A "o_proj.weight", ORACLE_COLUMNS),
    HELD(A "o_proj.bias", ORACLE_WHOLE),
    NORM("model.layers.{L}.post_attention_layernorm", ORACLE_WHOLE),
    HELD(M "gate_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP),
    HELD(M "up_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP),
    HELD(M "gate_proj.bias", ORACLE_ROWS, .join = ORACLE_GATE_UP),
    HELD(M "up_proj.bias", ORACLE_ROWS, .join = ORACLE_GATE_UP),
    HELD(M "down_proj.weight", ORACLE_COLUMNS),
    HELD(M "down_proj.bias", ORACLE_WHOLE),
    HELD(M "gate.weight", ORACLE_WHOLE),
    HELD(M "gate.bias", ORACLE_WHOLE),
    HELD(E "gate_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP,
         .experts = true),
    HELD(E "up_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP,
         .experts = true),
    HELD(E "gate_proj.bias", ORACLE_ROWS, .join = ORACLE_GATE_UP,
         .experts = true),
    HELD(E "up_proj.bias", ORACLE_ROWS, .join = ORACLE_GATE_UP,
         .experts = true),
    HELD(E "down_proj.weight", ORACLE_COLUMNS, .experts = true),
    HELD(E "down_proj.bias", ORACLE_WHOLE, .experts = true),
    {.name = NULL},
};

static const char *const sides[] = {
    "'tp': 1",
    "'tp': 4",
    "'tp': 2, 'pp': 2",
    "'tp': 2, 'ep': 2, 'etp': 1, 'pp': 2, 'vpp': 2",
    "'tp': 2, 'ep': 4, 'etp': 2",
    "'tp': 2, 'ep': 2, 'etp': 1, 'layout': 'hf'",
    "'tp': 2, 'pp': 2, 'layout': 'vllm'",
    "'dp': 3, 'layout': 'fsdp'",
};

LOOP_TEST(test_oracle_agrees_on_megatron_gpt, RF_ARRAY_SIZE(sides))
{
    AUTO(rf_model) *model = quoted_model(
        "{'megatron': {'num_layers': 4, 'hidden_size': 16, "
        "'num_attention_heads': 8, 'num_query_groups': 2, 'vocab_size': 96, "
        "'ffn_hidden_size': 24, 'swiglu': true, 'qk_layernorm': true, "
        "'add_bias_linear': true, 'normalization': 'LayerNorm', "
        "'position_embedding_type': 'learned_absolute', "
        "'max_position_embeddings': 10, 'num_experts': 4, "
        "'moe_layer_freq': 2, 'moe_ffn_hidden_size': 8}}");
    oracle_held = held;
    for (size_t b = 0; b < RF_ARRAY_SIZE(sides); b++) {
        oracle_plan(model, NULL, 0,
                    "'mode': 'disaggregated', 'train': {%s}, 'infer': {%s}",
                    sides[_i], sides[b]);
    }
    oracle_held = NULL;
}
