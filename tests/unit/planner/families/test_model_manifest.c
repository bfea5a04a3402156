/* Manifests: families and roles from names, heads, places, bad input. */
#include <string.h>

#include "planner/families/model_read.h"
#include "planner/model/model.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

static const struct rf_family *family_named(const struct rf_model *model,
                                            const char *name)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        if (strcmp(model->families[i].name, name) == 0) {
            return &model->families[i];
        }
    }
    ck_abort_msg("no family %s", name);
    return NULL;
}

/* A whole model written out tensor by tensor. */
static json_t *manifest_of(const struct rf_model *model)
{
    json_t *manifest = json_object();
    char name[256];
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        json_auto_t *shape = json_array();
        for (uint32_t d = 0; d < family->ndim; d++) {
            json_array_append_new(shape,
                                  json_integer((json_int_t)family->shape[d]));
        }
        for (uint32_t l = 0; l < family->n_layers; l++) {
            for (uint32_t e = 0; e < family->n_experts; e++) {
                rf_family_tensor_name(family, l, e, name, sizeof(name));
                json_object_set_new(manifest, name,
                                    json_pack("{s:O, s:s}", "shape", shape,
                                              "dtype",
                                              rf_dtype_name(family->dtype)));
            }
        }
    }
    return manifest;
}

LOOP_TEST(test_manifest_of_a_model_gives_the_model_back, 4)
{
    static const char *const files[] = {"kimi-k2", "mixtral-8x7b", "qwen2.5-7b",
                                        "deepseek-v3"};
    AUTO(rf_model) *model = file_model(files[_i], ""), *again = NULL;
    json_auto_t *value =
        json_pack("{s:o, s:i, s:i}", "manifest", manifest_of(model),
                  "num_attention_heads", (int)model->heads,
                  "num_key_value_heads", (int)model->kv_heads);
    struct rf_jnode node = rf_jnode_root(value, "test");
    struct rf_err err = {0};
    assert_ok(rf_model_from_json(&node, &again, &err), err);
    ck_assert_uint_eq(again->n_families, model->n_families);
    ck_assert_uint_eq(again->n_tensors, model->n_tensors);
    ck_assert_uint_eq(again->parameters, model->parameters);
    ck_assert_uint_eq(again->bytes, model->bytes);
    ck_assert_uint_eq(again->n_layers, model->n_layers);
    ck_assert_uint_eq(again->n_experts, model->n_experts);
    ck_assert_uint_eq(again->vocab, model->vocab);
    ck_assert_int_eq(again->tied_embeddings, model->tied_embeddings);
    ck_assert_int_eq(again->mla, model->mla);
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        const struct rf_family *other = family_named(again, family->name);
        ck_assert_int_eq(other->role, family->role);
        ck_assert_uint_eq(other->n_layers, family->n_layers);
        ck_assert_uint_eq(other->n_experts, family->n_experts);
        ck_assert_int_eq(other->has_experts, family->has_experts);
        ck_assert_uint_eq(other->ndim, family->ndim);
        for (uint32_t l = 0; family->layers && l < family->n_layers; l++) {
            ck_assert_uint_eq(other->layers[l], family->layers[l]);
        }
    }
    if (!model->mla) {
        ck_assert_uint_eq(again->head_dim, model->head_dim);
    }
}

#define F32 "'dtype': 'F32', 'shape': "

TEST(test_manifest_shapes_and_dtypes_set_families_apart)
{
    AUTO(rf_model) *model = quoted_model(
        "{'manifest': {"
        "'model.layers.10.mlp.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.2.mlp.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.3.mlp.up_proj.weight': {" F32 "[16, 4]}, "
        "'model.layers.4.mlp.up_proj.weight': {'dtype': 'torch.bfloat16', "
        "'shape': [8, 4]}, "
        "'vision.layers.0.w': {" F32 "[8, 4]}, "
        "'layers.0.w': {" F32 "[2, 2, 2]}, "
        "'model.layers.007.w': {" F32 "[1]}, "
        "'players.1.w': {" F32 "[1]}}}");
    uint32_t up = 0;
    ck_assert_uint_eq(model->n_families, 7);
    ck_assert_uint_eq(model->n_tensors, 8);
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (strcmp(family->name, "model.layers.{L}.mlp.up_proj.weight") != 0) {
            ck_assert_int_eq(family->role, RF_ROLE_OTHER);
            continue;
        }
        ck_assert_int_eq(family->role, RF_ROLE_UP);
        up++;
        if (family->dtype == RF_F32 && family->shape[0] == 8) {
            ck_assert_uint_eq(family->n_layers, 2);
            ck_assert_uint_eq(family->layers[0], 2);
            ck_assert_uint_eq(family->layers[1], 10);
        }
    }
    ck_assert_uint_eq(up, 3);
    ck_assert_uint_eq(model->n_layers, 11);
    ck_assert_ptr_null(family_named(model, "players.1.w")->layers);
    ck_assert_ptr_null(family_named(model, "model.layers.007.w")->layers);
}

TEST(test_manifest_experts_with_gaps_are_families_of_their_own)
{
    AUTO(rf_model) *model = quoted_model(
        "{'manifest': {"
        "'model.layers.0.mlp.experts.0.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.0.mlp.experts.1.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.1.mlp.experts.0.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.1.mlp.experts.2.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.2.mlp.experts.0.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.3.mlp.experts.1.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.3.mlp.experts.0.up_proj.weight': {" F32 "[8, 4]}}}");
    const struct rf_family *literal =
        family_named(model, "model.layers.{L}.mlp.experts.2.up_proj.weight");
    char name[128];
    uint32_t whole = 0;
    ck_assert_uint_eq(model->n_tensors, 7);
    ck_assert_int_eq(literal->role, RF_ROLE_OTHER);
    ck_assert(!literal->has_experts);
    rf_family_tensor_name(literal, 0, 0, name, sizeof(name));
    ck_assert_str_eq(name, "model.layers.1.mlp.experts.2.up_proj.weight");
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (!family->has_experts) {
            continue;
        }
        whole++;
        ck_assert_int_eq(family->role, RF_ROLE_EXPERT_UP);
        ck_assert_uint_eq(family->n_layers, family->n_experts == 2 ? 2 : 1);
        ck_assert_uint_eq(family->layers[0], family->n_experts == 2 ? 0 : 2);
    }
    ck_assert_uint_eq(whole, 2);
    ck_assert_uint_eq(model->n_families, 4);
}

/* Both numbers where only the rule finds them. */
TEST(test_manifest_rule_finds_layer_and_expert_in_a_name)
{
    AUTO(rf_model) *model = quoted_model(
        "{'manifest': {'h.0.moe.0.w': {" F32 "[8, 4]}, "
        "'h.0.moe.1.w': {" F32 "[8, 4]}, 'h.1.moe.0.w': {" F32 "[8, 4]}, "
        "'h.1.moe.1.w': {" F32 "[8, 4]}}, 'rules': {'tensors': ["
        "{'name': 'h.{L}.moe.{E}.w', 'role': 'expert row', 'dims': 2}]}}");
    const struct rf_family *family = &model->families[0];
    ck_assert_uint_eq(model->n_families, 1);
    ck_assert_str_eq(family->name, "h.{L}.moe.{E}.w");
    ck_assert_uint_eq(family->n_layers, 2);
    ck_assert_uint_eq(family->n_experts, 2);
}

TEST(test_manifest_config_leaves_out_what_is_beside_the_model)
{
    struct rf_model *model = quoted_model(
        "{'manifest': {"
        "'model.layers.0.mlp.up_proj.weight': {" F32 "[8, 4]}, "
        "'model.layers.0.mlp.up_proj.weight_scale_inv': {" F32 "[1, 1]}, "
        "'model.layers.0.self_attn.rotary_emb.inv_freq': {" F32 "[4]}, "
        "'model.layers.1.mlp.down_proj.weight': {" F32 "[4, 8]}, "
        "'model.layers.1.mlp.up_proj.weight': {" F32 "[8, 4]}}, "
        "'config': {'model_type': 'llama', 'num_hidden_layers': 1, "
        "'num_attention_heads': 4, 'head_dim': null}}");
    ck_assert_uint_eq(model->n_tensors, 1);
    ck_assert_uint_eq(model->n_layers, 1);
    ck_assert_uint_eq(model->heads, 4);
    ck_assert_uint_eq(model->kv_heads, 4);
    ck_assert_str_eq(model->model_type, "llama");
    ck_assert_uint_eq(model->n_not_counted, 3);
    ck_assert_str_eq(model->not_counted[0],
                     "1 tensor *.weight_scale_inv (quantisation scales)");
    ck_assert_str_eq(model->not_counted[1],
                     "1 tensor *.rotary_emb.inv_freq (computed, not learned)");
    ck_assert_str_eq(model->not_counted[2],
                     "2 tensors of layers from 1 on (num_hidden_layers is 1: "
                     "multi-token prediction)");
    rf_model_destroy(model);
    model = quoted_model("{'manifest': {'a': {" F32 "[4]}, "
                         "'a.rotary_emb.inv_freq': {" F32 "[4]}, "
                         "'a.weight_scale': {" F32 "[4]}}}");
    ck_assert_uint_eq(model->n_tensors, 2);
    ck_assert_uint_eq(model->n_not_counted, 1);
    rf_model_destroy(model);
}

TEST(test_manifest_places_of_a_checkpoint_are_kept)
{
    AUTO(rf_model) *model = quoted_model(
        "{'folder': '/data', 'manifest': {"
        "'a': {" F32 "[8, 4], 'file': 'x.safetensors', 'offset': 88}}}");
    json_t *place = json_at(model->files, "tensors.a");
    ck_assert_str_eq(json_text_at(model->files, "folder"), "/data");
    ck_assert_str_eq(json_text_at(place, "file"), "x.safetensors");
    ck_assert_int_eq(json_integer_at(place, "offset"), 88);
}

#define ATTENTION                                                              \
    "'manifest': {'model.layers.0.self_attn.q_proj.weight': {" F32             \
    "[32, 8]}, 'model.layers.0.self_attn.k_proj.weight': {" F32 "[16, 8]}}"

TEST(test_manifest_heads_are_checked_and_their_size_derived)
{
    struct rf_model *model =
        quoted_model("{" ATTENTION ", 'num_attention_heads': 8, "
                     "'num_key_value_heads': 4}");
    ck_assert_uint_eq(model->head_dim, 4);
    rf_model_destroy(model);
    model = quoted_model("{" ATTENTION "}");
    ck_assert_uint_eq(model->heads, 0);
    rf_model_destroy(model);
    assert_says(model_error("{" ATTENTION ", 'num_attention_heads': 8}"),
                "16 rows are not 8 heads of size 4");
    assert_says(model_error("{" ATTENTION ", 'num_attention_heads': 5}"),
                "16 rows do not divide into 5 heads");
    assert_says(model_error("{" ATTENTION ", 'num_attention_heads': 8, "
                            "'num_key_value_heads': 3}"),
                "must be a multiple of num_key_value_heads");
    assert_says(model_error("{" ATTENTION ", 'num_attention_heads': 8, "
                            "'num_key_value_heads': 4, 'head_dim': 2}"),
                "16 rows are not 4 heads of size 2");
}

TEST(test_manifest_without_heads_is_no_error)
{
    json_auto_t *value = quoted_json("{'manifest': {'a': {" F32 "[4]}}}");
    struct rf_jnode node = rf_jnode_root(value, "test");
    AUTO(rf_model) *model = NULL;
    struct rf_err err = {.status = RF_OK};
    assert_ok(rf_model_from_json(&node, &model, &err), err);
    ck_assert_int_eq(err.status, RF_OK);
    ck_assert_str_eq(err.text, "");
}

TEST(test_manifest_names_all_shapes_that_do_not_fit_the_heads)
{
    const char *text = model_error("{" ATTENTION ", 'num_attention_heads': 8, "
                                   "'num_key_value_heads': 4, 'head_dim': 2}");
    assert_says(text, "k_proj.weight: 16 rows are not 4 heads of size 2; ");
    assert_says(text, "q_proj.weight: 32 rows are not 8 heads of size 2");
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"{'manifest': {}}", "at least one tensor"},
    {"{'manifest': []}", "at least one tensor"},
    {"{'manifest': {'a': 3}}", "$.manifest.a: must be an object"},
    {"{'manifest': {'a': {'shape': [1]}}}", "\"dtype\" is missing"},
    {"{'manifest': {'a': {'dtype': 'F32'}}}", "\"shape\" is missing"},
    {"{'manifest': {'a': {" F32 "[]}}}", "$.manifest.a.shape: must be"},
    {"{'manifest': {'a': {" F32 "[0]}}}", "must be a positive integer"},
    {"{'manifest': {'a': {" F32 "[1], 'x': 1}}}", "unknown key \"x\""},
    {"{'manifest': {'a b': {" F32 "[1]}}}", "a tensor's name must be"},
    {"{'manifest': {'a{L}': {" F32 "[1]}}}", "a tensor's name must be"},
    {"{'manifest': {'': {" F32 "[1]}}}", "a tensor's name must be"},
    {"{'manifest': {'a': {" F32 "[1], 'file': 'x', 'offset': 1}}}",
     "must be given together"},
    {"{'folder': '/x', 'manifest': {'a': {" F32 "[1]}}}",
     "must be given together"},
    {"{'folder': '/x', 'manifest': {'a': {" F32
     "[1], 'file': '../x', 'offset': 1}}}",
     "must be a name inside the folder"},
    {"{'folder': '/x', 'manifest': {'a': {" F32
     "[1], 'file': '..', 'offset': 1}}}",
     "must be a name inside the folder"},
    {"{'manifest': {'a': {" F32 "[1]}}, 'config': 3}",
     "$.config: must be the object"},
    {"{'manifest': {'a': {" F32 "[4294967296, 4294967296]}}}",
     "2^63 - 1 bytes"},
    {"{'manifest': {'a.layers.0.x': {" F32 "[1152921504606846976]}, "
     "'a.layers.1.x': {" F32 "[1152921504606846976]}}}",
     "2^63 - 1 bytes"},
};

LOOP_TEST(test_manifest_refuses_bad_input_with_the_rule, RF_ARRAY_SIZE(refused))
{
    assert_says(model_error("%s", refused[_i].text), refused[_i].says);
}

/* Names of one layer's tensor as engines and trainers spell them, and what the
 * model says of it. */
static const struct {
    const char *type, *text, *name, *spelling;
} spellings[] = {
    {"gemma3", "gemma3_text",
     "language_model.model.layers.0.self_attn.o_proj.weight", NULL},
    {"gemma3", "gemma3_text",
     "model.language_model.layers.0.self_attn.o_proj.weight",
     "model.language_model.* for language_model.model.*"},
    {"gemma3", "gemma3_text", "model.layers.0.self_attn.o_proj.weight",
     "model.* for language_model.model.*"},
    {"mistral3", "mistral",
     "model.language_model.layers.0.self_attn.o_proj.weight",
     "model.language_model.* for language_model.model.*"},
    {"llama4", "llama4_text",
     "model.language_model.layers.0.self_attn.o_proj.weight",
     "model.language_model.* for language_model.model.*"},
    {"qwen2_5_vl", "qwen2_5_vl_text", "model.layers.0.self_attn.o_proj.weight",
     NULL},
    {"qwen2_5_vl", "qwen2_5_vl_text",
     "model.language_model.layers.0.self_attn.o_proj.weight",
     "model.language_model.* for model.*"},
    {"qwen3_5", "qwen3_5_text",
     "model.language_model.layers.3.self_attn.o_proj.weight", NULL},
    {"qwen3_5", "qwen3_5_text", "model.layers.3.self_attn.o_proj.weight",
     "model.* for model.language_model.*"},
    {"qwen3_5_moe", "qwen3_5_moe_text",
     "model.layers.3.self_attn.o_proj.weight",
     "model.* for model.language_model.*"},
    {"qwen3_vl", "qwen3_vl_text", "model.layers.0.self_attn.o_proj.weight",
     "model.* for model.language_model.*"},
    {"qwen3_vl", "qwen3_vl_text",
     "language_model.model.layers.0.self_attn.o_proj.weight",
     "language_model.model.* for model.language_model.*"},
};

/* The towers are left out under the same spelling. */
LOOP_TEST(test_manifest_of_a_wrapper_may_be_spelled_otherwise,
          RF_ARRAY_SIZE(spellings))
{
    const char *name = spellings[_i].name;
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': '%s', 'text_config': {'model_type': '%s', "
        "'num_attention_heads': 2, 'num_key_value_heads': 2, 'head_dim': 4, "
        "'hidden_size': 8, 'num_hidden_layers': 4}}, 'manifest': {'%s': "
        "{'shape': [8, 8], 'dtype': 'BF16'}}}",
        spellings[_i].type, spellings[_i].text, name);
    ck_assert_uint_eq(model->n_families, 1);
    ck_assert_int_eq(model->families[0].role, RF_ROLE_O);
    ck_assert_ptr_null(strstr(model->families[0].rule, "common names"));
    ck_assert_pstr_eq(model->spelling, spellings[_i].spelling);
}

TEST(test_manifest_of_a_wrapper_has_its_tower_under_the_same_spelling)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'gemma3', 'text_config': {"
        "'num_attention_heads': 2, 'num_key_value_heads': 2, 'head_dim': 4}}, "
        "'manifest': {'model.language_model.layers.0.self_attn.o_proj.weight': "
        "{'shape': [8, 8], 'dtype': 'BF16'}, 'model.vision_tower.x.weight': "
        "{'shape': [3], 'dtype': 'BF16'}}}");
    ck_assert_uint_eq(model->n_tensors, 1);
    ck_assert_uint_eq(model->n_not_counted, 1);
    assert_says(model->not_counted[0], "model.vision_tower.*");
}

/* A checkpoint may name modules in either spelling. */
LOOP_TEST(test_manifest_finds_modules_in_the_other_spelling, 2)
{
    static const char *const modules[] = {
        "model.language_model.layers.0.self_attn",
        "language_model.model.layers.0.self_attn"};
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'gemma3', 'quantization_config': "
        "{'ignore': ['%s']}, 'text_config': {'num_attention_heads': 2, "
        "'num_key_value_heads': 2, 'head_dim': 4}}, 'manifest': "
        "{'model.language_model.layers.0.self_attn.o_proj.weight': "
        "{'shape': [8, 8], 'dtype': 'BF16'}}}",
        modules[_i]);
    ck_assert(model->families[0].left_as_it_is[0]);
}

#define TIED(tied, head)                                                       \
    "{'config': {'model_type': 'qwen3', 'num_attention_heads': 2, "            \
    "'num_key_value_heads': 2, 'head_dim': 4, 'tie_word_embeddings': " tied    \
    "}, 'manifest': {"                                                         \
    "'lm_head.weight': " head ", 'model.embed_tokens.weight': "                \
    "{'shape': [16, 8], 'dtype': 'BF16'}, 'model.norm.weight': "               \
    "{'shape': [8], 'dtype': 'BF16'}}}"
#define HEAD "{'shape': [16, 8], 'dtype': 'BF16'}"

TEST(test_manifest_leaves_out_a_head_that_is_the_embedding)
{
    struct rf_model *model = quoted_model(TIED("true", HEAD));
    ck_assert_uint_eq(model->n_tensors, 2);
    ck_assert_uint_eq(model->parameters, 16 * 8 + 8);
    ck_assert(model->tied_embeddings);
    ck_assert_uint_eq(model->n_not_counted, 1);
    ck_assert_str_eq(model->not_counted[0], "1 tensor lm_head.weight (tied: "
                                            "model.embed_tokens.weight)");
    rf_model_destroy(model);
    model = quoted_model(TIED("false", HEAD));
    ck_assert_uint_eq(model->n_tensors, 3);
    ck_assert(!model->tied_embeddings);
    rf_model_destroy(model);
}

TEST(test_manifest_of_a_checkpoint_names_the_twin_of_the_embedding)
{
    static const char embed[] = "model.embed_tokens.weight";
    AUTO(rf_model) *model = quoted_model(
        "{'folder': '/data', 'config': {'model_type': 'qwen3', "
        "'num_attention_heads': 2, 'num_key_value_heads': 2, 'head_dim': 4, "
        "'tie_word_embeddings': true}, 'manifest': {"
        "'lm_head.weight': {" F32 "[16, 8], 'file': 'x', 'offset': 8}, "
        "'model.embed_tokens.weight': {" F32 "[16, 8], 'file': 'x', "
        "'offset': 520}}}");
    const json_t *twins = json_object_get(model->files, "twins");
    ck_assert_uint_eq(json_object_size(twins), 1);
    ck_assert_str_eq(json_string_value(json_object_get(twins, embed)),
                     "lm_head.weight");
}

TEST(test_manifest_refuses_a_tied_head_that_is_not_the_embedding)
{
    assert_says(
        model_error(TIED("true", "{'shape': [17, 8], 'dtype': 'BF16'}")),
        "lm_head.weight: is BF16 [17, 8] and model.embed_tokens.weight is BF16 "
        "[16, 8] although the config sets \"tie_word_embeddings\"");
    assert_says(model_error(TIED("true", "{'shape': [16, 8], 'dtype': 'F32'}")),
                "is F32 [16, 8]");
}
