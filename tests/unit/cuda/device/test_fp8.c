/* fp8 arithmetic and the block-scaled cast, against NVIDIA's host functions and
 * a loop over blocks. Over the real runtime (tests/gpu/check-gpu) the blocks
 * are the device's work. */
#include <cuda_fp8.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/fp8.h"
#include "tests/unit/unit.h"

static uint8_t theirs(float value)
{
    return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

static void expect_same(uint32_t bits)
{
    union rf_float_bits f = {.bits = bits};
    if (rf_f32_to_e4m3(f.value) != theirs(f.value)) {
        ck_abort_msg("%08x (%g): %02x, cuda_fp8.h has %02x", bits,
                     (double)f.value, rf_f32_to_e4m3(f.value), theirs(f.value));
    }
}

LIMIT(60)
TAG("device")

TEST(test_every_bfloat16_becomes_what_cuda_makes_of_it)
{
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        expect_same(bits << 16);
    }
}

TEST(test_float32_rounds_as_cuda_does)
{
    uint64_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        state = rf_mix64(state + 0x9E3779B97F4A7C15ull);
        expect_same((uint32_t)state);
        /* and near the values that fp8 has: exponents -12 … 9 */
        expect_same(((uint32_t)(state >> 32) & 0x807FFFFF) |
                    ((115 + (uint32_t)(state >> 40) % 22) << 23));
    }
    for (uint32_t e = 115; e < 137; e++) { /* ties and their neighbours */
        for (uint32_t m = 0; m < 256; m++) {
            const uint32_t bits = e << 23 | m << 15;
            expect_same(bits);
            expect_same(bits + 1);
            expect_same(bits - 1);
        }
    }
}

/* Magnitudes that a block's largest may have, as bfloat16: nothing, subnormals,
 * around the floor of 1e-4, powers of two, exact scales (448, 1.75), those next
 * to them, the largest, no numbers. */
static const uint16_t edges[] = {
    0x0000, 0x0001, 0x007F, 0x0080, 0x38D0, 0x38D1, 0x38D2, 0x38D3, 0x3A80,
    0x3EAB, 0x3F00, 0x3F7F, 0x3F80, 0x3F81, 0x3FE0, 0x4000, 0x4380, 0x43DF,
    0x43E0, 0x43E1, 0x43E8, 0x4780, 0x7E80, 0x7F00, 0x7F7F, 0x7F80, 0x7FC0,
};

LOOP_TEST(test_every_bfloat16_is_scaled_as_the_formula_says,
          RF_ARRAY_SIZE(edges))
{
    const float edge = rf_bf16_to_f32(edges[_i]);
    const float amax = edge < 1e-4f ? 1e-4f : edge;
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        const float x = rf_bf16_to_f32((uint16_t)bits);
        const float y = rf_bf16_to_f32((uint16_t)~bits);
        const float factor = 1.0f / (amax / 448.0f);
        const uint32_t found = rf_fp8_pair(bits, ~bits & 0xFFFF, factor);
        const uint32_t wanted =
            theirs(x * factor) | (uint32_t)theirs(y * factor) << 8;
        ck_assert_msg(found == wanted, "%04x of %04x: %04x, expected %04x",
                      bits, edges[_i], found, wanted);
    }
}

struct shape {
    uint64_t rows, columns, src_pitch, dst_pitch;
};

static const struct {
    struct shape shape;
    float magnitude;
} filled[] = {
    {{128, 128, 128, 128}, 1.0f},    {{256, 384, 384, 384}, 0.02f},
    {{129, 257, 300, 260}, 30000.f}, {{1, 1, 1, 1}, 1.0f},
    {{300, 100, 128, 100}, 1e-6f},   {{127, 640, 640, 1024}, 0.0f},
    {{130, 135, 135, 136}, 1.0f},    {{33, 250, 256, 251}, 1.0f},
};

static uint16_t bf16(float value)
{
    union rf_float_bits f = {.value = value};
    return rf_f32_to_bf16(f.bits);
}

/* One block, as the formula reads; a NaN is the largest of all. */
static void reference(const struct shape *shape, const uint16_t *src,
                      uint8_t *dst, float *scale_inv, uint64_t top,
                      uint64_t left)
{
    const uint64_t bottom = RF_MIN(top + RF_FP8_BLOCK, shape->rows);
    const uint64_t right = RF_MIN(left + RF_FP8_BLOCK, shape->columns);
    float amax = RF_FP8_AMAX_FLOOR;
    for (uint64_t r = top; r < bottom; r++) {
        for (uint64_t c = left; c < right; c++) {
            const float x =
                fabsf(rf_bf16_to_f32(src[r * shape->src_pitch + c]));
            amax = x > amax || isnan(x) ? x : amax;
        }
    }
    *scale_inv = amax / 448.0f;
    for (uint64_t r = top; r < bottom; r++) {
        for (uint64_t c = left; c < right; c++) {
            const float x = rf_bf16_to_f32(src[r * shape->src_pitch + c]);
            dst[r * shape->dst_pitch + c] = theirs(x * (1.0f / *scale_inv));
        }
    }
}

static void *on_device(const void *from, size_t bytes)
{
    void *out = NULL;
    ck_assert_int_eq(cudaMalloc(&out, bytes), 0);
    ck_assert_int_eq(cudaMemcpy(out, from, bytes, cudaMemcpyHostToDevice), 0);
    return out;
}

static void *from_device(void *device, size_t bytes)
{
    void *found = malloc(bytes);
    ck_assert_int_eq(cudaMemcpy(found, device, bytes, cudaMemcpyDeviceToHost),
                     0);
    cudaFree(device);
    return found;
}

/* A NaN's other bits are the machine's own. */
static void expect_scales(void *device, const float *wanted, size_t n)
{
    AUTO_FREE float *found = from_device(device, n * sizeof(*found));
    for (size_t i = 0; i < n; i++) {
        if (isnan(wanted[i])) {
            ck_assert_msg(isnan(found[i]), "scale %zu is a number", i);
        } else {
            ck_assert_mem_eq(&found[i], &wanted[i], sizeof(*found));
        }
    }
}

static void run_job(const struct rf_fp8_matrix *matrix, int times)
{
    void *job = NULL;
    struct rf_err err;
    int64_t ns = 0;
    assert_ok(rf_fp8_job_create(matrix, 1, &job, &err), err);
    for (int i = 0; i < times; i++) {
        assert_ok(rf_fp8_job_run(job, NULL, &ns, &err), err);
    }
    rf_fp8_job_destroy(job);
}

/* Runs the job `times` times on the bfloat16 at `src`. */
static void expect_scaled(const struct shape *shape, const uint16_t *src,
                          int times)
{
    const uint64_t across = rf_div_up(shape->columns, RF_FP8_BLOCK);
    const size_t blocks =
        (size_t)(rf_div_up(shape->rows, RF_FP8_BLOCK) * across);
    const size_t bytes = (size_t)(shape->rows * shape->dst_pitch);
    AUTO_FREE uint8_t *dst = malloc(bytes), *found;
    AUTO_FREE float *scale_inv = calloc(blocks, sizeof(*scale_inv));
    struct rf_fp8_matrix matrix = {.rows = shape->rows,
                                   .columns = shape->columns,
                                   .src_pitch = shape->src_pitch,
                                   .dst_pitch = shape->dst_pitch};
    memset(dst, 0x55, bytes); /* what lies between rows stays */
    matrix.src = on_device(src, shape->rows * shape->src_pitch * sizeof(*src));
    matrix.dst = on_device(dst, bytes);
    matrix.scale_inv = on_device(scale_inv, blocks * sizeof(*scale_inv));
    for (size_t b = 0; b < blocks; b++) {
        reference(shape, src, dst, &scale_inv[b], b / across * RF_FP8_BLOCK,
                  b % across * RF_FP8_BLOCK);
    }
    run_job(&matrix, times);
    found = from_device(matrix.dst, bytes);
    ck_assert_mem_eq(found, dst, bytes);
    expect_scales(matrix.scale_inv, scale_inv, blocks);
    cudaFree((void *)(uintptr_t)matrix.src);
}

static void use_device(void)
{
    struct rf_err err;
    setenv("FAKE_CUDA_DELAY_US", "0", 1);
    ck_assert_int_eq(rf_device_use(0, &err), 0);
}

LOOP_TEST(test_blocks_are_scaled_bit_for_bit, RF_ARRAY_SIZE(filled))
{
    const struct shape *shape = &filled[_i].shape;
    const size_t n = (size_t)(shape->rows * shape->src_pitch);
    AUTO_FREE uint16_t *src = malloc(n * sizeof(*src));
    use_device();
    for (size_t i = 0; i < n; i++) {
        src[i] = bf16(((float)(rf_mix64(i) % 2001) / 1000.0f - 1.0f) *
                      filled[_i].magnitude);
    }
    expect_scaled(shape, src, 2); /* a second run begins anew */
}

/* Five blocks, one below the other, each with the edge in a place of its own;
 * in the others all values up to it, one after the other. */
LOOP_TEST(test_every_value_below_an_edge_is_scaled_bit_for_bit,
          RF_ARRAY_SIZE(edges))
{
    const struct shape shapes[] = {{640, 128, 128, 128}, {640, 128, 129, 131}};
    const size_t in_block = (size_t)RF_FP8_BLOCK * RF_FP8_BLOCK;
    const size_t bytes = (size_t)640 * 129 * sizeof(uint16_t);
    AUTO_FREE uint16_t *src = malloc(bytes);
    use_device();
    for (size_t s = 0; s < RF_ARRAY_SIZE(shapes); s++) {
        uint32_t next = 0;
        memset(src, 0xFF, bytes);
        for (size_t i = 0; i < 5 * in_block; i++) {
            uint16_t bits = edges[_i];
            if (i % in_block != i / in_block * 3333) {
                bits = (uint16_t)next++;
                bits = (bits & 0x7FFF) <= edges[_i] ? bits : 0;
            }
            src[i / 128 * shapes[s].src_pitch + i % 128] = bits;
        }
        ck_assert_uint_gt(next, 0xFFFF);
        expect_scaled(&shapes[s], src, 1);
    }
}

TEST(test_scaling_is_one_launch)
{
    const struct shape shape = {256, 256, 256, 256};
    AUTO_FREE uint16_t *src = calloc((size_t)256 * 256, sizeof(*src));
    use_device();
    setenv("FAKE_CUDA_FAIL", "cudaLaunchKernel:2:1", 1);
    expect_scaled(&shape, src, 1);
    unsetenv("FAKE_CUDA_FAIL");
}
