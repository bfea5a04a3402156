/* Quantising in host memory, rank by rank: what its verification finds, how
 * maxima of shards join, and what it refuses. test_convert.c has the formulas. */
#include "worker/content/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/layout/box.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/worker_lab.h"
#include "worker/content/fill.h"
#include "worker/content/memory_host.h"
#include "worker/content/verify.h"

#define ITERATION 3u
#define MAX_RANKS 2

/* Whole, cut in rows, in columns, and as an engine does, with blocks that are
 * not full at the edges. */
static const struct {
    const char *model, *sides;
    uint32_t ranks;
} cases[] = {
    {"{'tensor': {'name': 'w', 'shape': [200, 160], 'dtype': 'bfloat16'}}",
     "'train': {'layout': 'hf'}, 'infer': {'layout': 'hf'}", 1},
    {"{'tensor': {'name': 'w', 'shape': [256, 320], 'dtype': 'bfloat16'}}",
     "'train': {'layout': 'hf'}, 'infer': {'layout': 'spec', 'mesh': [1, 2], "
     "'spec': ['S1', 'R']}",
     2},
    {"{'tensor': {'name': 'w', 'shape': [200, 256], 'dtype': 'bfloat16'}}",
     "'train': {'layout': 'hf'}, 'infer': {'layout': 'spec', 'mesh': [1, 2], "
     "'spec': ['R', 'S1']}",
     2},
    {"{'megatron': {'num_layers': 2, 'hidden_size': 256, "
     "'num_attention_heads': 2, 'ffn_hidden_size': 256, 'vocab_size': 128, "
     "'swiglu': true}}",
     "'train': {'tp': 2}, 'infer': {'layout': 'vllm', 'tp': 2}", 2},
    {"{'tensor': {'name': 'w', 'shape': [129, 32], 'dtype': 'bfloat16'}}",
     "'train': {'layout': 'hf'}, 'infer': {'layout': 'hf'}", 1},
};

struct bench {
    struct worker_lab lab;
    const struct rf_quant_format *format;
    struct rf_quantize what;
    struct rf_arena arrived, result;
    void *quantizer;
    float *amax; /* of what.joined */
    struct rf_err err;
};

static void must(struct bench *bench, enum rf_status status)
{
    assert_ok(status, bench->err);
}

/* What a right refit leaves on `rank`. */
static void open_bench(struct bench *bench, int index, int format,
                       uint32_t rank)
{
    struct rf_content_job job;
    char scenario[400];
    memset(bench, 0, sizeof(*bench));
    bench->format = &rf_quant_formats[format];
    snprintf(scenario, sizeof(scenario), "{'name': 's', 'quantize': '%s', %s}",
             bench->format->name, cases[index].sides);
    worker_lab_make(&bench->lab, cases[index].model, scenario,
                    cases[index].ranks, 1);
    must(bench, rf_quantize_plan(bench->lab.plan, RF_INFER, rank, &bench->what,
                                 &bench->err));
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
                                         &bench->quantizer, &bench->err));
    bench->amax = rf_xcalloc(bench->what.n_joined, sizeof(*bench->amax));
    if (bench->what.n_joined > 0) {
        must(bench, rf_memory_host.quantizer_amax(bench->quantizer, bench->amax,
                                                  &bench->err));
    }
}

static void close_bench(struct bench *bench)
{
    rf_memory_host.quantizer_destroy(bench->quantizer);
    rf_memory_host.free(&bench->arrived);
    rf_memory_host.free(&bench->result);
    rf_quantize_free(&bench->what);
    worker_lab_free(&bench->lab);
    free(bench->amax);
}

static void run_bench(struct bench *bench)
{
    int64_t ns = 0;
    must(bench, rf_memory_host.quantizer_run(bench->quantizer, bench->amax, &ns,
                                             &bench->err));
    ck_assert_int_gt(ns, 0);
}

/* The suffix of the tensor with the first difference. */
static const char *suffix_of(const struct bench *bench,
                             const struct rf_verify_result *found)
{
    return bench->lab.plan->converted[RF_INFER]
        ->model.families[found->family]
        .suffix;
}

/* What rf_rank_quantize_run() does with messages. */
static void exchange(struct bench *a, struct bench *b)
{
    for (size_t i = 0; i < a->what.n_joined; i++) {
        for (size_t k = 0; k < b->what.n_joined; k++) {
            const struct rf_quantize_joined *x = &a->what.joined[i];
            const struct rf_quantize_joined *y = &b->what.joined[k];
            if (x->family == y->family && x->layer_index == y->layer_index &&
                x->expert == y->expert) {
                a->amax[i] = b->amax[k] = RF_MAX(a->amax[i], b->amax[k]);
            }
        }
    }
}

static void quantised_bench(struct bench *bench, int index, uint32_t rank)
{
    open_bench(bench, index, RF_FP8_BLOCK128, rank);
    run_bench(bench);
}

static void verify(struct bench *bench, uint32_t rank, uint64_t iteration,
                   struct rf_verify_result *out)
{
    const struct rf_content_job job = {.plan = bench->lab.plan,
                                       .side = RF_INFER,
                                       .rank = rank,
                                       .iteration = iteration,
                                       .results = &bench->what,
                                       .arena = &bench->result};
    must(bench, rf_verify(&job, &rf_memory_host, NULL, out, &bench->err));
}

LIMIT(60)

#define N_CASES ((int)RF_ARRAY_SIZE(cases))

LOOP_TEST(test_every_format_on_every_rank_is_verified, N_CASES *RF_QUANTS)
{
    const int index = _i % N_CASES;
    struct bench benches[MAX_RANKS] = {{.format = NULL}};
    const uint32_t n = cases[index].ranks;
    for (uint32_t r = 0; r < n; r++) {
        open_bench(&benches[r], index, _i / N_CASES, r);
    }
    exchange(&benches[0], &benches[n - 1]);
    for (uint32_t r = 0; r < n; r++) {
        struct rf_verify_result found;
        run_bench(&benches[r]);
        verify(&benches[r], r, ITERATION, &found);
        ck_assert_uint_eq(found.mismatched_bytes, 0);
        verify(&benches[r], r, ITERATION + 1, &found);
        ck_assert_uint_gt(found.mismatched_bytes,
                          benches[r].what.value_bytes / 2);
    }
    for (uint32_t r = 0; r < n; r++) {
        close_bench(&benches[r]);
    }
}

/* The largest element is in the second half. */
LOOP_TEST(test_a_tensor_s_scale_from_a_part_of_it_is_wrong, 2)
{
    const int format = _i == 0 ? RF_FP8_TENSOR : RF_NVFP4;
    struct bench bench;
    struct rf_verify_result found;
    open_bench(&bench, 1, format, 0);
    ck_assert_uint_eq(bench.what.n_joined, 1);
    ck_assert(!bench.what.joined[0].whole);
    bench.amax[0] /= 2;
    run_bench(&bench);
    verify(&bench, 0, ITERATION, &found);
    ck_assert_uint_gt(found.mismatched_bytes, sizeof(float));
    close_bench(&bench);
}

/* Of tensors with one scale, whichever has it. */
TEST(test_the_largest_magnitude_of_joined_tensors_counts)
{
    const uint16_t large = 0xC300; /* -128 */
    struct bench bench;
    open_bench(&bench, 3, RF_NVFP4, 0);
    for (size_t i = 0; i < bench.what.n; i++) {
        const struct rf_quantize_matrix *matrix = &bench.what.matrices[i];
        const struct rf_piece *piece =
            &rf_plan_layout(bench.lab.plan, RF_INFER, 0)
                 ->pieces[matrix->source];
        uint8_t *at = (uint8_t *)bench.arrived.base +
                      rf_piece_offset(piece, matrix->box.start);
        uint16_t before;
        memcpy(&before, at, sizeof(before));
        memcpy(at, &large, sizeof(large));
        must(&bench, rf_memory_host.quantizer_amax(bench.quantizer, bench.amax,
                                                   &bench.err));
        for (size_t j = 0; j < bench.what.n_joined; j++) {
            ck_assert_int_eq(bench.amax[j] >= 128, j == matrix->joined);
        }
        memcpy(at, &before, sizeof(before));
    }
    close_bench(&bench);
}

LOOP_TEST(test_infinity_and_nan_are_named, RF_QUANTS * 2)
{
    const uint16_t bad = _i % 2 == 0 ? 0x7F80 : 0xFFC1;
    struct bench bench;
    enum rf_status status;
    int64_t ns = 0;
    open_bench(&bench, 1, _i / 2, 1); /* rows 128 to 256 of [256, 320] */
    memcpy((uint8_t *)bench.arrived.base + 2 * (5 * 320 + 319), &bad,
           sizeof(bad));
    status = bench.what.n_joined > 0
                 ? rf_memory_host.quantizer_amax(bench.quantizer, bench.amax,
                                                 &bench.err)
                 : rf_memory_host.quantizer_run(bench.quantizer, bench.amax,
                                                &ns, &bench.err);
    assert_fails(status, RF_ERR_UNSUPPORTED, bench.err,
                 "element [133, 319] of w is infinite or not a number");
    close_bench(&bench);
}

TEST(test_verification_finds_a_wrong_value_and_names_it)
{
    struct bench bench;
    struct rf_verify_result found;
    uint8_t *at;
    quantised_bench(&bench, 1, 1); /* rows 128 to 256 of [256, 320] */
    at = (uint8_t *)bench.result.base + bench.what.result.pieces[0].offset;
    at[5 * 320 + 319] ^= 1;
    verify(&bench, 1, ITERATION, &found);
    ck_assert_uint_eq(found.mismatched_bytes, 1);
    ck_assert_ptr_null(suffix_of(&bench, &found));
    ck_assert_uint_eq(found.index[0], 128 + 5);
    ck_assert_uint_eq(found.index[1], 319);
    ck_assert_uint_eq(found.found[0], found.expected[0] ^ 1);
    close_bench(&bench);
}

TEST(test_verification_finds_a_wrong_scale_and_names_it)
{
    struct bench bench;
    struct rf_verify_result found;
    quantised_bench(&bench, 1, 1);
    ((uint8_t *)
         bench.result.base)[bench.what.result.pieces[1].offset + 4 * 2] ^= 0x10;
    verify(&bench, 1, ITERATION, &found);
    ck_assert_uint_eq(found.mismatched_bytes, 1);
    ck_assert_str_eq(suffix_of(&bench, &found), "_scale_inv");
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
    quantised_bench(&bench, 1, 1); /* 3 scales and then nothing */
    at = bench.what.result.pieces[1].offset + 4 * 3;
    ((uint8_t *)bench.result.base)[at] ^= 1;
    verify(&bench, 1, ITERATION, &found);
    ck_assert_uint_eq(found.mismatched_bytes, 1);
    ck_assert_uint_eq(found.family, RF_NONE);
    ck_assert_uint_eq(found.index[0], at);
    ck_assert_uint_eq(found.expected[0], rf_poison_byte(ITERATION));
    close_bench(&bench);
}
