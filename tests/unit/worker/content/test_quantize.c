/* Quantising in host memory against the formula, element by element, and what
 * its verification must find. */
#include "worker/content/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fp8.h"
#include "common/mem.h"
#include "common/pattern.h"
#include "planner/layout/box.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/worker_lab.h"
#include "worker/content/fill.h"
#include "worker/content/memory_host.h"

#define ITERATION 3u

/* Whole, cut in rows and in columns, with blocks that are not full at the
 * edges. */
static const struct {
    const char *model, *scenario;
    uint32_t ranks;
} cases[] = {
    {"{'tensor': {'name': 'w', 'shape': [200, 130], 'dtype': 'bfloat16'}}",
     "{'name': 's', 'train': {'layout': 'hf'}, 'infer': {'layout': 'hf', "
     "'quantize': 'amax_448'}}",
     1},
    {"{'tensor': {'name': 'w', 'shape': [256, 300], 'dtype': 'bfloat16'}}",
     "{'name': 's', 'train': {'layout': 'hf'}, 'infer': {'layout': 'spec', "
     "'mesh': [1, 2], 'spec': ['S1', 'R'], 'quantize': 'amax_448'}}",
     2},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 256, "
     "'num_attention_heads': 2, 'ffn_hidden_size': 256, 'vocab_size': 128}}",
     "{'name': 's', 'train': {'tp': 2}, 'infer': {'layout': 'vllm', 'tp': 2, "
     "'quantize': 'amax_448'}}",
     2},
};

struct bench {
    struct worker_lab lab;
    struct rf_quantize what;
    struct rf_arena arrived, result;
    struct rf_err err;
};

static void must(struct bench *bench, enum rf_status status)
{
    assert_ok(status, bench->err);
}

/* What a right refit leaves on `rank`, quantised. */
static void open_bench(struct bench *bench, int index, uint32_t rank)
{
    struct rf_content_job job;
    void *quantizer = NULL;
    int64_t ns = 0;
    memset(bench, 0, sizeof(*bench));
    worker_lab_make(&bench->lab, cases[index].model, cases[index].scenario,
                    cases[index].ranks, 1);
    must(bench,
         rf_quantize_plan(bench->lab.plan, rank, &bench->what, &bench->err));
    ck_assert_uint_gt(bench->what.n, 0);
    must(bench,
         rf_memory_host.alloc(
             rf_plan_layout(bench->lab.plan, RF_INFER, rank)->arena_bytes,
             &bench->arrived, &bench->err));
    must(bench, rf_memory_host.alloc(bench->what.result.arena_bytes,
                                     &bench->result, &bench->err));
    job = (struct rf_content_job){.plan = bench->lab.plan,
                                  .side = RF_INFER,
                                  .rank = rank,
                                  .iteration = ITERATION,
                                  .arena = &bench->arrived};
    must(bench, rf_fill(&job, &rf_memory_host, NULL, &bench->err));
    must(bench, rf_memory_host.poison(ITERATION, &bench->result, &bench->err));
    must(bench,
         rf_memory_host.quantizer_create(&job, &bench->what, &bench->result,
                                         &quantizer, &bench->err));
    must(bench, rf_memory_host.quantizer_run(quantizer, &ns, &bench->err));
    ck_assert_int_gt(ns, 0);
    rf_memory_host.quantizer_destroy(quantizer);
}

static void close_bench(struct bench *bench)
{
    rf_memory_host.free(&bench->arrived);
    rf_memory_host.free(&bench->result);
    rf_quantize_free(&bench->what);
    worker_lab_free(&bench->lab);
}

static void verify(struct bench *bench, uint32_t rank, uint64_t iteration,
                   struct rf_verify_result *out)
{
    const struct rf_content_job job = {.plan = bench->lab.plan,
                                       .side = RF_INFER,
                                       .rank = rank,
                                       .iteration = iteration,
                                       .arena = &bench->result};
    memset(out, 0, sizeof(*out));
    must(bench, rf_quantizer_verify(&job, &bench->what, &rf_memory_host, out,
                                    &bench->err));
}

static float element(const struct bench *bench, uint32_t rank, size_t matrix,
                     uint64_t row, uint64_t column)
{
    const struct rf_piece *piece =
        &rf_plan_layout(bench->lab.plan, RF_INFER, rank)
             ->pieces[bench->what.sources[matrix]];
    const uint64_t *start = bench->what.result.pieces[2 * matrix].box.start;
    uint16_t bits;
    memcpy(&bits,
           (const uint8_t *)bench->arrived.base +
               rf_piece_offset(piece, start) + row * piece->stride[2] +
               column * piece->stride[3],
           sizeof(bits));
    return rf_bf16_to_f32(bits);
}

/* One element and its block, as the formula reads. */
static void check_element(const struct bench *bench, uint32_t rank,
                          size_t matrix, uint64_t row, uint64_t column)
{
    const struct rf_piece *pieces = &bench->what.result.pieces[2 * matrix];
    const uint64_t rows = pieces->box.extent[2];
    const uint64_t columns = pieces->box.extent[3];
    const uint8_t *result = bench->result.base;
    const uint64_t top = row / 128 * 128, left = column / 128 * 128;
    float amax = 1e-4f, scale_inv;
    for (uint64_t r = top; r < RF_MIN(top + 128, rows); r++) {
        for (uint64_t c = left; c < RF_MIN(left + 128, columns); c++) {
            amax = fmaxf(amax, fabsf(element(bench, rank, matrix, r, c)));
        }
    }
    memcpy(&scale_inv,
           result + pieces[1].offset +
               4 * (row / 128 * ((columns + 127) / 128) + column / 128),
           4);
    ck_assert_float_eq(scale_inv, amax / 448.0f);
    ck_assert_uint_eq(result[pieces[0].offset + row * columns + column],
                      rf_f32_to_e4m3(element(bench, rank, matrix, row, column) *
                                     (448.0f / amax)));
}

LIMIT(60)

LOOP_TEST(test_quantized_values_follow_the_formula, RF_ARRAY_SIZE(cases))
{
    for (uint32_t rank = 0; rank < cases[_i].ranks; rank++) {
        struct bench bench;
        struct rf_verify_result found;
        open_bench(&bench, _i, rank);
        for (size_t i = 0; i < bench.what.n; i++) {
            const uint64_t *size = bench.what.result.pieces[2 * i].box.extent;
            for (uint64_t r = 0; r < size[2]; r += 43) {
                for (uint64_t c = 0; c < size[3]; c += 61) {
                    check_element(&bench, rank, i, r, c);
                }
            }
            check_element(&bench, rank, i, size[2] - 1, size[3] - 1);
        }
        verify(&bench, rank, ITERATION, &found);
        ck_assert_uint_eq(found.mismatched_bytes, 0);
        close_bench(&bench);
    }
}

TEST(test_verification_finds_a_wrong_value_and_names_it)
{
    struct bench bench;
    struct rf_verify_result found;
    uint8_t *at;
    open_bench(&bench, 1, 1); /* rows 128 to 256 of [256, 300] */
    at = (uint8_t *)bench.result.base + bench.what.result.pieces[0].offset;
    at[5 * 300 + 299] ^= 1;
    verify(&bench, 1, ITERATION, &found);
    ck_assert_uint_eq(found.mismatched_bytes, 1);
    ck_assert_str_eq(found.suffix, " (fp8)");
    ck_assert_uint_eq(found.index[0], 128 + 5);
    ck_assert_uint_eq(found.index[1], 299);
    ck_assert_uint_eq(found.found[0], found.expected[0] ^ 1);
    close_bench(&bench);
}

TEST(test_verification_finds_a_wrong_scale_and_names_it)
{
    struct bench bench;
    struct rf_verify_result found;
    open_bench(&bench, 1, 1);
    ((uint8_t *)
         bench.result.base)[bench.what.result.pieces[1].offset + 4 * 2] ^= 0x10;
    verify(&bench, 1, ITERATION, &found);
    ck_assert_uint_eq(found.mismatched_bytes, 1);
    ck_assert_str_eq(found.suffix, " (scale_inv)");
    ck_assert_uint_eq(found.index[0], 1);
    ck_assert_uint_eq(found.index[1], 2);
    ck_assert_uint_eq(found.item_bytes, 4);
    close_bench(&bench);
}

TEST(test_verification_finds_a_byte_written_between_parts)
{
    struct bench bench;
    struct rf_verify_result found;
    uint64_t at;
    open_bench(&bench, 1, 1); /* 3 scales and then nothing */
    at = bench.what.result.pieces[1].offset + 4 * 3;
    ((uint8_t *)bench.result.base)[at] ^= 1;
    verify(&bench, 1, ITERATION, &found);
    ck_assert_uint_eq(found.mismatched_bytes, 1);
    ck_assert_uint_eq(found.family, RF_NONE);
    ck_assert_uint_eq(found.index[0], at);
    ck_assert_uint_eq(found.expected[0], rf_poison_byte(ITERATION));
    close_bench(&bench);
}

TEST(test_result_of_another_round_is_wrong)
{
    struct bench bench;
    struct rf_verify_result found;
    open_bench(&bench, 0, 0);
    verify(&bench, 0, ITERATION + 1, &found);
    ck_assert_uint_gt(found.mismatched_bytes, 200 * 130 / 2);
    close_bench(&bench);
}
