/*
 * Models from a block of Megatron-LM's own argument names, for benchmarks
 * described that way: tensors get Hugging Face names. Unless the block says
 * otherwise, norms are RMSNorm, and there are no linear biases and no position
 * table; the other tensors are those of Megatron-Core's GPTModel.
 *
 * The block's defaults and rules are here; they make a config of it, from which
 * planner/families/megatron.json makes the tensors.
 */
#include "planner/families/model_megatron.h"

#include "common/mem.h"
#include "common/json_schema.h"
#include "planner/families/components.h"
#include "planner/families/family_table.h"
#include "planner/families/model_describe.h"
#include "planner/families/model_rules.h"
#include "planner/families/model_values.h"
#include "planner/model/shape_json.h"

/* The block's keys and their names in the config. */
static const struct block_field {
    const char *key, *as;
    uint64_t least, most; /* most 0: true or false */
    int64_t standard;     /* default; -1: derived from others */
    const char *needs;    /* another key, which then must be set */
} fields[] = {
#define SIZE 1, RF_MODEL_MAX_SIZE
#define HEADS 1, RF_MODEL_MAX_HEADS
#define FLAG 0, 0, 0
    {"num_layers", "num_hidden_layers", 1, RF_MODEL_MAX_LAYERS, -1, NULL},
    {"hidden_size", "hidden_size", SIZE, -1, NULL},
    {"num_attention_heads", "num_attention_heads", HEADS, -1, NULL},
    {"vocab_size", "vocab_size", SIZE, -1, NULL},
    {"kv_channels", "head_dim", HEADS, -1, NULL},
    {"ffn_hidden_size", "intermediate_size", SIZE, -1, NULL},
    {"num_query_groups", "num_key_value_heads", HEADS, -1, NULL},
    {"swiglu", "swiglu", FLAG, NULL},
    {"qk_layernorm", "qk_layernorm", FLAG, NULL},
    {"add_bias_linear", "linear_bias", FLAG, NULL},
    {"add_qkv_bias", "qkv_bias", FLAG, NULL},
    {"post_self_attn_layernorm", "attention_norm", FLAG, NULL},
    {"post_mlp_layernorm", "mlp_norm", FLAG, NULL},
    {"mtp_num_layers", "mtp_num_layers", 0, RF_MODEL_MAX_LAYERS, 0, NULL},
    {"num_experts", "num_experts", 0, RF_MODEL_MAX_EXPERTS, 0, NULL},
    {"moe_ffn_hidden_size", "moe_intermediate_size", SIZE, -1, "num_experts"},
    {"moe_shared_expert_intermediate_size", "shared_rows", 0, RF_MODEL_MAX_SIZE,
     0, "num_experts"},
    {"moe_shared_expert_gate", "shared_gate", FLAG, "num_experts"},
    {"moe_router_enable_expert_bias", "router_bias", FLAG, "num_experts"},
    {"multi_latent_attention", "latent", FLAG, NULL},
    {"q_lora_rank", "q_lora_rank", HEADS, -1, "multi_latent_attention"},
    {"kv_lora_rank", "kv_lora_rank", HEADS, 32, "multi_latent_attention"},
    {"qk_head_dim", "qk_nope_head_dim", HEADS, 128, "multi_latent_attention"},
    {"qk_pos_emb_head_dim", "qk_rope_head_dim", HEADS, 64,
     "multi_latent_attention"},
    {"v_head_dim", "v_head_dim", HEADS, 128, "multi_latent_attention"},
#undef SIZE
#undef HEADS
#undef FLAG
};

/* Keys that are read separately. */
static const char *const others[] = {
    "untie",
    "untie_embeddings_and_output_weights",
    "normalization",
    "position_embedding_type",
    "max_position_embeddings",
    "dtype",
    "moe_layer_freq",
};

#define N_KEYS (RF_ARRAY_SIZE(fields) + RF_ARRAY_SIZE(others))

static void list_keys(const char *keys[N_KEYS + 1])
{
    for (size_t i = 0; i < N_KEYS; i++) {
        keys[i] = i < RF_ARRAY_SIZE(fields) ? fields[i].key
                                            : others[i - RF_ARRAY_SIZE(fields)];
    }
    keys[N_KEYS] = NULL;
}

static enum rf_status need_all(const struct rf_jnode *block, struct rf_err *err)
{
    static const char *const needed[] = {"num_layers", "hidden_size",
                                         "num_attention_heads", "vocab_size"};
    const char *keys[N_KEYS + 1];
    list_keys(keys);
    RF_TRY(rf_jnode_check_keys(block, keys, err));
    for (unsigned i = 0; i < RF_ARRAY_SIZE(needed); i++) {
        RF_TRY(rf_jnode_require(block, needed[i], err));
    }
    return RF_OK;
}

/* The block with overrides: keys beside it replace its own, as beside a config.
 * The caller frees `value`. */
static struct rf_jnode overridden(const struct rf_jnode *model)
{
    struct rf_jnode block = rf_jnode_get(model, "megatron");
    const char *keys[N_KEYS + 1];
    list_keys(keys);
    block.value = json_deep_copy(block.value);
    for (size_t i = 0; i < N_KEYS && json_is_object(block.value); i++) {
        json_t *beside = json_object_get(model->value, keys[i]);
        if (beside != NULL) {
            json_object_set(block.value, keys[i], beside);
        }
    }
    return block;
}

static enum rf_status check_keys(const struct rf_jnode *model,
                                 struct rf_err *err)
{
    const char *keys[N_KEYS + 4] = {"megatron", "name", "unknown_tensors"};
    list_keys(keys + 3);
    return rf_jnode_check_keys(model, keys, err);
}

static bool is_set(const struct rf_jnode *block, const char *key)
{
    const json_t *value = json_object_get(block->value, key);
    return json_is_true(value) || json_integer_value(value) > 0;
}

static enum rf_status check_need(const struct rf_jnode *block, const char *key,
                                 const char *needs, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(block, key);
    return needs == NULL || member.value == NULL || is_set(block, needs)
               ? RF_OK
               : rf_jnode_fail(&member, err, "needs %s", needs);
}

static enum rf_status read_field(const struct rf_jnode *block,
                                 const struct block_field *field,
                                 json_t *config, struct rf_err *err)
{
    uint64_t number = (uint64_t)field->standard;
    bool flag = false;
    if (field->most == 0) {
        RF_TRY(rf_jnode_bool(block, field->key, &flag, err));
        json_object_set_new(config, field->as, json_boolean(flag));
    } else {
        RF_TRY(rf_jnode_u64(block, field->key, field->least, field->most,
                            &number, err));
        if (number <= INT64_MAX) {
            json_object_set_new(config, field->as,
                                json_integer((json_int_t)number));
        }
    }
    return check_need(block, field->key, field->needs, err);
}

static uint64_t get(const json_t *config, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(config, key));
}

/* Sets a key that the block leaves open. */
static void otherwise(json_t *config, const char *key, uint64_t value)
{
    if (json_object_get(config, key) == NULL) {
        json_object_set_new(config, key, json_integer((json_int_t)value));
    }
}

/* Derives sizes from others. */
static enum rf_status complete(const struct rf_jnode *block, json_t *config,
                               struct rf_err *err)
{
    const uint64_t hidden = get(config, "hidden_size");
    const uint64_t heads = get(config, "num_attention_heads");
    if (json_object_get(config, "head_dim") == NULL &&
        (hidden % heads != 0 || hidden / heads > RF_MODEL_MAX_HEADS)) {
        return rf_jnode_fail(block, err,
                             "without kv_channels, hidden_size must be a "
                             "multiple of num_attention_heads");
    }
    otherwise(config, "head_dim", hidden / heads);
    otherwise(config, "num_key_value_heads", heads);
    otherwise(config, "intermediate_size",
              is_set(block, "swiglu") ? RF_MAX(8 * hidden / 3 / 64 * 64, 1)
                                      : 4 * hidden);
    otherwise(config, "moe_intermediate_size",
              get(config, "intermediate_size"));
    if (json_object_get(config, "q_lora_rank") == NULL) {
        json_object_set_new(config, "q_lora_rank", json_null());
    }
    return heads % get(config, "num_key_value_heads") == 0
               ? RF_OK
               : rf_jnode_fail(block, err,
                               "num_attention_heads must be a multiple of "
                               "num_query_groups");
}

static const char *const norms[] = {"RMSNorm", "LayerNorm", NULL};
static const char *const kinds[] = {
    "rope", "mrope", "yarn", "none", "learned_absolute", NULL};

/* Norms, and the position table. */
static enum rf_status read_variant(const struct rf_jnode *block, json_t *config,
                                   struct rf_err *err)
{
    struct rf_jnode rows = rf_jnode_get(block, "max_position_embeddings");
    const struct block_field positions = {"max_position_embeddings",
                                          "max_position_embeddings",
                                          1,
                                          RF_MODEL_MAX_SIZE,
                                          -1,
                                          NULL};
    unsigned norm = 0, kind = 0;
    RF_TRY(rf_jnode_choice(block, "normalization", norms, &norm, err));
    RF_TRY(
        rf_jnode_choice(block, "position_embedding_type", kinds, &kind, err));
    const bool learned = kind == 4;
    json_object_set_new(config, "layernorm", json_boolean(norm == 1));
    json_object_set_new(config, "learned_positions", json_boolean(learned));
    if (learned) {
        RF_TRY(rf_jnode_require(block, positions.key, err));
        return read_field(block, &positions, config, err);
    }
    return rows.value == NULL ? RF_OK
                              : rf_jnode_fail(&rows, err,
                                              "needs position_embedding_type "
                                              "\"learned_absolute\"");
}

static enum rf_status read_untied(const struct rf_jnode *block, json_t *config,
                                  struct rf_err *err)
{
    bool untie = false, untie_long = false;
    RF_TRY(rf_jnode_bool(block, "untie", &untie, err));
    RF_TRY(rf_jnode_bool(block, "untie_embeddings_and_output_weights",
                         &untie_long, err));
    json_object_set_new(config, "tie_word_embeddings",
                        json_boolean(!untie && !untie_long));
    return RF_OK;
}

/* The layers with experts. An integer N: every N-th, from the first; or a list
 * of 0 (dense) or 1 per layer. */
static enum rf_status read_layer_freq(const struct rf_jnode *block,
                                      json_t *config, struct rf_err *err)
{
    struct rf_jnode freq = rf_jnode_get(block, "moe_layer_freq");
    const uint64_t layers = get(config, "num_hidden_layers");
    json_t *sparse = json_array();
    uint32_t every = 1;
    json_object_set_new(config, "sparse_layers", sparse);
    RF_TRY(check_need(block, "moe_layer_freq", "num_experts", err));
    if (!json_is_array(freq.value)) {
        RF_TRY(rf_jnode_u32(block, "moe_layer_freq", 1, RF_MODEL_MAX_LAYERS,
                            &every, err));
        for (uint64_t i = 0; i < layers; i++) {
            json_array_append_new(sparse, json_boolean(i % every == 0));
        }
        return RF_OK;
    }
    if (json_array_size(freq.value) != layers) {
        return rf_jnode_fail(&freq, err,
                             "must have an entry for each of the %u layers",
                             (unsigned)layers);
    }
    for (size_t i = 0; i < layers; i++) {
        struct rf_jnode item = rf_jnode_at(&freq, i);
        json_int_t flag = json_integer_value(item.value);
        if (!json_is_integer(item.value) || flag < 0 || flag > 1) {
            return rf_jnode_wrong(&item, err, "must be 0 (dense) or 1");
        }
        json_array_append_new(sparse, json_boolean(flag == 1));
    }
    return RF_OK;
}

/* Translates the block into a config for its table. */
static enum rf_status read_block(const struct rf_jnode *block, json_t *config,
                                 struct rf_err *err)
{
    RF_TRY(need_all(block, err));
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        RF_TRY(read_field(block, &fields[i], config, err));
    }
    RF_TRY(complete(block, config, err));
    RF_TRY(read_variant(block, config, err));
    RF_TRY(read_untied(block, config, err));
    json_object_set_new(
        config, "latent_norm",
        json_boolean(rf_jnode_get(block, "qk_layernorm").value == NULL ||
                     is_set(block, "qk_layernorm")));
    return read_layer_freq(block, config, err);
}

/* Adds the config's tensors; errors point at `where`. */
static enum rf_status build(json_t *config, const struct rf_jnode *where,
                            struct rf_model *model, struct rf_err *err)
{
    json_t *description = json_pack("{s:O, s:b}", "config", config, "mtp",
                                    (int)(get(config, "mtp_num_layers") > 0));
    struct rf_components components;
    struct rf_jnode node = rf_jnode_root(description, "megatron");
    struct rf_family_table *table = NULL;
    struct rf_values values;
    enum rf_status status =
        rf_family_table_named("megatron block", &table, err);
    RF_THEN(status, rf_components_read(&node, &components, err));
    RF_THEN(status, rf_components_add(table, &components, err));
    rf_values_init(&values, &node, table);
    model->n_layers = (uint32_t)get(config, "num_hidden_layers");
    RF_THEN(status, rf_model_add_rules(model, &values, where, err));
    RF_THEN(status, rf_model_describe(model, &values, where, false, err));
    rf_values_free(&values);
    rf_family_table_destroy(table);
    json_decref(description);
    return status;
}

enum rf_status rf_model_read_megatron(const struct rf_jnode *node,
                                      struct rf_model *model,
                                      struct rf_err *err)
{
    struct rf_jnode block = overridden(node);
    json_t *config = json_object();
    const char *name = "megatron";
    enum rf_status status = check_keys(node, err);
    model->dtype = RF_BF16;
    RF_THEN(status, rf_jnode_string(node, "name", &name, err));
    RF_THEN(status, rf_dtype_from_json(&block, "dtype", &model->dtype, err));
    RF_THEN(status, read_block(&block, config, err));
    if (status == RF_OK) {
        model->name = rf_xstrdup(name);
        model->model_type = rf_xstrdup("megatron");
        status = build(config, &block, model, err);
    }
    json_decref(config);
    json_decref(block.value);
    return status;
}

void rf_model_megatron_add_schemas(json_t *object)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        rf_json_schema_add(
            object, fields[i].key,
            fields[i].most == 0
                ? rf_json_schema_type("boolean")
                : rf_json_schema_integer(fields[i].least, fields[i].most));
    }
    rf_json_schema_add(object, "untie", rf_json_schema_type("boolean"));
    rf_json_schema_add(object, "untie_embeddings_and_output_weights",
                       rf_json_schema_type("boolean"));
    rf_json_schema_add(object, "normalization", rf_json_schema_words(norms));
    rf_json_schema_add(object, "position_embedding_type",
                       rf_json_schema_words(kinds));
    rf_json_schema_add(object, "max_position_embeddings",
                       rf_json_schema_integer(1, RF_MODEL_MAX_SIZE));
    rf_json_schema_add(object, "dtype", rf_dtype_schema(true));
    rf_json_schema_add(
        object, "moe_layer_freq",
        rf_json_schema_either(rf_json_schema_integer(1, RF_MODEL_MAX_LAYERS),
                              rf_json_schema_list(rf_json_schema_integer(0, 1),
                                                  1, RF_MODEL_MAX_LAYERS)));
}
