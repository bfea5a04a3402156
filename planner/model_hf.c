/*
 * Models from a Hugging Face config.json, with overrides beside it.
 *
 * A field is looked up among the overrides first, then in the config; JSON null
 * counts as absent, as transformers writes it. Unknown keys of the config are
 * ignored (it holds much that no weight depends on); an override that the model
 * type does not use is an error, since it would silently do nothing.
 */
#include "planner/model_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"

enum kind {
    KIND_LLAMA,
    KIND_QWEN2,
    KIND_QWEN3,
    KIND_QWEN3_MOE,
    KIND_MIXTRAL,
    KIND_DEEPSEEK_V3,
    KIND_COUNT,
};

static const struct {
    const char *model_type;
    enum kind kind;
} model_types[] = {
    {"llama", KIND_LLAMA},         {"qwen2", KIND_QWEN2},
    {"qwen3", KIND_QWEN3},         {"qwen3_moe", KIND_QWEN3_MOE},
    {"mixtral", KIND_MIXTRAL},     {"deepseek_v3", KIND_DEEPSEEK_V3},
    {"kimi_k2", KIND_DEEPSEEK_V3},
};

/* transformers' defaults that differ by model type; 0: as the function that
 * reads the field says. */
static const struct {
    uint32_t kv_heads;
    uint64_t head_dim;
} defaults[KIND_COUNT] = {
    [KIND_QWEN2] = {.kv_heads = 32},
    [KIND_QWEN3] = {.kv_heads = 32, .head_dim = 128},
    [KIND_QWEN3_MOE] = {.kv_heads = 4},
    [KIND_MIXTRAL] = {.kv_heads = 8},
};

#define MAX_NAMES 4

/* All spellings of a field, in the config and among the overrides. */
struct field {
    const char *names[MAX_NAMES];
};

static const struct field field_layers = {{"num_hidden_layers", "num_layers"}};
static const struct field field_dtype = {{"dtype", "torch_dtype"}};
static const struct field field_vocab = {{"vocab_size"}};
static const struct field field_hidden = {{"hidden_size"}};
static const struct field field_ffn = {{"intermediate_size"}};
static const struct field field_heads = {{"num_attention_heads"}};
static const struct field field_kv_heads = {{"num_key_value_heads"}};
static const struct field field_head_dim = {{"head_dim"}};
static const struct field field_tied = {{"tie_word_embeddings"}};
static const struct field field_experts = {
    {"num_experts", "n_routed_experts", "num_local_experts"}};
static const struct field field_moe_ffn = {{"moe_intermediate_size"}};
static const struct field field_n_shared = {{"n_shared_experts"}};
static const struct field field_first_dense = {{"first_k_dense_replace"}};
static const struct field field_kv_lora = {{"kv_lora_rank"}};
static const struct field field_q_lora = {{"q_lora_rank"}};
static const struct field field_nope = {{"qk_nope_head_dim"}};
static const struct field field_rope = {{"qk_rope_head_dim"}};
static const struct field field_v_dim = {{"v_head_dim"}};
/* Only in the config: */
static const struct field field_attention_bias = {{"attention_bias"}};
static const struct field field_mlp_bias = {{"mlp_bias"}};
static const struct field field_sparse_step = {{"decoder_sparse_step"}};
static const struct field field_moe_freq = {{"moe_layer_freq"}};
static const struct field field_topk_method = {{"topk_method"}};

/* Fields that may be overridden, as a name lists them. */
static const struct field *const overridable[] = {
    &field_layers,      &field_dtype,   &field_vocab,    &field_hidden,
    &field_ffn,         &field_heads,   &field_kv_heads, &field_head_dim,
    &field_tied,        &field_experts, &field_moe_ffn,  &field_n_shared,
    &field_first_dense, &field_kv_lora, &field_q_lora,   &field_nope,
    &field_rope,        &field_v_dim,
};

/* Keys beside "config" that override nothing. */
static const char *const other_keys[] = {"config", "name", "unknown_tensors"};

#define MAX_KEYS                                                               \
    (RF_ARRAY_SIZE(other_keys) + RF_ARRAY_SIZE(overridable) * MAX_NAMES)

/* All keys that may stand there, ending with NULL. */
static void list_keys(const char *out[MAX_KEYS + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < RF_ARRAY_SIZE(other_keys); i++) {
        out[n++] = other_keys[i];
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(overridable); i++) {
        for (size_t j = 0; j < MAX_NAMES && overridable[i]->names[j] != NULL;
             j++) {
            out[n++] = overridable[i]->names[j];
        }
    }
    out[n] = NULL;
}

/* The field's value in an object and the name it has there; NULL: none. */
static const json_t *field_value(const json_t *object,
                                 const struct field *field, const char **name)
{
    for (unsigned i = 0; i < MAX_NAMES && field->names[i] != NULL; i++) {
        const json_t *value = json_object_get(object, field->names[i]);
        if (value != NULL && !json_is_null(value)) {
            *name = field->names[i];
            return value;
        }
    }
    return NULL;
}

/* "num_layers 2"; NULL where nothing is changed. Freed with free(). */
static char *override_text(const json_t *model, const struct field *field)
{
    const char *name = NULL, *config_name, *text;
    const json_t *value = field_value(model, field, &name);
    const json_t *old =
        field_value(json_object_get(model, "config"), field, &config_name);
    char number[24];
    if (value == NULL || json_equal(value, old)) {
        return NULL;
    }
    snprintf(number, sizeof(number), "%lld",
             (long long)json_integer_value(value));
    text = json_is_string(value)    ? json_string_value(value)
           : json_is_boolean(value) ? json_is_true(value) ? "true" : "false"
                                    : number;
    return rf_xasprintf("%s %.*s", name, rf_text_head(text, 32), text);
}

char *rf_model_config_name(const char *base, const json_t *model)
{
    char *name = rf_xasprintf("%.*s", rf_text_head(base, 160), base);
    bool any = false;
    for (size_t i = 0; i < RF_ARRAY_SIZE(overridable); i++) {
        char *text = override_text(model, overridable[i]), *old = name;
        if (text != NULL) {
            name = rf_xasprintf("%s%s%s", old, any ? ", " : " (", text);
            any = true;
            free(old);
            free(text);
        }
    }
    if (any) {
        char *open = name;
        name = rf_xasprintf("%s)", open);
        free(open);
    }
    return name;
}

struct source {
    struct rf_jnode config, overrides;
    const char *used[MAX_KEYS]; /* overrides looked up */
    size_t n_used;
    struct rf_err *err;
    enum rf_status status; /* the first error; later reads do nothing */
};

/* Where the field is and under which of its names; NULL: nowhere. */
static const struct rf_jnode *
locate(struct source *source, const struct field *field, const char **name)
{
    const struct rf_jnode *found = NULL;
    for (unsigned i = 0; i < MAX_NAMES && field->names[i] != NULL; i++) {
        if (json_object_get(source->overrides.value, field->names[i]) == NULL) {
            continue;
        }
        if (found != NULL) {
            source->status =
                rf_jnode_fail(&source->overrides, source->err,
                              "\"%s\" and \"%s\" are the same override", *name,
                              field->names[i]);
            return NULL;
        }
        found = &source->overrides;
        *name = field->names[i];
        source->used[source->n_used++] = *name;
    }
    if (found == NULL &&
        field_value(source->config.value, field, name) != NULL) {
        found = &source->config;
    }
    return found;
}

static uint64_t read_u64(struct source *source, const struct field *field,
                         uint64_t min, uint64_t max, uint64_t fallback)
{
    const char *name = field->names[0];
    const struct rf_jnode *where;
    if (source->status != RF_OK) {
        return fallback;
    }
    where = locate(source, field, &name);
    if (where != NULL && source->status == RF_OK) {
        source->status =
            rf_jnode_u64(where, name, min, max, &fallback, source->err);
    }
    return fallback;
}

static uint32_t read_u32(struct source *source, const struct field *field,
                         uint32_t min, uint32_t max, uint32_t fallback)
{
    return (uint32_t)read_u64(source, field, min, max, fallback);
}

/* A field without a sensible default. Never 0, so that it can divide. */
static uint64_t need_u64(struct source *source, const struct field *field,
                         uint64_t max)
{
    uint64_t value = read_u64(source, field, 1, max, 0);
    if (value == 0 && source->status == RF_OK) {
        source->status = rf_jnode_fail(&source->config, source->err,
                                       "\"%s\" is missing", field->names[0]);
    }
    return RF_MAX(value, 1);
}

static bool read_bool(struct source *source, const struct field *field,
                      bool fallback)
{
    const char *name = field->names[0];
    const struct rf_jnode *where;
    if (source->status != RF_OK) {
        return fallback;
    }
    where = locate(source, field, &name);
    if (where != NULL && source->status == RF_OK) {
        source->status = rf_jnode_bool(where, name, &fallback, source->err);
    }
    return fallback;
}

static enum rf_dtype read_dtype(struct source *source)
{
    enum rf_dtype dtype = RF_BF16;
    const char *name = NULL;
    const struct rf_jnode *where;
    if (source->status != RF_OK) {
        return dtype;
    }
    where = locate(source, &field_dtype, &name);
    if (where != NULL && source->status == RF_OK) {
        source->status = rf_dtype_from_json(where, name, &dtype, source->err);
    }
    return dtype;
}

static void fail(struct source *source, const char *text)
{
    if (source->status == RF_OK) {
        source->status =
            rf_jnode_fail(&source->config, source->err, "%s", text);
    }
}

/* Heads and their size of ordinary (not latent) attention. */
static void read_heads(struct source *source, enum kind kind,
                       struct rf_transformer *t)
{
    uint32_t kv_heads =
        defaults[kind].kv_heads != 0 ? defaults[kind].kv_heads : t->heads;
    t->kv_heads =
        read_u32(source, &field_kv_heads, 1, RF_MODEL_MAX_HEADS, kv_heads);
    t->head_dim = read_u64(source, &field_head_dim, 1, RF_MODEL_MAX_HEADS,
                           defaults[kind].head_dim);
    if (source->status != RF_OK) {
        return;
    }
    if (t->heads % t->kv_heads != 0) {
        fail(source, "num_attention_heads must be a multiple of "
                     "num_key_value_heads");
    }
    if (t->head_dim == 0) {
        t->head_dim = t->hidden / t->heads;
        if (t->hidden % t->heads != 0 || t->head_dim > RF_MODEL_MAX_HEADS) {
            fail(source, "without head_dim, hidden_size must be a multiple of "
                         "num_attention_heads");
        }
    }
}

static void read_latent(struct source *source, struct rf_transformer *t)
{
    const uint64_t max = RF_MODEL_MAX_HEADS;
    t->mla = true;
    t->mla_bias = read_bool(source, &field_attention_bias, false);
    t->kv_lora = need_u64(source, &field_kv_lora, max);
    t->q_lora = read_u64(source, &field_q_lora, 1, max, 0);
    t->nope_dim = need_u64(source, &field_nope, max);
    t->rope_dim = need_u64(source, &field_rope, max);
    t->v_dim = need_u64(source, &field_v_dim, max);
}

/* Marks qwen3_moe's layers: every decoder_sparse_step-th, except those that
 * mlp_only_layers lists. */
static void mark_qwen_layers(struct source *source, struct rf_transformer *t)
{
    struct rf_jnode dense = rf_jnode_get(&source->config, "mlp_only_layers");
    uint32_t step =
        read_u32(source, &field_sparse_step, 1, RF_MODEL_MAX_LAYERS, 1);
    for (uint32_t i = 0; i < t->layers; i++) {
        t->sparse[i] = t->experts > 0 && (i + 1) % step == 0;
    }
    if (dense.value == NULL || json_is_null(dense.value)) {
        return;
    }
    if (!json_is_array(dense.value)) {
        fail(source, "mlp_only_layers must be an array of layer numbers");
        return;
    }
    for (size_t i = 0; i < json_array_size(dense.value); i++) {
        const json_t *layer = json_array_get(dense.value, i);
        json_int_t number = json_integer_value(layer);
        if (!json_is_integer(layer) || number < 0) {
            fail(source, "mlp_only_layers must be an array of layer numbers");
        } else if (number < t->layers) { /* an override may lower layers */
            t->sparse[number] = false;
        }
    }
}

static void mark_deepseek_layers(struct source *source,
                                 struct rf_transformer *t)
{
    uint32_t first =
        read_u32(source, &field_first_dense, 0, RF_MODEL_MAX_LAYERS, 3);
    uint32_t every =
        read_u32(source, &field_moe_freq, 1, RF_MODEL_MAX_LAYERS, 1);
    for (uint32_t i = 0; i < t->layers; i++) {
        t->sparse[i] = t->experts > 0 && i >= first && i % every == 0;
    }
}

/* deepseek_v3's router has a correction bias unless another way of choosing
 * experts is named. */
static bool has_router_bias(struct source *source)
{
    const char *method = "noaux_tc";
    const char *name = NULL;
    const struct rf_jnode *where = locate(source, &field_topk_method, &name);
    if (where != NULL && source->status == RF_OK) {
        source->status = rf_jnode_string(where, name, &method, source->err);
    }
    return strcmp(method, "noaux_tc") == 0;
}

static void read_experts(struct source *source, enum kind kind,
                         struct rf_transformer *t)
{
    const uint32_t max = RF_MODEL_MAX_EXPERTS;
    t->experts = read_u32(source, &field_experts, 0, max, UINT32_MAX);
    if (t->experts == UINT32_MAX) {
        fail(source, kind == KIND_MIXTRAL ? "\"num_local_experts\" is missing"
                     : kind == KIND_QWEN3_MOE
                         ? "\"num_experts\" is missing"
                         : "\"n_routed_experts\" is missing");
        return;
    }
    if (kind == KIND_MIXTRAL) {
        t->mixtral_names = true;
        t->moe_ffn = t->ffn;
        for (uint32_t i = 0; i < t->layers; i++) {
            t->sparse[i] = true;
        }
        if (t->experts == 0) {
            fail(source, "a mixtral model needs experts");
        }
        return;
    }
    t->moe_ffn = need_u64(source, &field_moe_ffn, RF_MODEL_MAX_SIZE);
    if (kind == KIND_QWEN3_MOE) {
        mark_qwen_layers(source, t);
        return;
    }
    t->shared_ffn = t->moe_ffn * read_u64(source, &field_n_shared, 0, max, 0);
    mark_deepseek_layers(source, t);
    t->router_bias = has_router_bias(source);
}

static void read_transformer(struct source *source, enum kind kind,
                             struct rf_transformer *t)
{
    bool bias;
    t->gated = true;
    t->layers = (uint32_t)need_u64(source, &field_layers, RF_MODEL_MAX_LAYERS);
    t->hidden = need_u64(source, &field_hidden, RF_MODEL_MAX_SIZE);
    t->vocab = need_u64(source, &field_vocab, RF_MODEL_MAX_SIZE);
    t->heads = (uint32_t)need_u64(source, &field_heads, RF_MODEL_MAX_HEADS);
    t->ffn = need_u64(source, &field_ffn, RF_MODEL_MAX_SIZE);
    t->tied = read_bool(source, &field_tied, false);
    t->dtype = read_dtype(source);
    if (source->status != RF_OK) {
        return;
    }
    if (kind == KIND_DEEPSEEK_V3) {
        read_latent(source, t);
    } else {
        read_heads(source, kind, t);
    }
    t->qk_norm = kind == KIND_QWEN3 || kind == KIND_QWEN3_MOE;
    if (kind == KIND_QWEN2) {
        t->qkv_bias = true;
    } else if (kind == KIND_LLAMA || t->qk_norm) {
        bias = read_bool(source, &field_attention_bias, false);
        t->qkv_bias = bias;
        t->o_bias = bias;
    }
    t->mlp_bias =
        kind == KIND_LLAMA && read_bool(source, &field_mlp_bias, false);
    if (kind >= KIND_QWEN3_MOE) {
        t->sparse = rf_xcalloc(t->layers, sizeof(*t->sparse));
        read_experts(source, kind, t);
    }
}

static enum rf_status unknown_type(const struct rf_jnode *node,
                                   const char *model_type, struct rf_err *err)
{
    const char *names[RF_ARRAY_SIZE(model_types) + 1] = {NULL}, *nearest;
    char known[512] = "";
    for (unsigned i = 0; i < RF_ARRAY_SIZE(model_types); i++) {
        size_t used = strlen(known);
        names[i] = model_types[i].model_type;
        snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
                 names[i]);
    }
    nearest = rf_nearest_word(model_type, names);
    return rf_jnode_fail(node, err,
                         "\"%.40s\" is not a known model type%s%s%s; known: "
                         "%s; describe any other model by \"checkpoint\", "
                         "\"manifest\" or \"megatron\" instead of \"config\"",
                         model_type, nearest ? " (did you mean \"" : "",
                         nearest ? nearest : "", nearest ? "\"?)" : "", known);
}

static enum rf_status read_kind(const struct rf_jnode *config, enum kind *kind,
                                const char **model_type, struct rf_err *err)
{
    enum rf_status status = rf_jnode_require(config, "model_type", err);
    struct rf_jnode node = rf_jnode_get(config, "model_type");
    if (status != RF_OK ||
        (status = rf_jnode_string(config, "model_type", model_type, err)) !=
            RF_OK) {
        return status;
    }
    for (unsigned i = 0; i < RF_ARRAY_SIZE(model_types); i++) {
        if (strcmp(*model_type, model_types[i].model_type) == 0) {
            *kind = model_types[i].kind;
            return RF_OK;
        }
    }
    return unknown_type(&node, *model_type, err);
}

static void check_overrides_used(struct source *source, const char *model_type)
{
    const char *key;
    json_t *value;
    if (source->status != RF_OK) {
        return;
    }
    json_object_foreach (source->overrides.value, key, value) {
        bool used = false;
        for (size_t i = 0; i < RF_ARRAY_SIZE(other_keys); i++) {
            used |= strcmp(key, other_keys[i]) == 0;
        }
        for (size_t i = 0; i < source->n_used; i++) {
            used |= strcmp(key, source->used[i]) == 0;
        }
        if (!used) {
            struct rf_jnode node = rf_jnode_get(&source->overrides, key);
            source->status =
                rf_jnode_fail(&node, source->err,
                              "has no meaning for model type %s", model_type);
            return;
        }
    }
}

/* Parts of a config that make no tensor of the model. */
static void tell_not_counted(const json_t *config, struct rf_model *model)
{
    json_int_t layers =
        json_integer_value(json_object_get(config, "num_nextn_predict_layers"));
    if (layers > 0) {
        rf_model_not_counted(model, "%lld multi-token-prediction layer%s",
                             (long long)layers, layers == 1 ? "" : "s");
    }
    if (json_is_object(json_object_get(config, "quantization_config"))) {
        rf_model_not_counted(model,
                             "quantisation scales (weights counted as %s)",
                             rf_dtype_name(model->dtype));
    }
}

enum rf_status rf_model_read_config(const struct rf_jnode *node,
                                    struct rf_model *model, struct rf_err *err)
{
    struct rf_transformer t = {0};
    struct source source = {
        .config = rf_jnode_get(node, "config"), .overrides = *node, .err = err};
    const char *keys[MAX_KEYS + 1], *model_type = NULL, *name = NULL;
    enum kind kind = KIND_LLAMA;
    enum rf_status status;
    list_keys(keys);
    if ((status = rf_jnode_check_keys(node, keys, err)) != RF_OK) {
        return status;
    }
    if (!json_is_object(source.config.value)) {
        return rf_jnode_fail(&source.config, err,
                             "must be the object of a config.json");
    }
    if ((status = read_kind(&source.config, &kind, &model_type, err)) !=
            RF_OK ||
        (status = rf_jnode_string(node, "name", &name, err)) != RF_OK) {
        return status;
    }
    read_transformer(&source, kind, &t);
    check_overrides_used(&source, model_type);
    status = source.status;
    if (status == RF_OK) {
        model->name = name != NULL
                          ? rf_xstrdup(name)
                          : rf_model_config_name(model_type, node->value);
        model->model_type = rf_xstrdup(model_type);
        status = rf_transformer_build(&t, &source.config, model, err);
        tell_not_counted(source.config.value, model);
    }
    free(t.sparse);
    return status;
}
