/*
 * bfloat16 to fp8 e4m3 with 128×128 block scales on the device (formula
 * "amax_448", common/fp8.h). A building block: no layout has a place for the
 * scales yet, so rf_method_check() refuses refits that would need it.
 */
#ifndef RF_CUDA_FP8_H
#define RF_CUDA_FP8_H

#include "cuda/device.h"

/* One matrix; all pointers are device addresses. */
struct rf_fp8_matrix {
    const void *src; /* bfloat16, src_pitch elements a row */
    void *dst;       /* fp8, dst_pitch elements a row */
    void *scale_inv; /* float32, rf_fp8_blocks() of rows × of columns */
    uint64_t rows, columns, src_pitch, dst_pitch;
};

/* Blocks along a dimension. */
static inline uint64_t rf_fp8_blocks(uint64_t size)
{
    return (size + RF_FP8_BLOCK - 1) / RF_FP8_BLOCK;
}

/* Casts `n` matrices and waits. Every block must be whole in its matrix: a
 * block that two ranks share has a maximum that neither knows. */
enum rf_status rf_device_fp8(const struct rf_fp8_matrix *matrices, size_t n,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
