/* Layouts by known addresses, and what makes one impossible. */
#include <string.h>

#include "planner/layout/layout.h"
#include "planner/layout/layout_rules.h"
#include "planner/layout/mesh_rules.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

struct made {
    struct rf_model *model;
    struct rf_spec *spec;
    struct rf_world *world;
    struct rf_layouts layouts;
};

static struct made make(const char *model, const char *train)
{
    struct made m = {.model = quoted_model("%s", model)};
    struct rf_err err = {0};
    m.spec = quoted_spec("'train': {%s}, 'infer': {}", train);
    assert_ok(rf_mesh_rules_place(m.spec, m.model, NULL, 0, &m.world, &err),
              err);
    assert_ok(
        rf_layouts_build(m.model, m.world, m.spec, RF_TRAIN, &m.layouts, &err),
        err);
    return m;
}

static void dispose(struct made *m)
{
    rf_layouts_free(&m->layouts);
    rf_world_destroy(m->world);
    rf_spec_destroy(m->spec);
    rf_model_destroy(m->model);
}
AUTO_STRUCT(made, dispose)

static const struct rf_rank_layout *layout_of(const struct made *m,
                                              uint32_t index)
{
    return &m->layouts.layouts[m->layouts.of_index[index]];
}

/* Piece `n` of the family whose name ends so. */
static const struct rf_piece *piece_of(const struct made *m, uint32_t index,
                                       const char *suffix, size_t n)
{
    const struct rf_rank_layout *layout = layout_of(m, index);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const char *name = m->model->families[layout->pieces[p].family].name;
        size_t length = strlen(name);
        if (length >= strlen(suffix) &&
            strcmp(name + length - strlen(suffix), suffix) == 0 && n-- == 0) {
            return &layout->pieces[p];
        }
    }
    ck_abort_msg("no piece %zu of %s", n, suffix);
    return NULL;
}

static const struct rf_param *param_of(const struct made *m, uint32_t index,
                                       const struct rf_piece *piece)
{
    return &layout_of(m, index)->params[piece->param];
}

static uint64_t within(const struct made *m, uint32_t index,
                       const struct rf_piece *piece)
{
    return piece->offset - param_of(m, index, piece)->offset;
}

#define DENSE                                                                  \
    "{'megatron': {'num_layers': 4, 'hidden_size': 8, "                        \
    "'num_attention_heads': 8, 'num_query_groups': 4, 'kv_channels': 2, "      \
    "'vocab_size': 130, 'ffn_hidden_size': 16, 'swiglu': true}}"
#define SPARSE                                                                 \
    "{'megatron': {'num_layers': 4, 'hidden_size': 8, "                        \
    "'num_attention_heads': 8, 'vocab_size': 128, 'num_experts': 8, "          \
    "'moe_ffn_hidden_size': 4, 'swiglu': true}}"

TEST(test_layout_megatron_interleaves_query_groups)
{
    AUTO(made) m = make(DENSE, "'tp': 2");
    /* Rank 1 has groups 2 and 3, each [4 q, 2 k, 2 v] rows of 8 · 2 bytes. */
    const struct rf_piece *q = piece_of(&m, 1, "q_proj.weight", 1);
    const struct rf_piece *k = piece_of(&m, 1, "k_proj.weight", 0);
    const struct rf_piece *v = piece_of(&m, 1, "v_proj.weight", 1);
    ck_assert_uint_eq(q->box.start[RF_DIM_TENSOR], 12);
    ck_assert_uint_eq(q->box.extent[RF_DIM_TENSOR], 4);
    ck_assert_uint_eq(within(&m, 1, q), 8 * 16);
    ck_assert_uint_eq(k->box.start[RF_DIM_TENSOR], 4);
    ck_assert_uint_eq(within(&m, 1, k), 4 * 16);
    ck_assert_uint_eq(v->box.start[RF_DIM_TENSOR], 6);
    ck_assert_uint_eq(within(&m, 1, v), 14 * 16);
    ck_assert_uint_eq(q->param, v->param);
    ck_assert_str_eq(param_of(&m, 1, q)->name,
                     "model.layers.{L}.self_attn.linear_qkv.weight");
    ck_assert_uint_eq(param_of(&m, 1, q)->bytes, 256);
    ck_assert_uint_eq(param_of(&m, 1, q)->n_instances, 4);
    ck_assert_uint_eq(q->box.extent[RF_DIM_LAYER], 4);
    ck_assert_uint_eq(q->stride[RF_DIM_LAYER], 256);
}

TEST(test_layout_megatron_pads_the_vocabulary)
{
    AUTO(made) m = make(DENSE, "'tp': 2");
    /* 130 rows become 256, 128 a rank. */
    const struct rf_piece *first = piece_of(&m, 0, "embed_tokens.weight", 0);
    const struct rf_piece *second = piece_of(&m, 1, "embed_tokens.weight", 0);
    ck_assert_uint_eq(first->box.extent[RF_DIM_TENSOR], 128);
    ck_assert_uint_eq(second->box.start[RF_DIM_TENSOR], 128);
    ck_assert_uint_eq(second->box.extent[RF_DIM_TENSOR], 2);
    ck_assert_uint_eq(param_of(&m, 1, second)->bytes, 128 * 8 * 2);
}

/* Rows that each of two ranks has memory for, of 151,936. */
static const struct {
    const char *side;
    uint64_t rows;
} paddings[] = {
    {"'tp': 2", 76032},
    {"'tp': 2, 'make_vocab_size_divisible_by': 0", 75968},
    {"'tp': 2, 'make_vocab_size_divisible_by': 64", 75968},
    {"'tp': 2, 'make_vocab_size_divisible_by': 384", 76032},
    {"'tp': 2, 'make_vocab_size_divisible_by': 1280", 76800},
};

LOOP_TEST(test_layout_megatron_pads_as_it_is_told, RF_ARRAY_SIZE(paddings))
{
    struct made m = make("{'megatron': {'num_layers': 1, 'hidden_size': 8, "
                         "'num_attention_heads': 2, 'vocab_size': 151936}}",
                         paddings[_i].side);
    const struct rf_piece *rows = piece_of(&m, 1, "embed_tokens.weight", 0);
    ck_assert_uint_eq(param_of(&m, 1, rows)->bytes, paddings[_i].rows * 8 * 2);
    ck_assert_uint_eq(rows->box.start[RF_DIM_TENSOR], paddings[_i].rows);
    dispose(&m);
}

TEST(test_layout_megatron_last_stage_copies_tied_embeddings)
{
    AUTO(made) m = make(DENSE, "'pp': 2");
    const struct rf_piece *copy = piece_of(&m, 1, "embed_tokens.weight", 0);
    ck_assert_uint_eq(copy->box.extent[RF_DIM_TENSOR], 130);
}

TEST(test_layout_interleaved_stages_have_a_piece_a_chunk)
{
    AUTO(made) m = make(DENSE, "'pp': 2, 'vpp': 2");
    const struct rf_piece *a = piece_of(&m, 1, "down_proj.weight", 0);
    const struct rf_piece *b = piece_of(&m, 1, "down_proj.weight", 1);
    ck_assert_uint_eq(a->box.start[RF_DIM_LAYER], 1);
    ck_assert_uint_eq(b->box.start[RF_DIM_LAYER], 3);
    ck_assert_uint_eq(b->offset - a->offset, a->stride[RF_DIM_LAYER]);
    ck_assert_uint_eq(a->param, b->param);
}

TEST(test_layout_experts_are_one_piece)
{
    AUTO(made) m = make(SPARSE, "'tp': 2, 'ep': 2, 'etp': 1");
    const struct rf_piece *gate =
        piece_of(&m, 1, "experts.{E}.gate_proj.weight", 0);
    const struct rf_piece *up =
        piece_of(&m, 1, "experts.{E}.up_proj.weight", 0);
    ck_assert_uint_eq(gate->box.start[RF_DIM_EXPERT], 4);
    ck_assert_uint_eq(gate->box.extent[RF_DIM_EXPERT], 4);
    ck_assert_uint_eq(gate->box.extent[RF_DIM_LAYER], 4);
    ck_assert_uint_eq(up->offset - gate->offset, 4 * 16); /* [gate; up] */
    ck_assert_uint_eq(gate->stride[RF_DIM_EXPERT], 256);
    ck_assert_uint_eq(gate->stride[RF_DIM_LAYER], 4 * 256);
}

TEST(test_layout_vllm_joins_experts_without_gaps)
{
    AUTO(made) m = make(SPARSE, "'tp': 2, 'ep': 2, 'layout': 'vllm'");
    const struct rf_piece *gate =
        piece_of(&m, 0, "experts.{E}.gate_proj.weight", 0);
    ck_assert_uint_eq(gate->stride[RF_DIM_EXPERT], 8 * 16); /* 2 · 4 rows */
    ck_assert_str_eq(param_of(&m, 0, gate)->name,
                     "model.layers.{L}.mlp.experts.w13.weight");
    ck_assert_uint_eq(param_of(&m, 0, gate)->bytes, 4 * 8 * 16);
}

TEST(test_layout_vllm_repeats_key_value_heads)
{
    AUTO(made) m = make(DENSE, "'tp': 8, 'layout': 'vllm'");
    for (uint32_t rank = 0; rank < 8; rank++) {
        const struct rf_piece *k = piece_of(&m, rank, "k_proj.weight", 0);
        ck_assert_uint_eq(k->box.start[RF_DIM_TENSOR], rank / 2 * 2);
        ck_assert_uint_eq(k->box.extent[RF_DIM_TENSOR], 2);
    }
}

/* The 90 blocks of gpt-oss over eight ranks: seven of 12 and one of 6. */
TEST(test_layout_vllm_deals_packed_blocks)
{
    AUTO(made) m = make(
        "{'config': {'model_type': 'gpt_oss', 'num_hidden_layers': 1, "
        "'hidden_size': 64, 'num_attention_heads': 8, 'num_key_value_heads': "
        "8, 'head_dim': 8, 'vocab_size': 64, 'intermediate_size': 2880, "
        "'num_local_experts': 2, 'quantization_config': {'quant_method': "
        "'mxfp4'}}}",
        "'tp': 8, 'layout': 'vllm'");
    for (uint32_t rank = 0; rank < 8; rank++) {
        const struct rf_piece *up =
            piece_of(&m, rank, "gate_up_proj_scales", 0);
        const struct rf_piece *bias =
            piece_of(&m, rank, "gate_up_proj_bias", 0);
        const struct rf_piece *down = piece_of(&m, rank, "down_proj_blocks", 0);
        uint64_t blocks = rank < 7 ? 12 : 6;
        ck_assert_uint_eq(down->box.start[RF_DIM_TENSOR + 1], 12 * rank);
        ck_assert_uint_eq(down->box.extent[RF_DIM_TENSOR + 1], blocks);
        ck_assert_uint_eq(up->box.start[RF_DIM_TENSOR], 12 * rank * 64);
        ck_assert_uint_eq(up->box.extent[RF_DIM_TENSOR], blocks * 64);
        ck_assert_uint_eq(bias->box.extent[RF_DIM_TENSOR], blocks * 64);
    }
}

#define BESIDE                                                                 \
    "{'config': {'model_type': 'x', 'num_hidden_layers': 2}, 'rules': "        \
    "{'tensors': [{'name': 'model.layers.{L}.w', 'role': 'column', "           \
    "'shape': [8, 4]}, {'name': 'mtp.{L}.w', 'role': 'column', "               \
    "'shape': [8, 4], 'layers': [0, 2]}, {'name': 'tower.{L}.w', "             \
    "'role': 'row', 'shape': [8, 4], 'layers': [0, 3], 'stage': 'first'}]}}"

TEST(test_layout_layers_beside_the_decoder_lie_on_their_stage)
{
    AUTO(made) m = make(BESIDE, "'tp': 2, 'pp': 2");
    const struct rf_piece *mtp = piece_of(&m, 2, "mtp.{L}.w", 0);
    const struct rf_piece *tower = piece_of(&m, 1, "tower.{L}.w", 0);
    ck_assert_uint_eq(mtp->box.extent[RF_DIM_LAYER], 2);
    ck_assert_uint_eq(mtp->box.extent[RF_DIM_TENSOR], 4);
    ck_assert_uint_eq(tower->box.extent[RF_DIM_LAYER], 3);
    ck_assert_uint_eq(tower->box.start[RF_DIM_TENSOR + 1], 2);
    ck_assert_uint_eq(piece_of(&m, 3, "layers.{L}.w", 0)->box.start[0], 1);
    for (uint32_t rank = 0; rank < 4; rank++) {
        ck_assert_uint_eq(layout_of(&m, rank)->n_pieces, 2);
    }
}

TEST(test_layout_fsdp1_layers_beside_the_decoder_are_units)
{
    AUTO(made) m = make(BESIDE, "'dp': 2, 'layout': 'fsdp1'");
    ck_assert_uint_eq(layout_of(&m, 1)->n_params, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(layout_of(&m, 1)->params[i].bytes, 8 * 4);
    }
    ck_assert_uint_eq(layout_of(&m, 1)->params[0].n_instances, 2);
    ck_assert_uint_eq(layout_of(&m, 1)->params[1].n_instances, 2);
    ck_assert_uint_eq(layout_of(&m, 1)->params[2].n_instances, 3);
}

TEST(test_layout_fsdp_last_chunks_are_short_or_empty)
{
    struct made m = make("{'manifest': {'x': {'shape': [10, 3], 'dtype': "
                         "'F32'}}}",
                         "'dp': 6, 'layout': 'fsdp'");
    /* Chunks of 2 rows: five ranks have one, the sixth nothing at all. */
    ck_assert_uint_eq(piece_of(&m, 4, "x", 0)->box.start[RF_DIM_TENSOR], 8);
    ck_assert_uint_eq(layout_of(&m, 5)->n_pieces, 0);
    ck_assert_uint_eq(layout_of(&m, 5)->n_params, 0);
    ck_assert_uint_eq(layout_of(&m, 5)->arena_bytes, 0);
    dispose(&m);
}

TEST(test_layout_fsdp1_cuts_inside_rows)
{
    struct made m = make("{'manifest': {'x': {'shape': [4, 5], 'dtype': "
                         "'F32'}}}",
                         "'dp': 3, 'layout': 'fsdp1'");
    /* 20 elements padded to 21, 7 a rank: rank 1 has elements 7 to 13. */
    const struct rf_piece *a = piece_of(&m, 1, "x", 0);
    const struct rf_piece *b = piece_of(&m, 1, "x", 1);
    ck_assert_uint_eq(a->box.start[RF_DIM_TENSOR], 1);
    ck_assert_uint_eq(a->box.start[RF_DIM_TENSOR + 1], 2);
    ck_assert_uint_eq(a->box.extent[RF_DIM_TENSOR + 1], 3);
    ck_assert_uint_eq(a->offset, 0);
    ck_assert_uint_eq(b->box.start[RF_DIM_TENSOR], 2);
    ck_assert_uint_eq(b->box.extent[RF_DIM_TENSOR + 1], 4);
    ck_assert_uint_eq(b->offset, 12);
    ck_assert_uint_eq(param_of(&m, 2, piece_of(&m, 2, "x", 0))->bytes, 28);
    dispose(&m);
}

TEST(test_layout_zero3_cuts_each_tensor)
{
    struct made m = make("{'manifest': {'x': {'shape': [4, 5], 'dtype': "
                         "'F32'}, 'y': {'shape': [2], 'dtype': 'F32'}}}",
                         "'dp': 6, 'dp_replicate': 2, 'layout': 'zero3'");
    /* x: 20 elements padded to 21, 7 for each of the group's 3 ranks; y: 1, 1
     * and nothing but padding. */
    const struct rf_piece *x = piece_of(&m, 1, "x", 0);
    ck_assert_uint_eq(x->box.start[RF_DIM_TENSOR], 1);
    ck_assert_uint_eq(x->box.start[RF_DIM_TENSOR + 1], 2);
    ck_assert_uint_eq(piece_of(&m, 1, "y", 0)->box.start[RF_DIM_TENSOR], 1);
    ck_assert_uint_eq(layout_of(&m, 2)->n_params, 2);
    ck_assert_uint_eq(param_of(&m, 2, piece_of(&m, 2, "x", 0))->bytes, 28);
    ck_assert_uint_eq(m.layouts.n_layouts, 3);
    ck_assert_uint_eq(m.layouts.of_index[1], m.layouts.of_index[4]);
    dispose(&m);
}

TEST(test_layout_replicas_share)
{
    AUTO(made) m = make(SPARSE, "'tp': 2, 'dp': 4, 'ep': 2, 'etp': 2");
    ck_assert_uint_eq(m.layouts.n_indices, 8);
    ck_assert_uint_eq(m.layouts.n_layouts, 4);
    ck_assert_uint_eq(m.layouts.of_index[0], m.layouts.of_index[4]);
}

TEST(test_layout_stages_say_which_rule_they_break)
{
    const struct rf_layout_ops *ops = rf_layout_ops_of(RF_LAYOUT_MEGATRON);
    struct rf_side_spec side = {.pp = 3, .vpp = 1};
    struct rf_err err = {0};
    uint32_t listed[] = {2, 2, 2};
    assert_fails(rf_stage_starts(ops, &side, 8, NULL, &err), RF_ERR_CONFIG, err,
                 "8 layers, less those set");
    side.pp_layers = listed;
    side.n_pp_layers = 3;
    assert_fails(rf_stage_starts(ops, &side, 8, NULL, &err), RF_ERR_CONFIG, err,
                 "pp_layers");
    assert_ok(rf_stage_starts(ops, &side, 6, NULL, &err), err);
    side.vpp = 4;
    assert_fails(rf_stage_starts(ops, &side, 6, NULL, &err), RF_ERR_CONFIG, err,
                 "vpp");
}

/* Layers of the virtual stages, in their order. */
static const struct {
    enum rf_layout_kind layout;
    uint32_t layers, pp, vpp, listed[8], want[16];
} stages[] = {
    {RF_LAYOUT_VLLM, 30, 4, 1, {0}, {7, 8, 8, 7}},
    {RF_LAYOUT_SGLANG, 30, 4, 1, {0}, {7, 7, 8, 8}},
    {RF_LAYOUT_VLLM, 61, 2, 1, {0}, {31, 30}},
    {RF_LAYOUT_SGLANG, 61, 2, 1, {0}, {30, 31}},
    {RF_LAYOUT_VLLM, 61, 8, 1, {0}, {7, 7, 8, 8, 8, 8, 8, 7}},
    {RF_LAYOUT_SGLANG, 61, 8, 1, {0}, {7, 7, 7, 8, 8, 8, 8, 8}},
    {RF_LAYOUT_VLLM, 31, 4, 1, {0}, {8, 8, 8, 7}},
    {RF_LAYOUT_SGLANG, 31, 4, 1, {31, 0, 0, 0}, {31, 0, 0, 0}},
    /* DeepSeek-V3 as Megatron-Bridge trains it */
    {RF_LAYOUT_MEGATRON,
     61,
     4,
     4,
     {16, 16, 16, 13},
     {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}},
    {RF_LAYOUT_MEGATRON,
     61,
     8,
     2,
     {8, 8, 8, 8, 8, 8, 8, 5},
     {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}},
    {RF_LAYOUT_MEGATRON, 12, 2, 4, {8, 4}, {2, 1, 2, 1, 2, 1, 2, 1}},
    {RF_LAYOUT_MEGATRON, 11, 2, 4, {8, 3}, {2, 2, 2, 1, 2, 0, 2, 0}},
    {RF_LAYOUT_MEGATRON, 9, 2, 2, {3, 4, 2, 0}, {3, 4, 2, 0}},
};

LOOP_TEST(test_layout_stages_of_layers_that_they_do_not_divide,
          RF_ARRAY_SIZE(stages))
{
    uint32_t listed[8], starts[17], n = 0;
    struct rf_side_spec side = {.pp = stages[_i].pp, .vpp = stages[_i].vpp};
    struct rf_err err = {0};
    memcpy(listed, stages[_i].listed, sizeof(listed));
    while (n < RF_ARRAY_SIZE(listed) && listed[0] != 0 &&
           (n < side.pp || listed[n] != 0)) {
        n++;
    }
    side.pp_layers = listed;
    side.n_pp_layers = n > side.pp ? side.pp * side.vpp : n;
    assert_ok(rf_stage_starts(rf_layout_ops_of(stages[_i].layout), &side,
                              stages[_i].layers, starts, &err),
              err);
    for (uint32_t i = 0; i < side.pp * side.vpp; i++) {
        struct rf_layer_run run =
            rf_stage_chunk(&side, starts, i % side.pp, i / side.pp);
        ck_assert_uint_eq(run.first, starts[i]);
        ck_assert_uint_eq(run.count, stages[_i].want[i]);
    }
}

/* What rf_layouts_build says of a world that nobody checked. */
static const char *layout_error(const char *model_text, const char *good,
                                void (*spoil)(struct rf_side_spec *side))
{
    static struct rf_err err;
    AUTO(made) m = make(model_text, good);
    err = (struct rf_err){.status = RF_OK};
    rf_layouts_free(&m.layouts);
    spoil(&m.spec->train);
    ck_assert_int_eq(
        rf_layouts_build(m.model, m.world, m.spec, RF_TRAIN, &m.layouts, &err),
        RF_ERR_CONFIG);
    ck_assert_ptr_null(m.layouts.layouts);
    return err.text;
}

static void tp_three(struct rf_side_spec *side)
{
    side->tp = 3;
}

static void ep_three(struct rf_side_spec *side)
{
    side->ep = 3;
}

static void one_word(struct rf_side_spec *side)
{
    side->n_spec = 1;
}

TEST(test_layout_refuses_what_does_not_divide)
{
    assert_says(layout_error(DENSE, "'tp': 2", tp_three), "tp 3");
    assert_says(layout_error(DENSE, "'tp': 2, 'layout': 'hf'", tp_three),
                "over 3 ranks");
    assert_says(layout_error(SPARSE, "'ep': 2", ep_three),
                "do not divide over ep 3");
    assert_says(layout_error("{'tensor': {'shape': [4, 4]}}",
                             "'layout': 'spec', 'mesh': [2, 1], 'spec': "
                             "'S0R'",
                             one_word),
                "2 dimensions");
}

TEST(test_layout_refuses_empty_shards_of_a_spec)
{
    struct rf_err err = {0};
    AUTO(rf_model) *model = quoted_model("{'tensor': {'shape': [5, 4]}}");
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {'layout': 'spec', 'mesh': [4, 1], 'spec': "
                    "'S0R'}, 'infer': {'layout': 'spec', 'mesh': [1, 4], "
                    "'spec': 'RS1'}");
    AUTO(rf_world) *world = NULL;
    struct rf_layouts layouts = {.layouts = NULL};
    /* Chunks of two: 2, 2, 1 and nothing. */
    assert_ok(rf_mesh_rules_place(spec, model, NULL, 0, &world, &err), err);
    assert_fails(rf_layouts_build(model, world, spec, RF_TRAIN, &layouts, &err),
                 RF_ERR_CONFIG, err, "the last shard would be empty");
}

TEST(test_layout_refuses_a_flat_unit_of_mixed_sizes)
{
    struct rf_err err = {0};
    AUTO(rf_model) *model =
        quoted_model("{'manifest': {'a': {'shape': [8], 'dtype': 'BF16'}, "
                     "'b': {'shape': [8], 'dtype': 'F32'}}}");
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {'layout': 'fsdp1', 'dp': 2}, 'infer': {}");
    AUTO(rf_world) *world = NULL;
    struct rf_layouts layouts = {.layouts = NULL};
    assert_ok(rf_mesh_rules_place(spec, model, NULL, 0, &world, &err), err);
    assert_fails(rf_layouts_build(model, world, spec, RF_TRAIN, &layouts, &err),
                 RF_ERR_CONFIG, err, "different sizes");
    spec->train.dtype_given = true;
    spec->train.dtype = RF_F32;
    assert_ok(rf_layouts_build(model, world, spec, RF_TRAIN, &layouts, &err),
              err);
    rf_layouts_free(&layouts);
}

TEST(test_layout_refuses_arenas_beyond_63_bits)
{
    struct rf_err err = {0};
    /* 2^61 bytes as they are, 2^64 as eight-byte elements. */
    AUTO(rf_model) *model = quoted_model(
        "{'tensor': {'shape': [2147483648, 1073741824], 'dtype': 'int8'}}");
    AUTO(rf_spec) *spec = quoted_spec("'train': {}, 'infer': {}");
    AUTO(rf_world) *world = NULL;
    struct rf_layouts layouts = {.layouts = NULL};
    assert_ok(rf_mesh_rules_place(spec, model, NULL, 0, &world, &err), err);
    spec->train.dtype_given = true;
    spec->train.dtype = RF_F64;
    assert_fails(rf_layouts_build(model, world, spec, RF_TRAIN, &layouts, &err),
                 RF_ERR_CONFIG, err, "2^63");
}
