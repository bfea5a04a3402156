/* Device arenas over the fake runtime: content against a loop over elements
 * that knows nothing of slices, and damage that verification must find. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "tests/lib/places.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

#define ROUND 7u

#define MEGATRON                                                               \
    "{\"megatron\": {\"num_layers\": 2, \"hidden_size\": 32, "                 \
    "\"num_attention_heads\": 4, \"num_query_groups\": 2, "                    \
    "\"ffn_hidden_size\": 48, \"vocab_size\": 100, \"swiglu\": true, "         \
    "\"untie_embeddings_and_output_weights\": true}}"

static const struct mesh {
    const char *scenario;
} meshes[] = {
    {"{\"mode\": \"colocated\", \"train\": {\"tp\": 2}, "
     "\"infer\": {\"layout\": \"vllm\", \"tp\": 2}}"},
    {"{\"mode\": \"colocated\", \"train\": {\"layout\": \"hf\", \"tp\": 1, "
     "\"dp\": 2}, \"infer\": {\"layout\": \"megatron\", \"tp\": 2}}"},
    {"{\"mode\": \"colocated\", \"train\": {\"tp\": 2, \"dtype\": "
     "\"float32\"}, \"infer\": {\"layout\": \"vllm\", \"tp\": 2, \"dtype\": "
     "\"bfloat16\"}}"},
    {"{\"mode\": \"colocated\", \"train\": {\"tp\": 1, \"dtype\": "
     "\"bfloat16\"}, \"infer\": {\"layout\": \"hf\", \"tp\": 2, \"dtype\": "
     "\"float32\"}}"},
    {"{\"mode\": \"colocated\", \"train\": {\"pp\": 2}, "
     "\"infer\": {\"layout\": \"fsdp\", \"dp\": 2}}"},
};

struct lab {
    struct planned planned;
    const struct mesh *mesh;
    struct rf_arena arena;
    unsigned char *image; /* what the arena should hold */
    uint32_t *family;     /* of each byte, RF_NONE: padding */
};

/* One element of the inference side as the pattern's bytes say, cast. */
static void make_element(struct lab *lab, const struct rf_piece *piece,
                         const uint64_t at[RF_BOX_DIMS])
{
    const struct rf_plan *plan = lab->planned.plan;
    const struct rf_family *family = &plan->model->families[piece->family];
    const uint32_t from =
        rf_form_item(rf_plan_form(plan, RF_TRAIN, piece->family));
    const uint32_t to =
        rf_form_item(rf_plan_form(plan, RF_INFER, piece->family));
    const uint64_t seed = rf_pattern_seed(piece->family, at[0], at[1]);
    const uint64_t offset =
        place_address(&piece->box, at, piece->offset, piece->stride);
    uint64_t element = 0, bits = 0;
    for (uint32_t d = 0; d < family->ndim; d++) {
        element = element * family->shape[d] + at[2 + d];
    }
    for (uint32_t b = 0; b < from; b++) {
        bits |= (uint64_t)rf_pattern_byte(seed, ROUND, element * from + b)
                << (8 * b);
    }
    if (from == 4 && to == 2) {
        bits = rf_f32_to_bf16((uint32_t)bits);
    } else if (from == 2 && to == 4) {
        bits <<= 16;
    }
    memcpy(lab->image + offset, &bits, to);
    for (uint32_t b = 0; b < to; b++) {
        lab->family[offset + b] = piece->family;
    }
}

static void make_piece(struct lab *lab, const struct rf_piece *piece)
{
    uint64_t at[RF_BOX_DIMS];
    memcpy(at, piece->box.start, sizeof(at));
    do {
        make_element(lab, piece, at);
    } while (place_next(&piece->box, at));
}

static struct rf_content_job job_of(struct lab *lab, uint64_t round)
{
    return (struct rf_content_job){.plan = lab->planned.plan,
                                   .side = RF_INFER,
                                   .rank = 1,
                                   .iteration = round,
                                   .arena = &lab->arena};
}

static void fill(struct lab *lab, uint64_t round)
{
    const struct rf_content_job job = job_of(lab, round);
    struct rf_err err;
    assert_ok(rf_memory_cuda.fill(&job, &err), err);
    assert_ok(rf_poison_padding(&rf_memory_cuda, &job, &err), err);
}

static void open_lab(struct lab *lab, int mesh)
{
    const uint32_t slots[] = {2};
    const struct rf_rank_layout *layout;
    struct rf_err err;
    setenv("FAKE_CUDA_DELAY_US", "0", 1);
    memset(lab, 0, sizeof(*lab));
    lab->mesh = &meshes[mesh];
    assert_ok(rf_device_use(0, &err), err);
    assert_ok(
        planned_make(&lab->planned, MEGATRON, lab->mesh->scenario, slots, 1),
        lab->planned.err);
    layout = rf_plan_layout(lab->planned.plan, RF_INFER, 1);
    ck_assert_int_eq(
        rf_memory_cuda.alloc(layout->arena_bytes, &lab->arena, &err), 0);
    lab->image = malloc(lab->arena.bytes);
    lab->family = malloc(lab->arena.bytes * sizeof(*lab->family));
    memset(lab->image, rf_poison_byte(ROUND), lab->arena.bytes);
    memset(lab->family, 0xFF, lab->arena.bytes * sizeof(*lab->family));
    for (size_t p = 0; p < layout->n_pieces; p++) {
        make_piece(lab, &layout->pieces[p]);
    }
    ck_assert_int_eq(rf_memory_cuda.poison(ROUND + 1, &lab->arena, &err), 0);
    fill(lab, ROUND);
}

static void close_lab(struct lab *lab)
{
    rf_memory_cuda.free(&lab->arena);
    planned_free(&lab->planned);
    free(lab->image);
    free(lab->family);
}

static struct rf_verify_result verify(struct lab *lab)
{
    struct rf_verify_result result;
    struct rf_err err;
    const struct rf_content_job job = job_of(lab, ROUND);
    assert_ok(rf_memory_cuda.verify(&job, &result, &err), err);
    assert_ok(rf_verify_padding(&rf_memory_cuda, &job, &result, &err), err);
    return result;
}

LIMIT(60)
TAG("device")

LOOP_TEST(test_fill_writes_the_pattern_and_nothing_else, RF_ARRAY_SIZE(meshes))
{
    struct lab lab;
    AUTO_FREE unsigned char *found;
    uint64_t padding = 0;
    struct rf_verify_result result;
    open_lab(&lab, _i);
    found = malloc(lab.arena.bytes);
    ck_assert_int_eq(cudaMemcpy(found, lab.arena.base, lab.arena.bytes,
                                cudaMemcpyDeviceToHost),
                     0);
    for (uint64_t b = 0; b < lab.arena.bytes; b++) {
        if (found[b] != lab.image[b]) {
            ck_abort_msg("byte %llu of %llu", (unsigned long long)b,
                         (unsigned long long)lab.arena.bytes);
        }
        padding += lab.family[b] == RF_NONE;
    }
    result = verify(&lab);
    ck_assert_uint_eq(result.mismatched_bytes, 0);
    ck_assert_uint_eq(result.checked_bytes, lab.arena.bytes - padding);
    close_lab(&lab);
}

/* The element that holds byte `byte`, found by trying all. */
static void expect_place(struct lab *lab, uint64_t byte,
                         const struct rf_verify_result *result)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(lab->planned.plan, RF_INFER, 1);
    const struct rf_family *family =
        &lab->planned.plan->model->families[result->family];
    const uint32_t item = result->item_bytes;
    bool known = false;
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        uint64_t at[RF_BOX_DIMS] = {result->layer_index, result->expert};
        memcpy(at + 2, result->index, family->ndim * sizeof(*at));
        if (piece->family == result->family && place_inside(&piece->box, at)) {
            const uint64_t offset =
                place_address(&piece->box, at, piece->offset, piece->stride);
            known = known || (byte >= offset && byte < offset + item);
            ck_assert_mem_eq(result->expected, lab->image + offset, item);
            ck_assert_mem_ne(result->found, result->expected, item);
        }
    }
    ck_assert_msg(known, "byte %llu is not of the element that is named",
                  (unsigned long long)byte);
}

LOOP_TEST(test_any_flipped_byte_is_found_and_named, RF_ARRAY_SIZE(meshes))
{
    struct lab lab;
    uint64_t at = 0;
    open_lab(&lab, _i);
    for (int i = 0; i < 60; i++) {
        struct rf_verify_result result;
        struct rf_err err;
        at = (at + 6700417) % lab.arena.bytes;
        ck_assert_int_eq(rf_memory_cuda.flip(&lab.arena, at, &err), 0);
        result = verify(&lab);
        ck_assert_uint_eq(result.mismatched_bytes, 1);
        ck_assert_uint_eq(result.family, lab.family[at]);
        if (result.family == RF_NONE) {
            ck_assert_uint_eq(result.index[0], at);
            ck_assert_uint_eq(result.expected[0], lab.image[at]);
        } else {
            expect_place(&lab, at, &result);
        }
        ck_assert_int_eq(rf_memory_cuda.flip(&lab.arena, at, &err), 0);
    }
    ck_assert_uint_eq(verify(&lab).mismatched_bytes, 0);
    close_lab(&lab);
}

LOOP_TEST(test_overwritten_padding_is_found, RF_ARRAY_SIZE(meshes))
{
    struct lab lab;
    uint64_t at = 0;
    struct rf_verify_result result;
    open_lab(&lab, _i);
    while (at < lab.arena.bytes && lab.family[at] != RF_NONE) {
        at++;
    }
    ck_assert_uint_lt(at, lab.arena.bytes);
    ck_assert_int_eq(cudaMemset((unsigned char *)lab.arena.base + at, 0, 1), 0);
    result = verify(&lab);
    ck_assert_uint_eq(result.mismatched_bytes, 1);
    ck_assert_uint_eq(result.family, RF_NONE);
    ck_assert_uint_eq(result.index[0], at);
    ck_assert_uint_eq(result.expected[0], rf_poison_byte(ROUND));
    ck_assert_uint_eq(result.found[0], 0);
    close_lab(&lab);
}

TEST(test_stale_content_of_another_round_is_found)
{
    struct lab lab;
    struct rf_verify_result result;
    open_lab(&lab, 0);
    fill(&lab, ROUND - 1);
    result = verify(&lab);
    ck_assert_uint_gt(result.mismatched_bytes, result.checked_bytes * 9 / 10);
    close_lab(&lab);
}

/* The first piece lives in another allocation, as with a view. */
struct elsewhere {
    const struct rf_piece *piece;
    void *base;
};

static const void *base_elsewhere(const struct rf_piece *piece,
                                  uint64_t stride[RF_BOX_DIMS], void *data)
{
    const struct elsewhere *other = data;
    if (piece != other->piece) {
        return NULL;
    }
    memcpy(stride, piece->stride, sizeof(piece->stride));
    return other->base;
}

TEST(test_views_are_verified_where_they_live)
{
    struct lab lab;
    struct elsewhere other;
    struct rf_verify_result result;
    struct rf_content_job job;
    struct rf_err err;
    unsigned char *copy;
    open_lab(&lab, 0);
    job = job_of(&lab, ROUND);
    job.base_of = base_elsewhere;
    job.data = &other;
    other.piece = rf_plan_layout(lab.planned.plan, RF_INFER, 1)->pieces;
    ck_assert_int_eq(cudaMalloc((void **)&copy, lab.arena.bytes), 0);
    ck_assert_int_eq(
        cudaMemcpy(copy, lab.image, lab.arena.bytes, cudaMemcpyHostToDevice),
        0);
    other.base = copy + other.piece->offset;
    /* What is in the arena's own place does not matter for this piece. */
    ck_assert_int_eq(rf_memory_cuda.flip(&lab.arena, other.piece->offset, &err),
                     0);
    ck_assert_int_eq(rf_memory_cuda.verify(&job, &result, &err), 0);
    ck_assert_uint_eq(result.mismatched_bytes, 0);
    ck_assert_int_eq(
        cudaMemset(other.base, lab.image[other.piece->offset] ^ 1, 1), 0);
    ck_assert_int_eq(rf_memory_cuda.verify(&job, &result, &err), 0);
    ck_assert_uint_eq(result.mismatched_bytes, 1);
    ck_assert_uint_eq(result.family, other.piece->family);
    cudaFree(copy);
    close_lab(&lab);
}

TEST(test_out_of_memory_says_how_much)
{
    struct rf_arena arena;
    struct rf_err err;
    ck_assert_int_eq(rf_device_use(0, &err), 0);
    assert_fails(rf_memory_cuda.alloc(UINT64_C(1) << 50, &arena, &err),
                 RF_ERR_NOMEM, err, "wanted");
    ck_assert_ptr_null(arena.base);
}
