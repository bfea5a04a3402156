/*
 * bfloat16 to fp8 e4m3 with 128×128 block scales on the device (format
 * fp8_block128, worker/content/convert.h): the host side of the kernels, and the hooks that
 * quantise received data (transport/method/memory.h).
 */
#ifndef RF_CUDA_DEVICE_FP8_H
#define RF_CUDA_DEVICE_FP8_H

#include "cuda/device/device.h"
#include "transport/method/memory.h"

/* One matrix; all pointers are device addresses. */
struct rf_fp8_matrix {
    const void *src; /* bfloat16, src_pitch elements a row */
    void *dst;       /* fp8, dst_pitch elements a row */
    void *scale_inv; /* float32, rf_quantize_blocks() of rows × of columns */
    uint64_t rows, columns, src_pitch, dst_pitch;
};

/* Tables for `n` matrices. Every block must lie whole in its matrix: of a block
 * split between two ranks, neither knows the maximum. */
enum rf_status rf_fp8_job_create(const struct rf_fp8_matrix *matrices, size_t n,
                                 void **out, struct rf_err *err) RF_MUST_CHECK;

/* The hooks. A quantizer is one job for all matrices of a rank. */
enum rf_status rf_fp8_quantizer_create(const struct rf_content_job *arrived,
                                       const struct rf_quantize *what,
                                       const struct rf_arena *result,
                                       void **out, struct rf_err *err);
/* Casts and waits; `amax` is not used. *ns is the duration by the device's
 * clock. */
enum rf_status rf_fp8_job_run(void *job, const float *amax, int64_t *ns,
                              struct rf_err *err);
void rf_fp8_job_destroy(void *job); /* NULL is fine */

#endif
