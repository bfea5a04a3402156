/* "mtp" and "vision" of a model: what they add, and what is wrong with them. */
#include <stdio.h>
#include <string.h>

#include "planner/model/model.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define SIZES                                                                  \
    "'num_hidden_layers': 2, 'hidden_size': 16, 'vocab_size': 32, "            \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, "                     \
    "'intermediate_size': 32"
#define GLM                                                                    \
    "'model_type': 'glm4_moe', " SIZES ", 'n_routed_experts': 2, "             \
    "'moe_intermediate_size': 8"
#define QWEN                                                                   \
    "'model_type': 'qwen3_vl', 'text_config': {'model_type': "                 \
    "'qwen3_vl_text', " SIZES "}, 'vision_config': {'depth': 2}"
#define F32(name, shape) "'" name "': {'shape': " shape ", 'dtype': 'F32'}"

static const struct rf_family *find(const struct rf_model *model,
                                    const char *name)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        if (strcmp(model->families[i].name, name) == 0) {
            return &model->families[i];
        }
    }
    return NULL;
}

static const struct rf_family *named(const struct rf_model *model,
                                     const char *name)
{
    const struct rf_family *family = find(model, name);
    if (family == NULL) {
        ck_abort_msg("no family %s", name);
    }
    return family;
}

TEST(test_components_are_left_out_unless_asked_for)
{
    AUTO(rf_model) *glm =
        quoted_model("{'config': {" GLM ", 'num_nextn_predict_layers': 2}}");
    struct rf_model *qwen = quoted_model("{'config': {" QWEN "}}");
    ck_assert_ptr_null(find(glm, "model.layers.{L}.eh_proj.weight"));
    ck_assert_str_eq(glm->not_counted[0], "2 multi-token-prediction layers");
    ck_assert_str_eq(qwen->not_counted[0], "the vision tower");
    rf_model_destroy(qwen);
    qwen = quoted_model("{'vision': 'leave_out', 'mtp': false, 'config': {" QWEN
                        "}}");
    ck_assert_uint_eq(qwen->n_not_counted, 1);
    rf_model_destroy(qwen);
}

TEST(test_components_mtp_layers_lie_on_the_last_stage)
{
    struct rf_model *model = quoted_model("{'mtp': true, 'config': {" GLM
                                          ", 'num_nextn_predict_layers': 2, "
                                          "'tie_word_embeddings': true}}");
    const struct rf_family *proj =
        named(model, "model.layers.{L}.eh_proj.weight");
    ck_assert_uint_eq(proj->n_layers, 2);
    ck_assert_uint_eq(proj->layers[0], 2);
    ck_assert_int_eq(proj->stage, RF_STAGE_LAST);
    ck_assert_int_eq(proj->component, RF_COMPONENT_MTP);
    ck_assert_uint_eq(model->n_layers, 2);
    ck_assert_str_eq(model->name, "glm4_moe (mtp)");
    ck_assert(model->tied_embeddings); /* its own head is another */
    ck_assert_uint_eq(model->n_not_counted, 0);
    rf_model_destroy(model);
}

TEST(test_components_vision_tower_lies_on_the_first_stage)
{
    static const char *const values[] = {"split", "replicate"};
    for (int i = 0; i < 2; i++) {
        AUTO(rf_model) *model =
            quoted_model("{'vision': '%s', 'config': {" QWEN "}}", values[i]);
        const struct rf_family *qkv =
            named(model, "model.visual.blocks.{L}.attn.qkv.weight");
        ck_assert_uint_eq(qkv->n_layers, 2);
        ck_assert_int_eq(qkv->stage, RF_STAGE_FIRST);
        ck_assert_int_eq(qkv->component, RF_COMPONENT_VISION);
        ck_assert_int_eq(qkv->whole_in == RF_IN_EVERY_LAYOUT, i == 1);
        ck_assert_str_eq(model->name, i == 1 ? "qwen3_vl (vision replicate)"
                                             : "qwen3_vl (vision split)");
        ck_assert_uint_eq(model->n_layers, 2);
        ck_assert_uint_eq(model->n_not_counted, 0);
    }
}

TEST(test_components_know_both_forms_of_experts)
{
    AUTO(rf_model) *model = quoted_model(
        "{'mtp': true, 'config': {'model_type': 'qwen3_5_moe_text', " SIZES
        ", 'mtp_num_hidden_layers': 1, 'num_experts': 2, "
        "'moe_intermediate_size': 8}, 'manifest': {" F32(
            "model.norm.weight",
            "[16]") ", " F32("mtp.layers.0.mlp.experts.gate_up_proj",
                             "[2, 16, 16]") ", " F32("mtp.layers.0.mlp.experts."
                                                     "down_proj",
                                                     "[2, 16, 8]") "}}");
    const struct rf_family *fused =
        named(model, "mtp.layers.{L}.mlp.experts.gate_up_proj");
    ck_assert(fused->stacked);
    ck_assert_uint_eq(fused->n_parts, 2);
    ck_assert_int_eq(fused->parts[0].role, RF_ROLE_EXPERT_GATE);
}

/* A type whose tower no table describes: known by name from a checkpoint. */
TEST(test_components_replicate_towers_by_name)
{
    AUTO(rf_model) *model = quoted_model(
        "{'vision': 'replicate', 'config': {'model_type': 'gemma3', "
        "'vision_config': {}, 'text_config': {'model_type': "
        "'gemma3_text', " SIZES "}}, 'manifest': {" F32(
            "language_model.model.norm.weight",
            "[16]") ", " F32("vision_tower.vision_model.post_layernorm.weight",
                             "[8]") ", " F32("multi_modal_projector.mm_soft_"
                                             "emb_norm.weight",
                                             "[8]") "}}");
    const struct rf_family *norm =
        named(model, "vision_tower.vision_model.post_layernorm.weight");
    ck_assert_int_eq(norm->role, RF_ROLE_REPLICATED);
    ck_assert_int_eq(norm->stage, RF_STAGE_FIRST);
    ck_assert_uint_eq(model->n_families, 3);
}

TEST(test_components_follow_rules_of_ones_own)
{
    AUTO(rf_model) *model = quoted_model(
        "{'mtp': true, 'vision': 'split', 'config': {'model_type': "
        "'own', " SIZES
        ", 'extra': 1, 'vision_config': {'width': 4}}, 'rules': {"
        "'like': 'llama', 'mtp': {'count': 'extra', 'layer': 'next.{L}.', "
        "'names': ['next.*'], 'tensors': [{'name': 'next.join', "
        "'role': 'column', 'shape': ['hidden_size']}]}, "
        "'vision': {'names': ['eye.*'], 'tensors': [{'name': 'eye.lens', "
        "'role': 'row', 'shape': [2, 'vision_config.width']}]}}}");
    ck_assert_ptr_nonnull(find(model, "next.{L}.self_attn.q_proj.weight"));
    ck_assert_int_eq(named(model, "next.join")->stage, RF_STAGE_LAST);
    ck_assert_int_eq(named(model, "eye.lens")->stage, RF_STAGE_FIRST);
    ck_assert_uint_eq(named(model, "eye.lens")->shape[1], 4);
}

static const struct {
    const char *model, *says;
} bad[] = {
    {"'mtp': 'yes', 'config': {" GLM "}", "mtp: must be true or false"},
    {"'mtp': true, 'config': {" GLM "}",
     "mtp: the config has no multi-token-prediction layers: "
     "\"num_nextn_predict_layers\" is 0 or missing"},
    {"'mtp': true, 'config': {" GLM ", 'num_nextn_predict_layers': 0}",
     "\"num_nextn_predict_layers\""},
    {"'mtp': true, 'config': {'model_type': 'qwen3_5_text', " SIZES "}",
     "\"mtp_num_hidden_layers\""},
    {"'mtp': true, 'config': {'model_type': 'llama', " SIZES "}",
     "mtp: this model type has no multi-token-prediction layers"},
    {"'mtpp': true, 'config': {" GLM "}", "did you mean \"mtp\"?"},
    {"'visions': 'split', 'config': {" QWEN "}", "did you mean \"vision\"?"},
    {"'vision': 'splt', 'config': {" QWEN "}",
     "vision: must be one of \"leave_out\", \"replicate\", \"split\", not "
     "\"splt\""},
    {"'vision': 'split', 'config': {" GLM "}",
     "vision: this model type has no vision tower"},
    {"'vision': 'split', 'config': {'model_type': 'qwen3_vl', " SIZES "}",
     "\"vision_config\" is missing"},
    {"'vision': 'replicate', 'config': {'model_type': 'gemma3', "
     "'vision_config': {}, " SIZES "}",
     "lacks the shapes of its vision tower"},
    {"'vision': 'split', 'config': {" QWEN
     "}, 'manifest': {" F32("model.language_model.norm.weight", "[16]") "}",
     "no tensors of a vision tower"},
    {"'mtp': true, 'config': {" GLM ", 'num_nextn_predict_layers': 1}, "
     "'manifest': {" F32("model.norm.weight", "[16]") "}",
     "no tensors of the multi-token-prediction layers"},
    {"'mtp': true, 'manifest': {" F32("a", "[8]") "}",
     "mtp: unknown tensors: needs \"rules\""},
    {"'mtp': true, 'config': {'model_type': 'own', " SIZES "}, 'rules': "
     "{'like': 'llama', 'mtp': {'cuont': '1'}}",
     "did you mean \"count\"?"},
    {"'mtp': true, 'config': {'model_type': 'own', " SIZES "}, 'rules': "
     "{'like': 'llama', 'mtp': 'deepseek_v33'}",
     "did you mean \"deepseek_v3"},
    {"'mtp': true, 'megatron': {}", "mtp"},
};

/* With a config as with tensors. */
TEST(test_components_refuse_to_split_towers_without_rules)
{
    static const char *const types[] = {"gemma3", "gemma4", "llama4",
                                        "mistral3"};
    static const char *const tensors[] = {
        "", ", 'manifest': {" F32("vision_tower.x", "[8]") "}"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(types); i++) {
        for (size_t k = 0; k < RF_ARRAY_SIZE(tensors); k++) {
            char want[128];
            const char *text = model_error(
                "{'vision': 'split', 'config': {'model_type': '%s', "
                "'vision_config': {}, " SIZES "}%s}",
                types[i], tensors[k]);
            snprintf(want, sizeof(want),
                     "$.vision: the vision tower of %s cannot be split: its "
                     "table names the tensors but has no rules",
                     types[i]);
            assert_says(text, want);
            assert_says(text, "\"replicate\" (with \"checkpoint\" or "
                              "\"manifest\") or \"leave_out\"");
        }
    }
}

LOOP_TEST(test_components_bad_input, RF_ARRAY_SIZE(bad))
{
    const char *text = model_error("{%s}", bad[_i].model);
    assert_says(text, bad[_i].says);
}
