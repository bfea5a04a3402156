/* fp8 arithmetic and the block-scaled cast, against NVIDIA's host functions and
 * a loop over blocks. */
#include <check.h>
#include <cuda_fp8.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/fp8.h"

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

START_TEST(test_every_bfloat16_becomes_what_cuda_makes_of_it)
{
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        expect_same(bits << 16);
    }
}
END_TEST

START_TEST(test_float32_rounds_as_cuda_does)
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
END_TEST

static const struct shape {
    uint64_t rows, columns, src_pitch, dst_pitch;
    float magnitude;
} shapes[] = {
    {128, 128, 128, 128, 1.0f},    {256, 384, 384, 384, 0.02f},
    {129, 257, 300, 260, 30000.f}, {1, 1, 1, 1, 1.0f},
    {300, 100, 128, 100, 1e-6f},   {127, 640, 640, 1024, 0.0f},
};

static uint16_t bf16(float value)
{
    union rf_float_bits f = {.value = value};
    return rf_f32_to_bf16(f.bits);
}

/* One block, as the formula reads. */
static void reference(const struct shape *shape, const uint16_t *src,
                      uint8_t *dst, float *scale_inv, uint64_t top,
                      uint64_t left)
{
    const uint64_t bottom = RF_MIN(top + RF_FP8_BLOCK, shape->rows);
    const uint64_t right = RF_MIN(left + RF_FP8_BLOCK, shape->columns);
    float amax = RF_FP8_AMAX_FLOOR;
    for (uint64_t r = top; r < bottom; r++) {
        for (uint64_t c = left; c < right; c++) {
            amax = fmaxf(amax,
                         fabsf(rf_bf16_to_f32(src[r * shape->src_pitch + c])));
        }
    }
    *scale_inv = amax / 448.0f;
    for (uint64_t r = top; r < bottom; r++) {
        for (uint64_t c = left; c < right; c++) {
            const float x = rf_bf16_to_f32(src[r * shape->src_pitch + c]);
            dst[r * shape->dst_pitch + c] = theirs(x * (448.0f / amax));
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

static void expect_equal(void *device, const void *host, size_t bytes)
{
    unsigned char *found = malloc(bytes);
    ck_assert_int_eq(cudaMemcpy(found, device, bytes, cudaMemcpyDeviceToHost),
                     0);
    ck_assert_mem_eq(found, host, bytes);
    free(found);
    cudaFree(device);
}

START_TEST(test_blocks_are_scaled_bit_for_bit)
{
    const struct shape *shape = &shapes[_i];
    const uint64_t across = rf_quantize_blocks(shape->columns);
    const size_t blocks = (size_t)(rf_quantize_blocks(shape->rows) * across);
    const size_t n = (size_t)(shape->rows * shape->src_pitch);
    const size_t out_bytes = (size_t)(shape->rows * shape->dst_pitch);
    uint16_t *src = malloc(n * sizeof(*src));
    uint8_t *dst = malloc(out_bytes);
    float *scale_inv = malloc(blocks * sizeof(*scale_inv));
    struct rf_fp8_matrix matrix = {.rows = shape->rows,
                                   .columns = shape->columns,
                                   .src_pitch = shape->src_pitch,
                                   .dst_pitch = shape->dst_pitch};
    struct rf_fp8_job *job = NULL;
    struct rf_err err;
    setenv("FAKE_CUDA_DELAY_US", "0", 1);
    ck_assert_int_eq(rf_device_use(0, &err), 0);
    for (size_t i = 0; i < n; i++) {
        src[i] = bf16(((float)(rf_mix64(i) % 2001) / 1000.0f - 1.0f) *
                      shape->magnitude);
    }
    memset(dst, 0x55, out_bytes); /* what lies between rows stays */
    memset(scale_inv, 0, blocks * sizeof(*scale_inv));
    matrix.src = on_device(src, n * sizeof(*src));
    matrix.dst = on_device(dst, out_bytes);
    matrix.scale_inv = on_device(scale_inv, blocks * sizeof(*scale_inv));
    for (size_t b = 0; b < blocks; b++) {
        reference(shape, src, dst, &scale_inv[b], b / across * RF_FP8_BLOCK,
                  b % across * RF_FP8_BLOCK);
    }
    ck_assert_msg(rf_fp8_job_create(&matrix, 1, &job, &err) == RF_OK, "%s",
                  err.text);
    for (int i = 0; i < 2; i++) { /* a second run begins anew */
        ck_assert_msg(rf_fp8_job_run(job, &err) == RF_OK, "%s", err.text);
    }
    rf_fp8_job_destroy(job);
    expect_equal(matrix.dst, dst, out_bytes);
    expect_equal(matrix.scale_inv, scale_inv, blocks * sizeof(*scale_inv));
    free(src);
    free(dst);
    free(scale_inv);
}
END_TEST

Suite *test_fp8_suite(void);
Suite *test_fp8_suite(void)
{
    Suite *suite = suite_create("fp8");
    TCase *tests = tcase_create("fp8");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_every_bfloat16_becomes_what_cuda_makes_of_it);
    tcase_add_test(tests, test_float32_rounds_as_cuda_does);
    tcase_add_loop_test(tests, test_blocks_are_scaled_bit_for_bit, 0,
                        (int)RF_ARRAY_SIZE(shapes));
    suite_add_tcase(suite, tests);
    return suite;
}
