/*
 * bfloat16 to the formats of planner/model/quant_format.h, in IEEE single
 * precision, rounded to nearest even, without fused operations. amax is the
 * largest magnitude of a block or, in capitals, of the tensors with one scale.
 *
 *   fp8_tensor     s = max(AMAX, 1e-12) / 448; e4m3(x · (1 / s)). vLLM's online
 *                  form, whose scale of zeros is 0, with the least amax of
 *                  SGLang and slime.
 *   fp8_block128   s = max(amax, 1e-4) / 448; e4m3(x · (1 / s)): DeepGEMM's
 *                  per_block_cast_to_fp8. Options: "eps" in place of 1e-4
 *                  (1e-10 in slime's and verl's kernels, which divide by
 *                  Triton's rules, 1e-12 rounded to bfloat16 in slime's
 *                  convert_hf_to_fp8) and "divide": "exact", e4m3(x / s), as in
 *                  the latter.
 *   …_ue8m0        the same with s rounded up to a power of two.
 *   mxfp8          s = amax · (1 / 448) rounded up to a power of two, 2^-127 at
 *                  least, stored as its exponent (E8M0); e4m3(x / s): rounding
 *                  "RCEIL" of Transformer Engine, TorchAO and vLLM.
 *   nvfp4          Transformer Engine's: S = min(2688 / AMAX, FLT_MAX), or 1 if
 *                  AMAX is 0; s = e4m3(amax · (S · (1 / 6))); e2m1(x · min(1 /
 *                  (s · (1 / S)), FLT_MAX)). The tensor's scale is 1 / S.
 *
 * Edge blocks are as if padded with zeros. Zeros keep their sign. NaN and
 * infinity are refused.
 */
#ifndef RF_WORKER_CONTENT_CONVERT_H
#define RF_WORKER_CONTENT_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/model/quant_format.h"

/* Rows of a matrix, the first of them the first of a block. */
struct rf_convert_rows {
    const uint8_t *src; /* bfloat16, `pitch` bytes from row to row */
    uint64_t pitch, rows, columns;
    uint8_t *values; /* row-major */
    uint8_t *scales; /* of blocks, row-major; unused in fp8_tensor */
    float amax;      /* of the tensors with one scale; else unused */
    float eps;       /* least amax of a block of fp8; 0: RF_FP8_AMAX_FLOOR */
    bool divides;    /* fp8 blocks: x / s, else x · (1 / s) */
};

/* False: an element is infinite or NaN, see rf_convert_not_finite(); values and
 * scales are undefined then. */
bool rf_convert_run(const struct rf_quant_format *format,
                    const struct rf_convert_rows *rows);

/* The scale of a tensor in formats that have one. */
float rf_convert_tensor_scale(const struct rf_quant_format *format, float amax);

/* The largest magnitude; NaN counts as larger than infinity. */
float rf_convert_amax(const struct rf_convert_rows *rows);

/* The first element that is infinite or NaN: its row and column. False: there
 * is none. */
bool rf_convert_not_finite(const struct rf_convert_rows *rows, uint64_t *row,
                           uint64_t *column);

#endif
