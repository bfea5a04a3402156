/* Fill and verify against an oracle that knows neither runs nor words: it looks
 * every element of every piece up by its index. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/lib/places.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/worker_lab.h"
#include "worker/content/content.h"
#include "worker/content/fill.h"
#include "worker/content/memory_host.h"
#include "worker/content/reference_cast.h"
#include "worker/content/verify.h"

#define ITERATION 6

/* One element of the training side's pattern, cast to a side's dtype. */
static void element_of(const struct rf_plan *plan, enum rf_side side,
                       uint32_t family, uint64_t layer, uint64_t expert,
                       uint64_t element, uint64_t iteration, uint8_t *out)
{
    enum rf_dtype train = rf_plan_form(plan, RF_TRAIN, family).dtype;
    enum rf_dtype own = rf_plan_form(plan, side, family).dtype;
    uint64_t seed = rf_pattern_seed(family, layer, expert);
    uint8_t stored[8];
    for (uint32_t b = 0; b < rf_dtype_bytes(train); b++) {
        stored[b] = rf_pattern_byte(seed, iteration,
                                    element * rf_dtype_bytes(train) + b);
    }
    rf_reference_cast_elements(train, own, stored, out, 1);
}

/* What an arena has to hold, padding as it was. */
static void oracle(const struct rf_plan *plan, enum rf_side side, uint32_t rank,
                   uint64_t iteration, uint8_t *arena)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, side, rank);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        const struct rf_family *family = &plan->model->families[piece->family];
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            uint64_t element = 0;
            for (uint32_t d = 0; d < family->ndim; d++) {
                element = element * family->shape[d] + at[RF_DIM_TENSOR + d];
            }
            element_of(plan, side, piece->family, at[RF_DIM_LAYER],
                       at[RF_DIM_EXPERT], element, iteration,
                       arena + place_address(&piece->box, at, piece->offset,
                                             piece->stride));
        } while (place_next(&piece->box, at));
    }
}

static struct rf_arena make_arena(const struct rf_plan *plan, enum rf_side side,
                                  uint32_t rank)
{
    struct rf_arena arena;
    struct rf_err err;
    assert_ok(rf_memory_host.alloc(
                  rf_plan_layout(plan, side, rank)->arena_bytes, &arena, &err),
              err);
    return arena;
}

static enum rf_status fill(const struct rf_plan *plan, enum rf_side side,
                           uint32_t rank, struct rf_arena *arena,
                           struct rf_err *err)
{
    const struct rf_content_job job = {.plan = plan,
                                       .side = side,
                                       .rank = rank,
                                       .iteration = ITERATION,
                                       .arena = arena};
    return rf_fill(&job, &rf_memory_host, NULL, err);
}

struct lab_case {
    const char *model, *scenario;
};

#define TENSOR(shape, dtype)                                                   \
    "{'tensor': {'name': 'w', 'shape': " shape ", 'dtype': '" dtype            \
    "'}, 'unknown_tensors': 'replicate'}"
#define SCENARIO(train, infer)                                                 \
    "{'name': 's', 'mode': 'colocated', 'train': " train ", 'infer': " infer "}"
#define MOE                                                                    \
    "{'megatron': {'num_layers': 2, 'hidden_size': 16, "                       \
    "'num_attention_heads': 4, 'ffn_hidden_size': 24, 'vocab_size': 60, "      \
    "'num_experts': 4, 'moe_ffn_hidden_size': 10, 'swiglu': true}}"

static const struct lab_case cases[] = {
    {LAB_MODEL, SCENARIO("{'tp': 2}", "{'layout': 'hf', 'tp': 2}")},
    {LAB_MODEL, SCENARIO("{'pp': 2}", "{'layout': 'vllm', 'tp': 2}")},
    {LAB_MODEL, SCENARIO("{'layout': 'fsdp'}", "{'layout': 'vllm', 'tp': 2}")},
    {LAB_MODEL, SCENARIO("{'layout': 'fsdp1'}", "{'tp': 2}")},
    {LAB_MODEL, SCENARIO("{'tp': 2, 'dtype': 'float32'}",
                         "{'tp': 1, 'dtype': 'bfloat16'}")},
    {LAB_MODEL, SCENARIO("{'tp': 2, 'dtype': 'float32'}",
                         "{'tp': 1, 'dtype': 'float16'}")},
    {LAB_MODEL, SCENARIO("{'tp': 1, 'dtype': 'bfloat16'}",
                         "{'tp': 2, 'dtype': 'float32'}")},
    {LAB_MODEL, SCENARIO("{'tp': 1, 'dtype': 'float16'}",
                         "{'tp': 2, 'dtype': 'float32'}")},
    {MOE, SCENARIO("{'tp': 2, 'ep': 2, 'etp': 1}",
                   "{'layout': 'vllm', 'tp': 2, 'ep': 2}")},
    {TENSOR("[7, 3, 5]", "U8"),
     SCENARIO("{'layout': 'fsdp'}", "{'layout': 'hf', 'tp': 2}")},
    {TENSOR("[9, 11]", "F64"),
     SCENARIO("{'layout': 'fsdp1'}", "{'layout': 'hf', 'tp': 2}")},
};

LIMIT(20)

LOOP_TEST(test_fill_writes_every_element_and_poisons_padding,
          RF_ARRAY_SIZE(cases))
{
    AUTO(worker_lab) lab;
    struct rf_err err;
    worker_lab_make(&lab, cases[_i].model, cases[_i].scenario, 1, 2);
    for (uint32_t r = 0; r < lab.task->world->n_ranks; r++) {
        for (int side = 0; side < RF_SIDES; side++) {
            struct rf_arena arena = make_arena(lab.plan, (enum rf_side)side, r);
            uint8_t *expected = rf_xmalloc(arena.bytes);
            memset(expected, rf_poison_byte(ITERATION), arena.bytes);
            memset(arena.base, 0x77, arena.bytes);
            oracle(lab.plan, (enum rf_side)side, r, ITERATION, expected);
            assert_ok(fill(lab.plan, (enum rf_side)side, r, &arena, &err), err);
            ck_assert_int_eq(memcmp(arena.base, expected, arena.bytes), 0);
            free(expected);
            rf_memory_host.free(&arena);
        }
    }
}

static struct rf_verify_result verify(const struct rf_plan *plan, uint32_t rank,
                                      struct rf_arena *arena)
{
    struct rf_verify_result found = {0};
    struct rf_err err;
    const struct rf_content_job job = {.plan = plan,
                                       .side = RF_INFER,
                                       .rank = rank,
                                       .iteration = ITERATION,
                                       .arena = arena};
    assert_ok(rf_verify(&job, &rf_memory_host, NULL, &found, &err), err);
    return found;
}

/* A destination as a perfect method leaves it. */
static struct rf_arena good_destination(const struct rf_plan *plan,
                                        uint32_t rank)
{
    struct rf_arena arena = make_arena(plan, RF_INFER, rank);
    struct rf_err err;
    assert_ok(rf_memory_host.poison(ITERATION, &arena, &err), err);
    oracle(plan, RF_INFER, rank, ITERATION, arena.base);
    return arena;
}

LOOP_TEST(test_verify_accepts_what_the_oracle_wrote, RF_ARRAY_SIZE(cases))
{
    AUTO(worker_lab) lab;
    worker_lab_make(&lab, cases[_i].model, cases[_i].scenario, 1, 2);
    for (uint32_t r = 0; r < lab.task->world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(lab.plan, RF_INFER, r);
        struct rf_arena arena = good_destination(lab.plan, r);
        struct rf_verify_result found = verify(lab.plan, r, &arena);
        uint64_t bytes = 0;
        for (size_t p = 0; p < layout->n_pieces; p++) {
            bytes += rf_form_bytes(
                rf_plan_form(lab.plan, RF_INFER, layout->pieces[p].family),
                &layout->pieces[p].box);
        }
        ck_assert_uint_eq(found.mismatched_bytes, 0);
        ck_assert_uint_eq(found.checked_bytes, bytes);
        rf_memory_host.free(&arena);
    }
}

LOOP_TEST(test_every_single_wrong_byte_is_found, RF_ARRAY_SIZE(cases))
{
    AUTO(worker_lab) lab;
    struct rf_arena arena;
    uint8_t *base;
    uint64_t step;
    worker_lab_make(&lab, cases[_i].model, cases[_i].scenario, 1, 2);
    arena = good_destination(lab.plan, 0);
    base = arena.base;
    step = RF_MAX(arena.bytes / 500, (uint64_t)1);
    for (uint64_t at = (uint64_t)_i; at < arena.bytes; at += step) {
        struct rf_verify_result found;
        base[at] ^= 0x10;
        found = verify(lab.plan, 0, &arena);
        ck_assert_uint_eq(found.mismatched_bytes, 1);
        ck_assert_mem_ne(found.expected, found.found, found.item_bytes);
        if (found.family == RF_NONE) {
            ck_assert_uint_eq(found.index[0], at);
        }
        base[at] ^= 0x10;
    }
    rf_memory_host.free(&arena);
}

TEST(test_the_first_mismatch_is_named_by_tensor_and_index)
{
    AUTO(worker_lab) lab;
    struct rf_arena arena;
    struct rf_verify_result found;
    const struct rf_rank_layout *layout;
    const struct rf_piece *piece = NULL;
    uint8_t expected[8];
    uint64_t offset;
    worker_lab_make(&lab, LAB_MODEL,
                    SCENARIO("{'tp': 2}", "{'layout': 'hf', 'tp': 2}"), 1, 2);
    arena = good_destination(lab.plan, 1);
    layout = rf_plan_layout(lab.plan, RF_INFER, 1);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_family *family =
            &lab.plan->model->families[layout->pieces[p].family];
        if (family->role == RF_ROLE_DOWN) {
            piece = &layout->pieces[p];
        }
    }
    ck_assert_ptr_nonnull(piece);
    /* Layer 1, row 5, column 20: second half of 36 columns, so column 2 of
     * this rank's 18. */
    offset = piece->offset + 1 * piece->stride[RF_DIM_LAYER] +
             5 * piece->stride[RF_DIM_TENSOR] +
             2 * piece->stride[RF_DIM_TENSOR + 1];
    ck_assert_uint_eq(piece->box.start[RF_DIM_TENSOR + 1], 18);
    memcpy(expected, (uint8_t *)arena.base + offset, 2);
    ((uint8_t *)arena.base)[offset] ^= 0xFF;
    ((uint8_t *)arena.base)[offset + 1] ^= 0xFF;
    /* A later one, that must not be the one reported. */
    ((uint8_t *)arena.base)[offset + piece->stride[RF_DIM_TENSOR]] ^= 0xFF;
    found = verify(lab.plan, 1, &arena);
    ck_assert_uint_eq(found.mismatched_bytes, 3);
    ck_assert_uint_eq(found.family, piece->family);
    ck_assert_uint_eq(found.layer_index, 1);
    ck_assert_uint_eq(found.index[0], 5);
    ck_assert_uint_eq(found.index[1], 20);
    ck_assert_uint_eq(found.item_bytes, 2);
    ck_assert_mem_eq(found.expected, expected, 2);
    ck_assert_mem_eq(found.found, (uint8_t *)arena.base + offset, 2);
    rf_memory_host.free(&arena);
}

/* Of three: in two experts, and in a later tensor. */
TEST(test_the_first_mismatch_is_that_of_the_first_tensor_and_expert)
{
    AUTO(worker_lab) lab;
    struct rf_arena arena;
    struct rf_verify_result found;
    const struct rf_rank_layout *layout;
    const struct rf_piece *piece, *last;
    worker_lab_make(&lab, MOE,
                    SCENARIO("{'tp': 2, 'ep': 2, 'etp': 1}",
                             "{'layout': 'vllm', 'tp': 2, 'ep': 2}"),
                    1, 2);
    arena = good_destination(lab.plan, 1);
    layout = rf_plan_layout(lab.plan, RF_INFER, 1);
    last = &layout->pieces[layout->n_pieces - 1];
    piece = layout->pieces;
    while (piece->box.extent[RF_DIM_EXPERT] < 2) {
        piece++;
    }
    ck_assert_uint_gt(last->family, piece->family);
    ((uint8_t *)arena.base)[last->offset] ^= 0x10;
    for (int e = 0; e < 2; e++) {
        ((uint8_t *)arena.base)[piece->offset +
                                (uint64_t)e * piece->stride[RF_DIM_EXPERT]] ^=
            0x10;
    }
    found = verify(lab.plan, 1, &arena);
    ck_assert_uint_eq(found.mismatched_bytes, 3);
    ck_assert_uint_eq(found.family, piece->family);
    ck_assert_uint_eq(found.expert, piece->box.start[RF_DIM_EXPERT]);
    rf_memory_host.free(&arena);
}

TEST(test_stale_data_of_the_round_before_fails)
{
    AUTO(worker_lab) lab;
    struct rf_arena arena;
    struct rf_verify_result found;
    worker_lab_make(&lab, cases[0].model, cases[0].scenario, 1, 2);
    arena = good_destination(lab.plan, 0);
    oracle(lab.plan, RF_INFER, 0, ITERATION - 1, arena.base);
    found = verify(lab.plan, 0, &arena);
    ck_assert_uint_gt(found.mismatched_bytes, found.checked_bytes * 9 / 10);
    rf_memory_host.free(&arena);
}

/* Zero-copy methods: pieces live somewhere else. */
static const void *elsewhere(const struct rf_piece *piece,
                             uint64_t stride[RF_BOX_DIMS], void *data)
{
    (void)stride;
    return (const uint8_t *)data + piece->offset;
}

TEST(test_verify_looks_where_the_method_says)
{
    AUTO(worker_lab) lab;
    struct rf_arena arena, other;
    struct rf_content_job job;
    struct rf_verify_result found;
    struct rf_err err;
    worker_lab_make(&lab, cases[0].model, cases[0].scenario, 1, 2);
    other = good_destination(lab.plan, 0);
    arena = good_destination(lab.plan, 0);
    oracle(lab.plan, RF_INFER, 0, ITERATION - 1, arena.base);
    job = (struct rf_content_job){.plan = lab.plan,
                                  .side = RF_INFER,
                                  .iteration = ITERATION,
                                  .arena = &arena,
                                  .base_of = elsewhere,
                                  .data = other.base};
    assert_ok(rf_verify(&job, &rf_memory_host, NULL, &found, &err), err);
    ck_assert_uint_eq(found.mismatched_bytes, 0);
    rf_memory_host.free(&arena);
    rf_memory_host.free(&other);
}

TEST(test_too_large_an_arena_is_refused_with_sizes)
{
    struct rf_arena arena = {.fd = -1};
    struct rf_err err;
    assert_fails(rf_memory_host.alloc((uint64_t)1 << 60, &arena, &err),
                 RF_ERR_NOMEM, err, "1152.92 PB");
    assert_says(err.text, "available");
    ck_assert_int_eq(arena.fd, -1);
    ck_assert_int_eq(rf_memory_host.alloc(UINT64_MAX, &arena, &err),
                     RF_ERR_NOMEM);
}

TEST(test_other_processes_can_map_an_arena)
{
    struct rf_arena arena;
    struct rf_err err;
    char path[64];
    uint8_t byte = 0;
    int fd;
    assert_ok(rf_memory_host.alloc(5000, &arena, &err), err);
    ((uint8_t *)arena.base)[4999] = 0x42;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", arena.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, 4999), 1);
    ck_assert_uint_eq(byte, 0x42);
    close(fd);
    rf_memory_host.free(&arena);
    assert_ok(rf_memory_host.alloc(0, &arena, &err), err);
    ck_assert_ptr_null(arena.base);
    rf_memory_host.free(&arena);
}

TEST(test_flip_outside_the_arena_is_refused)
{
    struct rf_arena arena;
    struct rf_err err;
    assert_ok(rf_memory_host.alloc(10, &arena, &err), err);
    assert_ok(rf_memory_host.flip(&arena, 9, &err), err);
    ck_assert_uint_eq(((uint8_t *)arena.base)[9], 0xFF);
    ck_assert_int_eq(rf_memory_host.flip(&arena, 10, &err), RF_ERR_INTERNAL);
    rf_memory_host.free(&arena);
}

/* --- Checkpoints ---------------------------------------------------------- */

#define FOLDER "/tmp/refit-worker-test-%d"

/* Two tensors (6, 10) in BF16 and (8) in F32 with bytes 0, 1, 2, … */
static json_t *checkpoint_model(char *folder, size_t size, size_t file_bytes)
{
    uint8_t bytes[300];
    char path[128];
    int fd;
    snprintf(folder, size, FOLDER, (int)getpid());
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(path, sizeof(path), "%s/a.safetensors", folder);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, file_bytes), (ssize_t)file_bytes);
    close(fd);
    return json_pack("{s:s, s:{s:{s:s, s:i}, s:{s:s, s:i}}}", "folder", folder,
                     "tensors", "m", "file", "a.safetensors", "offset", 100,
                     "v", "file", "a.safetensors", "offset", 220);
}

static void remove_checkpoint(const char *folder)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/a.safetensors", folder);
    unlink(path);
    rmdir(folder);
}

static const char manifest[] =
    "{'manifest': {'m': {'shape': [6, 10], 'dtype': 'BF16'}, 'v': {'shape': "
    "[8], 'dtype': 'BF16'}}}";

TEST(test_checkpoint_bytes_fill_and_verify)
{
    AUTO(worker_lab) lab;
    struct rf_err err;
    char folder[64];
    worker_lab_make(&lab, manifest,
                    SCENARIO("{'layout': 'fsdp'}", "{'layout': 'fsdp'}"), 1, 2);
    lab.task->model->files = checkpoint_model(folder, sizeof(folder), 300);
    for (uint32_t r = 0; r < 2; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(lab.plan, RF_INFER, r);
        struct rf_arena arena = make_arena(lab.plan, RF_INFER, r);
        struct rf_verify_result found;
        assert_ok(fill(lab.plan, RF_INFER, r, &arena, &err), err);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            const char *name = lab.plan->model->families[piece->family].name;
            uint64_t first = piece->box.start[RF_DIM_TENSOR];
            size_t at = strcmp(name, "m") == 0 ? 100 + (size_t)first * 20
                                               : 220 + (size_t)first * 2;
            ck_assert_uint_eq(((uint8_t *)arena.base)[piece->offset],
                              (uint8_t)(at * 7));
        }
        found = verify(lab.plan, r, &arena);
        ck_assert_uint_eq(found.mismatched_bytes, 0);
        ck_assert_uint_eq(found.checked_bytes, 68);
        ((uint8_t *)arena.base)[layout->pieces[0].offset + 3] ^= 1;
        ck_assert_uint_eq(verify(lab.plan, r, &arena).mismatched_bytes, 1);
        rf_memory_host.free(&arena);
    }
    remove_checkpoint(folder);
}

TEST(test_a_short_checkpoint_file_is_named)
{
    AUTO(worker_lab) lab;
    struct rf_arena arena;
    struct rf_err err;
    char folder[64];
    worker_lab_make(&lab, manifest,
                    SCENARIO("{'layout': 'hf'}", "{'layout': 'hf'}"), 1, 1);
    lab.task->model->files = checkpoint_model(folder, sizeof(folder), 230);
    arena = make_arena(lab.plan, RF_TRAIN, 0);
    assert_fails(fill(lab.plan, RF_TRAIN, 0, &arena, &err), RF_ERR_IO, err,
                 "a.safetensors");
    assert_says(err.text, "tensor v");
    remove_checkpoint(folder);
    rf_memory_host.free(&arena);
}
