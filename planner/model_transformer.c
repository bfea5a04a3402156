/*
 * The tensors of a decoder-only transformer under their checkpoint names.
 *
 * Families come in checkpoint order: embedding, the layers' tensors, final
 * norm, output head. Attention tensors are one family over all layers; MLP
 * tensors are one family over the layers that have them (dense or sparse).
 */
#include "planner/model_build.h"

#include <stdlib.h>

#include "common/mem.h"

/* Adding stops doing anything after the first error, which is kept. */
struct adder {
    struct rf_model *model;
    const struct rf_jnode *where;
    struct rf_err *err;
    enum rf_status status;
    enum rf_dtype dtype;
    const uint32_t *layers; /* of what is added now; NULL: outside layers */
    uint32_t n_layers, n_experts;
};

/* A tensor of one dimension has cols 0. */
static void add(struct adder *adder, const char *name, uint64_t rows,
                uint64_t cols)
{
    struct rf_family_draft draft = {
        .name = name,
        .dtype = adder->dtype,
        .layers = adder->layers,
        .n_layers = adder->n_layers,
        .n_experts = adder->n_experts,
        .ndim = cols == 0 ? 1 : 2,
        .shape = {rows, cols},
    };
    if (adder->status == RF_OK) {
        adder->status =
            rf_model_add_family(adder->model, &draft, adder->where, adder->err);
    }
}

#define LAYER "model.layers.{L}."
#define ATTENTION LAYER "self_attn."
#define SHARED LAYER "mlp.shared_experts."
#define MIXTRAL LAYER "block_sparse_moe."

static void add_attention(struct adder *a, const struct rf_transformer *t)
{
    uint64_t q_rows = t->heads * t->head_dim;
    uint64_t kv_rows = t->kv_heads * t->head_dim;
    add(a, ATTENTION "q_proj.weight", q_rows, t->hidden);
    add(a, ATTENTION "k_proj.weight", kv_rows, t->hidden);
    add(a, ATTENTION "v_proj.weight", kv_rows, t->hidden);
    if (t->qkv_bias) {
        add(a, ATTENTION "q_proj.bias", q_rows, 0);
        add(a, ATTENTION "k_proj.bias", kv_rows, 0);
        add(a, ATTENTION "v_proj.bias", kv_rows, 0);
    }
    if (t->qk_norm) {
        add(a, ATTENTION "q_norm.weight", t->head_dim, 0);
        add(a, ATTENTION "k_norm.weight", t->head_dim, 0);
    }
    add(a, ATTENTION "o_proj.weight", t->hidden, q_rows);
    if (t->o_bias) {
        add(a, ATTENTION "o_proj.bias", t->hidden, 0);
    }
}

static void add_latent_attention(struct adder *a,
                                 const struct rf_transformer *t)
{
    uint64_t q_rows = t->heads * (t->nope_dim + t->rope_dim);
    if (t->q_lora > 0) {
        add(a, ATTENTION "q_a_proj.weight", t->q_lora, t->hidden);
        if (t->mla_bias) {
            add(a, ATTENTION "q_a_proj.bias", t->q_lora, 0);
        }
        add(a, ATTENTION "q_a_layernorm.weight", t->q_lora, 0);
        add(a, ATTENTION "q_b_proj.weight", q_rows, t->q_lora);
    } else {
        add(a, ATTENTION "q_proj.weight", q_rows, t->hidden);
    }
    add(a, ATTENTION "kv_a_proj_with_mqa.weight", t->kv_lora + t->rope_dim,
        t->hidden);
    if (t->mla_bias) {
        add(a, ATTENTION "kv_a_proj_with_mqa.bias", t->kv_lora + t->rope_dim,
            0);
    }
    add(a, ATTENTION "kv_a_layernorm.weight", t->kv_lora, 0);
    add(a, ATTENTION "kv_b_proj.weight", t->heads * (t->nope_dim + t->v_dim),
        t->kv_lora);
    add(a, ATTENTION "o_proj.weight", t->hidden, t->heads * t->v_dim);
    if (t->mla_bias) {
        add(a, ATTENTION "o_proj.bias", t->hidden, 0);
    }
}

static void add_dense_mlp(struct adder *a, const struct rf_transformer *t)
{
    if (t->gated) {
        add(a, LAYER "mlp.gate_proj.weight", t->ffn, t->hidden);
    }
    add(a, LAYER "mlp.up_proj.weight", t->ffn, t->hidden);
    add(a, LAYER "mlp.down_proj.weight", t->hidden, t->ffn);
    if (t->mlp_bias) {
        if (t->gated) {
            add(a, LAYER "mlp.gate_proj.bias", t->ffn, 0);
        }
        add(a, LAYER "mlp.up_proj.bias", t->ffn, 0);
        add(a, LAYER "mlp.down_proj.bias", t->hidden, 0);
    }
}

static void add_experts(struct adder *a, const struct rf_transformer *t)
{
    const bool mixtral = t->mixtral_names;
    add(a, mixtral ? MIXTRAL "gate.weight" : LAYER "mlp.gate.weight",
        t->experts, t->hidden);
    if (t->router_bias) {
        add(a, LAYER "mlp.gate.e_score_correction_bias", t->experts, 0);
    }
    a->n_experts = t->experts;
    if (t->gated) {
        add(a,
            mixtral ? MIXTRAL "experts.{E}.w1.weight"
                    : LAYER "mlp.experts.{E}.gate_proj.weight",
            t->moe_ffn, t->hidden);
    }
    add(a,
        mixtral ? MIXTRAL "experts.{E}.w3.weight"
                : LAYER "mlp.experts.{E}.up_proj.weight",
        t->moe_ffn, t->hidden);
    add(a,
        mixtral ? MIXTRAL "experts.{E}.w2.weight"
                : LAYER "mlp.experts.{E}.down_proj.weight",
        t->hidden, t->moe_ffn);
    a->n_experts = 0;
    if (t->shared_ffn > 0) {
        if (t->gated) {
            add(a, SHARED "gate_proj.weight", t->shared_ffn, t->hidden);
        }
        add(a, SHARED "up_proj.weight", t->shared_ffn, t->hidden);
        add(a, SHARED "down_proj.weight", t->hidden, t->shared_ffn);
    }
}

/* The numbers of the layers whose `sparse` flag is `wanted`. */
static uint32_t pick_layers(const struct rf_transformer *t, bool wanted,
                            uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->layers; i++) {
        if ((t->sparse != NULL && t->sparse[i]) == wanted) {
            out[n++] = i;
        }
    }
    return n;
}

static void add_layers(struct adder *a, const struct rf_transformer *t,
                       uint32_t *numbers)
{
    for (uint32_t i = 0; i < t->layers; i++) {
        numbers[i] = i;
    }
    a->layers = numbers;
    a->n_layers = t->layers;
    add(a, LAYER "input_layernorm.weight", t->hidden, 0);
    if (t->mla) {
        add_latent_attention(a, t);
    } else {
        add_attention(a, t);
    }
    add(a, LAYER "post_attention_layernorm.weight", t->hidden, 0);
    a->n_layers = pick_layers(t, false, numbers);
    if (a->n_layers > 0) {
        add_dense_mlp(a, t);
    }
    a->n_layers = pick_layers(t, true, numbers);
    if (a->n_layers > 0) {
        add_experts(a, t);
        a->model->n_experts = t->experts;
    }
    a->layers = NULL;
}

enum rf_status rf_transformer_build(const struct rf_transformer *t,
                                    const struct rf_jnode *where,
                                    struct rf_model *model, struct rf_err *err)
{
    struct adder adder = {
        .model = model, .where = where, .err = err, .dtype = t->dtype};
    uint32_t *numbers = rf_calloc(t->layers, sizeof(*numbers));
    if (numbers == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "%u layers", t->layers);
    }
    model->dtype = t->dtype;
    model->n_layers = t->layers;
    model->heads = t->heads;
    model->kv_heads = t->mla ? t->heads : t->kv_heads;
    model->head_dim =
        (uint32_t)(t->mla ? t->nope_dim + t->rope_dim : t->head_dim);
    model->vocab = t->vocab;
    model->tied_embeddings = t->tied;
    model->mla = t->mla;
    add(&adder, "model.embed_tokens.weight", t->vocab, t->hidden);
    add_layers(&adder, t, numbers);
    add(&adder, "model.norm.weight", t->hidden, 0);
    if (!t->tied) {
        add(&adder, "lm_head.weight", t->vocab, t->hidden);
    }
    free(numbers);
    rf_model_fix_latent_roles(model);
    return adder.status;
}
