/* The proof must notice every kind of damage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/plan_prove.h"
#include "tests/lib/plan_proof.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

/* A plan and its n transfers, to be damaged; n + 1 fit. */
static struct planned planned;
static struct rf_transfer *transfers;
static size_t n;

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 2, 'hidden_size': 32, "                       \
    "'num_attention_heads': 8, 'num_query_groups': 4, 'vocab_size': 128, "     \
    "'num_experts': 4, 'moe_ffn_hidden_size': 16, 'swiglu': true}}"
#define SCENARIO                                                               \
    "{'mode': 'disaggregated', 'train': {'tp': 2, 'dp': 2, 'ep': 2, 'etp': "   \
    "1}, 'infer': {'tp': 4, 'layout': 'vllm'}}"

static void set_up(void)
{
    assert_ok(planned_make(&planned, MODEL, SCENARIO, NULL, 0), planned.err);
    transfers = planned_transfers(planned.plan);
    n = planned.plan->n_transfers;
}

static void tear_down(void)
{
    free(transfers);
    planned_free(&planned);
}

static enum rf_status prove(struct rf_err *err)
{
    struct plan_proof proof;
    enum rf_status status = rf_plan_prove_layouts(planned.plan, err);
    plan_proof_start(&proof, planned.plan);
    for (size_t i = 0; i < n && status == RF_OK; i++) {
        status = plan_proof_add(&proof, &transfers[i], err);
    }
    if (status == RF_OK) {
        status = plan_proof_end(&proof, err);
    }
    plan_proof_free(&proof);
    return status;
}

static void assert_refused(const char *what)
{
    struct rf_err err = {0};
    ck_assert_msg(prove(&err) == RF_ERR_INTERNAL, "%s is not noticed", what);
    ck_assert_msg(strncmp(err.text, "proof: ", 7) == 0, "%s", err.text);
}

FIXTURE(set_up, tear_down)

TEST(test_prove_accepts_what_was_planned)
{
    ck_assert_int_eq(plan_prove(planned.plan, NULL), RF_OK);
    ck_assert_int_eq(prove(NULL), RF_OK);
}

TEST(test_prove_notices_a_missing_transfer)
{
    struct rf_transfer *t = transfers;
    memmove(&t[7], &t[8], (n - 8) * sizeof(*t));
    n--;
    assert_refused("a missing transfer");
}

TEST(test_prove_notices_a_missing_last_transfer)
{
    n--;
    assert_refused("a missing last transfer");
}

TEST(test_prove_notices_a_transfer_done_twice)
{
    transfers[5] = transfers[4];
    assert_refused("a transfer done twice");
}

TEST(test_prove_notices_overlap_of_the_right_volume)
{
    /* Two transfers into one piece, of one size. */
    for (size_t i = 1; i < n; i++) {
        struct rf_transfer *a = &transfers[i - 1], *b = a + 1;
        if (a->family == b->family && a->dst == b->dst &&
            rf_box_elements(&a->box) == rf_box_elements(&b->box)) {
            *b = *a;
            assert_refused("an overlap");
            break;
        }
        ck_assert_uint_lt(i + 1, n);
    }
}

TEST(test_prove_notices_a_source_that_lacks_it)
{
    transfers[3].src = transfers[3].dst; /* no trainer */
    assert_refused("a source without the tensor");
    transfers[3].src = UINT32_MAX;
    assert_refused("a source that does not exist");
}

/* Of the same form and in the place of the right one, but of another family. */
TEST(test_prove_notices_a_source_of_another_tensor)
{
    size_t swapped = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rf_transfer whole = transfers[i];
        const struct rf_rank_layout *layout =
            rf_plan_layout(planned.plan, RF_TRAIN, whole.src);
        for (uint32_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            if (piece->family != whole.family &&
                memcmp(piece->stride, whole.src_stride,
                       sizeof(piece->stride)) == 0 &&
                rf_box_contains(&piece->box, &whole.box)) {
                transfers[i].src_piece = p;
                transfers[i].src_offset =
                    rf_piece_offset(piece, whole.box.start);
                assert_refused("a source of another tensor");
                swapped++;
            }
        }
        transfers[i] = whole;
    }
    ck_assert_uint_gt(swapped, 0);
}

TEST(test_prove_notices_a_wrong_address)
{
    struct rf_transfer *t = &transfers[9];
    t->src_offset += 2;
    assert_refused("a wrong source address");
    t->src_offset -= 2;
    t->dst_offset += 2;
    assert_refused("a wrong destination address");
    t->dst_offset -= 2;
    t->dst_stride[RF_DIM_TENSOR] *= 2;
    assert_refused("a wrong stride");
}

TEST(test_prove_notices_a_stray_transfer)
{
    struct rf_transfer last = transfers[n - 1];
    last.dst = 0; /* a trainer */
    transfers[n++] = last;
    assert_refused("a transfer to a rank that needs nothing");
}

static void assert_overlap(void)
{
    struct rf_err err = {0};
    assert_fails(prove(&err), RF_ERR_INTERNAL, err, "pieces overlap");
}

TEST(test_prove_notices_pieces_that_share_memory)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(planned.plan, RF_TRAIN, 0);
    struct rf_piece *piece = &layout->pieces[layout->n_pieces / 2];
    piece->offset += 2; /* into its neighbour */
    assert_overlap();
    piece->offset -= 2;
    piece->stride[RF_DIM_LAYER] = 2; /* layers on top of each other */
    assert_overlap();
}

TEST(test_prove_notices_pieces_of_a_parameter_in_one_place)
{
    struct rf_piece *piece = rf_plan_layout(planned.plan, RF_INFER, 4)->pieces;
    while (piece[0].param != piece[1].param) {
        piece++;
    }
    piece[1].offset = piece[0].offset;
    assert_overlap();
}

TEST(test_prove_notices_parameters_that_share_memory)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(planned.plan, RF_TRAIN, 0);
    for (size_t i = 0; i < layout->n_pieces; i++) {
        if (layout->pieces[i].param > 0) {
            layout->pieces[i].offset -= RF_PARAM_ALIGN;
        }
    }
    assert_overlap();
}

TEST(test_prove_notices_an_arena_that_is_too_short)
{
    struct rf_plan_private *priv = planned.plan->priv;
    uint64_t *arena_bytes = &priv->layouts[RF_TRAIN].layouts[0].arena_bytes;
    struct rf_err err = {0};
    unsigned long long end = 0;
    *arena_bytes = 4096;
    ck_assert_int_eq(prove(&err), RF_ERR_INTERNAL);
    ck_assert_msg(sscanf(err.text,
                         "proof: a layout of 4096 bytes: the last piece ends "
                         "at byte %llu",
                         &end) == 1,
                  "%s", err.text);
    *arena_bytes = end;
    ck_assert_int_eq(prove(NULL), RF_OK);
    *arena_bytes = end - 1;
    assert_refused("an arena that lacks a byte");
}
