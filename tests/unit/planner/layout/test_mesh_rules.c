/* Which meshes a model allows, and the suggestions when it does not. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/layout/mesh_rules.h"
#include "planner/scenario/world.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

/* What is said about a scenario; empty when it is possible. */
static const char *verdict(struct rf_model *model, const char *fmt, ...)
    RF_PRINTF(2, 3);
static const char *verdict(struct rf_model *model, const char *fmt, ...)
{
    static struct rf_err err;
    AUTO(rf_spec) *spec;
    AUTO(rf_world) *world = NULL;
    enum rf_status status;
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    ck_assert_int_ge(vasprintf(&text, fmt, args), 0);
    va_end(args);
    spec = quoted_spec("%s", text);
    free(text);
    err = (struct rf_err){0};
    status = rf_mesh_rules_place(spec, model, NULL, 0, &world, &err);
    ck_assert(status == RF_OK || status == RF_ERR_CONFIG);
    return err.text;
}

/* An empty verdict means that the mesh is possible. */
static const struct {
    const char *model, *overrides, *infer, *says;
} meshes[] = {
    /* heads: 28 and 4 key/value heads, fused rows 36·128 */
    {"qwen2.5-7b", "", "'tp': 4", ""},
    {"qwen2.5-7b", "", "'tp': 8",
     "infer: tp 8 is impossible: tp must divide num_attention_heads (28); "
     "nearest value of tp that works: 4"},
    {"qwen2.5-7b", "", "'tp': 7",
     "tp must divide num_key_value_heads (4) or be a multiple of it; nearest "
     "value of tp that works: 4"},
    {"qwen2.5-7b", "", "'tp': 3, 'layout': 'hf'",
     "nearest values of tp that work: 2, 4"},
    /* more ranks than key/value heads: 4 heads on 8 and 16 ranks */
    {"qwen3-30b-a3b", "", "'tp': 8", ""},
    {"qwen3-30b-a3b", "", "'tp': 8, 'layout': 'vllm'", ""},
    {"qwen3-30b-a3b", "", "'tp': 32, 'layout': 'hf'", ""},
    {"qwen3-30b-a3b", "", "'tp': 6", "nearest values of tp that work: 4, 8"},
    /* vocabulary: hf must divide, vllm pads to 64, megatron to 128·tp */
    {"qwen3-0.6b", "'vocab_size': 1001", "'tp': 2, 'layout': 'hf'",
     "the 1001 rows of the vocabulary must split evenly; nearest value of tp "
     "that works: 1"},
    {"qwen3-0.6b", "'vocab_size': 1001", "'tp': 2, 'layout': 'vllm'", ""},
    {"qwen3-0.6b", "'vocab_size': 1001", "'tp': 8", ""},
    {"llama-3.2-3b", "'vocab_size': 128", "'tp': 2, 'layout': 'vllm'", ""},
    /* the trainer's padding, 128·1 rows, does not fit the engine's 3 ranks */
    {"llama-3.2-3b",
     "'vocab_size': 128, 'num_key_value_heads': 24, "
     "'intermediate_size': 8193",
     "'tp': 3", "the 128 rows of the vocabulary must split evenly"},
    {"qwen3-0.6b", "'vocab_size': 1001",
     "'tp': 2, 'make_vocab_size_divisible_by': 0",
     "the 1001 rows of the vocabulary must split evenly"},
    /* matrices */
    {"llama-3.2-3b", "'intermediate_size': 8190", "'tp': 4, 'layout': 'hf'",
     "8190 of model.layers.{L}.mlp.gate_proj.weight % tp must be 0; nearest "
     "value of tp that works: 2"},
    {"deepseek-v3", "", "'tp': 32, 'layout': 'vllm'", ""},
    {"deepseek-v3", "", "'tp': 48",
     "num_attention_heads (128); nearest values of tp that work: 32, 64"},
    /* experts */
    {"qwen3-30b-a3b", "", "'ep': 128", ""},
    {"qwen3-30b-a3b", "", "'ep': 48",
     "ep must divide the number of experts (128); nearest values of ep that "
     "work: 32, 64"},
    {"qwen3-8b", "", "'ep': 2",
     "ep 2 is impossible: the model has no experts; nearest value of ep that "
     "works: 1"},
    {"deepseek-v3", "'num_layers': 3", "'ep': 2", "the model has no experts"},
    {"qwen3-30b-a3b", "", "'etp': 5",
     "768 of model.layers.{L}.mlp.experts.{E}.gate_proj.weight % etp must be "
     "0; nearest values of etp that work: 4, 6"},
    {"qwen3-30b-a3b", "", "'layout': 'vllm', 'tp': 4, 'ep': 2",
     "ep 2 is impossible: with layout vllm ep must be 1 or a multiple of tp * "
     "cp"},
    {"qwen3-30b-a3b", "", "'layout': 'vllm', 'tp': 2, 'dp': 2, 'ep': 2",
     "ep 2 is impossible: with layout vllm ep must be 1 or tp * cp * dp / "
     "dp_replicate (dp is that of one engine unless dp_replicate gives the "
     "number of engines); nearest values of ep that work: 1, 4"},
    {"qwen3-30b-a3b", "", "'layout': 'vllm', 'tp': 2, 'dp': 2, 'ep': 4", ""},
    {"qwen3-30b-a3b", "", "'layout': 'vllm', 'tp': 2, 'cp': 2, 'ep': 4", ""},
    {"qwen3-30b-a3b", "", "'layout': 'vllm', 'tp': 2, 'ep': 8", ""},
    {"qwen3-30b-a3b", "",
     "'layout': 'vllm', 'tp': 2, 'dp': 4, 'ep': 4, 'dp_replicate': 2", ""},
    {"qwen3-30b-a3b", "", "'layout': 'vllm', 'tp': 2, 'ep': 2, 'etp': 2",
     "etp 2 is impossible: etp must be 1 where ep is 2 with layout vllm, which "
     "keeps experts whole; nearest value of etp that works: 1"},
    {"kimi-k2", "", "'ep': 8, 'etp': 65536",
     "nearest value of etp that works: 2048"},
    /* layers */
    {"qwen3-0.6b", "", "'pp': 4", ""},
    {"qwen3-0.6b", "", "'pp': 5",
     "pp 5 is impossible: 28 layers, less those set for the first and last "
     "stage, must split evenly over the stages (or list the layers of each "
     "stage in pp_layers); nearest values of pp that work: 4, 7"},
    {"qwen3-0.6b", "", "'pp': 5, 'layout': 'vllm'", ""},
    {"qwen3-0.6b", "", "'pp': 5, 'layout': 'sglang'", ""},
    {"qwen3-0.6b", "", "'pp': 29, 'layout': 'vllm'",
     "must split evenly over the stages (or list the layers of each stage in "
     "pp_layers); nearest value of pp that works: 28"},
    {"qwen3-0.6b", "",
     "'pp': 5, 'layout': 'vllm', 'num_layers_in_last_pipeline_stage': 5",
     "must split evenly over the stages"},
    {"qwen3-0.6b", "", "'pp': 4, 'vpp': 7", ""},
    {"qwen3-0.6b", "", "'pp': 4, 'vpp': 2",
     "stage 0 has 7 layers, vpp is 2 (pp_layers can list all 8 virtual "
     "stages); nearest values of pp that work: 2, 7"},
    {"qwen3-0.6b", "", "'pp_layers': [8, 8, 12]", ""},
    {"qwen3-0.6b", "", "'pp_layers': [28, 0]", ""},
    {"qwen3-0.6b", "", "'pp_layers': [8, 8, 11]",
     "pp_layers must add up to the model's 28 layers, not 27"},
    {"qwen3-0.6b", "", "'pp_layers': [14, 14], 'vpp': 3",
     "stage 0 has 14 layers, vpp is 3 (pp_layers can list all 6 virtual "
     "stages)"},
    {"qwen3-0.6b", "", "'pp_layers': [13, 15], 'vpp': 2", "stage 0 has 13"},
    {"qwen3-0.6b", "", "'pp_layers': [12, 16], 'vpp': 3", "stage 1 has 16"},
    {"qwen3-0.6b", "", "'pp_layers': [15, 13], 'vpp': 3", ""},
    {"qwen3-0.6b", "", "'pp': 2, 'vpp': 2, 'pp_layers': [7, 8, 9, 4]", ""},
    {"qwen3-0.6b", "", "'pp': 2, 'vpp': 2, 'pp_layers': [7, 8, 9, 5]",
     "pp_layers must add up to the model's 28 layers, not 29"},
    {"qwen3-0.6b", "",
     "'pp': 4, 'vpp': 4, 'num_layers_in_last_pipeline_stage': 4", ""},
    {"qwen3-0.6b", "", "'pp': 4, 'vpp': 65536", "262144 virtual stages"},
    {"qwen3-0.6b", "",
     "'pp': 4, 'num_layers_in_first_pipeline_stage': 4, "
     "'num_layers_in_last_pipeline_stage': 6",
     ""},
    {"qwen3-0.6b", "",
     "'pp': 4, 'num_layers_in_first_pipeline_stage': 5, "
     "'num_layers_in_last_pipeline_stage': 6",
     "nearest values of pp that work: 3, 19"},
    {"qwen3-0.6b", "",
     "'pp': 2, 'num_layers_in_first_pipeline_stage': 5, "
     "'num_layers_in_last_pipeline_stage': 6",
     "must split evenly"},
    {"qwen3-0.6b", "", "'pp': 3, 'num_layers_in_first_pipeline_stage': 30",
     "must split evenly"},
    /* layouts that shard anything */
    {"qwen2.5-7b", "", "'layout': 'fsdp', 'dp': 7", ""},
    {"qwen2.5-7b", "", "'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'",
     "spec names 2 dimensions, model.layers.{L}.input_layernorm.weight has 1"},
    /* conversions */
    {"qwen3-0.6b", "", "'dtype': 'float32'", ""},
    {"qwen3-0.6b", "", "'dtype': 'float8_e4m3fn'",
     "keep infer.dtype bfloat16 and set infer.quantize"},
    {"qwen3-0.6b", "", "'dtype': 'float16'",
     "no conversion from bfloat16 to float16; supported:"},
};

/* As a source or a destination. */
static const struct {
    const char *model, *overrides, *side, *train, *infer;
} sglang[] = {
    {"qwen3-0.6b", "'vocab_size': 1001", "'tp': 2", "", ""},
    {"qwen2.5-7b", "", "'tp': 8, 'attention_dp': 2", "", ""},
    {"qwen2.5-7b", "", "'tp': 8", "nearest value of tp that works: 4", NULL},
    {"qwen2.5-7b", "", "'tp': 16, 'attention_dp': 2",
     "(tp / attention_dp) must divide num_attention_heads (28); nearest value "
     "of tp that works: 8",
     NULL},
    {"qwen3-8b", "", "'tp': 4, 'attention_dp': 3",
     "tp 4 is impossible: tp must be a multiple of attention_dp (3); nearest "
     "values of tp that work: 3, 6",
     NULL},
    {"qwen3-30b-a3b", "", "'tp': 8, 'ep': 4", "", ""},
    {"qwen3-30b-a3b", "", "'tp': 8, 'ep': 16",
     "ep 16 is impossible: with layout sglang ep must divide tp (8); nearest "
     "value of ep that works: 8",
     NULL},
    {"qwen3-30b-a3b", "", "'tp': 8, 'ep': 4, 'etp': 4",
     "with layout sglang etp * ep must divide tp; tp is 8 and ep 4; nearest "
     "value of etp that works: 2",
     NULL},
    /* tied: the copy would overlap the embedding's parts */
    {"qwen3-0.6b", "", "'tp': 2, 'pp': 2", "", ""},
    {"qwen3-0.6b", "", "'tp': 4, 'attention_dp': 2, 'pp': 2",
     "train: pp 2 is impossible with layout sglang here", ""},
};

static void check_verdict(const char *said, const char *want)
{
    if (want[0] == '\0') {
        ck_assert_str_eq(said, "");
    } else {
        assert_says(said, want);
    }
}

LOOP_TEST(test_world_rules_of_sglang, RF_ARRAY_SIZE(sglang))
{
    const char *infer =
        sglang[_i].infer != NULL ? sglang[_i].infer : sglang[_i].train;
    AUTO(rf_model) *model = file_model(sglang[_i].model, sglang[_i].overrides);
    check_verdict(verdict(model,
                          "'train': {'layout': 'sglang', %s}, 'infer': {}",
                          sglang[_i].side),
                  sglang[_i].train);
    check_verdict(verdict(model,
                          "'train': {}, 'infer': {'layout': 'sglang', %s}",
                          sglang[_i].side),
                  infer);
}

LOOP_TEST(test_world_rules_of_meshes, RF_ARRAY_SIZE(meshes))
{
    AUTO(rf_model) *model = file_model(meshes[_i].model, meshes[_i].overrides);
    const char *said =
        verdict(model, "'train': {}, 'infer': {%s}", meshes[_i].infer);
    check_verdict(said, meshes[_i].says);
}

TEST(test_world_engines_fill_the_slots_and_read_back)
{
    const uint32_t slots[] = {8};
    static const char *const nodes[] = {"a"};
    AUTO(rf_model) *model = file_model("qwen3-30b-a3b", "");
    struct rf_spec
        *spec = quoted_spec(
            "'train': {}, 'infer': {'layout': 'vllm', 'tp': 2, 'ep': "
            "2}"),
        *again = NULL;
    struct rf_world *world = NULL;
    struct rf_err err = {0};
    json_auto_t *filled;
    struct rf_jnode node;
    assert_ok(rf_mesh_rules_place(spec, model, slots, 1, &world, &err), err);
    rf_world_destroy(world);
    filled = rf_spec_to_json(spec, nodes);
    node = rf_jnode_root(filled, "filled");
    assert_ok(rf_spec_from_json(&node, nodes, 1, &again, &err), err);
    ck_assert_uint_eq(again->infer.dp, 4);
    ck_assert_uint_eq(again->infer.dp_replicate, 4);
    assert_ok(rf_mesh_rules_place(again, model, slots, 1, &world, &err), err);
    rf_world_destroy(world);
    rf_spec_destroy(again);
    rf_spec_destroy(spec);
}

#define SHARDED(spec)                                                          \
    "'train': {}, 'infer': {'layout': 'spec', 'mesh': [2, 4], 'spec': '" spec  \
    "'}"

TEST(test_world_rules_shards_must_not_be_empty)
{
    AUTO(rf_model) *model = quoted_model("{'tensor': {'shape': [3, 8]}}");
    ck_assert_str_eq(verdict(model, SHARDED("S0S1")), "");
    ck_assert_str_eq(verdict(model, SHARDED("RS01")), "");
    assert_says(verdict(model, SHARDED("S1R")),
                "dimension 0 of tensor has 3 elements, fewer than the 4 "
                "shards of S1");
    assert_says(verdict(model, SHARDED("S01R")), "fewer than the 8 shards");
    assert_says(verdict(model, SHARDED("S0")), "spec names 1 dimensions");
}

#define MANIFEST(beside)                                                       \
    "{'manifest': {'model.layers.0.self_attn.q_proj.weight': {'dtype': 'F32'," \
    " 'shape': [32, 8]}}" beside "}"
#define FROM_HF(infer) "'train': {'layout': 'hf'}, 'infer': {" infer "}"

TEST(test_world_rules_a_manifest_must_tell_its_heads)
{
    struct rf_model *model = quoted_model(MANIFEST(""));
    ck_assert_str_eq(verdict(model, FROM_HF("'layout': 'hf'")), "");
    assert_says(verdict(model, FROM_HF("'layout': 'hf', 'tp': 2")),
                "needs the number of heads");
    assert_says(verdict(model, FROM_HF("'tp': 1")),
                "needs the number of heads");
    assert_says(verdict(model, FROM_HF("'layout': 'hf', 'pp': 2")),
                "1 layers, less");
    rf_model_destroy(model);
    model = quoted_model(MANIFEST(", 'num_attention_heads': 4"));
    ck_assert_str_eq(verdict(model, FROM_HF("'layout': 'hf', 'tp': 2")), "");
    rf_model_destroy(model);
}

TEST(test_world_rules_without_layers_there_is_one_stage)
{
    AUTO(rf_model) *model = quoted_model("{'tensor': {'shape': [3, 8]}}");
    assert_says(verdict(model, "'train': {}, 'infer': {%s}", "'pp': 2"),
                "the model has no layers; nearest value of pp that works: 1");
}

TEST(test_world_rules_integers_are_not_converted)
{
    AUTO(rf_model) *model =
        quoted_model("{'tensor': {'shape': [3, 8], 'dtype': 'I64'}}");
    assert_says(
        verdict(model, "'train': {}, 'infer': {%s}", "'dtype': 'bfloat16'"),
        "no conversion from int64 to bfloat16");
}

/* Four ranks cannot share out two groups: an engine asks
 * that tp divides the groups, or that there is one. */
TEST(test_world_rules_of_groups_of_a_state_space)
{
    static const struct {
        unsigned groups, tp;
        bool works;
    } cases[] = {{2, 2, true}, {2, 4, false}, {1, 4, true}, {4, 4, true}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        AUTO(rf_model) *model = quoted_model(
            "{'config': {'model_type': 'falcon_h1', 'num_hidden_layers': 2, "
            "'hidden_size': 16, 'num_attention_heads': 4, "
            "'num_key_value_heads': 4, 'head_dim': 4, 'vocab_size': 64, "
            "'intermediate_size': 32, 'mamba_n_heads': 4, 'mamba_d_head': 8, "
            "'mamba_d_ssm': 32, 'mamba_d_state': 4, 'mamba_d_conv': 3, "
            "'mamba_n_groups': %u}}",
            cases[i].groups);
        const char *said =
            verdict(model,
                    "'train': {'layout': 'hf'}, 'infer': {'tp': %u, 'layout': "
                    "'vllm'}",
                    cases[i].tp);
        if (cases[i].works) {
            ck_assert_str_eq(said, "");
        } else {
            assert_says(said, "infer: tp 4 is impossible: tp must divide the "
                              "2 heads of model.layers.{L}.mamba.in_proj.weight"
                              "; nearest value of tp that works: 2");
        }
    }
}

/* Seven blocks of 32 columns: engines deal out ⌈7 ÷ ranks⌉ each. */
TEST(test_world_rules_of_packed_blocks)
{
    static const char *const infer[] = {"'layout': 'vllm'",
                                        "'layout': 'sglang'", "'layout': 'hf'",
                                        "'layout': 'megatron'"};
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'gpt_oss', 'num_hidden_layers': 1, "
        "'hidden_size': 64, 'num_attention_heads': 4, 'num_key_value_heads': "
        "4, 'head_dim': 16, 'vocab_size': 64, 'intermediate_size': 224, "
        "'num_local_experts': 2, 'quantization_config': {'quant_method': "
        "'mxfp4'}}}");
    for (size_t i = 0; i < RF_ARRAY_SIZE(infer); i++) {
        const char *said =
            verdict(model, "'train': {'layout': 'hf'}, 'infer': {'tp': 4, %s}",
                    infer[i]);
        if (i < 2) {
            ck_assert_str_eq(said, "");
        } else {
            assert_says(said, "infer: etp 4 is impossible: 7 of model.layers."
                              "{L}.mlp.experts.down_proj_blocks % etp must be "
                              "0; nearest values of etp that work: 1, 7");
        }
    }
}
