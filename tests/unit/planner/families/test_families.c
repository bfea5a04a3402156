/* Model types: names, shapes, layers and totals are those that Hugging Face
 * Transformers gives a checkpoint of the same config.json. The fixtures in
 * models/ come from tests/models/check-models. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/model_read.h"
#include "planner/model/model.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define MAX_LAYERS 128

/* Numbers of fixtures: the default of its class, and small ones. */
#define DEFAULT "1"
#define SMALL "[23]"
#define LAST "3"
#define ANY "[123]"

/* A row of a fixture: tensors that differ in layer and expert alone. */
struct row {
    const char *name;
    json_t *shape, *layers; /* layers: [[first, last], …]; NULL: none */
    uint32_t experts;       /* 0: none */
    bool seen[MAX_LAYERS];
};

struct fixture {
    char name[64];
    json_t *json;
    struct row *rows;
    size_t n;
    struct rf_model *model;
};

static void add_rows(struct fixture *fixture, const char *key)
{
    json_t *families = json_object_get(fixture->json, key);
    size_t n = json_array_size(families);
    fixture->rows =
        rf_xrealloc(fixture->rows, fixture->n + n + 1, sizeof(*fixture->rows));
    for (size_t i = 0; i < n; i++) {
        json_t *family = json_array_get(families, i);
        fixture->rows[fixture->n++] = (struct row){
            .name = json_text_at(family, "name"),
            .shape = json_object_get(family, "shape"),
            .layers = json_object_get(family, "layers"),
            .experts = (uint32_t)json_integer_at(family, "experts"),
        };
    }
}

/* A model that is to have that part: "vision", "mtp"; NULL: neither. */
static json_t *description_of(const struct fixture *fixture, const char *part)
{
    json_t *description =
        json_pack("{s:O}", "config", json_object_get(fixture->json, "config"));
    if (part != NULL) {
        json_object_set_new(description, part,
                            part[0] == 'm' ? json_true()
                                           : json_string("split"));
    }
    return description;
}

/* The fixtures with such numbers. */
static glob_t fixtures(const char *numbers)
{
    char pattern[64];
    glob_t found = {.gl_pathc = 0};
    snprintf(pattern, sizeof(pattern), "tests/unit/planner/models/*-%s.json",
             numbers);
    (void)glob(pattern, 0, NULL, &found); /* what is not there is no path */
    return found;
}

static size_t n_fixtures(const char *numbers)
{
    glob_t found = fixtures(numbers);
    size_t n = found.gl_pathc;
    globfree(&found);
    return n;
}

/* The i-th of them; false: it has no such part. */
static bool open_part(struct fixture *fixture, const char *numbers, int i,
                      const char *part)
{
    glob_t found = fixtures(numbers);
    const char *path = found.gl_pathv[i];
    struct rf_err err = {0};
    struct rf_jnode node;
    json_auto_t *inline_model = NULL;
    *fixture = (struct fixture){.n = 0};
    snprintf(fixture->name, sizeof(fixture->name), "%s",
             strrchr(path, '/') + 1);
    ck_assert_msg(rf_json_load(path, 1 << 20, &fixture->json, &err) == RF_OK,
                  "%s", err.text);
    globfree(&found);
    if (part != NULL && json_object_get(fixture->json, part) == NULL) {
        json_decref(fixture->json);
        return false;
    }
    add_rows(fixture, "families");
    if (part != NULL) {
        add_rows(fixture, part);
    }
    inline_model = description_of(fixture, part);
    node = rf_jnode_root(inline_model, fixture->name);
    ck_assert_msg(rf_model_from_json(&node, &fixture->model, &err) == RF_OK,
                  "%s: %s", fixture->name, err.text);
    return true;
}

static void open_fixture(struct fixture *fixture, const char *numbers, int i)
{
    open_part(fixture, numbers, i, NULL);
}

static void close_fixture(struct fixture *fixture)
{
    rf_model_destroy(fixture->model);
    free(fixture->rows);
    json_decref(fixture->json);
}

static bool has_layer(const struct row *row, uint32_t layer)
{
    for (size_t i = 0; i < json_array_size(row->layers); i++) {
        const json_t *range = json_array_get(row->layers, i);
        if (layer >= json_integer_at(range, "[0]") &&
            layer <= json_integer_at(range, "[1]")) {
            return true;
        }
    }
    return false;
}

/* Experts that lie in one tensor are its first dimension. */
static bool same_shape(const struct row *row, const struct rf_family *family)
{
    const uint32_t skip = family->stacked ? 1 : 0;
    bool same = json_array_size(row->shape) == skip + family->ndim;
    for (uint32_t i = 0; same && i < skip + family->ndim; i++) {
        uint64_t size = i < skip ? family->n_experts : family->shape[i - skip];
        same =
            (uint64_t)json_integer_value(json_array_get(row->shape, i)) == size;
    }
    return same;
}

/* Experts that are tensors of their own; 0: none. */
static uint32_t own_experts(const struct rf_family *family)
{
    return family->has_experts && !family->stacked ? family->n_experts : 0;
}

/* The row that has this family's tensors of this layer, NULL: none. */
static struct row *find_row(const struct fixture *fixture,
                            const struct rf_family *family, uint32_t index)
{
    for (size_t i = 0; i < fixture->n; i++) {
        struct row *row = &fixture->rows[i];
        if (strcmp(row->name, family->name) == 0 && same_shape(row, family) &&
            row->experts == own_experts(family) &&
            (family->layers == NULL ? row->layers == NULL
                                    : has_layer(row, family->layers[index]))) {
            return row;
        }
    }
    return NULL;
}

static void take_family(const struct fixture *fixture,
                        const struct rf_family *family)
{
    char shape[RF_SHAPE_TEXT_SIZE];
    rf_shape_text(family->shape, family->ndim, shape);
    for (uint32_t i = 0; i < family->n_layers; i++) {
        uint32_t layer = family->layers != NULL ? family->layers[i] : 0;
        struct row *row = find_row(fixture, family, i);
        ck_assert_msg(row != NULL, "%s: no %s %s in layer %u of Transformers'",
                      fixture->name, family->name, shape, layer);
        ck_assert_uint_lt(layer, MAX_LAYERS);
        ck_assert_msg(!row->seen[layer], "%s: %s twice in layer %u",
                      fixture->name, family->name, layer);
        row->seen[layer] = true;
    }
}

static void assert_all_seen(const struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->n; i++) {
        const struct row *row = &fixture->rows[i];
        for (uint32_t layer = 0; layer < MAX_LAYERS; layer++) {
            bool wanted =
                row->layers == NULL ? layer == 0 : has_layer(row, layer);
            if (row->seen[layer] != wanted) { /* cheaper than ck_assert */
                ck_abort_msg("%s: lacks %s in layer %u", fixture->name,
                             row->name, layer);
            }
        }
    }
}

static uint64_t total(const struct fixture *fixture, const char *what)
{
    return (uint64_t)json_integer_value(json_object_get(fixture->json, what));
}

static void take_all(const struct fixture *fixture)
{
    for (uint32_t i = 0; i < fixture->model->n_families; i++) {
        take_family(fixture, &fixture->model->families[i]);
        ck_assert_msg(fixture->model->families[i].role != RF_ROLE_OTHER,
                      "%s: %s has no role", fixture->name,
                      fixture->model->families[i].name);
    }
    assert_all_seen(fixture);
}

static const char *const parts[] = {"vision", "mtp"};

TEST(test_families_have_fixtures)
{
    ck_assert_uint_ge(n_fixtures(DEFAULT), 42);
    ck_assert_uint_eq(n_fixtures(LAST), n_fixtures(DEFAULT));
    ck_assert_uint_eq(n_fixtures(ANY), n_fixtures(DEFAULT) + n_fixtures(SMALL));
}

LOOP_TEST(test_families_with_parts_are_those_of_a_checkpoint,
          RF_ARRAY_SIZE(parts))
{
    const int n = (int)n_fixtures(ANY);
    unsigned found = 0;
    for (int i = 0; i < n; i++) {
        struct fixture fixture;
        if (open_part(&fixture, ANY, i, parts[_i])) {
            take_all(&fixture);
            close_fixture(&fixture);
            found++;
        }
    }
    ck_assert_uint_ge(found, 11);
}

LOOP_TEST(test_families_are_those_of_a_checkpoint, n_fixtures(ANY))
{
    struct fixture fixture;
    open_fixture(&fixture, ANY, _i);
    take_all(&fixture);
    ck_assert_uint_eq(fixture.model->n_tensors, total(&fixture, "tensors"));
    ck_assert_uint_eq(fixture.model->parameters, total(&fixture, "parameters"));
    close_fixture(&fixture);
}

/* The first configuration of a family is its class's own but for these keys;
 * NULL: Transformers has no class of that model type. */
static const struct {
    const char *fixture, *key;
} not_the_default[] = {
    {"hunyuan_v1_moe-1.json", "num_experts"},
    {"kimi_k3-1.json", NULL},
    {"nemotron_nas-1.json", NULL},
};

static bool is_default(const struct fixture *fixture, const char *key)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_the_default); i++) {
        const char *other = not_the_default[i].key;
        if (strcmp(not_the_default[i].fixture, fixture->name) == 0 &&
            (other == NULL || strcmp(other, key) == 0)) {
            return false;
        }
    }
    return strcmp(key, "model_type") != 0;
}

static void remove_each_key(const struct fixture *fixture, json_t *config,
                            json_t *object)
{
    json_t *whole = json_copy(object), *value;
    const char *key;
    json_object_foreach (whole, key, value) {
        json_auto_t *description = json_pack("{s:O}", "config", config);
        struct rf_jnode node = rf_jnode_root(description, fixture->name);
        struct rf_model *model = NULL;
        struct rf_err err = {0};
        if (strcmp(key, "text_config") == 0) {
            remove_each_key(fixture, config, value);
        } else if (is_default(fixture, key)) {
            json_object_del(object, key);
            ck_assert_msg(rf_model_from_json(&node, &model, &err) == RF_OK,
                          "%s without %s: %s", fixture->name, key, err.text);
            ck_assert_msg(model->parameters == fixture->model->parameters &&
                              model->n_tensors == fixture->model->n_tensors &&
                              model->bytes == fixture->model->bytes &&
                              model->heads == fixture->model->heads &&
                              model->kv_heads == fixture->model->kv_heads,
                          "%s without %s: %llu parameters, not %llu",
                          fixture->name, key,
                          (unsigned long long)model->parameters,
                          (unsigned long long)fixture->model->parameters);
            rf_model_destroy(model);
            json_object_set(object, key, value);
        }
    }
    json_decref(whole);
}

LOOP_TEST(test_families_take_the_default_of_a_key_that_is_left_out,
          n_fixtures(DEFAULT))
{
    struct fixture fixture;
    json_t *config;
    open_fixture(&fixture, DEFAULT, _i);
    config = json_object_get(fixture.json, "config");
    remove_each_key(&fixture, config, config);
    close_fixture(&fixture);
}

/* Adds the tensors of a row to a manifest, in one layer, for all experts. */
static void add_tensors(json_t *manifest, const struct row *row, uint32_t layer)
{
    struct rf_family family = {.name = (char *)(uintptr_t)row->name,
                               .layers = &layer,
                               .n_layers = 1,
                               .n_experts = RF_MAX(row->experts, 1),
                               .has_experts = row->experts > 0};
    for (uint32_t e = 0; e < family.n_experts; e++) {
        char name[256];
        rf_family_tensor_name(&family, 0, e, name, sizeof(name));
        json_object_set_new(
            manifest, name,
            json_pack("{s:O, s:s}", "shape", row->shape, "dtype", "BF16"));
    }
}

static json_t *manifest_of(const struct fixture *fixture)
{
    json_t *manifest = json_object();
    for (size_t i = 0; i < fixture->n; i++) {
        const struct row *row = &fixture->rows[i];
        for (uint32_t layer = 0; layer < MAX_LAYERS; layer++) {
            if (row->layers == NULL ? layer == 0 : has_layer(row, layer)) {
                add_tensors(manifest, row, layer);
            }
        }
    }
    return manifest;
}

static const struct rf_family *find_family(const struct rf_model *model,
                                           const struct rf_family *like)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (strcmp(family->name, like->name) == 0 &&
            family->component == like->component &&
            family->ndim == like->ndim &&
            memcmp(family->shape, like->shape, sizeof(like->shape)) == 0) {
            return family;
        }
    }
    return NULL;
}

/* The model of a list of the fixture's tensors, with a part of it or not. */
static void check_roles(const struct fixture *fixture, const char *part)
{
    struct rf_err err = {0};
    AUTO(rf_model) *checkpoint = NULL;
    json_auto_t *description = description_of(fixture, part);
    struct rf_jnode node = rf_jnode_root(description, fixture->name);
    json_object_set_new(description, "manifest", manifest_of(fixture));
    ck_assert_msg(rf_model_from_json(&node, &checkpoint, &err) == RF_OK,
                  "%s: %s", fixture->name, err.text);
    ck_assert_uint_eq(checkpoint->n_tensors, fixture->model->n_tensors);
    ck_assert_uint_eq(checkpoint->parameters, fixture->model->parameters);
    for (uint32_t i = 0; i < checkpoint->n_families; i++) {
        const struct rf_family *family = &checkpoint->families[i];
        const struct rf_family *other = find_family(fixture->model, family);
        ck_assert_msg(
            other != NULL && family->n_parts == other->n_parts &&
                family->stacked == other->stacked &&
                family->transposed == other->transposed &&
                family->keys_are_values == other->keys_are_values &&
                memcmp(family->grain, other->grain, sizeof(family->grain)) ==
                    0 &&
                family->stage == other->stage &&
                family->component == other->component &&
                memcmp(family->parts, other->parts, sizeof(family->parts)) == 0,
            "%s: %s is something else in a checkpoint", fixture->name,
            family->name);
    }
}

LOOP_TEST(test_families_of_a_checkpoint_have_the_same_roles, n_fixtures(SMALL))
{
    struct fixture fixture;
    open_fixture(&fixture, SMALL, _i);
    check_roles(&fixture, NULL);
    close_fixture(&fixture);
}

LOOP_TEST(test_families_of_a_checkpoint_have_the_same_parts, n_fixtures(SMALL))
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        struct fixture fixture;
        if (open_part(&fixture, SMALL, _i, parts[i])) {
            check_roles(&fixture, parts[i]);
            close_fixture(&fixture);
        }
    }
}

/* Tensors of parts that are not chosen are left out by name. */
LOOP_TEST(test_families_leave_parts_of_a_checkpoint_out, n_fixtures(LAST))
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        struct fixture fixture, without;
        struct rf_err err = {0};
        AUTO(rf_model) *model = NULL;
        struct rf_jnode node;
        json_auto_t *description = NULL;
        if (!open_part(&fixture, LAST, _i, parts[i])) {
            continue;
        }
        open_fixture(&without, LAST, _i);
        description = description_of(&fixture, NULL);
        json_object_set_new(description, "manifest", manifest_of(&fixture));
        node = rf_jnode_root(description, fixture.name);
        assert_ok(rf_model_from_json(&node, &model, &err), err);
        ck_assert_uint_eq(model->n_tensors, without.model->n_tensors);
        ck_assert_uint_ge(model->n_not_counted, 1);
        close_fixture(&without);
        close_fixture(&fixture);
    }
}

/* What matters of the config.json of published checkpoints, some with fewer
 * layers, and how many parameters these or Transformers say they have: an older
 * one wrote what differs from its defaults only, and remote code has names of
 * its own. */
static const struct {
    const char *config;
    uint64_t parameters;
    uint64_t with_mtp; /* counted by hand; 0: no such layers */
} published[] = {
    {"'model_type': 'gemma3_text', 'hidden_size': 1152, 'head_dim': 256, "
     "'intermediate_size': 6912, 'num_attention_heads': 4, "
     "'num_hidden_layers': 26, 'num_key_value_heads': 1, 'vocab_size': 262144",
     999885952, 0},
    {"'model_type': 'gemma3', 'vision_config': {}, 'text_config': "
     "{'model_type': 'gemma3_text', 'hidden_size': 2560, "
     "'intermediate_size': 10240, 'num_hidden_layers': 34}",
     3880263168, 0},
    {"'model_type': 'phi3', 'hidden_size': 5120, 'intermediate_size': 17920, "
     "'num_attention_heads': 40, 'num_hidden_layers': 40, "
     "'num_key_value_heads': 10, 'vocab_size': 100352",
     14659507200, 0},
    {"'model_type': 'mistral3', 'vision_config': {}, 'text_config': "
     "{'model_type': 'mistral', 'head_dim': 128, 'hidden_size': 5120, "
     "'intermediate_size': 32768, 'num_attention_heads': 32, "
     "'num_hidden_layers': 40, 'num_key_value_heads': 8, "
     "'vocab_size': 131072}",
     23572403200, 0},
    {"'model_type': 'seed_oss', 'hidden_size': 5120, "
     "'intermediate_size': 27648, 'num_attention_heads': 80, "
     "'num_hidden_layers': 64, 'vocab_size': 155136",
     36151104512, 0},
    {"'model_type': 'qwen2_5_vl', 'vision_config': {}, 'hidden_size': 3584, "
     "'intermediate_size': 18944, 'num_attention_heads': 28, "
     "'num_hidden_layers': 28, 'num_key_value_heads': 4, "
     "'vocab_size': 152064",
     7615616512, 0},
    {"'model_type': 'mimo', 'attention_bias': true, 'head_dim': 128, "
     "'hidden_size': 4096, 'intermediate_size': 11008, "
     "'num_attention_heads': 32, 'num_hidden_layers': 36, "
     "'num_key_value_heads': 8, 'num_nextn_predict_layers': 1, "
     "'vocab_size': 151680",
     7622619136, 7833409536},
    {"'model_type': 'mimo_v2_flash', 'attention_bias': false, "
     "'hidden_size': 4096, 'intermediate_size': 16384, "
     "'moe_intermediate_size': 2048, 'n_routed_experts': 256, "
     "'num_attention_heads': 64, 'num_hidden_layers': 12, "
     "'num_key_value_heads': 4, 'head_dim': 192, 'v_head_dim': 128, "
     "'swa_num_attention_heads': 64, 'swa_num_key_value_heads': 8, "
     "'swa_head_dim': 192, 'swa_v_head_dim': 128, 'vocab_size': 152576, "
     "'hybrid_layer_pattern': [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0], "
     "'moe_layer_freq': [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "
     "'add_swa_attention_sink_bias': true, "
     "'add_full_attention_sink_bias': false",
     73446563136, 73775836544},
    {"'model_type': 'minimax_m3', 'dense_intermediate_size': 12288, "
     "'head_dim': 128, 'hidden_size': 6144, 'intermediate_size': 3072, "
     "'n_shared_experts': 1, 'num_attention_heads': 64, "
     "'num_hidden_layers': 6, 'num_key_value_heads': 4, "
     "'num_local_experts': 128, 'shared_intermediate_size': 3072, "
     "'vocab_size': 200064, 'moe_layer_freq': [0, 0, 0, 1, 1, 1], "
     "'sparse_attention_config': {'sparse_index_dim': 128, "
     "'sparse_num_index_heads': 4, "
     "'sparse_attention_freq': [0, 0, 0, 1, 1, 1]}",
     25706971776, 0},
    {"'model_type': 'step3p5', 'hidden_size': 4096, 'head_dim': 128, "
     "'intermediate_size': 11264, 'num_attention_heads': 64, "
     "'num_attention_groups': 8, 'num_hidden_layers': 5, "
     "'moe_num_experts': 288, 'moe_intermediate_size': 1280, "
     "'share_expert_dim': 1280, 'vocab_size': 128896, "
     "'moe_layers_enum': '3,4', 'attention_other_setting': "
     "{'attention_type': 'sliding_attention', 'num_attention_heads': 96}, "
     "'layer_types': ['full_attention', 'sliding_attention', "
     "'sliding_attention', 'sliding_attention', 'full_attention', "
     "'sliding_attention', 'sliding_attention', 'sliding_attention'], "
     "'num_nextn_predict_layers': 3",
     11044566848, 13472737856},
    {"'model_type': 'deepseek_ref', 'hidden_size': 4096, "
     "'num_hidden_layers': 43, 'num_attention_heads': 64, 'head_dim': 512, "
     "'vocab_size': 129280, 'moe_intermediate_size': 2048, "
     "'n_routed_experts': 256, 'num_experts_per_tok': 6, "
     "'q_lora_rank': 1024, 'o_lora_rank': 1024, 'o_groups': 8, "
     "'index_head_dim': 128, 'index_n_heads': 64, 'num_hash_layers': 3, "
     "'hc_mult': 4, 'compress_ratios': [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, "
     "4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, "
     "4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0]",
     284334567511, 0},
};

LOOP_TEST(test_families_of_published_configs_have_their_parameters,
          RF_ARRAY_SIZE(published))
{
    struct rf_model *model =
        quoted_model("{'config': {%s}}", published[_i].config);
    ck_assert_uint_eq(model->parameters, published[_i].parameters);
    rf_model_destroy(model);
    if (published[_i].with_mtp > 0) {
        model =
            quoted_model("{'mtp': true, 'config': {%s}}", published[_i].config);
        ck_assert_uint_eq(model->parameters, published[_i].with_mtp);
        rf_model_destroy(model);
    }
}

TEST(test_families_tie_embeddings_as_the_wrapper_says)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'qwen3_vl', 'tie_word_embeddings': true, "
        "'text_config': {'tie_word_embeddings': false}}}");
    ck_assert(model->tied_embeddings);
}

TEST(test_families_say_which_towers_are_left_out)
{
    AUTO(rf_model) *model =
        quoted_model("{'config': {%s}}", published[1].config);
    ck_assert_uint_eq(model->n_not_counted, 1);
    ck_assert_str_eq(model->not_counted[0], "the vision tower");
}

/* Published checkpoints have keys and values, too, of layers that take those of
 * a layer before; engines and Transformers drop them. */
TEST(test_families_leave_out_keys_and_values_that_no_layer_uses)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'gemma4_text', 'num_hidden_layers': 2, "
        "'num_kv_shared_layers': 1, 'num_attention_heads': 2, "
        "'num_key_value_heads': 1, 'head_dim': 4, 'global_head_dim': 4, "
        "'hidden_size': 8}, 'manifest': {"
        "'model.layers.0.self_attn.k_proj.weight': "
        "{'shape': [4, 8], 'dtype': 'BF16'}, "
        "'model.layers.1.self_attn.q_proj.weight': "
        "{'shape': [8, 8], 'dtype': 'BF16'}, "
        "'model.layers.1.self_attn.k_proj.weight': "
        "{'shape': [4, 8], 'dtype': 'BF16'}, "
        "'model.layers.1.self_attn.v_proj.weight': "
        "{'shape': [4, 8], 'dtype': 'BF16'}, "
        "'model.layers.1.self_attn.k_norm.weight': "
        "{'shape': [4], 'dtype': 'BF16'}}}");
    ck_assert_uint_eq(model->n_tensors, 2);
    ck_assert_uint_eq(model->n_not_counted, 3);
}

/* gpt-oss as it is published: experts in blocks of 32 numbers of four bits with
 * a scale each. */
static const struct {
    unsigned layers, experts;
    uint64_t parameters, bytes;
} packed[] = {
    {36, 128, 116829156672, 65248815744},
    {24, 32, 20914757184, 13761264768},
};

LOOP_TEST(test_families_count_values_of_packed_experts_and_all_bytes, 2)
{
    AUTO(rf_model) *model = quoted_model(
        "{'config': {'model_type': 'gpt_oss', 'hidden_size': 2880, "
        "'intermediate_size': 2880, 'num_attention_heads': 64, "
        "'num_hidden_layers': %u, 'num_local_experts': %u, "
        "'vocab_size': 201088, 'quantization_config': "
        "{'quant_method': 'mxfp4'}}}",
        packed[_i].layers, packed[_i].experts);
    ck_assert_uint_eq(model->parameters, packed[_i].parameters);
    ck_assert_uint_eq(model->bytes, packed[_i].bytes);
    ck_assert_uint_eq(model->n_not_counted, 0);
}
