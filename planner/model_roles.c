/*
 * What a tensor is, by its checkpoint name: the only place that knows names.
 *
 * A name that is not listed, or that has another number of dimensions than
 * listed, is RF_ROLE_OTHER: its role is never guessed (planner/unknown.h).
 */
#include "planner/model_build.h"

#include <string.h>

struct named_role {
    const char *name;
    enum rf_role role;
    uint32_t ndim;
};

static const struct named_role outside_layers[] = {
    {"model.embed_tokens.weight", RF_ROLE_EMBED, 2},
    {"lm_head.weight", RF_ROLE_LM_HEAD, 2},
    {"model.norm.weight", RF_ROLE_FINAL_NORM, 1},
};

/* A bias added after a row-split projection is whole on every rank: NORM. */
static const struct named_role inside_layers[] = {
    {"self_attn.q_proj.weight", RF_ROLE_Q, 2},
    {"self_attn.q_proj.bias", RF_ROLE_Q, 1},
    {"self_attn.k_proj.weight", RF_ROLE_K, 2},
    {"self_attn.k_proj.bias", RF_ROLE_K, 1},
    {"self_attn.v_proj.weight", RF_ROLE_V, 2},
    {"self_attn.v_proj.bias", RF_ROLE_V, 1},
    {"self_attn.o_proj.weight", RF_ROLE_O, 2},
    {"self_attn.o_proj.bias", RF_ROLE_NORM, 1},
    {"self_attn.q_a_proj.weight", RF_ROLE_MLA_Q_A, 2},
    {"self_attn.q_a_proj.bias", RF_ROLE_MLA_Q_A, 1},
    {"self_attn.q_b_proj.weight", RF_ROLE_MLA_Q_B, 2},
    {"self_attn.kv_a_proj_with_mqa.weight", RF_ROLE_MLA_KV_A, 2},
    {"self_attn.kv_a_proj_with_mqa.bias", RF_ROLE_MLA_KV_A, 1},
    {"self_attn.kv_b_proj.weight", RF_ROLE_MLA_KV_B, 2},
    {"mlp.gate_proj.weight", RF_ROLE_GATE, 2},
    {"mlp.gate_proj.bias", RF_ROLE_GATE, 1},
    {"mlp.up_proj.weight", RF_ROLE_UP, 2},
    {"mlp.up_proj.bias", RF_ROLE_UP, 1},
    {"mlp.down_proj.weight", RF_ROLE_DOWN, 2},
    {"mlp.down_proj.bias", RF_ROLE_NORM, 1},
    {"mlp.shared_experts.gate_proj.weight", RF_ROLE_SHARED_GATE, 2},
    {"mlp.shared_experts.up_proj.weight", RF_ROLE_SHARED_UP, 2},
    {"mlp.shared_experts.down_proj.weight", RF_ROLE_SHARED_DOWN, 2},
    {"mlp.shared_expert.gate_proj.weight", RF_ROLE_SHARED_GATE, 2},
    {"mlp.shared_expert.up_proj.weight", RF_ROLE_SHARED_UP, 2},
    {"mlp.shared_expert.down_proj.weight", RF_ROLE_SHARED_DOWN, 2},
    {"mlp.shared_expert_gate.weight", RF_ROLE_ROUTER, 2},
    {"mlp.gate.weight", RF_ROLE_ROUTER, 2},
    {"mlp.router.weight", RF_ROLE_ROUTER, 2},
    {"mlp.router.bias", RF_ROLE_ROUTER_BIAS, 1},
    {"mlp.gate.e_score_correction_bias", RF_ROLE_ROUTER_BIAS, 1},
    {"mlp.experts.{E}.gate_proj.weight", RF_ROLE_EXPERT_GATE, 2},
    {"mlp.experts.{E}.up_proj.weight", RF_ROLE_EXPERT_UP, 2},
    {"mlp.experts.{E}.down_proj.weight", RF_ROLE_EXPERT_DOWN, 2},
    {"block_sparse_moe.gate.weight", RF_ROLE_ROUTER, 2},
    {"block_sparse_moe.experts.{E}.w1.weight", RF_ROLE_EXPERT_GATE, 2},
    {"block_sparse_moe.experts.{E}.w3.weight", RF_ROLE_EXPERT_UP, 2},
    {"block_sparse_moe.experts.{E}.w2.weight", RF_ROLE_EXPERT_DOWN, 2},
};

const char *rf_role_name(enum rf_role role)
{
    static const char *const names[RF_ROLE_COUNT] = {
        [RF_ROLE_EMBED] = "embedding",
        [RF_ROLE_LM_HEAD] = "output head",
        [RF_ROLE_FINAL_NORM] = "final norm",
        [RF_ROLE_NORM] = "norm or row bias",
        [RF_ROLE_Q] = "query",
        [RF_ROLE_K] = "key",
        [RF_ROLE_V] = "value",
        [RF_ROLE_O] = "attention output",
        [RF_ROLE_GATE] = "mlp gate",
        [RF_ROLE_UP] = "mlp up",
        [RF_ROLE_DOWN] = "mlp down",
        [RF_ROLE_SHARED_GATE] = "shared expert gate",
        [RF_ROLE_SHARED_UP] = "shared expert up",
        [RF_ROLE_SHARED_DOWN] = "shared expert down",
        [RF_ROLE_ROUTER] = "router",
        [RF_ROLE_ROUTER_BIAS] = "router bias",
        [RF_ROLE_EXPERT_GATE] = "expert gate",
        [RF_ROLE_EXPERT_UP] = "expert up",
        [RF_ROLE_EXPERT_DOWN] = "expert down",
        [RF_ROLE_MLA_Q_A] = "latent query in",
        [RF_ROLE_MLA_Q_B] = "latent query out",
        [RF_ROLE_MLA_KV_A] = "latent key/value in",
        [RF_ROLE_MLA_KV_B] = "latent key/value out",
        [RF_ROLE_OTHER] = "unknown",
    };
    return names[role];
}

/* Norms have many names, but all end the same, and all are vectors that every
 * rank needs whole. */
static bool is_norm(const char *name, uint32_t ndim)
{
    static const char *const ends[] = {"norm.weight", "norm.bias"};
    size_t length = strlen(name);
    for (size_t i = 0; i < RF_ARRAY_SIZE(ends) && ndim == 1; i++) {
        size_t tail = strlen(ends[i]);
        if (length >= tail && strcmp(name + length - tail, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum rf_role rf_role_of_name(const char *family_name, uint32_t ndim)
{
    static const char layer[] = "model.layers.{L}.";
    const struct named_role *table = outside_layers;
    size_t count = RF_ARRAY_SIZE(outside_layers);
    if (strncmp(family_name, layer, sizeof(layer) - 1) == 0) {
        family_name += sizeof(layer) - 1;
        table = inside_layers;
        count = RF_ARRAY_SIZE(inside_layers);
        if (is_norm(family_name, ndim)) {
            return RF_ROLE_NORM;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (table[i].ndim == ndim && strcmp(family_name, table[i].name) == 0) {
            return table[i].role;
        }
    }
    return RF_ROLE_OTHER;
}

void rf_model_fix_latent_roles(struct rf_model *model)
{
    bool latent = false;
    for (uint32_t i = 0; i < model->n_families; i++) {
        latent |= model->families[i].role == RF_ROLE_MLA_KV_B;
    }
    for (uint32_t i = 0; latent && i < model->n_families; i++) {
        if (model->families[i].role == RF_ROLE_Q) {
            model->families[i].role = RF_ROLE_MLA_Q_B;
        }
    }
}
