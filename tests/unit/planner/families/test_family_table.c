/* Tables of people's own: rules of a model, and what is wrong with some. */
#include <string.h>

#include "planner/families/families.h"
#include "planner/families/family_table.h"
#include "planner/families/model_values.h"
#include "planner/model/roles.h"
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

#define LAYER "model.layers.{L}."
#define TINY                                                                   \
    "'model_type': 'nobody_knows', 'hidden_size': 32, "                        \
    "'num_hidden_layers': 3, 'num_attention_heads': 4, 'vocab_size': 64"

TEST(test_table_describes_a_model_nobody_knows)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {" TINY ", 'kinds': ['a', 'b', 'a']}, 'rules': {"
        "'values': {'wide': '4 * hidden_size'}, "
        "'layers': {'mixed': 'kinds[layer] == kinds[0]'}, 'tensors': ["
        "{'name': 'wte', 'role': 'vocabulary', "
        " 'shape': ['vocab_size', 'hidden_size']}, "
        "{'name': 'h.{L}.mix', 'layers': 'mixed', 'role': 'column', "
        " 'shape': ['wide * (layer + 1)', 'hidden_size']}, "
        "{'name': 'h.{L}.plain', 'layers': '!mixed', 'role': 'row', "
        " 'shape': ['hidden_size', 'wide'], 'dtype': 'float32'}, "
        "{'name': 'mtp.{L}.w', 'layers': [0, 2], 'stage': 'last', "
        " 'role': 'replicated', 'shape': [8]}]}}");
    const struct rf_family *mix = family_named(model, "h.{L}.mix");
    const struct rf_family *plain = family_named(model, "h.{L}.plain");
    ck_assert_uint_eq(model->n_families, 5); /* mix has two shapes */
    ck_assert_uint_eq(mix->n_layers, 1);
    ck_assert_uint_eq(mix->shape[0], 128);
    ck_assert_uint_eq((mix + 1)->shape[0], 3 * 128);
    ck_assert_uint_eq((mix + 1)->layers[0], 2);
    ck_assert_uint_eq(plain->layers[0], 1);
    ck_assert_int_eq(plain->dtype, RF_F32);
    ck_assert_int_eq(plain->role, RF_ROLE_ROW);
    ck_assert_str_eq(plain->rule, "rules: h.{L}.plain");
    ck_assert(family_named(model, "mtp.{L}.w")->own_layers);
    ck_assert_uint_eq(model->n_layers, 3);
    ck_assert_uint_eq(model->vocab, 64);
    ck_assert_str_eq(model->model_type, "nobody_knows");
}

TEST(test_table_starts_from_another)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {" TINY ", 'intermediate_size': 48}, 'rules': {"
        "'like': 'llama', 'without': ['*.mlp.gate_proj.*'], "
        "'prefix': {'model.': 'language_model.model.', 'lm_head.': "
        "'language_model.lm_head.'}, 'tensors': ["
        "{'name': 'language_model." LAYER "self_attn.sinks', "
        " 'after': 'language_model." LAYER "self_attn.o_proj.weight', "
        " 'role': 'column', 'shape': ['num_attention_heads']}, "
        "{'name': 'language_model." LAYER "mlp.up_proj.weight', "
        " 'role': 'mlp up', 'shape': [96, 'hidden_size']}]}}");
    const struct rf_family *o =
        family_named(model, "language_model." LAYER "self_attn.o_proj.weight");
    ck_assert_str_eq((o + 1)->name, "language_model." LAYER "self_attn.sinks");
    ck_assert_uint_eq(
        family_named(model, "language_model." LAYER "mlp.up_proj.weight")
            ->shape[0],
        96);
    ck_assert_str_eq(model->families[model->n_families - 1].name,
                     "language_model.lm_head.weight");
    ck_assert_uint_eq(model->heads, 4);
    for (uint32_t i = 0; i < model->n_families; i++) {
        ck_assert_ptr_null(strstr(model->families[i].name, "gate_proj"));
    }
}

TEST(test_table_of_a_wrapped_model_reads_its_text_config)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'wrapper', 'tie_word_embeddings': true, "
        "'text_config': {'model_type': 'qwen3_text', 'hidden_size': 32, "
        "'num_hidden_layers': 2, 'num_attention_heads': 4, 'vocab_size': 64, "
        "'num_key_value_heads': 2, 'intermediate_size': 48}}, "
        "'num_layers': 1}");
    ck_assert_uint_eq(model->n_layers, 1);
    ck_assert_uint_eq(model->kv_heads, 2);
    ck_assert_uint_eq(model->head_dim, 128);
    ck_assert(model->tied_embeddings);
    ck_assert_str_eq(model->name, "wrapper (num_layers 1)");
}

#define BF16 "'dtype': 'BF16', 'shape': "

TEST(test_rules_say_what_tensors_of_a_manifest_are)
{
    AUTO(rf_model) *model = quoted_model(
        "{'manifest': {"
        "'transformer.h.0.attn.qkv': {" BF16 "[24, 8]}, "
        "'transformer.h.1.attn.qkv': {" BF16 "[24, 8]}, "
        "'transformer.h.0.experts.up': {" BF16 "[4, 8, 16]}, "
        "'transformer.h.1.experts.up': {" BF16 "[4, 8, 16]}, "
        "'vision.a': {" BF16 "[3]}, 'vision.b.c': {" BF16 "[3]}, "
        "'model.norm.weight': {" BF16 "[8]}}, 'rules': ["
        "{'name': 'transformer.h.{L}.attn.qkv', 'parts': ["
        " {'role': 'query', 'rows': 16, 'heads': 8}, "
        " {'role': 'key', 'rows': 4, 'heads': 2}, "
        " {'role': 'value', 'heads': 2}]}, "
        "{'name': 'transformer.h.{L}.experts.up', 'stacked': true, "
        " 'transposed': true, 'role': 'expert up'}, "
        "{'name': 'vision.*', 'role': 'skip'}]}");
    const struct rf_family *qkv =
        family_named(model, "transformer.h.{L}.attn.qkv");
    const struct rf_family *up =
        family_named(model, "transformer.h.{L}.experts.up");
    ck_assert_uint_eq(model->n_families, 3);
    ck_assert_uint_eq(model->n_tensors, 5);
    ck_assert_uint_eq(model->n_layers, 2);
    ck_assert_uint_eq(qkv->n_layers, 2);
    ck_assert_uint_eq(qkv->n_parts, 3);
    ck_assert_uint_eq(qkv->parts[2].size, 4);
    ck_assert_uint_eq(qkv->parts[0].units, 8);
    ck_assert(up->stacked && up->has_experts);
    ck_assert_uint_eq(up->n_experts, 4);
    ck_assert_uint_eq(up->ndim, 2);
    ck_assert_uint_eq(rf_family_part_dim(up), 1);
    ck_assert_int_eq(family_named(model, "model.norm.weight")->role,
                     RF_ROLE_FINAL_NORM); /* by its common name */
    ck_assert_uint_eq(model->n_not_counted, 1);
    ck_assert_str_eq(model->not_counted[0],
                     "2 tensors vision.* (left out by a rule)");
}

TEST(test_rules_follow_the_plan_of_a_config)
{
    AUTO(rf_model) *model = quoted_model(
        "{'manifest': {"
        "'model.layers.0.self_attn.q_proj.weight': {" BF16 "[16, 8]}, "
        "'model.layers.0.self_attn.g_proj.weight': {" BF16 "[16, 8]}, "
        "'model.layers.0.self_attn.g_proj.bias': {" BF16 "[16]}, "
        "'model.layers.0.mix.out.weight': {" BF16 "[8, 16]}, "
        "'model.layers.0.mlp.experts.gate_up_proj': {" BF16 "[4, 32, 8]}, "
        "'model.layers.0.mlp.experts.down_proj': {" BF16 "[4, 8, 16]}, "
        "'model.layers.0.odd.weight': {" BF16 "[8]}, "
        "'model.embed_tokens.weight': {" BF16 "[64, 8]}}, "
        "'rules': 'config', 'num_attention_heads': 4, 'config': {"
        "'model_type': 'new', 'base_model_tp_plan': {"
        "'embed_tokens': 'embedding_rowwise', "
        "'layers.*.self_attn.q_proj': 'colwise', "
        "'layers.*.self_attn.g_proj': 'colwise_gather_output', "
        "'layers.*.mix.out': 'rowwise', "
        "'layers.*.odd': 'replicated_with_grad_allreduce', "
        "'layers.*.mlp.experts.gate_up_proj': 'packed_colwise', "
        "'layers.*.mlp.experts.down_proj': 'rowwise', "
        "'layers.*.mlp.experts': 'moe_tp_experts'}, "
        "'base_model_ep_plan': {"
        "'layers.*.mlp.experts.gate_up_proj': 'grouped_gemm'}}}");
    static const struct {
        const char *name;
        enum rf_role role;
    } want[] = {
        {"model.embed_tokens.weight", RF_ROLE_EMBED},
        {LAYER "self_attn.q_proj.weight", RF_ROLE_Q},
        {LAYER "self_attn.g_proj.weight", RF_ROLE_COLUMN},
        {LAYER "self_attn.g_proj.bias", RF_ROLE_COLUMN},
        {LAYER "mix.out.weight", RF_ROLE_ROW},
        {LAYER "odd.weight", RF_ROLE_REPLICATED},
        {LAYER "mlp.experts.gate_up_proj", RF_ROLE_FUSED},
        {LAYER "mlp.experts.down_proj", RF_ROLE_EXPERT_ROW},
    };
    const struct rf_family *up;
    for (size_t i = 0; i < RF_ARRAY_SIZE(want); i++) {
        const struct rf_family *family = family_named(model, want[i].name);
        ck_assert_msg(family->role == want[i].role, "%s is %s", want[i].name,
                      rf_role_name(family->role));
    }
    up = family_named(model, LAYER "mlp.experts.gate_up_proj");
    ck_assert_uint_eq(up->parts[1].size, 16);
    ck_assert_int_eq(up->parts[1].role, RF_ROLE_EXPERT_COLUMN);
    ck_assert_uint_eq(model->n_experts, 4);
}

#define MTP                                                                    \
    "'rules': {'tensors': ["                                                   \
    "{'name': '" LAYER "w', 'role': 'column', 'shape': [16, 8]}, "             \
    "{'name': '" LAYER "w', 'role': 'row', 'shape': [16, 8], "                 \
    " 'layers': ['num_hidden_layers', 'num_nextn_predict_layers']}]}, "        \
    "'config': {'model_type': 'x', 'num_hidden_layers': 2, "                   \
    "'num_nextn_predict_layers': 1}"
#define TENSOR "{" BF16 "[16, 8]}"

/* The same from a config and from tensors: the decoder's two layers, and one
 * for prediction behind them. */
LOOP_TEST(test_rules_of_one_name_go_by_the_layer, 2)
{
    static const char *const texts[] = {
        "{" MTP "}",
        "{" MTP ", 'manifest': {'model.layers.0.w': " TENSOR
        ", 'model.layers.2.w': " TENSOR ", 'model.layers.1.w': " TENSOR "}}"};
    AUTO(rf_model) *model = quoted_model("%s", texts[_i]);
    const struct rf_family *first = &model->families[0], *last = first + 1;
    ck_assert_uint_eq(model->n_families, 2);
    ck_assert_uint_eq(model->n_layers, 2);
    ck_assert_uint_eq(model->n_not_counted, 0);
    ck_assert_int_eq(first->role, RF_ROLE_COLUMN);
    ck_assert_uint_eq(first->n_layers, 2);
    ck_assert_int_eq(last->role, RF_ROLE_ROW);
    ck_assert_uint_eq(last->layers[0], 2);
    ck_assert(last->own_layers);
    ck_assert_int_eq(last->stage, RF_STAGE_LAST);
}

#define MANIFEST "'manifest': {'model.layers.0.a.weight': {" BF16 "[24, 8]}}"
#define RULES(rules) "{" MANIFEST ", 'rules': [" rules "]}"
#define CONFIG(rules) "{'config': {" TINY "}, 'rules': {" rules "}}"

static const struct {
    const char *text, *says;
} refused[] = {
    {RULES("{'name': 'b', 'role': 'column'}"),
     "$.rules[0].name: no tensor matches \"b\""},
    {RULES("{'name': 'model.layers.{L}.a.wieght', 'role': 'column'}"),
     "(did you mean \"model.layers.{L}.a.weight\"?)"},
    {RULES("{'name': '*.a.weight', 'role': 'column', 'dims': 3}"),
     "no tensor with that number of dimensions matches"},
    {RULES("{'name': '*.a.weight', 'role': 'row'}, "
           "{'name': 'model.*', 'role': 'column'}"),
     LAYER "a.weight matches two rules, \"*.a.weight\" ($.rules[0]) and "
           "\"model.*\" ($.rules[1])"},
    {RULES("{'name': '*.a.weight', 'role': 'row'}, "
           "{'name': '*.a.weight', 'role': 'column'}"),
     LAYER "a.weight matches two rules, \"*.a.weight\" ($.rules[0]) and "
           "\"*.a.weight\" ($.rules[1])"},
    {RULES("{'name': '*', 'role': 'columns'}"),
     "$.rules[0].role: unknown role \"columns\" (did you mean \"column\"?)"},
    {RULES("{'name': '*', 'rolle': 'column'}"), "did you mean \"role\"?"},
    {RULES("{'name': '*', 'role': 'column', 'whole': 'sglang'}"),
     "$.rules[0].whole: must be a list of layouts"},
    {RULES("{'name': '*', 'role': 'column', 'whole': ['vllm', 'sglan']}"),
     "$.rules[0].whole[1]: must be one of \"megatron\""},
    {RULES("{'name': '*', 'role': 'column', 'whole': ['vllm', 'sglan']}"),
     "not \"sglan\" (did you mean \"sglang\"?)"},
    {RULES("{'name': '*', 'role': 'column', 'keys_are_values': true}"),
     "$.rules[0].keys_are_values: is for tensors of role \"key\" only"},
    {RULES("{'name': '*', 'role': 'column', 'block': 'x'}"),
     "\"x\" is missing"},
    {RULES("{'name': '*'}"), "$.rules[0]: \"role\" is missing"},
    {RULES("{'role': 'column'}"), "$.rules[0]: \"name\" is missing"},
    {RULES("{'name': '{L}.{L}', 'role': 'row'}"), "{L} appears twice"},
    {RULES("{'name': 'a{X}', 'role': 'row'}"), "no braces but {L} and {E}"},
    {RULES("{'name': '*', 'role': 'expert up'}"),
     "needs {E} in the name or \"stacked\": true"},
    {RULES("{'name': '*', 'role': 'ssm'}"), "needs \"heads\""},
    {RULES("{'name': '*', 'role': 'column', 'heads': 5}"),
     "$.rules[0].heads: " LAYER
     "a.weight: 24 rows of role column do not divide into 5 heads"},
    {RULES("{'name': '*', 'parts': [{'role': 'query'}]}"),
     "$.rules[0].parts: must be a list of 2 to 8 parts"},
    {RULES("{'name': '*', 'parts': [{'role': 'column', 'rows': 16}, "
           "{'role': 'column', 'rows': 9}]}"),
     "$.rules[0].parts: " LAYER "a.weight: the parts sum to 25 rows, but "
     "dimension 0 of shape [24, 8] has 24"},
    {RULES("{'name': '*', 'parts': [{'role': 'column'}, "
           "{'role': 'column', 'rows': 9}]}"),
     "$.rules[0].parts[0]: needs \"rows\""},
    {RULES("{'name': '*', 'parts': [{'role': 'row'}, {'role': 'row'}]}"),
     "role \"row\" is split along dimension 1"},
    {RULES("{'name': '*', 'parts': [{'role': 'column', 'rows': 'nix'}, "
           "{'role': 'column'}]}"),
     "\"nix\" is missing"},
    {"{" MANIFEST ", 'rules': 3}", "$.rules: must be a table, a list of rules"},
    {"{" MANIFEST ", 'rules': 'config'}", "needs a base_model_tp_plan"},
    {"{" MANIFEST ", 'rules': 'config', 'config': {'base_model_tp_plan': "
     "{'layers.*.a': 'colwize'}}}",
     "$.config.base_model_tp_plan.layers.*.a: unknown style \"colwize\" (did "
     "you mean \"colwise\"?)"},
    {CONFIG("'tensors': [{'name': 'a', 'role': 'row'}]"),
     "$.rules.tensors[0]: needs \"shape\""},
    {CONFIG("'tensors': [{'name': 'a*', 'role': 'row', 'shape': [2]}]"),
     "\"a*\" needs tensors to match; a config has none"},
    {CONFIG("'tensors': [{'name': 'a.{E}', 'role': 'row', 'shape': [2]}]"),
     "needs \"experts\""},
    {CONFIG("'tensors': [{'name': 'a', 'role': 'row', 'shape': "
            "['hiden_size', 2]}]"),
     "$.config: \"hiden_size\" is missing (did you mean "
     "\"hidden_size\"?)"},
    {CONFIG("'values': {'x': 'y', 'y': 'x'}, 'tensors': [{'name': 'a', "
            "'role': 'row', 'shape': ['x', 2]}]"),
     "its value depends on itself"},
    {CONFIG("'tensors': [{'name': 'a', 'role': 'row', 'shape': ['1 +', 2]}]"),
     "\"1 +\", column 4: expected a value"},
    {CONFIG("'tensors': [{'name': '{L}.a', 'role': 'row', 'shape': [4, 4]}, "
            "{'name': '{L}.a', 'role': 'column', 'shape': [4, 4], "
            "'layers': 'layer >= 1'}]"),
     "$.rules.tensors[1]: 1.a matches two rules, \"{L}.a\" "
     "($.rules.tensors[0]) and \"{L}.a\" ($.rules.tensors[1])"},
    {CONFIG("'tensors': [{'name': '{L}.{E}', 'role': 'expert row', "
            "'experts': 4, 'shape': [4, 4]}, "
            "{'name': '1.3', 'role': 'column', 'shape': [4, 4]}]"),
     "1.3 matches two rules"},
    {CONFIG("'tensors': [{'name': '{L}.{E}', 'role': 'expert row', "
            "'layers': [0, 17], 'experts': 65536, 'shape': [4, 4]}]"),
     "the rules make more than 1048576 tensors"},
    {"{'config': {" TINY ", 'nothing': null}, 'rules': {'tensors': [{'name': "
     "'a', 'role': 'row', 'shape': ['nothing', 4]}]}}",
     "$.config: \"nothing\" is null"},
    {CONFIG("'tensors': []"), "the rules produce no tensors"},
    {CONFIG("'like': 'lama'"), "did you mean \"llama\"?"},
    {CONFIG("'like': 'llama', 'without': ['nix']"),
     "$.rules.without[0]: must match a tensor of the table"},
    {CONFIG("'like': 'llama', 'tensors': [{'name': 'a', 'role': 'row', "
            "'after': 'b'}]"),
     "no earlier tensor is named \"b\""},
    {"{'config': {" TINY "}, 'rules': {'tensors': [{'name': 'a', 'role': "
     "'row', 'shape': [4, 4]}]}, 'vocab_size': 3}",
     "$.vocab_size: does not apply to model type nobody_knows"},
};

/* All at once; what is behind a wrong rule is no error because of that. */
TEST(test_rules_that_are_wrong_are_told_together)
{
    const char *text = model_error(
        "%s", RULES("{'name': '*', 'role': 'columns'}, "
                    "{'name': 'ok', 'role': 'row'}, "
                    "{'name': 'b', 'after': '*', 'role': 'row'}, "
                    "{'role': 'column'}, {'name': '{L}.{L}', 'role': 'row'}"));
    assert_says(
        text,
        "test: 3 invalid rules:\n  $.rules[0].role: unknown role \"columns\"");
    assert_says(text, "\n  $.rules[3]: \"name\" is missing\n");
    assert_says(text, "\n  $.rules[4]: {L} appears twice");
    ck_assert_ptr_null(strstr(text, "$.rules[2]"));
}

/* Each of them would be tried on each tensor. */
TEST(test_rules_without_end_are_refused_at_once)
{
    char many[2 * 4097 + 1], *entries = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&entries, &size);
    for (size_t i = 0; i < 4097; i++) {
        memcpy(&many[2 * i], i < 4096 ? "1," : "1", 2);
    }
    for (int i = 0; i < 1366; i++) {
        fprintf(stream, "%s'e%d': 'colwise'", i > 0 ? ", " : "", i);
    }
    fclose(stream);
    many[2 * 4097 - 1] = '\0';
    assert_says(model_error("{'config': {" TINY "}, 'rules': [%s]}", many),
                "test: $.rules: has 4097 rules, the limit is 4096; write {L} "
                "and {E} in names for all layers and experts");
    assert_says(model_error("{'config': {" TINY ", 'base_model_tp_plan': {%s}"
                            "}, 'rules': 'config'}",
                            entries),
                "test: $.config.base_model_tp_plan: has 1366 entries, the "
                "limit is 1365; write * in names for all layers");
    free(entries);
}

LOOP_TEST(test_rules_that_are_wrong_are_refused_with_the_place,
          RF_ARRAY_SIZE(refused))
{
    assert_says(model_error("%s", refused[_i].text), refused[_i].says);
}

/* Every model type has one table, whose rules and expressions are well formed.
 */
/* Opens a table, with the parts that a model may leave out if `all`. */
static void check_table(const char *type, bool all)
{
    const struct rf_jnode no_rules = {.value = NULL};
    struct rf_jnode node = rf_jnode_root(NULL, "test");
    struct rf_components components = {.model = node};
    struct rf_family_table *table = NULL;
    struct rf_values values;
    struct rf_err err = {0};
    ck_assert_msg(rf_family_table_open(type, &no_rules, &components, &table,
                                       &err) == RF_OK,
                  "%s: %s", type, err.text);
    if (all) {
        const json_t *tower = table->components[RF_COMPONENT_VISION].value;
        components.mtp =
            json_is_object(table->components[RF_COMPONENT_MTP].value);
        components.vision = json_object_get(tower, "tensors") != NULL
                                ? RF_VISION_SPLIT
                                : RF_VISION_LEAVE_OUT;
        rf_family_table_destroy(table);
        ck_assert_msg(rf_family_table_open(type, &no_rules, &components, &table,
                                           &err) == RF_OK,
                      "%s: %s", type, err.text);
    }
    ck_assert_uint_gt(table->n_rules, 0);
    rf_values_init(&values, &node, table);
    ck_assert_msg(rf_family_table_mention(table, &values, &err) == RF_OK,
                  "%s: %s", type, err.text);
    rf_values_free(&values);
    rf_family_table_destroy(table);
}

TEST(test_built_in_tables_are_sound)
{
    json_auto_t *seen = json_object();
    for (const struct rf_family_file *file = rf_family_files;
         file->name != NULL; file++) {
        struct rf_err err = {0};
        json_t *document = NULL;
        assert_ok(
            rf_json_parse(file->text, file->size, file->name, &document, &err),
            err);
        ck_assert_uint_gt(json_array_size(document), 0);
        for (size_t i = 0; i < json_array_size(document); i++) {
            const json_t *types =
                json_object_get(json_array_get(document, i), "model_types");
            for (size_t k = 0; k < json_array_size(types); k++) {
                const char *type = json_string_value(json_array_get(types, k));
                ck_assert_ptr_nonnull(type);
                ck_assert_msg(json_object_get(seen, type) == NULL,
                              "%s has two tables", type);
                json_object_set_new(seen, type, json_true());
                check_table(type, false);
                check_table(type, true);
            }
        }
        json_decref(document);
    }
    ck_assert_uint_ge(json_object_size(seen), 7);
}
