/*
 * What a list of tensors says about its model, and the numbers of heads that it
 * cannot say: those come from keys beside the manifest or from a config, and
 * every attention tensor must agree with them, so that layouts may rely on
 * rows = heads · head size.
 */
#include "planner/model_build.h"

#include "common/mem.h"

static void describe(struct rf_model *model)
{
    uint64_t bytes[RF_DTYPE_COUNT] = {0};
    bool has_head = false;
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        bytes[family->dtype] +=
            rf_family_elements(family) * rf_dtype_bytes(family->dtype);
        if (family->layers != NULL) {
            model->n_layers = RF_MAX(model->n_layers,
                                     family->layers[family->n_layers - 1] + 1);
        }
        if (family->has_experts) {
            model->n_experts = RF_MAX(model->n_experts, family->n_experts);
        }
        if (family->role == RF_ROLE_EMBED) {
            model->vocab = family->shape[0];
        }
        model->mla |= family->role == RF_ROLE_MLA_KV_B;
        has_head |= family->role == RF_ROLE_LM_HEAD;
    }
    model->tied_embeddings = model->vocab > 0 && !has_head;
    for (unsigned d = 0; d < RF_DTYPE_COUNT; d++) {
        if (bytes[d] > bytes[model->dtype]) {
            model->dtype = (enum rf_dtype)d;
        }
    }
}

/* The size of a head where none is given: that of the first query tensor. */
static void derive_head_dim(struct rf_model *model)
{
    for (uint32_t i = 0; i < model->n_families && model->head_dim == 0; i++) {
        const struct rf_family *family = &model->families[i];
        uint64_t rows = family->shape[0] / model->heads;
        if (family->role == RF_ROLE_Q && rows <= RF_MODEL_MAX_HEADS) {
            model->head_dim = (uint32_t)rows;
        }
    }
}

/* Every attention tensor against the heads and their size. */
static enum rf_status check_heads(const struct rf_model *model,
                                  const struct rf_jnode *where,
                                  struct rf_err *err)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        bool query = family->role == RF_ROLE_Q;
        bool key = family->role == RF_ROLE_K || family->role == RF_ROLE_V;
        bool latent =
            family->role == RF_ROLE_MLA_Q_B || family->role == RF_ROLE_MLA_KV_B;
        uint32_t heads = key ? model->kv_heads : model->heads;
        if ((query || key || latent) && family->shape[0] % heads != 0) {
            return rf_jnode_fail(where, err,
                                 "%.100s: its %llu rows are not those of %u "
                                 "heads",
                                 family->name,
                                 (unsigned long long)family->shape[0], heads);
        }
        if ((query || key) && family->shape[0] / heads != model->head_dim) {
            return rf_jnode_fail(where, err,
                                 "%.100s: its %llu rows are not those of %u "
                                 "heads of size %u",
                                 family->name,
                                 (unsigned long long)family->shape[0], heads,
                                 model->head_dim);
        }
    }
    return RF_OK;
}

/* A number beside the manifest or else in the config; null counts as absent
 * there. */
static enum rf_status read_field(const struct rf_jnode *node,
                                 const struct rf_jnode *config, const char *key,
                                 uint32_t *out, struct rf_err *err)
{
    const struct rf_jnode *where = node;
    if (json_object_get(node->value, key) == NULL) {
        where = config;
        if (json_is_null(json_object_get(config->value, key))) {
            return RF_OK;
        }
    }
    return rf_jnode_u32(where, key, 1, RF_MODEL_MAX_HEADS, out, err);
}

enum rf_status rf_model_describe(struct rf_model *model,
                                 const struct rf_jnode *node,
                                 const struct rf_jnode *config,
                                 struct rf_err *err)
{
    enum rf_status status;
    describe(model);
    rf_model_fix_latent_roles(model);
    if ((status = read_field(node, config, "num_attention_heads", &model->heads,
                             err)) != RF_OK) {
        return status;
    }
    model->kv_heads = model->heads;
    if ((status = read_field(node, config, "num_key_value_heads",
                             &model->kv_heads, err)) != RF_OK ||
        (status = read_field(node, config, "head_dim", &model->head_dim,
                             err)) != RF_OK) {
        return status;
    }
    if (model->heads == 0) { /* the others mean nothing without it */
        model->kv_heads = 0;
        model->head_dim = 0;
        return RF_OK;
    }
    if (model->heads % model->kv_heads != 0) {
        return rf_jnode_fail(node, err,
                             "num_attention_heads must be a multiple of "
                             "num_key_value_heads");
    }
    derive_head_dim(model);
    return check_heads(model, node, err);
}
