/* Walks over pieces, checked element by element. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/box.h"
#include "tests/lib/places.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"
#include "transport/method/runs.h"

/* A small llama: two layers, grouped heads, a vocabulary that needs padding. */
#define MODEL                                                                  \
    "{\"megatron\": {\"num_layers\": 2, \"hidden_size\": 24,"                  \
    " \"num_attention_heads\": 4, \"num_query_groups\": 2,"                    \
    " \"ffn_hidden_size\": 36, \"vocab_size\": 100, \"swiglu\": true,"         \
    " \"untie_embeddings_and_output_weights\": true}}"

/* A family 3 layers × 2 experts × (4, 5, 6). */
static const struct rf_family family = {
    .n_layers = 3, .n_experts = 2, .ndim = 3, .shape = {4, 5, 6}};

static struct rf_box whole_box(void)
{
    struct rf_box box;
    for (int d = 0; d < RF_BOX_DIMS; d++) {
        box.start[d] = 0;
        box.extent[d] = 1;
    }
    box.extent[RF_DIM_LAYER] = 3;
    box.extent[RF_DIM_EXPERT] = 2;
    box.extent[RF_DIM_TENSOR] = 4;
    box.extent[RF_DIM_TENSOR + 1] = 5;
    box.extent[RF_DIM_TENSOR + 2] = 6;
    return box;
}

/* Row-major strides of a box with elements of `item` bytes. */
static void pack(const struct rf_box *box, uint64_t item,
                 uint64_t stride[RF_BOX_DIMS])
{
    for (int d = RF_BOX_DIMS - 1; d >= 0; d--) {
        stride[d] = item;
        item *= box->extent[d];
    }
}

/* Marks, for each (layer, expert, element), at which byte a walk puts it. */
static uint64_t walk_all(const struct rf_box *box,
                         const uint64_t stride[RF_BOX_DIMS], uint32_t item,
                         int64_t where[3][2][120], uint64_t *n_runs)
{
    struct rf_run_walk walk;
    struct rf_stretch run;
    uint64_t elements = 0, last = 0;
    memset(where, 0xFF, sizeof(int64_t) * 3 * 2 * 120);
    *n_runs = 0;
    rf_runs_init(&walk, &family, box, stride, item);
    while (rf_runs_next(&walk, &run)) {
        uint64_t key =
            ((uint64_t)run.layer * 2 + run.expert) * 120 + run.element;
        ck_assert(*n_runs == 0 || key > last);
        last = key;
        for (uint64_t i = 0; i < run.elements; i++) {
            int64_t *at = &where[run.layer][run.expert][run.element + i];
            ck_assert_int_eq(*at, -1);
            *at = (int64_t)(run.offset + i * item);
        }
        elements += run.elements;
        ++*n_runs;
    }
    return elements;
}

static void check_walk(const struct rf_box *box,
                       const uint64_t stride[RF_BOX_DIMS], uint32_t item,
                       uint64_t expected_runs)
{
    static int64_t where[3][2][120];
    uint64_t n_runs, at[RF_BOX_DIMS];
    ck_assert_uint_eq(walk_all(box, stride, item, where, &n_runs),
                      rf_box_elements(box));
    ck_assert_uint_eq(n_runs, expected_runs);
    memcpy(at, box->start, sizeof(at));
    do {
        ck_assert_int_eq(where[at[0]][at[1]][(at[2] * 5 + at[3]) * 6 + at[4]],
                         (int64_t)place_address(box, at, 0, stride));
    } while (place_next(box, at));
}

/* By layer, expert and dimension of the tensor. */
static const struct {
    uint64_t start[5], extent[5];
    uint32_t item;
    uint64_t runs;
} boxes[] = {
    {{0}, {3, 2, 4, 5, 6}, 2, 6},                  /* one a layer and expert */
    {{0, 0, 1}, {3, 2, 2, 5, 6}, 4, 6},            /* rows: still one */
    {{0, 0, 0, 0, 3}, {3, 2, 4, 5, 3}, 2, 6 * 20}, /* columns: one a row */
    {{1, 0, 0, 2}, {2, 2, 4, 2, 6}, 8, 4 * 4}, /* the last dimensions join */
    {{2, 1, 3, 4, 5}, {1, 1, 1, 1, 1}, 2, 1},
};

/* Strides of dimensions with one element do not matter. */
LOOP_TEST(test_a_packed_box_has_as_few_runs_as_can_be, RF_ARRAY_SIZE(boxes))
{
    struct rf_box box = whole_box();
    uint64_t stride[RF_BOX_DIMS];
    memcpy(box.start, boxes[_i].start, sizeof(boxes[_i].start));
    memcpy(box.extent, boxes[_i].extent, sizeof(boxes[_i].extent));
    pack(&box, boxes[_i].item, stride);
    for (int d = 0; d < RF_BOX_DIMS; d++) {
        stride[d] = box.extent[d] > 1 ? stride[d] : 0;
    }
    check_walk(&box, stride, boxes[_i].item, boxes[_i].runs);
}

TEST(test_scattered_memory_breaks_runs_but_not_their_order)
{
    struct rf_box box = whole_box();
    uint64_t stride[RF_BOX_DIMS];
    pack(&box, 2, stride);
    stride[RF_DIM_TENSOR + 1] = 64; /* rows apart */
    stride[RF_DIM_TENSOR] = 5 * 64;
    stride[RF_DIM_EXPERT] = 20 * 64;
    stride[RF_DIM_LAYER] = 40 * 64;
    check_walk(&box, stride, 2, 6 * 20);
    /* Layers inside experts, elements of the last dimension apart. */
    stride[RF_DIM_TENSOR + 2] = 10;
    stride[RF_DIM_LAYER] = 20 * 64;
    stride[RF_DIM_EXPERT] = 60 * 64;
    check_walk(&box, stride, 2, 6 * 120);
}

TEST(test_indices_follow_row_major_order)
{
    uint64_t index[RF_TENSOR_MAX_DIMS];
    rf_runs_index(&family, (2 * 5 + 3) * 6 + 4, index);
    ck_assert_uint_eq(index[0], 2);
    ck_assert_uint_eq(index[1], 3);
    ck_assert_uint_eq(index[2], 4);
    ck_assert_uint_eq(index[3], 0);
}

static const char *const layouts[] = {"megatron", "hf",   "vllm",
                                      "sglang",   "fsdp", "fsdp1"};

/* Marks bytes of an arena element by element, with no idea of runs. */
static void mark_pieces(const struct rf_plan *plan, enum rf_side side,
                        const struct rf_rank_layout *layout, uint8_t *covered)
{
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        uint32_t item = rf_form_item(rf_plan_form(plan, side, piece->family));
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            memset(covered + place_address(&piece->box, at, piece->offset,
                                           piece->stride),
                   1, item);
        } while (place_next(&piece->box, at));
    }
}

LOOP_TEST(test_padding_is_what_no_piece_covers, RF_ARRAY_SIZE(layouts))
{
    AUTO(planned) lab;
    const uint32_t slots[] = {2};
    char scenario[256];
    uint64_t padding = 0;
    snprintf(scenario, sizeof(scenario),
             "{\"name\": \"s\", \"mode\": \"colocated\", \"train\": "
             "{\"layout\": \"%s\"%s}, \"infer\": {\"layout\": \"megatron\", "
             "\"tp\": 2}}",
             layouts[_i], _i < 4 ? ", \"tp\": 2" : "");
    assert_ok(planned_make(&lab, MODEL, scenario, slots, 1), lab.err);
    for (int side = 0; side < RF_SIDES; side++) {
        for (uint32_t r = 0; r < 2; r++) {
            const struct rf_rank_layout *layout =
                rf_plan_layout(lab.plan, (enum rf_side)side, r);
            AUTO_FREE uint8_t *covered = calloc(1, layout->arena_bytes + 1);
            AUTO_FREE struct rf_byte_span *spans = NULL;
            size_t n = 0;
            struct rf_err err;
            mark_pieces(lab.plan, (enum rf_side)side, layout, covered);
            assert_ok(rf_runs_padding(layout, lab.model->families,
                                      layout->arena_bytes, &spans, &n, &err),
                      err);
            for (size_t s = 0; s < n; s++) {
                ck_assert_uint_lt(spans[s].start, spans[s].end);
                for (uint64_t at = spans[s].start; at < spans[s].end; at++) {
                    covered[at]++;
                    padding++;
                }
            }
            for (uint64_t at = 0; at < layout->arena_bytes; at++) {
                if (covered[at] != 1) { /* cheaper than ck_assert */
                    ck_abort_msg("byte %" PRIu64 " is covered %u times", at,
                                 covered[at]);
                }
            }
        }
    }
    ck_assert_uint_gt(padding, 0);
}
