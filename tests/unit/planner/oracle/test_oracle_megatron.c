/*
 * Megatron-LM's GPT with all that its flags add: biases, LayerNorm, a position
 * table, norms of queries and keys, dense layers and such with experts; element
 * by element against the oracle.
 */

#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/unit.h"

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
    for (size_t b = 0; b < RF_ARRAY_SIZE(sides); b++) {
        oracle_plan(model, NULL, 0,
                    "'mode': 'disaggregated', 'train': {%s}, 'infer': {%s}",
                    sides[_i], sides[b]);
    }
}
