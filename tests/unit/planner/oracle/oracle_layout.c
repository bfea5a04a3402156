/*
 * What a rank of Megatron-LM, Hugging Face tensor parallelism, vLLM or SGLang
 * holds, as matrices of element numbers that are joined and sliced like the
 * frameworks join and slice weights.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/planner/oracle/oracle_held.h"

#define LAYER "model.layers.{L}."

/* Tensors that some models join, from which row on and how many in units of a
 * head (0: halves). */
static const struct {
    const char *name, *joined;
    int after_heads, after_kv, heads, kv;
} joined[] = {
    {LAYER "self_attn.q_proj.weight", LAYER "self_attn.qkv_proj.weight", 0, 0,
     1, 0},
    {LAYER "self_attn.k_proj.weight", LAYER "self_attn.qkv_proj.weight", 1, 0,
     0, 1},
    {LAYER "self_attn.v_proj.weight", LAYER "self_attn.qkv_proj.weight", 1, 1,
     0, 1},
    {LAYER "mlp.gate_proj.weight", LAYER "mlp.gate_up_proj.weight", 0, 0, 0, 0},
    {LAYER "mlp.up_proj.weight", LAYER "mlp.gate_up_proj.weight", 1, 0, 0, 0},
    {LAYER "mlp.experts.{E}.gate_proj.weight", LAYER "mlp.experts.gate_up_proj",
     0, 0, 0, 0},
    {LAYER "mlp.experts.{E}.up_proj.weight", LAYER "mlp.experts.gate_up_proj",
     1, 0, 0, 0},
    {LAYER "mlp.experts.{E}.down_proj.weight", LAYER "mlp.experts.down_proj",
     -1, 0, 0, 0},
};

/* One tensor, also if it is part of another; no rows when the model (or the
 * layer) lacks it. */
static struct matrix tensor(const struct oracle *o, const char *name,
                            uint32_t layer, uint32_t expert)
{
    size_t kv = (size_t)o->model->kv_heads * o->model->head_dim;
    size_t heads = (size_t)o->model->heads * o->model->head_dim;
    if (matrix_exists(o, name)) {
        return matrix_of(o, name, layer, expert);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(joined); i++) {
        struct matrix m;
        size_t first, count;
        if (strcmp(joined[i].name, name) != 0 ||
            !matrix_exists(o, joined[i].joined)) {
            continue;
        }
        m = matrix_of(o, joined[i].joined, layer, expert);
        if (m.rows == 0 || joined[i].after_heads < 0) {
            return m;
        }
        first = (size_t)joined[i].after_heads * heads +
                (size_t)joined[i].after_kv * kv;
        count = (size_t)joined[i].heads * heads + (size_t)joined[i].kv * kv;
        if (count == 0) {
            count = m.rows / 2;
            first = (size_t)joined[i].after_heads * count;
        }
        return matrix_rows(m, first, first + count);
    }
    return matrix_new(0, 0);
}

struct oracle_param *oracle_push(struct oracle_rank *rank, size_t n)
{
    struct oracle_param param = {rf_xcalloc(n + 1, sizeof(uint64_t)), n};
    RF_PUSH(rank->params, rank->n, rank->cap, param);
    return &rank->params[rank->n - 1];
}

static struct matrix get(const struct context *c, const char *name)
{
    return tensor(c->o, name, c->layer, 0);
}

static struct matrix expert(const struct context *c, const char *name,
                            uint32_t e)
{
    return tensor(c->o, name, c->layer, e);
}

static struct matrix padding(size_t rows, size_t cols)
{
    struct matrix m = matrix_new(rows, cols);
    for (size_t i = 0; i < rows * cols; i++) {
        m.ids[i] = ORACLE_PAD;
    }
    return m;
}

/* Keys that are the values, too, have rows beside them that nobody reads. */
struct matrix oracle_join_groups(const struct context *c, struct matrix q,
                                 struct matrix k, struct matrix v)
{
    uint32_t groups = c->o->model->kv_heads;
    bool unread = k.rows > 0 && v.rows == 0;
    struct matrix rows = padding(unread ? k.rows : 0, k.cols);
    struct matrix of[] = {q, k, v, rows}, all = matrix_new(0, 0);
    for (uint32_t g = 0; g < groups; g++) {
        for (size_t i = 0; i < RF_ARRAY_SIZE(of); i++) {
            struct matrix part = matrix_row_part(matrix_copy(of[i]), g, groups);
            all = matrix_stack(all, part);
        }
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(of); i++) {
        free(of[i].ids);
    }
    return all.rows == 0 ? all : matrix_row_part(all, c->at.tp, c->side->tp);
}

/* linear_qkv: per query group its queries, key and value, split over TP. */
static struct matrix megatron_qkv(const struct context *c, const char *kind)
{
    char q[64], k[64], v[64];
    snprintf(q, sizeof(q), LAYER "self_attn.q_proj.%s", kind);
    snprintf(k, sizeof(k), LAYER "self_attn.k_proj.%s", kind);
    snprintf(v, sizeof(v), LAYER "self_attn.v_proj.%s", kind);
    return oracle_join_groups(c, get(c, q), get(c, k), get(c, v));
}

/* Rows of a key or value projection when TP may exceed the heads. */
static struct matrix kv_heads(const struct context *c, const char *name)
{
    uint32_t kv = c->o->model->kv_heads, ranks = c->at.heads;
    struct matrix m = get(c, name);
    if (m.rows == 0) {
        return m;
    }
    if (ranks <= kv) {
        return matrix_row_part(m, c->at.head, ranks);
    }
    return matrix_row_part(m, c->at.head / (ranks / kv), kv);
}

static struct matrix split_rows(const struct context *c, const char *name)
{
    struct matrix m = get(c, name);
    return m.rows == 0 ? m : matrix_row_part(m, c->at.tp, c->side->tp);
}

static struct matrix split_columns(const struct context *c, const char *name)
{
    struct matrix m = get(c, name);
    return m.rows == 0 ? m : matrix_column_part(m, c->at.tp, c->side->tp);
}

/* Rows or columns of attention. */
static struct matrix head_rows(const struct context *c, const char *name)
{
    struct matrix m = get(c, name);
    return m.rows == 0 ? m : matrix_row_part(m, c->at.head, c->at.heads);
}

static struct matrix head_columns(const struct context *c, const char *name)
{
    struct matrix m = get(c, name);
    return m.rows == 0 ? m : matrix_column_part(m, c->at.head, c->at.heads);
}

bool oracle_is_engine(const struct context *c)
{
    return c->side->layout == RF_LAYOUT_VLLM ||
           c->side->layout == RF_LAYOUT_SGLANG;
}

static void hold_attention(const struct context *c)
{
    static const char *const kinds[] = {"weight", "bias"};
    bool latent = c->o->model->mla;
    for (int i = 0; i < 2; i++) {
        char q[64], k[64], v[64];
        snprintf(q, sizeof(q), LAYER "self_attn.q_proj.%s", kinds[i]);
        snprintf(k, sizeof(k), LAYER "self_attn.k_proj.%s", kinds[i]);
        snprintf(v, sizeof(v), LAYER "self_attn.v_proj.%s", kinds[i]);
        if (latent) {
            matrix_hold(c->out, head_rows(c, q));
        } else if (c->side->layout == RF_LAYOUT_MEGATRON) {
            matrix_hold(c->out, megatron_qkv(c, kinds[i]));
        } else if (oracle_is_engine(c)) {
            matrix_hold(c->out, matrix_stack(matrix_stack(head_rows(c, q),
                                                          kv_heads(c, k)),
                                             kv_heads(c, v)));
        } else if (i == 0 &&
                   matrix_exists(c->o, LAYER "self_attn.qkv_proj.weight")) {
            matrix_hold(c->out, matrix_stack(matrix_stack(head_rows(c, q),
                                                          kv_heads(c, k)),
                                             kv_heads(c, v)));
        } else {
            matrix_hold(c->out, head_rows(c, q));
            matrix_hold(c->out, kv_heads(c, k));
            matrix_hold(c->out, kv_heads(c, v));
        }
    }
    struct matrix q_a = get(c, LAYER "self_attn.q_a_proj.weight");
    struct matrix kv_a = get(c, LAYER "self_attn.kv_a_proj_with_mqa.weight");
    if (oracle_is_engine(c)) {
        matrix_hold(c->out, matrix_stack(q_a, kv_a));
    } else {
        matrix_hold(c->out, q_a);
        matrix_hold(c->out, kv_a);
    }
    matrix_hold(c->out, head_rows(c, LAYER "self_attn.q_b_proj.weight"));
    matrix_hold(c->out, head_rows(c, LAYER "self_attn.kv_b_proj.weight"));
    matrix_hold(c->out, head_columns(c, LAYER "self_attn.o_proj.weight"));
}

/* gate and up, fused where the framework does; down. */
static void hold_mlp(const struct context *c, const char *prefix)
{
    char gate[80], up[80], down[80];
    snprintf(gate, sizeof(gate), LAYER "%s.gate_proj.weight", prefix);
    snprintf(up, sizeof(up), LAYER "%s.up_proj.weight", prefix);
    snprintf(down, sizeof(down), LAYER "%s.down_proj.weight", prefix);
    struct matrix a = split_rows(c, gate), b = split_rows(c, up);
    if (c->side->layout == RF_LAYOUT_HF &&
        !matrix_exists(c->o, LAYER "mlp.gate_up_proj.weight")) {
        matrix_hold(c->out, a);
        matrix_hold(c->out, b);
    } else {
        matrix_hold(c->out, matrix_stack(a, b));
    }
    matrix_hold(c->out, split_columns(c, down));
}

static void hold_experts(const struct context *c)
{
    static const char gate[] = LAYER "mlp.experts.{E}.gate_proj.weight";
    static const char up[] = LAYER "mlp.experts.{E}.up_proj.weight";
    static const char down[] = LAYER "mlp.experts.{E}.down_proj.weight";
    uint32_t count = c->o->model->n_experts / c->side->ep;
    uint32_t etp = c->side->etp, part = c->at.etp;
    struct matrix w13 = matrix_new(0, 0), w2 = matrix_new(0, 0);
    for (uint32_t e = c->at.ep * count; e < (c->at.ep + 1) * count; e++) {
        struct matrix a = expert(c, gate, e), b = expert(c, up, e);
        struct matrix d = expert(c, down, e);
        a = a.rows ? matrix_row_part(a, part, etp) : a;
        b = b.rows ? matrix_row_part(b, part, etp) : b;
        d = d.rows ? matrix_column_part(d, part, etp) : d;
        switch (c->side->layout) {
        case RF_LAYOUT_HF:
            if (matrix_exists(c->o, LAYER "mlp.experts.gate_up_proj")) {
                w13 = matrix_stack(
                    w13, matrix_stack(a, b)); /* one tensor stays one */
                w2 = matrix_stack(w2, d);
                break;
            }
            matrix_hold(c->out, a);
            matrix_hold(c->out, b);
            matrix_hold(c->out, d);
            break;
        case RF_LAYOUT_VLLM:
        case RF_LAYOUT_SGLANG:
            w13 = matrix_stack(w13, matrix_stack(a, b));
            w2 = matrix_stack(w2, d);
            break;
        default:
            matrix_hold(c->out, matrix_stack(a, b));
            matrix_hold(c->out, d);
            break;
        }
    }
    matrix_hold(c->out, w13);
    matrix_hold(c->out, w2);
}

/* Experts of [in, out] matrices in which gate and up take turns, column by
 * column, and a bias like them. */
static void hold_turns(const struct context *c)
{
    static const char gate_up[] = LAYER "mlp.experts.turns_in_out";
    static const char bias[] = LAYER "mlp.experts.turns_bias";
    static const char down[] = LAYER "mlp.experts.down_in_out";
    uint32_t count = c->o->model->n_experts / c->side->ep;
    uint32_t etp = c->side->etp, part = c->at.etp;
    struct matrix inside[3] = {{0}};
    for (uint32_t e = c->at.ep * count; e < (c->at.ep + 1) * count; e++) {
        struct matrix of[] = {expert(c, gate_up, e), expert(c, bias, e),
                              expert(c, down, e)};
        for (int i = 0; i < 3; i++) {
            if (of[i].rows > 0) {
                of[i] = i == 0 ? matrix_column_part(of[i], part, etp)
                               : matrix_row_part(of[i], part, etp);
            }
            if (c->side->layout != RF_LAYOUT_MEGATRON) {
                inside[i] = matrix_stack(inside[i], of[i]);
            } else {
                matrix_hold(c->out, of[i]);
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        matrix_hold(c->out, inside[i]);
    }
}

/* Experts of [in, out] matrices whose columns are those of gate, then those of
 * up: a rank puts its columns of up behind those of gate, as matrices. */
static void hold_beside(const struct context *c)
{
    static const char name[] = LAYER "mlp.experts.beside_in_out";
    uint32_t count = c->o->model->n_experts / c->side->ep;
    uint32_t etp = c->side->etp, part = c->at.etp;
    struct matrix all = matrix_new(0, 0);
    for (uint32_t e = c->at.ep * count; e < (c->at.ep + 1) * count; e++) {
        struct matrix gate = expert(c, name, e), up = expert(c, name, e);
        if (gate.rows > 0) {
            gate =
                matrix_column_part(matrix_column_part(gate, 0, 2), part, etp);
            up = matrix_column_part(matrix_column_part(up, 1, 2), part, etp);
        }
        gate = matrix_stack(gate, up);
        if (c->side->layout == RF_LAYOUT_MEGATRON) {
            matrix_hold(c->out, gate);
        } else {
            all = matrix_stack(all, gate);
        }
    }
    matrix_hold(c->out, all);
}

static void hold_layer(const struct context *c)
{
    static const char *const whole[] = {
        LAYER "input_layernorm.weight",
        LAYER "post_attention_layernorm.weight",
        LAYER "self_attn.q_norm.weight",
        LAYER "self_attn.k_norm.weight",
        LAYER "self_attn.q_a_layernorm.weight",
        LAYER "self_attn.kv_a_layernorm.weight",
        LAYER "mlp.gate.weight",
        LAYER "mlp.gate.e_score_correction_bias",
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(whole); i++) {
        matrix_hold(c->out, get(c, whole[i]));
    }
    hold_attention(c);
    hold_mlp(c, "mlp");
    hold_mlp(c, "mlp.shared_experts");
    if (c->o->model->n_experts > 0) {
        hold_experts(c);
        hold_turns(c);
        hold_beside(c);
    }
}

void oracle_hold_vocabulary(const struct context *c, const char *name,
                            bool input)
{
    struct matrix m = get(c, name);
    const struct rf_side_spec *train = &c->o->spec->train;
    uint32_t part = input ? c->at.head : c->at.tp;
    uint32_t parts = input ? c->at.heads : c->side->tp, unit = 1;
    if (c->side->layout == RF_LAYOUT_MEGATRON) {
        const struct rf_side_spec *padded =
            c->side->vocab_divisor_given || train->layout != RF_LAYOUT_MEGATRON
                ? c->side
                : train;
        unit = padded->vocab_divisor ? padded->vocab_divisor * padded->tp : 1;
    } else if (oracle_is_engine(c)) {
        unit = 64;
    }
    if (c->side->layout == RF_LAYOUT_SGLANG && /* vLLM would refuse */
        (m.rows + 63) / 64 * 64 % parts != 0) {
        unit = 64 * parts;
    }
    size_t missing = (unit - m.rows % unit) % unit;
    if (m.rows > 0) {
        m = matrix_stack(m, padding(missing, m.cols));
        m = matrix_row_part(m, part, parts);
    }
    matrix_hold(c->out, m);
}

/* What an engine gives a stage: its share and one of those left over, which go
 * backwards from the last stage (SGLang) or from the one before (vLLM). */
static uint32_t engine_share(const struct rf_side_spec *side, uint32_t layers,
                             uint32_t pp)
{
    uint32_t share = layers / side->pp;
    uint32_t from_end = side->layout == RF_LAYOUT_VLLM ? 2 : 1;
    for (uint32_t i = 0; i < layers % side->pp; i++) {
        share += pp == side->pp - (from_end + i);
    }
    return share;
}

/* Layers of each stage. */
static uint32_t layers_of_stage(const struct rf_side_spec *side,
                                uint32_t layers, uint32_t pp)
{
    uint32_t first = side->first_stage_layers, last = side->last_stage_layers;
    uint32_t others = side->pp - (first ? 1 : 0) - (last ? 1 : 0);
    if (side->n_pp_layers > 0) {
        return side->pp_layers[pp];
    }
    if (pp == 0 && first) {
        return first;
    }
    if (pp == side->pp - 1 && last) {
        return last;
    }
    return others == side->pp ? engine_share(side, layers, pp)
                              : (layers - first - last) / others;
}

/* The stage that layer `layer` runs on. A short last stage runs out of layers
 * in its last turns. */
static uint32_t stage_of(const struct rf_side_spec *side, uint32_t layers,
                         uint32_t layer)
{
    uint32_t at = 0;
    for (uint32_t turn = 0;; turn++) {
        for (uint32_t p = 0; p < side->pp; p++) {
            uint32_t all = layers_of_stage(side, layers, p);
            uint32_t each = all / side->vpp;
            if (side->n_pp_layers > side->pp) {
                each = side->pp_layers[turn * side->pp + p];
            } else if (all % side->vpp != 0) {
                each = layers_of_stage(side, layers, 0) / side->vpp;
                each = turn * each > all         ? 0
                       : (turn + 1) * each > all ? all - turn * each
                                                 : each;
            }
            at += each;
            if (layer < at) {
                return p;
            }
        }
    }
}

static struct place place_of(const struct rf_side_spec *side, uint32_t size,
                             uint32_t index)
{
    uint32_t stage = size / side->pp, s = index % stage;
    uint32_t heads = side->tp / side->attention_dp;
    return (struct place){
        .tp = s % side->tp,
        .dp = s / (side->tp * side->cp),
        .pp = index / stage,
        .etp = s % side->etp,
        .ep = s / side->etp % side->ep,
        .head = s % side->tp % heads,
        .heads = heads,
    };
}

static void hold_outside(const struct context *c)
{
    uint32_t last = c->side->pp - 1;
    bool copy = c->at.pp == last && c->o->model->tied_embeddings &&
                c->side->layout != RF_LAYOUT_HF;
    if (c->at.pp == 0 || copy) {
        oracle_hold_vocabulary(c, "model.embed_tokens.weight", c->at.pp == 0);
    }
    if (c->at.pp == last) {
        matrix_hold(c->out, get(c, "model.norm.weight"));
        oracle_hold_vocabulary(c, "lm_head.weight", false);
    }
}

static void hold_stage(const struct oracle *o, const struct rf_side_spec *side,
                       uint32_t size, uint32_t index, struct oracle_rank *out)
{
    struct context c = {.o = o, .side = side, .out = out};
    bool listed = oracle_held != NULL;
    c.at = place_of(side, size, index);
    (listed ? oracle_hold_outside : hold_outside)(&c);
    for (uint32_t l = 0; l < o->model->n_layers; l++) {
        if (stage_of(side, o->model->n_layers, l) == c.at.pp) {
            c.layer = l;
            (listed ? oracle_hold_layer : hold_layer)(&c);
        }
    }
}

void oracle_holdings(const struct oracle *o, enum rf_side which, uint32_t index,
                     struct oracle_rank *out)
{
    const struct rf_side_spec *side = &o->spec->side[which];
    const struct rf_world_mesh *mesh = &o->world->mesh[which];
    for (; index >= mesh->size; side++, mesh++) {
        index -= mesh->size; /* of a pool before this */
    }
    *out = (struct oracle_rank){.params = NULL};
    switch (side->layout) {
    case RF_LAYOUT_MEGATRON:
    case RF_LAYOUT_HF:
    case RF_LAYOUT_VLLM:
    case RF_LAYOUT_SGLANG:
        hold_stage(o, side, mesh->size, index, out);
        break;
    case RF_LAYOUT_FSDP:
        oracle_fsdp2(o, side, index, out);
        break;
    case RF_LAYOUT_FSDP1:
        oracle_fsdp1(o, side, index, out);
        break;
    case RF_LAYOUT_ZERO3:
        oracle_zero3(o, side, index, out);
        break;
    case RF_LAYOUT_SPEC:
        oracle_alpa(o, side, index, out);
        break;
    }
}
