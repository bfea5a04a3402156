/*
 * Tensors that consist of parts, and experts in one tensor, element by element
 * against the oracle: what a rank holds of them is what it would hold of the
 * parts alone, put together.
 */

#include "tests/lib/quoted.h"
#include "tests/unit/planner/oracle/oracle.h"
#include "tests/unit/unit.h"

#define CONFIG                                                                 \
    "'config': {'model_type': 'qwen3_moe', 'hidden_size': 20, "                \
    "'num_hidden_layers': 4, 'num_attention_heads': 8, 'head_dim': 6, "        \
    "'num_key_value_heads': 2, 'intermediate_size': 48, "                      \
    "'moe_intermediate_size': 24, 'num_experts': 6, "                          \
    "'decoder_sparse_step': 2, 'vocab_size': 96}"

#define LAYER "model.layers.{L}."

/* Queries, keys and values in one matrix; gate and up in one. */
#define JOINED                                                                 \
    "{'like': 'qwen3_moe', "                                                   \
    "'without': ['*.q_proj.*', '*.k_proj.*', '*.v_proj.*', "                   \
    "'*.mlp.gate_proj.weight', "                                               \
    "'*.mlp.up_proj.weight'%s], 'tensors': ["                                  \
    "{'name': '" LAYER "self_attn.qkv_proj.weight', "                          \
    " 'shape': ['q_rows + 2 * kv_rows', 'hidden_size'], 'parts': ["            \
    "  {'role': 'query', 'rows': 'q_rows'}, "                                  \
    "  {'role': 'key', 'rows': 'kv_rows'}, {'role': 'value'}]}, "              \
    "{'name': '" LAYER "mlp.gate_up_proj.weight', 'layers': 'dense', "         \
    " 'shape': ['2 * intermediate_size', 'hidden_size'], 'parts': ["           \
    "  {'role': 'mlp gate', 'rows': 'intermediate_size'}, "                    \
    "  {'role': 'mlp up'}]}%s]}"

/* Experts in one tensor each, as [experts, out, in]. */
#define STACKED                                                                \
    ", {'name': '" LAYER "mlp.experts.gate_up_proj', 'layers': 'sparse', "     \
    " 'stacked': true, 'shape': ['num_experts', '2 * moe_intermediate_size', " \
    "  'hidden_size'], 'parts': [{'role': 'expert gate', "                     \
    "  'rows': 'moe_intermediate_size'}, {'role': 'expert up'}]}, "            \
    "{'name': '" LAYER "mlp.experts.down_proj', 'layers': 'sparse', "          \
    " 'stacked': true, 'role': 'expert down', "                                \
    " 'shape': ['num_experts', 'hidden_size', 'moe_intermediate_size']}"

/* The same as [experts, in, out], gate and up taking turns. */
#define TURNS                                                                  \
    ", {'name': '" LAYER "mlp.experts.turns_in_out', 'layers': 'sparse', "     \
    " 'stacked': true, 'transposed': true, 'interleaved': true, "              \
    " 'shape': ['num_experts', 'hidden_size', '2 * moe_intermediate_size'], "  \
    " 'parts': [{'role': 'expert gate'}, {'role': 'expert up'}]}, "            \
    "{'name': '" LAYER "mlp.experts.turns_bias', 'layers': 'sparse', "         \
    " 'stacked': true, 'interleaved': true, "                                  \
    " 'shape': ['num_experts', '2 * moe_intermediate_size'], "                 \
    " 'parts': [{'role': 'expert gate'}, {'role': 'expert up'}]}, "            \
    "{'name': '" LAYER "mlp.experts.down_in_out', 'layers': 'sparse', "        \
    " 'stacked': true, 'transposed': true, 'role': 'expert down', "            \
    " 'shape': ['num_experts', 'moe_intermediate_size', 'hidden_size']}"

/* As [experts, in, out], gate beside up. */
#define BESIDE                                                                 \
    ", {'name': '" LAYER "mlp.experts.beside_in_out', 'layers': 'sparse', "    \
    " 'stacked': true, 'transposed': true, "                                   \
    " 'shape': ['num_experts', 'hidden_size', '2 * moe_intermediate_size'], "  \
    " 'parts': [{'role': 'expert gate', 'rows': 'moe_intermediate_size'}, "    \
    "  {'role': 'expert up'}]}"

static const struct {
    const char *without, *more;
} models[] = {
    {"", ""},
    {", '*.mlp.experts.*'", STACKED},
    {", '*.mlp.experts.*'", TURNS},
    {", '*.mlp.experts.*'", BESIDE},
};

static struct rf_model *joined_model(int i)
{
    return quoted_model("{" CONFIG ", 'rules': " JOINED "}", models[i].without,
                        models[i].more);
}

static const char *const sides[] = {
    "'tp': 2, 'layout': 'hf'",
    "'tp': 4, 'layout': 'vllm'",
    "'tp': 2, 'pp': 2, 'layout': 'vllm'",
    "'tp': 2, 'ep': 2, 'etp': 1, 'layout': 'vllm'",
    "'tp': 8, 'layout': 'hf'",
    "'tp': 4, 'pp': 2",
    "'tp': 2, 'ep': 3, 'etp': 2",
    "'dp': 5, 'layout': 'fsdp'",
    "'dp': 7, 'layout': 'fsdp1'",
    "'dp': 6, 'dp_replicate': 2, 'layout': 'zero3'",
};

LIMIT(60)

LOOP_TEST(test_oracle_agrees_on_parts_of_tensors, RF_ARRAY_SIZE(models))
{
    AUTO(rf_model) *model = joined_model(_i);
    ck_assert_uint_gt(model->n_families, 0);
    for (size_t a = 0; a < RF_ARRAY_SIZE(sides); a++) {
        for (size_t b = 0; b < RF_ARRAY_SIZE(sides); b++) {
            oracle_plan(model, NULL, 0,
                        "'mode': 'disaggregated', 'train': {%s}, "
                        "'infer': {%s}",
                        sides[a], sides[b]);
        }
    }
}

/* A stacked family is one tensor a layer on disk, of as many bytes as experts
 * apart. */
TEST(test_experts_in_one_tensor_count_as_one)
{
    AUTO(rf_model) *apart = joined_model(0), *stacked = joined_model(1);
    ck_assert_uint_eq(apart->bytes, stacked->bytes);
    /* two layers with six experts of three matrices, or with two tensors */
    ck_assert_uint_eq(apart->n_tensors - stacked->n_tensors, 2 * (18 - 2));
    ck_assert_uint_eq(stacked->n_experts, 6);
}
