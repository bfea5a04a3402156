/* Copies by copy engines, and from which length on they are taken. */
#include "cuda/device/copy_engine.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/device/device.h"
#include "cuda/ipc/ipc_choice.h"
#include "tests/unit/cuda/forked.h"
#include "tests/unit/unit.h"

#define BYTES 65536

static struct rf_err err;
static struct rf_bases bases;

static void must(enum rf_status status)
{
    assert_ok(status, err);
}

static void clean(void)
{
    unsetenv("FAKE_CUDA_DRIVER");
    unsetenv("FAKE_CUDA_FAIL");
}

/* Two memories, from 0 to 1; the first has the low byte of each offset. */
static void setup(void)
{
    unsigned char content[BYTES];
    clean();
    must(rf_device_use(0, &err));
    for (size_t i = 0; i < BYTES; i++) {
        content[i] = (unsigned char)(i ^ i >> 8);
    }
    for (int b = 0; b < 2; b++) {
        ck_assert_int_eq(cudaMalloc((void **)&bases.at[b], BYTES), 0);
    }
    ck_assert_int_eq(
        cudaMemcpy(bases.at[0], content, BYTES, cudaMemcpyHostToDevice), 0);
    ck_assert_int_eq(cudaMemset(bases.at[1], 0, BYTES), 0);
}

static void teardown(void)
{
    for (int b = 0; b < 2; b++) {
        cudaFree(bases.at[b]);
    }
    clean();
}

static struct rf_slice slice(uint64_t from, uint64_t to, uint64_t width,
                             uint64_t rows, uint64_t pitch)
{
    return (struct rf_slice){.src_offset = from,
                             .dst_offset = to,
                             .width = width,
                             .rows = rows,
                             .src_pitch = pitch,
                             .dst_pitch = pitch + (pitch == width ? 0 : 16),
                             .src_base = 0,
                             .dst_base = 1};
}

/* A run, one of several joined rows, and rows at a distance. */
static void add_three(struct rf_copy_engine_list *list)
{
    const struct rf_slice slices[] = {slice(1, 3, 1000, 1, 0),
                                      slice(4096, 8192, 256, 8, 256),
                                      slice(16384, 20480, 100, 7, 512)};
    for (size_t i = 0; i < RF_ARRAY_SIZE(slices); i++) {
        rf_copy_engine_add(list, &slices[i], &bases);
    }
}

static void expect_three(void)
{
    unsigned char found[BYTES], wanted[BYTES] = {0};
    ck_assert_int_eq(
        cudaMemcpy(found, bases.at[0], BYTES, cudaMemcpyDeviceToHost), 0);
    memcpy(wanted + 3, found + 1, 1000);
    memcpy(wanted + 8192, found + 4096, (size_t)256 * 8);
    for (size_t r = 0; r < 7; r++) {
        memcpy(wanted + 20480 + r * 528, found + 16384 + r * 512, 100);
    }
    ck_assert_int_eq(
        cudaMemcpy(found, bases.at[1], BYTES, cudaMemcpyDeviceToHost), 0);
    ck_assert_int_eq(memcmp(found, wanted, BYTES), 0);
}

/* Turns order destinations; the copies of a batch have no order. */
TEST(test_engine_makes_one_batch_per_destination)
{
    struct rf_copy_engine_list list = {.n_runs = 0};
    for (uint32_t i = 0; i < 6; i++) {
        struct rf_slice one = slice(i, i, 1, 1, 0);
        one.dst_base = i / 3;
        rf_copy_engine_add(&list, &one, &bases);
    }
    ck_assert_uint_eq(list.n_parts, 2);
    ck_assert_uint_eq(list.parts[0].n_runs, 3);
    ck_assert_uint_eq(list.parts[1].n_runs, 3);
    rf_copy_engine_free(&list);
}

static const struct {
    struct rf_ipc_trial trials[4];
    size_t n;
    uint64_t from;
} rules[] = {
    {{{0, 0, 0}}, 0, RF_ENGINE_NEVER},
    {{{1, 9, 1}, {4, 3, 2}, {16, 2, 2}, {64, 1, 2}}, 4, 16},
    {{{1, 1, 2}, {4, 1, 2}}, 2, 1},
    {{{1, 1, 2}, {4, 2, 1}}, 2, RF_ENGINE_NEVER},
    /* one length out of line does not count for shorter ones */
    {{{1, 1, 2}, {4, 3, 2}, {16, 1, 2}}, 3, 16},
};

LOOP_TEST(test_engine_is_taken_from_where_it_stays_as_fast,
          RF_ARRAY_SIZE(rules))
{
    ck_assert_uint_eq(rf_ipc_engine_from(rules[_i].trials, rules[_i].n),
                      rules[_i].from);
}

CASE("copies")
TAG("device")
FIXTURE(setup, teardown)

/* With a driver that takes batches and with one before 12.8, which takes none;
 * on a device with the driver there is. */
LOOP_TEST(test_engine_copies_runs_and_rows, forked_allowed() ? 2 : 1)
{
    struct rf_copy_engine_list list = {.n_runs = 0};
    cudaStream_t stream;
    bool batches = false;
    int driver = 0;
    setenv("FAKE_CUDA_DRIVER", _i == 0 ? "12080" : "12070", 1);
    ck_assert_int_eq(cudaDriverGetVersion(&driver), 0);
    must(rf_copy_engine_has_batches(&batches, &err));
    ck_assert_int_eq(batches, driver >= 12080);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     0);
    add_three(&list);
    ck_assert_uint_eq(list.n_runs, 2);
    ck_assert_uint_eq(list.n_rows, 1);
    ck_assert_uint_eq(list.total_bytes, 1000 + 256 * 8 + 100 * 7);
    must(rf_copy_engine_run(&list, batches, stream, &err));
    ck_assert_int_eq(cudaStreamSynchronize(stream), 0);
    expect_three();
    rf_copy_engine_free(&list);
    cudaStreamDestroy(stream);
}

TEST(test_engine_copies_rows_further_apart_than_a_pitch_may_be)
{
    struct rf_copy_engine_list list = {.n_runs = 0};
    struct rf_slice far = slice(0, 0, 100, 2, UINT64_C(1) << 31);
    struct rf_bases at = bases;
    unsigned char found[200], wanted[200] = {0};
    memset(wanted + 100, 7, 100);
    far.dst_pitch = 100;
    ck_assert_int_eq(cudaMalloc((void **)&at.at[0], far.src_pitch + 100), 0);
    ck_assert_int_eq(cudaMemset(at.at[0], 0, 100), 0);
    ck_assert_int_eq(cudaMemset(at.at[0] + far.src_pitch, 7, 100), 0);
    rf_copy_engine_add(&list, &far, &at);
    ck_assert_uint_eq(list.total_bytes, 200);
    must(rf_copy_engine_run(&list, false, NULL, &err));
    ck_assert_int_eq(
        cudaMemcpy(found, at.at[1], sizeof(found), cudaMemcpyDeviceToHost), 0);
    ck_assert_int_eq(memcmp(found, wanted, sizeof(found)), 0);
    rf_copy_engine_free(&list);
    cudaFree(at.at[0]);
}

/* See test_vmm.c. */
NEEDS(forked_allowed())

TEST(test_engine_failure_names_the_call)
{
    bool batches;
    setenv("FAKE_CUDA_FAIL", "cudaMemcpyBatchAsync:1:700", 1);
    ck_assert_int_eq(rf_copy_engine_has_batches(&batches, &err), RF_ERR_DEVICE);
}
