/* Which parts of a shard are quantised, where they go, and which cuts are
 * refused. */
#include "planner/plan/quantize.h"

#include <stdio.h>
#include <string.h>

#include "planner/layout/box.h"
#include "planner/plan/plan_prove.h"
#include "tests/lib/planned.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 2, 'hidden_size': 256, "                      \
    "'num_attention_heads': 4, 'num_query_groups': 4, 'ffn_hidden_size': "     \
    "320, 'vocab_size': 512, 'swiglu': true}}"
#define SCENARIO(infer)                                                        \
    "{'name': 's', 'train': {'tp': 2}, 'infer': {'layout': 'hf', " infer "}}"

static const uint32_t slots[] = {4};

static struct rf_family part_of(const struct rf_plan *plan, uint32_t family,
                                uint32_t part)
{
    const struct rf_converted *converted = plan->converted[RF_INFER];
    return converted->model
        .families[rf_converted_number(converted, family, part)];
}

static void make(struct planned *planned, const char *model,
                 const char *scenario)
{
    assert_ok(planned_make(planned, model, scenario, slots, 1), planned->err);
}

/* Shards of tp 1: every linear matrix whole, all else left out. */
TEST(test_quantize_takes_the_matrices_of_linear_layers)
{
    AUTO(planned) planned;
    struct rf_quantize all;
    uint64_t values = 0, scales = 0, end = 0;
    make(&planned, MODEL, SCENARIO("'quantize': true"));
    assert_ok(rf_quantize_plan(planned.plan, RF_INFER, 0, &all, &planned.err),
              planned.err);
    ck_assert_uint_eq(all.n, 2 * 7); /* q k v o, gate up down; two layers */
    for (size_t i = 0; i < all.n; i++) {
        const struct rf_piece *pieces = &all.result.pieces[2 * i];
        const struct rf_family *family =
            &planned.model->families[pieces->family];
        uint64_t scales_end;
        const uint64_t *of = pieces[0].box.extent, *by = pieces[1].box.extent;
        ck_assert_uint_eq(rf_plan_layout(planned.plan, RF_INFER, 0)
                              ->pieces[all.matrices[i].source]
                              .family,
                          pieces->family);
        ck_assert_uint_eq(family->ndim, 2);
        ck_assert_ptr_null(strstr(family->name, "embed"));
        for (uint32_t d = 0; d < 2; d++) {
            ck_assert_uint_eq(of[RF_DIM_TENSOR + d], family->shape[d]);
            ck_assert_uint_eq(by[RF_DIM_TENSOR + d],
                              (family->shape[d] + 127) / 128);
        }
        ck_assert_uint_eq(pieces[0].offset % 256, 0);
        ck_assert_uint_ge(pieces[1].offset,
                          pieces[0].offset + rf_box_elements(&pieces[0].box));
        scales_end = pieces[1].offset + 4 * rf_box_elements(&pieces[1].box);
        end = RF_MAX(end, scales_end);
        values += rf_box_elements(&pieces[0].box);
        scales += scales_end - pieces[1].offset;
    }
    ck_assert_uint_ge(all.result.arena_bytes, end);
    ck_assert_uint_eq(all.result.arena_bytes,
                      rf_quantize_bytes(planned.plan, 0));
    ck_assert_uint_eq(all.value_bytes, values + scales);
    ck_assert_uint_eq(values, 2 * (4 * 256 * 256 + 3 * 256 * 320));
    /* 2 × 2 blocks each for q k v o, 3 × 2 for the others */
    ck_assert_uint_eq(scales, UINT64_C(4) * 2 * (4 * 4 + 3 * 6));
    rf_quantize_free(&all);
}

TEST(test_quantize_names_its_families)
{
    AUTO(planned) planned;
    const struct rf_model *model;
    uint32_t f = 0;
    make(&planned, MODEL, SCENARIO("'quantize': true"));
    model = planned.model;
    while (strstr(model->families[f].name, "down_proj") == NULL) {
        f++;
    }
    for (uint32_t scales = 0; scales < 2; scales++) {
        const struct rf_family family = part_of(planned.plan, f, scales);
        char name[100];
        rf_family_tensor_name(&family, 1, 0, name, sizeof(name));
        ck_assert_str_eq(
            name, scales ? "model.layers.1.mlp.down_proj.weight_scale_inv"
                         : "model.layers.1.mlp.down_proj.weight");
        ck_assert_int_eq(family.dtype, scales ? RF_F32 : RF_F8_E4M3);
        ck_assert_uint_eq(family.shape[0], scales ? 2 : 256);
        ck_assert_uint_eq(family.shape[1], scales ? 3 : 320);
    }
}

/* What engines read of a matrix [256, 320]. */
static const struct {
    const char *format, *name;
    enum rf_dtype dtype;
    uint32_t ndim;
    uint64_t shape[2];
} parts[] = {
    {"fp8_tensor", "weight", RF_F8_E4M3, 2, {256, 320}},
    {"fp8_tensor", "weight_scale", RF_F32, 1, {1}},
    {"fp8_block128", "weight", RF_F8_E4M3, 2, {256, 320}},
    {"fp8_block128", "weight_scale_inv", RF_F32, 2, {2, 3}},
    {"fp8_block128_ue8m0", "weight", RF_F8_E4M3, 2, {256, 320}},
    {"fp8_block128_ue8m0", "weight_scale_inv", RF_F32, 2, {2, 3}},
    {"mxfp8", "weight", RF_F8_E4M3, 2, {256, 320}},
    {"mxfp8", "weight_scale", RF_U8, 2, {256, 10}},
    {"nvfp4", "weight", RF_U8, 2, {256, 160}},
    {"nvfp4", "weight_scale", RF_F8_E4M3, 2, {256, 20}},
    {"nvfp4", "weight_scale_2", RF_F32, 1, {1}},
};

LOOP_TEST(test_quantize_makes_the_tensors_that_engines_read, RF_QUANTS)
{
    const struct rf_quant_format *format = &rf_quant_formats[_i];
    AUTO(planned) planned;
    struct rf_quantize all;
    char scenario[160];
    uint32_t f = 0, k = 0;
    uint64_t bytes = 0;
    snprintf(scenario, sizeof(scenario),
             "{'name': 's', 'quantize': '%s', 'train': {'tp': 2}, 'infer': "
             "{'layout': 'hf'}}",
             format->name);
    make(&planned, MODEL, scenario);
    while (strstr(planned.model->families[f].name, "down_proj") == NULL) {
        f++;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        if (strcmp(parts[i].format, format->name) == 0) {
            const struct rf_family family = part_of(planned.plan, f, k++);
            char name[100];
            rf_family_tensor_name(&family, 1, 0, name, sizeof(name));
            ck_assert_str_eq(strrchr(name, '.') + 1, parts[i].name);
            ck_assert_int_eq(family.dtype, parts[i].dtype);
            ck_assert_uint_eq(family.ndim, parts[i].ndim);
            for (uint32_t d = 0; d < family.ndim; d++) {
                ck_assert_uint_eq(family.shape[d], parts[i].shape[d]);
            }
        }
    }
    ck_assert_uint_eq(k, format->n_parts);
    assert_ok(rf_quantize_plan(planned.plan, RF_INFER, 0, &all, &planned.err),
              planned.err);
    ck_assert_uint_eq(all.n, 2 * 7);
    ck_assert_uint_eq(all.result.n_pieces, all.n * k);
    ck_assert_uint_eq(all.result.arena_bytes,
                      rf_quantize_bytes(planned.plan, 0));
    for (uint32_t i = 0;
         i < planned.plan->converted[RF_INFER]->model.n_families; i++) {
        const struct rf_family *family =
            &planned.plan->converted[RF_INFER]->model.families[i];
        bytes += family->is_result ? rf_family_elements(family) *
                                         rf_dtype_bytes(family->dtype)
                                   : 0;
    }
    ck_assert_uint_eq(all.value_bytes, bytes);
    rf_quantize_free(&all);
}

/* One scale for q, k and v, one for gate and up; o and down have their own. Of
 * two ranks neither holds such tensors whole. */
LOOP_TEST(test_quantize_joins_what_engines_join, 2)
{
    const char *const layouts[] = {"'hf'", "'vllm', 'tp': 2"};
    AUTO(planned) planned;
    struct rf_quantize all;
    char scenario[160];
    bool exchanges = _i == 0;
    snprintf(scenario, sizeof(scenario),
             "{'name': 's', 'quantize': 'nvfp4', 'train': {'tp': 2}, 'infer': "
             "{'layout': %s}}",
             layouts[_i]);
    make(&planned, MODEL, scenario);
    assert_ok(rf_quantize_plan(planned.plan, RF_INFER, 0, &all, &planned.err),
              planned.err);
    ck_assert_uint_eq(all.n, 2 * 7);
    ck_assert_uint_eq(all.n_joined, 2 * 4);
    for (size_t i = 0; i < all.n_joined; i++) {
        uint32_t families[RF_FAMILY_MAX_PARTS], members = 0;
        const uint32_t n = rf_quantize_joined_to(
            planned.plan->converted[RF_INFER], &all.joined[i], families);
        const char *name = planned.model->families[families[0]].name;
        ck_assert_uint_eq(n, strstr(name, "self_attn.q_proj") != NULL ? 3
                             : strstr(name, "gate_proj") != NULL      ? 2
                                                                      : 1);
        for (size_t m = 0; m < all.n; m++) {
            members += all.matrices[m].joined == i;
        }
        ck_assert_uint_eq(members, n);
        ck_assert_int_eq(all.joined[i].whole, _i == 0);
    }
    assert_ok(rf_quantize_check(planned.plan, &exchanges, &planned.err),
              planned.err);
    ck_assert_int_eq(exchanges, _i == 1);
    rf_quantize_free(&all);
}

TEST(test_quantize_is_nothing_unless_asked_for)
{
    AUTO(planned) planned;
    struct rf_quantize all;
    make(&planned, MODEL, SCENARIO("'tp': 4"));
    assert_ok(rf_quantize_plan(planned.plan, RF_INFER, 0, &all, &planned.err),
              planned.err);
    ck_assert_uint_eq(all.n, 0);
    ck_assert_uint_eq(all.result.arena_bytes, 0);
    assert_ok(rf_quantize_check(planned.plan, NULL, &planned.err), planned.err);
}

#define TENSOR(shape)                                                          \
    "{'tensor': {'name': 'w', 'shape': " shape ", 'dtype': 'bfloat16'}}"
#define SPEC(format, words)                                                    \
    "{'name': 's', 'quantize': {'format': '" format                            \
    "', 'at': 'receiver'}, 'train': {'layout': 'spec', 'mesh': [1, 4], "       \
    "'spec': ['R', 'R']}, 'infer': {'layout': 'spec', 'mesh': [1, 4], "        \
    "'spec': " words "}}"
#define BLOCK "fp8_block128"

/* Cuts are at multiples of a quarter of a dimension. */
static const struct {
    const char *model, *scenario, *refusal, *rule;
} cuts[] = {
    {TENSOR("[512, 100]"), SPEC(BLOCK, "['S1', 'R']"), NULL, NULL},
    {TENSOR("[100, 512]"), SPEC(BLOCK, "['R', 'S1']"), NULL, NULL},
    {TENSOR("[1024, 7]"), SPEC(BLOCK, "['S1', 'R']"), NULL, NULL},
    {TENSOR("[100, 100]"), SPEC(BLOCK, "['R', 'R']"), NULL, NULL},
    {TENSOR("[256, 128]"), SPEC(BLOCK, "['S1', 'R']"), "rows 0 to 64",
     "multiples of 128"},
    {TENSOR("[128, 768]"), SPEC(BLOCK "_ue8m0", "['R', 'S1']"),
     "columns 0 to 192", "multiples of 128"},
    {TENSOR("[12, 768]"), SPEC("mxfp8", "['R', 'S1']"), NULL, NULL},
    {TENSOR("[12, 32]"), SPEC("mxfp8", "['S1', 'R']"), NULL, NULL},
    {TENSOR("[12, 192]"), SPEC("mxfp8", "['R', 'S1']"), "columns 0 to 48",
     "multiples of 32"},
    {TENSOR("[12, 48]"), SPEC("mxfp8", "['S1', 'R']"), "have 48 elements",
     "no multiple of 32"},
    {TENSOR("[12, 192]"), SPEC("nvfp4", "['R', 'S1']"), NULL, NULL},
    {TENSOR("[12, 96]"), SPEC("nvfp4", "['R', 'S1']"), "columns 0 to 24",
     "multiples of 16"},
    {TENSOR("[12, 40]"), SPEC("nvfp4", "['S1', 'R']"), "have 40 elements",
     "no multiple of 16"},
    {TENSOR("[12, 44]"), SPEC("fp8_tensor", "['R', 'S1']"), NULL, NULL},
};

LOOP_TEST(test_quantize_refuses_cuts_inside_blocks, RF_ARRAY_SIZE(cuts))
{
    AUTO(planned) planned;
    struct rf_err err;
    enum rf_status status;
    make(&planned, cuts[_i].model, cuts[_i].scenario);
    status = rf_quantize_check(planned.plan, NULL, &err);
    if (cuts[_i].refusal == NULL) {
        assert_ok(status, err);
    } else {
        ck_assert_int_eq(status, RF_ERR_CONFIG);
        assert_says(err.text, cuts[_i].refusal);
        assert_says(err.text, cuts[_i].rule);
        assert_says(err.text, "fp8_tensor");
    }
}

/* Experts of gpt-oss are [in, out] on disk. */
TEST(test_quantize_refuses_blocks_along_rows_that_are_inputs)
{
    AUTO(planned) planned;
    struct rf_err err;
    make(&planned,
         "{'config': {'model_type': 'gpt_oss', 'num_local_experts': 2, "
         "'hidden_size': 128, 'intermediate_size': 128, 'num_hidden_layers': "
         "1, 'num_attention_heads': 2, 'num_key_value_heads': 2, 'head_dim': "
         "64, 'vocab_size': 128}}",
         "{'name': 's', 'quantize': 'mxfp8', 'train': {}, 'infer': {'layout': "
         "'hf'}}");
    assert_fails(rf_quantize_check(planned.plan, NULL, &err), RF_ERR_CONFIG,
                 err, "is stored as [in, out]");
}

TEST(test_quantize_needs_bfloat16)
{
    AUTO(planned) planned;
    struct rf_err err;
    make(&planned, MODEL, SCENARIO("'dtype': 'float32', 'quantize': true"));
    assert_fails(rf_quantize_check(planned.plan, NULL, &err), RF_ERR_CONFIG,
                 err, "arrives as float32");
}

#define DELTA_NET                                                              \
    "'model_type': 'qwen3_5_text', 'hidden_size': 512, 'intermediate_size': "  \
    "512, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': "    \
    "128, 'num_hidden_layers': 4, 'vocab_size': 512, "                         \
    "'linear_num_key_heads': 4, 'linear_num_value_heads': 4, "                 \
    "'linear_key_head_dim': 128, 'linear_value_head_dim': 128, "               \
    "'linear_conv_kernel_dim': 4"
#define INDEXED                                                                \
    "'model_type': 'deepseek_v32', 'hidden_size': 256, 'intermediate_size': "  \
    "256, 'num_attention_heads': 2, 'num_hidden_layers': 2, 'vocab_size': "    \
    "512, 'q_lora_rank': 128, 'kv_lora_rank': 128, 'qk_nope_head_dim': 128, "  \
    "'qk_rope_head_dim': 64, 'v_head_dim': 128, 'n_routed_experts': 4, "       \
    "'n_shared_experts': 1, 'moe_intermediate_size': 128, "                    \
    "'first_k_dense_replace': 1, 'index_n_heads': 2, 'index_head_dim': 128"
#define ATTN "model.layers.{L}.self_attn."
#define DELTA "model.layers.{L}.linear_attn."
#define MLP "model.layers.{L}.mlp."

/* Of which layers (a bit each) a family is converted. */
static const struct {
    const char *config, *list, *family;
    unsigned layers;
} converted[] = {
    {DELTA_NET, "", DELTA "in_proj_b.weight", 0},
    {DELTA_NET, "", DELTA "in_proj_a.weight", 0},
    {DELTA_NET, "", DELTA "in_proj_z.weight", 7},
    {DELTA_NET, "", DELTA "out_proj.weight", 7},
    {INDEXED, "", ATTN "indexer.wq_b.weight", 3},
    {INDEXED, "", ATTN "indexer.wk.weight", 3},
    {INDEXED, "", ATTN "indexer.weights_proj.weight", 0},
    {INDEXED, "", MLP "gate.weight", 0},
    /* a list of its own goes before the table */
    {INDEXED, "'modules_to_not_convert': ['indexer.wk']",
     ATTN "indexer.wk.weight", 0},
    {INDEXED, "'ignore': ['model.layers.1.self_attn']",
     ATTN "indexer.wk.weight", 1},
    {INDEXED, "'ignored_layers': ['model.layers.0.self_attn.indexer.wk']",
     ATTN "indexer.wk.weight", 2},
    {INDEXED, "'ignore': ['self_attn.indexer']", ATTN "indexer.wk.weight", 3},
    {INDEXED, "'ignore': ['model.layers.0.mlp.gate']", MLP "gate_proj.weight",
     1},
    {DELTA_NET, "'modules_to_not_convert': ['model.layers.1']",
     MLP "up_proj.weight", 13},
    {DELTA_NET, "'modules_to_not_convert': ['model.layers.*.linear_attn']",
     DELTA "out_proj.weight", 0},
    {DELTA_NET, "'ignore': ['re:.*linear_attn.*', 're:.*(up|down)_proj$']",
     DELTA "out_proj.weight", 0},
    {DELTA_NET, "'ignore': ['re:.*linear_attn.*', 're:.*(up|down)_proj$']",
     MLP "up_proj.weight", 0},
    {DELTA_NET, "'ignore': ['re:.*linear_attn.*', 're:.*(up|down)_proj$']",
     MLP "gate_proj.weight", 15},
    {DELTA_NET, "'ignore': ['*out_proj', 'model.layers.2.mlp*']",
     DELTA "out_proj.weight", 0},
    {DELTA_NET, "'ignore': ['*out_proj', 'model.layers.2.mlp*']",
     MLP "up_proj.weight", 11},
};

LOOP_TEST(test_quantize_converts_what_table_and_list_say,
          RF_ARRAY_SIZE(converted))
{
    AUTO(rf_model) *model =
        quoted_model("{'config': {%s, 'quantization_config': {%s}}}",
                     converted[_i].config, converted[_i].list);
    unsigned layers = 0, found = 0;
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (strcmp(family->name, converted[_i].family) == 0) {
            found++;
            for (uint32_t l = 0; l < family->n_layers; l++) {
                layers |= rf_family_converts(family, l, 0) ? 1U << l : 0;
            }
        }
    }
    ck_assert_uint_eq(found, 1);
    ck_assert_uint_eq(layers, converted[_i].layers);
}

TEST(test_quantize_leaves_out_single_experts)
{
    static const char list[] =
        "'ignore': ['model.layers.1.mlp.experts.2.up_proj']";
    AUTO(rf_model) *model = quoted_model(
        "{'config': {" INDEXED ", 'quantization_config': {%s}}}", list);
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (family->has_experts) {
            const bool named = strstr(family->name, "up_proj") != NULL;
            ck_assert(rf_family_converts(family, 0, 1));
            ck_assert(rf_family_converts(family, 0, 2) != named);
            ck_assert_double_eq(rf_family_converted(family), named ? 0.75 : 1);
        }
    }
}

/* Engines hold 2 rows of in_proj_b on each rank here. */
TEST(test_quantize_splits_gated_delta_nets)
{
    AUTO(planned) planned;
    struct rf_quantize all;
    make(&planned, "{'config': {" DELTA_NET "}}",
         "{'name': 's', 'train': {'tp': 1}, 'infer': {'layout': 'vllm', "
         "'tp': 4, 'quantize': true}}");
    assert_ok(rf_quantize_check(planned.plan, NULL, &planned.err), planned.err);
    assert_ok(rf_quantize_plan(planned.plan, RF_INFER, 0, &all, &planned.err),
              planned.err);
    /* 3 layers with q k v (one tensor), z, out; 1 with q k v o; 4 MLPs */
    ck_assert_uint_ge(all.n, 3 * 3 + 4 + 4 * 3);
    for (size_t i = 0; i < all.n; i++) {
        ck_assert_uint_eq(
            all.result.pieces[2 * i].box.extent[RF_DIM_TENSOR] % 128, 0);
    }
    rf_quantize_free(&all);
}

/* The values and scales of all ranks are whole and disjoint. */
TEST(test_quantize_covers_each_element_and_block_once)
{
    AUTO(planned) planned;
    const struct rf_model *model;
    make(&planned, "{'config': {" DELTA_NET "}}",
         "{'name': 's', 'train': {'tp': 1}, 'infer': {'layout': 'vllm', "
         "'tp': 4, 'quantize': true}}");
    model = &planned.plan->converted[RF_INFER]->model;
    for (uint32_t f = 0; f < model->n_families; f++) {
        const struct rf_family *family = &model->families[f];
        struct rf_box boxes[64];
        uint64_t elements = 0;
        size_t n = 0;
        for (uint32_t r = 0; r < planned.world->n_ranks; r++) {
            struct rf_quantize all;
            assert_ok(
                rf_quantize_plan(planned.plan, RF_INFER, r, &all, &planned.err),
                planned.err);
            ck_assert_uint_eq(all.result.arena_bytes,
                              rf_quantize_bytes(planned.plan, r));
            for (size_t p = 0; p < all.result.n_pieces; p++) {
                if (all.result.pieces[p].family == f) {
                    ck_assert_uint_lt(n, RF_ARRAY_SIZE(boxes));
                    boxes[n] = all.result.pieces[p].box;
                    elements += rf_box_elements(&boxes[n++]);
                }
            }
            rf_quantize_free(&all);
        }
        if (family->is_result) {
            ck_assert_uint_eq(elements, rf_family_elements(family));
            ck_assert(rf_boxes_disjoint(boxes, n));
        } else {
            ck_assert_uint_eq(n, 0);
        }
    }
}

/* One byte fewer between values and scales than the values take. */
TEST(test_quantize_results_that_overlap_are_found)
{
    AUTO(planned) planned;
    struct rf_quantize all;
    AUTO_FREE uint32_t *items = NULL;
    make(&planned, MODEL, SCENARIO("'quantize': true"));
    items = rf_converted_items(planned.plan->converted[RF_INFER]);
    assert_ok(rf_quantize_plan(planned.plan, RF_INFER, 0, &all, &planned.err),
              planned.err);
    assert_ok(rf_plan_prove_layout(&all.result, items, &planned.err),
              planned.err);
    all.result.pieces[1].offset = all.result.pieces[0].offset +
                                  rf_box_elements(&all.result.pieces[0].box) -
                                  1;
    assert_fails(rf_plan_prove_layout(&all.result, items, &planned.err),
                 RF_ERR_INTERNAL, planned.err, "pieces overlap");
    rf_quantize_free(&all);
}

LOOP_TEST(test_quantize_refuses_lists_that_it_does_not_understand, 6)
{
    static const char *const lists[] = {
        "['re:(?!x).*']", "['re:\\\\d+']", "['re:a{9}']",
        "['re:(']",       "[7]",           "'lm_head'"};
    char model[1200];
    struct planned planned;
    snprintf(model, sizeof(model),
             "{'config': {" DELTA_NET
             ", 'quantization_config': {'ignore': %s}}}",
             lists[_i]);
    make(&planned, model, SCENARIO("'tp': 1"));
    assert_ok(rf_quantize_check(planned.plan, NULL, &planned.err), planned.err);
    planned_free(&planned);
    make(&planned, model, SCENARIO("'tp': 1, 'quantize': true"));
    assert_fails(rf_quantize_check(planned.plan, NULL, &planned.err),
                 RF_ERR_CONFIG, planned.err, "unsupported pattern");
    planned_free(&planned);
}

TEST(test_quantize_belongs_to_inference)
{
    struct planned planned;
    ck_assert_int_eq(
        planned_make(&planned, MODEL,
                     "{'name': 's', 'train': {'quantize': true}, 'infer': {}}",
                     slots, 1),
        RF_ERR_CONFIG);
    assert_says(planned.err.text, "belongs to \"infer\"");
}
