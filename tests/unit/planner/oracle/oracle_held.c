/* What a rank holds of the tensors in a list. See oracle_held.h. */
#include "tests/unit/planner/oracle/oracle_held.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define L "model.layers.{L}."

/* A tensor and its bias. */
#define BIASED(tensor, cut)                                                    \
    HELD(tensor ".weight", cut), HELD(tensor ".bias", cut)

/* The llama kin, with all that Megatron-LM's flags add; at the end, experts as
 * test_oracle_parts.c has them. */
static const struct oracle_held held_llama[] = {
    HELD("model.embed_tokens.weight", ORACLE_EMBEDDING),
    HELD("model.embed_positions.weight", ORACLE_FIRST),
    HELD("lm_head.weight", ORACLE_HEAD),
    BIASED("model.norm", ORACLE_LAST),
    BIASED(L "input_layernorm", ORACLE_WHOLE),
    BIASED(L "post_attention_layernorm", ORACLE_WHOLE),
    HELD_ATTENTION(L "self_attn."),
    HELD_LATENT(L "self_attn."),
    BIASED(L "self_attn.q_norm", ORACLE_WHOLE),
    BIASED(L "self_attn.k_norm", ORACLE_WHOLE),
    HELD_MLP(L "mlp."),
    HELD_MLP(L "mlp.shared_experts."),
    BIASED(L "mlp.gate", ORACLE_WHOLE),
    HELD(L "mlp.gate.e_score_correction_bias", ORACLE_WHOLE),
    HELD_EXPERTS(L "mlp.experts.{E}."),
    HELD(L "mlp.experts.turns_in_out", ORACLE_COLUMNS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.turns_bias", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.down_in_out", ORACLE_ROWS, .experts = true,
         .stacked = true),
    HELD(L "mlp.experts.beside_in_out", ORACLE_HALVES, .experts = true,
         .stacked = true),
    {.name = NULL},
};

const struct oracle_held *oracle_held = held_llama;

static struct matrix cut_parts(const struct oracle_held *held, struct matrix m,
                               uint32_t part, uint32_t parts)
{
    struct matrix all = matrix_new(0, 0);
    size_t at = 0;
    for (size_t i = 0; i < 5 && held->parts[i].rows > 0; i++) {
        struct matrix copy = matrix_copy(m);
        uint32_t rows = held->parts[i].rows, units = held->parts[i].units;
        uint32_t pieces = parts <= units ? parts : units;
        copy = matrix_rows(copy, at, at + rows);
        all = matrix_stack(
            all, matrix_row_part(copy, part / (parts / pieces), pieces));
        at += rows;
    }
    oracle_assert(at == m.rows, "%s: %zu of %zu rows", held->name, at, m.rows);
    free(m.ids);
    return all;
}

/* The rank's share of the left half, then that of the right one. */
static struct matrix cut_halves(struct matrix m, uint32_t part, uint32_t parts)
{
    struct matrix right = matrix_copy(m);
    size_t half = m.cols / 2;
    return matrix_stack(
        matrix_column_part(matrix_columns(m, 0, half), part, parts),
        matrix_column_part(matrix_columns(right, half, 2 * half), part, parts));
}

static bool is_plain(const struct context *c, const struct oracle_held *held)
{
    return held->plain && c->side->layout == RF_LAYOUT_SGLANG;
}

/* What the rank has of one tensor. */
static struct matrix share(const struct context *c,
                           const struct oracle_held *held, uint32_t expert)
{
    struct matrix m = oracle_tensor(c, held->name, expert);
    uint32_t part = held->experts ? c->at.etp
                    : held->heads ? c->at.head
                                  : c->at.tp;
    uint32_t parts = held->experts ? c->side->etp
                     : held->heads ? c->at.heads
                                   : c->side->tp;
    uint32_t kv = c->o->model->kv_heads;
    if (m.rows == 0 || is_plain(c, held)) {
        return m;
    }
    switch (held->cut) {
    case ORACLE_ROWS:
    case ORACLE_FIRST_ROWS:
        return matrix_row_part(m, part, parts);
    case ORACLE_COLUMNS:
        return matrix_column_part(m, part, parts);
    case ORACLE_KV:
        return parts <= kv ? matrix_row_part(m, part, parts)
                           : matrix_row_part(m, part / (parts / kv), kv);
    case ORACLE_PARTS:
        return cut_parts(held, m, part, parts);
    case ORACLE_HALVES:
        return cut_halves(m, part, parts);
    case ORACLE_WHOLE:
    case ORACLE_EMBEDDING:
    case ORACLE_HEAD:
    case ORACLE_LAST:
    case ORACLE_FIRST:
    case ORACLE_TABLE:
        break;
    }
    return m;
}

/* Entries from `held` on that become one parameter: those that the framework
 * joins, and those that are one tensor of the model. */
static size_t joined(const struct context *c, const struct oracle_held *held)
{
    bool vllm = oracle_is_engine(c);
    bool fused = vllm || c->side->layout == RF_LAYOUT_MEGATRON ||
                 oracle_is_part(c->o, held->name);
    switch (held->join) {
    case ORACLE_QKV:
        return fused ? 3 : 1;
    case ORACLE_GATE_UP:
        return fused ? 2 : 1;
    case ORACLE_LATENT:
        return vllm ? 2 : 1;
    case ORACLE_ALONE:
        break;
    }
    return 1;
}

static struct matrix join(const struct context *c,
                          const struct oracle_held *held, size_t n,
                          uint32_t expert)
{
    struct matrix all = matrix_new(0, 0);
    if (n == 3 && c->side->layout == RF_LAYOUT_MEGATRON) {
        free(all.ids);
        return oracle_join_groups(c, oracle_tensor(c, held[0].name, 0),
                                  oracle_tensor(c, held[1].name, 0),
                                  oracle_tensor(c, held[2].name, 0));
    }
    for (size_t i = 0; i < n; i++) {
        struct matrix m = share(c, &held[i], expert);
        if (m.rows == 0 && held[i].join == ORACLE_QKV && i == 2) {
            free(m.ids); /* of a layer without values: its keys once more */
            m = share(c, &held[1], expert);
        }
        all = matrix_stack(all, m);
    }
    return all;
}

static void hold_experts(const struct context *c,
                         const struct oracle_held *held, size_t n)
{
    uint32_t count = c->o->model->n_experts / c->side->ep;
    bool stacked = held->stacked || oracle_is_part(c->o, held->name);
    struct matrix all = matrix_new(0, 0);
    for (uint32_t e = c->at.ep * count; e < (c->at.ep + 1) * count; e++) {
        struct matrix m = join(c, held, n, e);
        if (oracle_is_engine(c) ||
            (c->side->layout == RF_LAYOUT_HF && stacked)) {
            all = matrix_stack(all, m);
        } else {
            matrix_hold(c->out, m);
        }
    }
    matrix_hold(c->out, all);
}

/* What lies beside the embedding. */
static void hold_first(const struct context *c, const struct oracle_held *held)
{
    if (held->cut == ORACLE_TABLE && !is_plain(c, held)) {
        oracle_hold_vocabulary(c, held->name, true);
    } else if (held->cut == ORACLE_FIRST || held->cut == ORACLE_FIRST_ROWS ||
               held->cut == ORACLE_TABLE) {
        matrix_hold(c->out, share(c, held, 0));
    }
}

void oracle_hold_layer(const struct context *c)
{
    const struct oracle_held *held = oracle_held;
    while (held->name != NULL) {
        size_t n = joined(c, held);
        if (held->experts) {
            hold_experts(c, held, n);
        } else if (strstr(held->name, "{L}") != NULL) {
            matrix_hold(c->out, join(c, held, n, 0));
        }
        held += n;
    }
}

void oracle_hold_outside(const struct context *c)
{
    uint32_t last = c->side->pp - 1;
    bool copy = c->at.pp == last && c->o->model->tied_embeddings &&
                c->side->layout != RF_LAYOUT_HF;
    for (const struct oracle_held *h = oracle_held; h->name != NULL; h++) {
        if (h->cut == ORACLE_EMBEDDING && c->at.pp == 0 && is_plain(c, h)) {
            matrix_hold(c->out, share(c, h, 0));
        } else if (h->cut == ORACLE_EMBEDDING && (c->at.pp == 0 || copy)) {
            oracle_hold_vocabulary(c, h->name, c->at.pp == 0);
        } else if (h->cut == ORACLE_HEAD && c->at.pp == last) {
            oracle_hold_vocabulary(c, h->name, false);
        } else if (h->cut == ORACLE_LAST && c->at.pp == last) {
            matrix_hold(c->out, share(c, h, 0));
        } else if (c->at.pp == 0) {
            hold_first(c, h);
        }
    }
}
