/*
 * What a rank of Megatron-LM, Hugging Face tensor parallelism, vLLM or SGLang
 * holds, as matrices of element numbers that are joined and sliced like the
 * frameworks join and slice weights.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/planner/oracle/oracle_held.h"

#define LAYER "model.layers.{L}."

/* Tensors that some models join, from which row on and how many in units of a
 * head (0: halves). */
static const struct joined {
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

/* The entry of a tensor that the model has only as a part; NULL: none. */
static const struct joined *find_joined(const struct oracle *o,
                                        const char *name)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(joined); i++) {
        if (strcmp(joined[i].name, name) == 0 && !matrix_exists(o, name) &&
            matrix_exists(o, joined[i].joined)) {
            return &joined[i];
        }
    }
    return NULL;
}

bool oracle_is_part(const struct oracle *o, const char *name)
{
    return find_joined(o, name) != NULL;
}

struct matrix oracle_tensor(const struct context *c, const char *name,
                            uint32_t expert)
{
    const struct rf_model *model = c->o->model;
    const struct joined *in = find_joined(c->o, name);
    struct matrix m =
        matrix_of(c->o, in != NULL ? in->joined : name, c->layer, expert);
    size_t kv = (size_t)model->kv_heads * model->head_dim;
    size_t heads = (size_t)model->heads * model->head_dim, first, count;
    if (in == NULL || m.rows == 0 || in->after_heads < 0) {
        return m;
    }
    first = (size_t)in->after_heads * heads + (size_t)in->after_kv * kv;
    count = (size_t)in->heads * heads + (size_t)in->kv * kv;
    if (count == 0) {
        count = m.rows / 2;
        first = (size_t)in->after_heads * count;
    }
    return matrix_rows(m, first, first + count);
}

struct oracle_param *oracle_push(struct oracle_rank *rank, size_t n)
{
    struct oracle_param param = {rf_xcalloc(n + 1, sizeof(uint64_t)), n};
    RF_PUSH(rank->params, rank->n, rank->cap, param);
    return &rank->params[rank->n - 1];
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

bool oracle_is_engine(const struct context *c)
{
    return c->side->layout == RF_LAYOUT_VLLM ||
           c->side->layout == RF_LAYOUT_SGLANG;
}

void oracle_hold_vocabulary(const struct context *c, const char *name,
                            bool input)
{
    struct matrix m = oracle_tensor(c, name, 0);
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

static void hold_stage(const struct oracle *o, const struct rf_side_spec *side,
                       uint32_t size, uint32_t index, struct oracle_rank *out)
{
    struct context c = {.o = o, .side = side, .out = out};
    c.at = place_of(side, size, index);
    oracle_hold_outside(&c);
    for (uint32_t l = 0; l < o->model->n_layers; l++) {
        if (stage_of(side, o->model->n_layers, l) == c.at.pp) {
            c.layer = l;
            oracle_hold_layer(&c);
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
