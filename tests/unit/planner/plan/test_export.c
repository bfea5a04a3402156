/* Where exported tensors go, and who writes which box. */
#include "planner/plan/export.h"

#include <stdio.h>
#include <string.h>

#include "planner/layout/box.h"
#include "tests/lib/planned.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 2, 'hidden_size': 64, "                       \
    "'num_attention_heads': 4, 'num_query_groups': 2, 'ffn_hidden_size': "     \
    "128, 'vocab_size': 512, 'swiglu': true}}"
/* All experts of a layer in one tensor. */
#define STACKED                                                                \
    "{'config': {'model_type': 'gpt_oss', 'num_hidden_layers': 2, "            \
    "'hidden_size': 64, 'num_attention_heads': 4, 'num_key_value_heads': 2, "  \
    "'head_dim': 16, 'intermediate_size': 32, 'vocab_size': 512, "             \
    "'num_local_experts': 4}}"
/* Full attention has keys for values, too. */
#define KEYS_ARE_VALUES                                                        \
    "{'config': {'model_type': 'gemma4_text', 'num_hidden_layers': 2, "        \
    "'hidden_size': 64, 'num_attention_heads': 4, 'num_key_value_heads': 2, "  \
    "'head_dim': 16, 'intermediate_size': 32, 'vocab_size': 512, "             \
    "'hidden_size_per_layer_input': 0, 'attention_k_eq_v': true}}"
#define SCENARIO(infer)                                                        \
    "{'name': 's', 'train': {'tp': 2}, 'infer': {'layout': 'vllm', " infer "}" \
    "}"

static const uint32_t slots[] = {4};

static void make_model(struct planned *planned, const char *model,
                       const char *scenario)
{
    assert_ok(planned_make(planned, model, scenario, slots, 1), planned->err);
}

static void make(struct planned *planned, const char *scenario)
{
    make_model(planned, MODEL, scenario);
}

/* Elements that ranks write. */
static uint64_t count_written(const struct planned *planned)
{
    uint64_t written = 0;
    for (uint32_t r = 0; r < planned->world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(planned->plan, RF_INFER, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            if (rf_export_writes(planned->plan, r, piece)) {
                written += rf_box_elements(&piece->box);
            }
        }
    }
    return written;
}

TEST(test_export_fills_files_without_gaps_up_to_their_limit)
{
    AUTO(planned) planned;
    struct rf_export *export;
    uint64_t end[64] = {0}, bytes = 0;
    make(&planned, SCENARIO("'tp': 4"));
    assert_ok(rf_export_plan(planned.plan, 50000, &export, &planned.err),
              planned.err);
    ck_assert_uint_eq(export->bytes, planned.model->bytes);
    ck_assert_uint_gt(export->n_files, 2);
    ck_assert_uint_le(export->n_files, 64);
    for (uint32_t i = 0; i < export->n_files; i++) {
        end[i] = export->files[i].head_bytes;
        ck_assert_uint_eq(end[i] % 8, 0);
        bytes += export->files[i].bytes - export->files[i].head_bytes;
        /* The embedding alone is larger than the limit. */
        ck_assert_uint_le(export->files[i].bytes - end[i], 512 * 64 * 2);
    }
    ck_assert_uint_eq(bytes, planned.model->bytes);
    for (uint32_t f = 0; f < planned.model->n_families; f++) {
        const struct rf_family *family = &planned.model->families[f];
        for (uint32_t l = 0; l < family->n_layers; l++) {
            struct rf_export_place at =
                rf_export_place_of(export, planned.plan, f, l, 0);
            ck_assert_uint_eq(at.offset, end[at.file]);
            end[at.file] +=
                rf_family_elements(family) / rf_family_tensors(family) * 2;
        }
    }
    rf_export_destroy(export);
    for (uint32_t less = 0; less < 2; less++) {
        assert_ok(rf_export_plan(planned.plan, planned.model->bytes - less,
                                 &export, &planned.err),
                  planned.err);
        ck_assert_uint_eq(export->n_files, 1 + less);
        rf_export_destroy(export);
    }
}

/* A rank's rows that begin or end a row early. */
TEST(test_export_of_tensors_that_are_not_whole_is_refused)
{
    AUTO(planned) planned;
    struct rf_export *export = NULL;
    struct rf_piece *piece;
    make(&planned, SCENARIO("'tp': 4"));
    piece = rf_plan_layout(planned.plan, RF_INFER, 1)->pieces;
    while (piece->box.start[RF_DIM_TENSOR] == 0) {
        piece++;
    }
    piece->box.start[RF_DIM_TENSOR]--;
    assert_fails(rf_export_plan(planned.plan, 50000, &export, &planned.err),
                 RF_ERR_CONFIG, planned.err, "two different ways");
    piece->box.start[RF_DIM_TENSOR]++;
    piece->box.extent[RF_DIM_TENSOR]--;
    assert_fails(rf_export_plan(planned.plan, 50000, &export, &planned.err),
                 RF_ERR_CONFIG, planned.err, "does not hold all of");
}

/* One tensor a layer, with the experts' dimension first and each expert at its
 * offset in it. */
TEST(test_export_keeps_experts_of_one_tensor_together)
{
    static const char name[] = "model.layers.1.mlp.experts.down_proj_bias";
    AUTO(planned) planned;
    struct rf_export *export;
    json_auto_t *header, *index;
    const json_t *entry;
    json_int_t shape[2];
    AUTO_FREE char *text;
    uint32_t f = 0;
    make_model(&planned, STACKED, SCENARIO("'tp': 2, 'ep': 2, 'etp': 1"));
    assert_ok(rf_export_plan(planned.plan, UINT64_MAX, &export, &planned.err),
              planned.err);
    ck_assert_uint_eq(export->n_files, 1);
    ck_assert_uint_eq(export->bytes, planned.model->bytes);
    header = json_loadb(export->files[0].head + 8,
                        export->files[0].head_bytes - 8, 0, NULL);
    ck_assert_ptr_nonnull(header);
    ck_assert_uint_eq(json_object_size(header), 1 + planned.model->n_tensors);
    entry = json_object_get(header, name);
    ck_assert_int_eq(json_unpack((json_t *)entry, "{s:[I, I!]}", "shape",
                                 &shape[0], &shape[1]),
                     0);
    ck_assert_int_eq(shape[0], 4);
    ck_assert_int_eq(shape[1], 64);
    while (strstr(planned.model->families[f].name, "down_proj_bias") == NULL) {
        f++;
    }
    for (uint64_t e = 0; e < 4; e++) {
        ck_assert_uint_eq(
            rf_export_place_of(export, planned.plan, f, 1, e).offset,
            rf_export_place_of(export, planned.plan, f, 1, 0).offset +
                e * 64 * 2);
    }
    text = rf_export_index(export, planned.plan);
    index = json_loads(text, 0, NULL);
    ck_assert_uint_eq(json_object_size(json_object_get(index, "weight_map")),
                      planned.model->n_tensors);
    rf_export_destroy(export);
}

/* Norms and replicas are left to the first rank that holds them. */
LOOP_TEST(test_export_writes_each_element_once, 4)
{
    static const char *const sides[] = {"'tp': 4", "'tp': 2, 'dp': 2",
                                        "'tp': 2, 'pp': 2", "'tp': 1"};
    AUTO(planned) planned;
    char scenario[200];
    snprintf(scenario, sizeof(scenario), SCENARIO("%s"), sides[_i]);
    make(&planned, scenario);
    ck_assert_uint_eq(count_written(&planned), planned.model->parameters);
}

/* A rank has such keys twice, the file once. */
TEST(test_export_writes_keys_that_are_values_once)
{
    AUTO(planned) planned;
    struct rf_export *export = NULL;
    make_model(&planned, KEYS_ARE_VALUES,
               "{'name': 's', 'train': {'layout': 'fsdp', 'dp': 2}, "
               "'infer': {'layout': 'vllm', 'tp': 4}}");
    ck_assert_uint_eq(count_written(&planned), planned.model->parameters);
    assert_ok(rf_export_plan(planned.plan, UINT64_MAX, &export, &planned.err),
              planned.err);
    ck_assert_uint_eq(export->bytes, planned.model->bytes);
    rf_export_destroy(export);
}

/* Scales follow their values, also where all experts share a tensor. */
LOOP_TEST(test_export_has_values_and_scales_of_quantised_sides, 2)
{
    static const struct {
        const char *model, *values, *scales;
        uint64_t value_bytes, scale_bytes, experts;
    } cases[] = {
        {MODEL, "model.layers.1.mlp.down_proj.weight",
         "model.layers.1.mlp.down_proj.weight_scale_inv", 64 * 128, 4, 1},
        {STACKED, "model.layers.1.mlp.experts.down_proj",
         "model.layers.1.mlp.experts.down_proj_scale_inv", 32 * 64, 4, 4}};
    AUTO(planned) planned;
    struct rf_export *export;
    json_auto_t *header, *config;
    const json_t *of[2];
    json_int_t at[2][2];
    const char *dtype[2];
    uint32_t f = 0;
    make_model(&planned, cases[_i].model,
               SCENARIO("'tp': 1, 'quantize': true"));
    assert_ok(rf_export_plan(planned.plan, UINT64_MAX, &export, &planned.err),
              planned.err);
    header = json_loadb(export->files[0].head + 8,
                        export->files[0].head_bytes - 8, 0, NULL);
    of[0] = json_object_get(header, cases[_i].values);
    of[1] = json_object_get(header, cases[_i].scales);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(json_unpack((json_t *)of[k], "{s:s, s:[I, I]}",
                                     "dtype", &dtype[k], "data_offsets",
                                     &at[k][0], &at[k][1]),
                         0);
    }
    ck_assert_str_eq(dtype[0], "F8_E4M3");
    ck_assert_str_eq(dtype[1], "F32");
    ck_assert_int_eq(at[0][1], at[1][0]);
    ck_assert_int_eq(at[0][1] - at[0][0],
                     (json_int_t)(cases[_i].experts * cases[_i].value_bytes));
    ck_assert_int_eq(at[1][1] - at[1][0],
                     (json_int_t)(cases[_i].experts * cases[_i].scale_bytes));
    while (strstr(planned.model->families[f].name, "down_proj") == NULL ||
           planned.model->families[f].ndim != 2) {
        f++;
    }
    for (uint64_t e = 0; e < cases[_i].experts; e++) {
        const uint64_t data = export->files[0].head_bytes;
        ck_assert_uint_eq(
            rf_export_place_of(export, planned.plan, f, 1, e).offset,
            data + (uint64_t)at[0][0] + e * cases[_i].value_bytes);
        ck_assert_uint_eq(
            rf_export_place_of(
                export, planned.plan,
                rf_converted_number(rf_plan_converted(planned.plan, 0), f, 1),
                1, e)
                .offset,
            data + (uint64_t)at[1][0] + e * cases[_i].scale_bytes);
    }
    rf_export_destroy(export);
    config = rf_export_quantization(planned.plan);
    ck_assert_str_eq(json_string_value(json_array_get(
                         json_object_get(config, "modules_to_not_convert"), 0)),
                     "model.embed_tokens");
}

/* Of each format, what config.json says, beside the list of modules. */
LOOP_TEST(test_export_says_how_engines_read_each_format, RF_QUANTS)
{
    static const struct {
        const char *config, *list;
    } wanted[] = {
        {"{'quant_method': 'fp8', 'fmt': 'e4m3', 'activation_scheme': "
         "'dynamic'}",
         "modules_to_not_convert"},
        {"{'quant_method': 'fp8', 'fmt': 'e4m3', 'activation_scheme': "
         "'dynamic', 'weight_block_size': [128, 128]}",
         "modules_to_not_convert"},
        {"{'quant_method': 'fp8', 'fmt': 'e4m3', 'activation_scheme': "
         "'dynamic', 'weight_block_size': [128, 128], 'scale_fmt': 'ue8m0'}",
         "modules_to_not_convert"},
        {"{'quant_method': 'modelopt', 'quant_algo': 'MXFP8', 'group_size': "
         "32}",
         "ignore"},
        {"{'quant_method': 'modelopt', 'quant_algo': 'W4A16_NVFP4', "
         "'group_size': 16}",
         "ignore"}};
    AUTO(planned) planned;
    json_auto_t *config, *without = quoted_json("%s", wanted[_i].config);
    char scenario[160];
    snprintf(scenario, sizeof(scenario),
             "{'name': 's', 'quantize': '%s', 'train': {'tp': 1}, 'infer': "
             "{'layout': 'hf'}}",
             rf_quant_names[_i]);
    make(&planned, scenario);
    config = rf_export_quantization(planned.plan);
    ck_assert_str_eq(json_string_value(json_array_get(
                         json_object_get(config, wanted[_i].list), 0)),
                     "model.embed_tokens");
    json_object_del(config, wanted[_i].list);
    ck_assert(json_equal(config, without));
}

/* Three tensors for one, each behind the other, with one scale an expert. */
TEST(test_export_has_a_scale_for_each_expert)
{
    AUTO(planned) planned;
    struct rf_export *export;
    json_auto_t *header;
    json_int_t shape[3], at[2];
    uint32_t f = 0;
    make_model(&planned, STACKED,
               "{'name': 's', 'quantize': 'fp8_tensor', 'train': {'tp': 1}, "
               "'infer': {'layout': 'hf'}}");
    assert_ok(rf_export_plan(planned.plan, UINT64_MAX, &export, &planned.err),
              planned.err);
    header = json_loadb(export->files[0].head + 8,
                        export->files[0].head_bytes - 8, 0, NULL);
    ck_assert_int_eq(
        json_unpack(json_object_get(
                        header, "model.layers.1.mlp.experts.down_proj_scale"),
                    "{s:[I, I], s:[I, I]}", "shape", &shape[0], &shape[1],
                    "data_offsets", &at[0], &at[1]),
        0);
    ck_assert_int_eq(shape[0], 4);
    ck_assert_int_eq(shape[1], 1);
    ck_assert_int_eq(at[1] - at[0], 4 * 4);
    while (strstr(planned.model->families[f].name, "experts.down_proj") ==
               NULL ||
           planned.model->families[f].ndim != 2) {
        f++;
    }
    ck_assert_uint_eq(
        rf_export_place_of(
            export, planned.plan,
            rf_converted_number(rf_plan_converted(planned.plan, 0), f, 1), 1, 3)
            .offset,
        export->files[0].head_bytes + (uint64_t)at[0] + 3 * 4);
    rf_export_destroy(export);
}

TEST(test_export_names_no_quantization_without_one)
{
    AUTO(planned) planned;
    make(&planned, SCENARIO("'tp': 4"));
    ck_assert_ptr_null(rf_export_quantization(planned.plan));
}

/* PyTorch refuses to view bytes as floats that are not aligned. */
TEST(test_export_of_scales_that_would_not_be_aligned_is_refused)
{
    AUTO(planned) planned;
    struct rf_export *export = NULL;
    make_model(&planned,
               "{'megatron': {'num_layers': 1, 'hidden_size': 63, "
               "'num_attention_heads': 1, 'kv_channels': 64, "
               "'ffn_hidden_size': 65, 'vocab_size': 512, 'swiglu': true}}",
               "{'name': 's', 'train': {'tp': 1}, 'infer': {'layout': 'hf', "
               "'tp': 1, 'quantize': true}}");
    assert_fails(
        rf_export_plan(planned.plan, UINT64_MAX, &export, &planned.err),
        RF_ERR_UNSUPPORTED, planned.err, "would not be aligned");
}
