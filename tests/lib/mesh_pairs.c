/* The list of mesh pairs. See mesh_pairs.h. */
#include "tests/lib/mesh_pairs.h"

#include <stdio.h>

#include "common/compiler.h"

/* --- models --------------------------------------------------------------- */

static const char dense[] =
    "{'megatron': {'num_layers': 4, 'hidden_size': 32, 'num_attention_heads': "
    "16, 'num_query_groups': 4, 'vocab_size': 128}}";

/* Sizes that divide by three. */
static const char thirds[] =
    "{'megatron': {'num_layers': 2, 'hidden_size': 24, 'num_attention_heads': "
    "12, 'num_query_groups': 6, 'ffn_hidden_size': 48, 'vocab_size': 700, "
    "'swiglu': true}}";

static const char experts[] =
    "{'megatron': {'num_layers': 2, 'hidden_size': 32, 'num_attention_heads': "
    "8, 'num_query_groups': 8, 'vocab_size': 128, 'num_experts': 8, 'swiglu': "
    "true, 'moe_ffn_hidden_size': 16, 'moe_shared_expert_intermediate_size': "
    "24, 'moe_router_enable_expert_bias': true}}";

/* Latent attention: the real number of heads and ratios of experts, with small
 * matrices. */
static const char latent[] =
    "{'config': {'model_type': 'deepseek_v3', 'hidden_size': 32, "
    "'num_hidden_layers': 3, 'num_attention_heads': 64, 'num_key_value_heads': "
    "64, 'intermediate_size': 64, 'vocab_size': 200, 'q_lora_rank': 12, "
    "'kv_lora_rank': 8, 'qk_nope_head_dim': 2, 'qk_rope_head_dim': 1, "
    "'v_head_dim': 2, 'n_routed_experts': 96, 'n_shared_experts': 1, "
    "'moe_intermediate_size': 32, 'first_k_dense_replace': 1, 'topk_method': "
    "'noaux_tc', 'tie_word_embeddings': false}}";

/* --- pairs ---------------------------------------------------------------- */

enum { COLOCATED = 1, APART = 2, BOTH = 3, LARGE = 4 };

struct pair {
    const char *origin, *model;
    struct mesh_sizes from, to;
    unsigned modes;
};

static const struct pair pairs[] = {
    {"unit test", dense, {2, 1, 1, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", dense, {1, 1, 1, 0, 0}, {2, 1, 1, 0, 0}, BOTH},
    {"unit test", dense, {2, 1, 1, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"unit test", dense, {1, 2, 1, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", dense, {1, 1, 1, 0, 0}, {1, 2, 1, 0, 0}, BOTH},
    {"unit test", dense, {2, 2, 1, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", dense, {1, 1, 1, 0, 0}, {2, 2, 1, 0, 0}, BOTH},
    {"unit test", dense, {2, 1, 1, 0, 0}, {1, 2, 1, 0, 0}, BOTH},
    {"unit test", dense, {1, 2, 1, 0, 0}, {2, 1, 1, 0, 0}, BOTH},
    {"unit test", dense, {1, 2, 1, 0, 0}, {2, 4, 1, 0, 0}, BOTH},
    {"unit test", dense, {2, 1, 1, 0, 0}, {2, 1, 1, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 2, 0, 0}, {1, 1, 4, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 2, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 1, 0, 0}, {1, 1, 2, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 2, 0, 0}, {1, 2, 2, 0, 0}, BOTH},
    {"unit test", experts, {2, 1, 2, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 1, 0, 0}, {2, 1, 2, 0, 0}, BOTH},
    {"unit test", experts, {4, 1, 1, 0, 0}, {2, 1, 2, 0, 0}, BOTH},
    {"unit test", experts, {2, 1, 2, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"unit test", experts, {4, 1, 1, 0, 0}, {1, 1, 4, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 4, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"unit test", experts, {1, 1, 2, 0, 0}, {2, 1, 2, 0, 0}, BOTH},
    {"unit test", latent, {1, 1, 2, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", latent, {1, 1, 1, 0, 0}, {1, 1, 2, 0, 0}, BOTH},
    {"unit test", latent, {2, 1, 2, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"unit test", latent, {1, 1, 1, 0, 0}, {2, 1, 2, 0, 0}, BOTH},
    {"disjoint test", dense, {1, 1, 1, 0, 2}, {2, 1, 1, 0, 0}, APART},
    {"disjoint test", dense, {2, 1, 1, 0, 0}, {1, 1, 1, 0, 2}, APART},
    {"disjoint test", dense, {1, 1, 1, 0, 2}, {1, 2, 1, 0, 0}, APART},
    {"disjoint test", dense, {1, 2, 1, 0, 0}, {1, 1, 1, 0, 2}, APART},
    {"disjoint test", dense, {1, 1, 1, 0, 4}, {4, 1, 1, 0, 0}, APART},
    {"disjoint test", dense, {4, 1, 1, 0, 0}, {1, 1, 1, 0, 4}, APART},
    {"disjoint test", dense, {1, 1, 1, 0, 4}, {1, 2, 1, 0, 2}, APART},
    {"disjoint test", dense, {1, 2, 1, 0, 2}, {1, 1, 1, 0, 4}, APART},
    {"disjoint test", dense, {4, 1, 1, 0, 0}, {2, 2, 1, 0, 0}, BOTH},
    {"disjoint test", dense, {4, 1, 1, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"disjoint test", dense, {8, 1, 1, 0, 0}, {1, 1, 1, 0, 0}, BOTH},
    {"disjoint test", dense, {1, 1, 1, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"disjoint test", dense, {8, 1, 1, 0, 0}, {4, 2, 1, 0, 0}, BOTH},
    {"disjoint test", dense, {4, 2, 1, 0, 0}, {8, 1, 1, 0, 0}, BOTH},
    {"README", thirds, {2, 1, 1, 0, 0}, {3, 1, 1, 0, 0}, BOTH},
    {"script", dense, {2, 2, 1, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"examples", dense, {8, 4, 1, 0, 0}, {16, 2, 1, 0, 0}, BOTH | LARGE},
    {"8 GPUs", dense, {4, 1, 1, 0, 0}, {2, 1, 1, 0, 0}, BOTH},
    {"8 GPUs", dense, {4, 1, 1, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"8 GPUs", dense, {8, 1, 1, 0, 0}, {4, 1, 1, 0, 0}, BOTH},
    {"8 GPUs", dense, {1, 1, 1, 0, 0}, {8, 1, 1, 0, 0}, BOTH},
    {"8 GPUs", experts, {2, 1, 2, 1, 0}, {2, 1, 1, 1, 0}, BOTH},
    {"8 GPUs", experts, {2, 1, 2, 1, 0}, {2, 1, 2, 1, 0}, BOTH},
    {"8 GPUs", experts, {1, 1, 4, 1, 0}, {1, 1, 2, 1, 0}, BOTH},
    {"8 GPUs", experts, {4, 1, 2, 1, 0}, {2, 1, 4, 1, 0}, BOTH},
    {"8 GPUs", experts, {8, 1, 1, 1, 0}, {4, 1, 2, 1, 0}, BOTH},
    {"8 GPUs", experts, {4, 1, 2, 1, 0}, {4, 1, 1, 1, 0}, BOTH},
    /* gated experts under a change of etp, where the reference goes wrong */
    {"etp", experts, {1, 1, 1, 1, 0}, {4, 1, 1, 4, 0}, BOTH},
    {"etp", experts, {4, 1, 1, 4, 0}, {2, 1, 2, 1, 0}, BOTH},
    {"etp", experts, {2, 1, 2, 1, 0}, {4, 1, 1, 2, 0}, BOTH},
    {"Kimi-K2", latent, {8, 1, 8, 1, 0}, {8, 1, 4, 1, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {16, 1, 4, 1, 0}, {8, 1, 4, 1, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {16, 1, 4, 1, 0}, {16, 1, 2, 1, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {16, 1, 4, 1, 0}, {32, 1, 2, 1, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {8, 1, 8, 0, 0}, {16, 1, 4, 0, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {16, 1, 16, 1, 0}, {8, 1, 32, 1, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {32, 1, 4, 1, 0}, {16, 1, 8, 1, 0}, BOTH | LARGE},
    {"Kimi-K2", latent, {16, 1, 8, 0, 0}, {8, 1, 16, 0, 0}, BOTH | LARGE},
};

static void shrink(struct mesh_sizes *side)
{
    side->tp /= 4;
    side->ep = side->ep > 1 ? side->ep / 2 : 1;
}

bool mesh_case_at(size_t i, bool small, struct mesh_case *out)
{
    for (size_t p = 0; p < RF_ARRAY_SIZE(pairs); p++) {
        const struct pair *pair = &pairs[p];
        size_t n = (pair->modes & BOTH) == BOTH ? 2 : 1;
        if (i >= n) {
            i -= n;
            continue;
        }
        *out = (struct mesh_case){pair->origin,
                                  pair->model,
                                  pair->from,
                                  pair->to,
                                  i == 0 && (pair->modes & COLOCATED) != 0,
                                  NULL};
        if (small && (pair->modes & LARGE) != 0) {
            shrink(&out->from);
            shrink(&out->to);
        }
        return true;
    }
    return false;
}

size_t mesh_case_count(void)
{
    struct mesh_case ignored;
    size_t n = 0;
    while (mesh_case_at(n, false, &ignored)) {
        n++;
    }
    return n;
}

/* --- texts ---------------------------------------------------------------- */

struct field {
    const char *name, *key;
    uint32_t value;
    bool always; /* also when 1 */
};

/* Joins a side's sizes: `named` as "TP2·EP2", else as members. */
static void side_text(const struct mesh_sizes *side, bool named, char *out,
                      size_t size)
{
    const struct field fields[] = {
        {"TP", "tp", side->tp, true},  {"PP", "pp", side->pp, false},
        {"EP", "ep", side->ep, false}, {"ETP", "etp", side->etp, true},
        {"DP", "dp", side->dp, true},
    };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        const struct field *field = &fields[i];
        if (field->value == 0 || (field->value == 1 && !field->always)) {
            continue;
        }
        used += (size_t)(named ? snprintf(out + used, size - used, "%s%s%u",
                                          used > 0 ? "·" : "", field->name,
                                          field->value)
                               : snprintf(out + used, size - used, "%s'%s': %u",
                                          used > 0 ? ", " : "", field->key,
                                          field->value));
    }
}

void mesh_case_name(const struct mesh_case *what, char *out, size_t size)
{
    char from[64], to[64];
    side_text(&what->from, true, from, sizeof(from));
    side_text(&what->to, true, to, sizeof(to));
    snprintf(out, size, "%s → %s, %s (%s%s%s)", from, to,
             what->colocated ? "colocated" : "disaggregated", what->origin,
             what->dtype != NULL ? ", " : "",
             what->dtype != NULL ? what->dtype : "");
}

void mesh_case_members(const struct mesh_case *what, char *out, size_t size)
{
    char from[128], to[128], dtype[64] = "";
    side_text(&what->from, false, from, sizeof(from));
    side_text(&what->to, false, to, sizeof(to));
    if (what->dtype != NULL) {
        snprintf(dtype, sizeof(dtype), ", 'dtype': '%s'", what->dtype);
    }
    snprintf(out, size, "'mode': '%s', 'train': {%s%s}, 'infer': {%s%s}",
             what->colocated ? "colocated" : "disaggregated", from, dtype, to,
             dtype);
}
