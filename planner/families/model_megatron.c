/*
 * Models from a block of Megatron-LM's own argument names, for benchmarks that
 * are described that way: tensors get Hugging Face names. Unless the block says
 * otherwise, norms are RMSNorm, and there are no linear biases and no position
 * table; which tensors there are else is what Megatron-Core's GPTModel has.
 *
 * The block's defaults and rules are here; it then becomes a config, from which
 * planner/families/megatron.json makes the tensors.
 */
#include "planner/families/model_megatron.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/families/components.h"
#include "planner/families/family_table.h"
#include "planner/families/model_describe.h"
#include "planner/families/model_rules.h"
#include "planner/families/model_values.h"
#include "planner/model/shape_json.h"

/* A block with its defaults filled in. */
struct megatron_block {
    uint32_t layers, heads, kv_heads;
    uint64_t hidden, ffn, vocab, head_dim;
    bool tied, gated, qk_norm;
    bool linear_bias, qkv_bias, norm_bias;
    bool attention_norm, mlp_norm; /* behind attention and MLP */
    uint32_t mtp;                  /* layers for multi-token prediction */
    uint64_t positions;            /* rows of the position table, 0: none */
    uint32_t experts;              /* routed; 0: dense */
    uint64_t moe_ffn, shared_ffn;  /* shared_ffn 0: no shared experts */
    bool *sparse; /* per layer: has routed experts; owned; NULL: none */
    bool router_bias, shared_gate;
    bool mla, latent_norm; /* norms of the compressed queries, keys, values */
    uint64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim; /* q_lora 0: none */
    enum rf_dtype dtype;
};

static const char *const block_keys[] = {
    "num_layers",
    "hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "ffn_hidden_size",
    "vocab_size",
    "swiglu",
    "untie_embeddings_and_output_weights",
    "untie",
    "qk_layernorm",
    "post_self_attn_layernorm",
    "post_mlp_layernorm",
    "mtp_num_layers",
    "add_bias_linear",
    "add_qkv_bias",
    "normalization",
    "position_embedding_type",
    "max_position_embeddings",
    "dtype",
    "num_experts",
    "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size",
    "moe_shared_expert_gate",
    "moe_layer_freq",
    "moe_router_enable_expert_bias",
    "multi_latent_attention",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_head_dim",
    "qk_pos_emb_head_dim",
    "v_head_dim",
    NULL,
};

static enum rf_status need_all(const struct rf_jnode *block, struct rf_err *err)
{
    static const char *const needed[] = {"num_layers", "hidden_size",
                                         "num_attention_heads", "vocab_size"};
    enum rf_status status = rf_jnode_check_keys(block, block_keys, err);
    for (unsigned i = 0; i < RF_ARRAY_SIZE(needed) && status == RF_OK; i++) {
        status = rf_jnode_require(block, needed[i], err);
    }
    return status;
}

/* The block with its keys that stand beside it in place of its own, as they do
 * beside a config. The caller frees `value`. */
static struct rf_jnode overridden(const struct rf_jnode *model)
{
    struct rf_jnode block = rf_jnode_get(model, "megatron");
    block.value = json_deep_copy(block.value);
    for (unsigned i = 0; block_keys[i] != NULL; i++) {
        json_t *beside = json_object_get(model->value, block_keys[i]);
        if (beside != NULL && json_is_object(block.value)) {
            json_object_set(block.value, block_keys[i], beside);
        }
    }
    return block;
}

static enum rf_status check_keys(const struct rf_jnode *model,
                                 struct rf_err *err)
{
    const char *keys[RF_ARRAY_SIZE(block_keys) + 3] = {"megatron", "name",
                                                       "unknown_tensors"};
    for (unsigned i = 0; block_keys[i] != NULL; i++) {
        keys[3 + i] = block_keys[i];
    }
    return rf_jnode_check_keys(model, keys, err);
}

static enum rf_status read_dense(const struct rf_jnode *block,
                                 struct megatron_block *t, struct rf_err *err)
{
    const uint64_t max = RF_MODEL_MAX_SIZE;
    struct rf_jnode channels = rf_jnode_get(block, "kv_channels");
    bool untie = false, untie_long = false;
    enum rf_status status;
    if ((status = rf_jnode_u32(block, "num_layers", 1, RF_MODEL_MAX_LAYERS,
                               &t->layers, err)) != RF_OK ||
        (status = rf_jnode_u64(block, "hidden_size", 1, max, &t->hidden,
                               err)) != RF_OK ||
        (status = rf_jnode_u32(block, "num_attention_heads", 1,
                               RF_MODEL_MAX_HEADS, &t->heads, err)) != RF_OK ||
        (status = rf_jnode_u64(block, "vocab_size", 1, max, &t->vocab, err)) !=
            RF_OK ||
        (status = rf_jnode_bool(block, "swiglu", &t->gated, err)) != RF_OK ||
        (status = rf_jnode_bool(block, "qk_layernorm", &t->qk_norm, err)) !=
            RF_OK ||
        (status = rf_jnode_bool(block, "untie", &untie, err)) != RF_OK ||
        (status = rf_jnode_bool(block, "untie_embeddings_and_output_weights",
                                &untie_long, err)) != RF_OK ||
        (status = rf_dtype_from_json(block, "dtype", &t->dtype, err)) !=
            RF_OK) {
        return status;
    }
    t->tied = !(untie || untie_long);
    t->kv_heads = t->heads;
    t->ffn = t->gated ? RF_MAX(8 * t->hidden / 3 / 64 * 64, 1) : 4 * t->hidden;
    t->head_dim = t->hidden / t->heads;
    if (channels.value == NULL &&
        (t->hidden % t->heads != 0 || t->head_dim > RF_MODEL_MAX_HEADS)) {
        return rf_jnode_fail(block, err,
                             "without kv_channels, hidden_size must be a "
                             "multiple of num_attention_heads");
    }
    RF_TRY(rf_jnode_u64(block, "kv_channels", 1, RF_MODEL_MAX_HEADS,
                        &t->head_dim, err));
    RF_TRY(rf_jnode_u64(block, "ffn_hidden_size", 1, max, &t->ffn, err));
    RF_TRY(rf_jnode_u32(block, "num_query_groups", 1, RF_MODEL_MAX_HEADS,
                        &t->kv_heads, err));
    if (t->heads % t->kv_heads != 0) {
        return rf_jnode_fail(block, err,
                             "num_attention_heads must be a multiple of "
                             "num_query_groups");
    }
    return RF_OK;
}

/* Norms, biases and the position table. */
static enum rf_status read_variant(const struct rf_jnode *block,
                                   struct megatron_block *t, struct rf_err *err)
{
    static const char *const norms[] = {"RMSNorm", "LayerNorm", NULL};
    static const char *const kinds[] = {
        "rope", "mrope", "yarn", "none", "learned_absolute", NULL};
    const unsigned learned = 4;
    struct rf_jnode rows = rf_jnode_get(block, "max_position_embeddings");
    unsigned norm = 0, kind = 0;
    enum rf_status status;
    if ((status = rf_jnode_choice(block, "normalization", norms, &norm, err)) !=
            RF_OK ||
        (status = rf_jnode_choice(block, "position_embedding_type", kinds,
                                  &kind, err)) != RF_OK ||
        (status = rf_jnode_bool(block, "add_bias_linear", &t->linear_bias,
                                err)) != RF_OK ||
        (status = rf_jnode_bool(block, "add_qkv_bias", &t->qkv_bias, err)) !=
            RF_OK ||
        (status = rf_jnode_bool(block, "post_self_attn_layernorm",
                                &t->attention_norm, err)) != RF_OK ||
        (status = rf_jnode_bool(block, "post_mlp_layernorm", &t->mlp_norm,
                                err)) != RF_OK ||
        (status = rf_jnode_u32(block, "mtp_num_layers", 0, RF_MODEL_MAX_LAYERS,
                               &t->mtp, err)) != RF_OK) {
        return status;
    }
    t->norm_bias = norm == 1;
    if (kind != learned) {
        return rows.value == NULL
                   ? RF_OK
                   : rf_jnode_fail(&rows, err,
                                   "needs position_embedding_type "
                                   "\"learned_absolute\"");
    }
    status = rf_jnode_require(block, "max_position_embeddings", err);
    return status != RF_OK
               ? status
               : rf_jnode_u64(block, "max_position_embeddings", 1,
                              RF_MODEL_MAX_SIZE, &t->positions, err);
}

/* An integer N: every N-th layer, counting from the first, has experts; or a
 * list with 0 (dense) or 1 for each layer. */
static enum rf_status read_layer_freq(const struct rf_jnode *block,
                                      struct megatron_block *t,
                                      struct rf_err *err)
{
    struct rf_jnode freq = rf_jnode_get(block, "moe_layer_freq");
    uint32_t every = 1;
    if (!json_is_array(freq.value)) {
        enum rf_status status = rf_jnode_u32(block, "moe_layer_freq", 1,
                                             RF_MODEL_MAX_LAYERS, &every, err);
        for (uint32_t i = 0; i < t->layers; i++) {
            t->sparse[i] = i % every == 0;
        }
        return status;
    }
    if (json_array_size(freq.value) != t->layers) {
        return rf_jnode_fail(&freq, err,
                             "must have an entry for each of the "
                             "%u layers",
                             t->layers);
    }
    for (uint32_t i = 0; i < t->layers; i++) {
        struct rf_jnode item = rf_jnode_at(&freq, i);
        json_int_t flag = json_integer_value(item.value);
        if (!json_is_integer(item.value) || flag < 0 || flag > 1) {
            return rf_jnode_wrong(&item, err, "must be 0 (dense) or 1");
        }
        t->sparse[i] = flag == 1;
    }
    return RF_OK;
}

static enum rf_status read_sparse(const struct rf_jnode *block,
                                  struct megatron_block *t, struct rf_err *err)
{
    static const char *const sparse_keys[] = {
        "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size",
        "moe_shared_expert_gate", "moe_layer_freq",
        "moe_router_enable_expert_bias"};
    const uint64_t max = RF_MODEL_MAX_SIZE;
    RF_TRY(rf_jnode_u32(block, "num_experts", 0, RF_MODEL_MAX_EXPERTS,
                        &t->experts, err));
    for (unsigned i = 0; i < RF_ARRAY_SIZE(sparse_keys) && t->experts == 0;
         i++) {
        struct rf_jnode member = rf_jnode_get(block, sparse_keys[i]);
        if (member.value != NULL) {
            return rf_jnode_fail(&member, err, "needs num_experts");
        }
    }
    if (t->experts == 0) {
        return RF_OK;
    }
    t->moe_ffn = t->ffn;
    t->sparse = rf_xcalloc(t->layers, sizeof(*t->sparse));
    RF_TRY(
        rf_jnode_u64(block, "moe_ffn_hidden_size", 1, max, &t->moe_ffn, err));
    RF_TRY(rf_jnode_u64(block, "moe_shared_expert_intermediate_size", 0, max,
                        &t->shared_ffn, err));
    RF_TRY(
        rf_jnode_bool(block, "moe_shared_expert_gate", &t->shared_gate, err));
    RF_TRY(rf_jnode_bool(block, "moe_router_enable_expert_bias",
                         &t->router_bias, err));
    return read_layer_freq(block, t, err);
}

/* Megatron-LM's defaults of latent attention. */
static enum rf_status read_latent(const struct rf_jnode *block,
                                  struct megatron_block *t, struct rf_err *err)
{
    static const char *const latent_keys[] = {
        "q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim",
        "v_head_dim"};
    uint64_t *const fields[] = {&t->q_lora, &t->kv_lora, &t->nope_dim,
                                &t->rope_dim, &t->v_dim};
    enum rf_status status =
        rf_jnode_bool(block, "multi_latent_attention", &t->mla, err);
    t->latent_norm =
        rf_jnode_get(block, "qk_layernorm").value == NULL || t->qk_norm;
    t->kv_lora = 32;
    t->nope_dim = 128;
    t->rope_dim = 64;
    t->v_dim = 128;
    for (unsigned i = 0; i < RF_ARRAY_SIZE(fields) && status == RF_OK; i++) {
        struct rf_jnode member = rf_jnode_get(block, latent_keys[i]);
        if (member.value != NULL && !t->mla) {
            return rf_jnode_fail(&member, err, "needs multi_latent_attention");
        }
        status = rf_jnode_u64(block, latent_keys[i], 1, RF_MODEL_MAX_HEADS,
                              fields[i], err);
    }
    return status;
}

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

/* The block as a config in the words of its table. */
static json_t *config_of(const struct megatron_block *t)
{
    json_t *sparse = json_array();
    json_t *config = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:b}",
        "num_hidden_layers", count(t->layers), "hidden_size", count(t->hidden),
        "intermediate_size", count(t->ffn), "vocab_size", count(t->vocab),
        "num_attention_heads", count(t->heads), "num_key_value_heads",
        count(t->kv_heads), "head_dim", count(t->head_dim),
        "tie_word_embeddings", t->tied, "swiglu", t->gated, "qk_layernorm",
        t->qk_norm, "latent", t->mla, "router_bias", t->router_bias);
    for (uint32_t i = 0; t->sparse != NULL && i < t->layers; i++) {
        json_array_append_new(sparse, json_boolean(t->sparse[i]));
    }
    json_object_set_new(config, "linear_bias", json_boolean(t->linear_bias));
    json_object_set_new(config, "attention_norm",
                        json_boolean(t->attention_norm));
    json_object_set_new(config, "mlp_norm", json_boolean(t->mlp_norm));
    json_object_set_new(config, "mtp_num_layers", count(t->mtp));
    json_object_set_new(config, "qkv_bias", json_boolean(t->qkv_bias));
    json_object_set_new(config, "layernorm", json_boolean(t->norm_bias));
    json_object_set_new(config, "latent_norm", json_boolean(t->latent_norm));
    json_object_set_new(config, "shared_gate", json_boolean(t->shared_gate));
    json_object_set_new(config, "learned_positions",
                        json_boolean(t->positions > 0));
    json_object_set_new(config, "max_position_embeddings", count(t->positions));
    json_object_set_new(config, "sparse_layers", sparse);
    json_object_set_new(config, "num_experts", count(t->experts));
    json_object_set_new(config, "moe_intermediate_size", count(t->moe_ffn));
    json_object_set_new(config, "shared_rows", count(t->shared_ffn));
    json_object_set_new(config, "q_lora_rank",
                        t->q_lora > 0 ? count(t->q_lora) : json_null());
    json_object_set_new(config, "kv_lora_rank", count(t->kv_lora));
    json_object_set_new(config, "qk_nope_head_dim", count(t->nope_dim));
    json_object_set_new(config, "qk_rope_head_dim", count(t->rope_dim));
    json_object_set_new(config, "v_head_dim", count(t->v_dim));
    return config;
}

/* The block's tensors; `where` is what errors point at. */
static enum rf_status build(const struct megatron_block *t,
                            const struct rf_jnode *where,
                            struct rf_model *model, struct rf_err *err)
{
    json_t *description = json_pack("{s:o, s:b}", "config", config_of(t), "mtp",
                                    (int)(t->mtp > 0));
    struct rf_components components;
    struct rf_jnode node = rf_jnode_root(description, "megatron");
    struct rf_family_table *table = NULL;
    struct rf_values values;
    enum rf_status status =
        rf_family_table_named("megatron block", &table, err);
    RF_THEN(status, rf_components_read(&node, &components, err));
    RF_THEN(status, rf_components_add(table, &components, err));
    rf_values_init(&values, &node, table);
    model->n_layers = t->layers;
    model->dtype = t->dtype;
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
    struct megatron_block t = {.dtype = RF_BF16};
    struct rf_jnode block = overridden(node);
    const char *name = "megatron";
    enum rf_status status;
    if ((status = check_keys(node, err)) != RF_OK ||
        (status = rf_jnode_string(node, "name", &name, err)) != RF_OK ||
        (status = need_all(&block, err)) != RF_OK ||
        (status = read_dense(&block, &t, err)) != RF_OK ||
        (status = read_variant(&block, &t, err)) != RF_OK ||
        (status = read_sparse(&block, &t, err)) != RF_OK ||
        (status = read_latent(&block, &t, err)) != RF_OK) {
        goto free_block;
    }
    model->name = rf_xstrdup(name);
    model->model_type = rf_xstrdup("megatron");
    status = build(&t, &block, model, err);
free_block:
    json_decref(block.value);
    free(t.sparse);
    return status;
}
