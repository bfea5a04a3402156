/*
 * Formats of quantised weights: how a bfloat16 matrix [N, K] (outputs ×
 * inputs) is stored, what cuts of it a format bears, and what config.json says.
 * The one table for planner, kernels, exports and refusals; the arithmetic is
 * in worker/content/convert.h.
 *
 * Sources of names, shapes and blocks:
 *   fp8_tensor          vLLM's Fp8LinearMethod, one weight_scale a tensor
 *   fp8_block128        README_WEIGHTS.md of DeepSeek-V3
 *   fp8_block128_ue8m0  the same with scales that are powers of two
 *                       ("scale_fmt" of DeepSeek-V3.1), as DeepGEMM reads them
 *   mxfp8               OCP MX 1.0; names of ModelOpt's MXFP8 checkpoints
 *   nvfp4               names and packing of ModelOpt's NVFP4 checkpoints, two
 *                       values a byte, the first in the low four bits
 */
#ifndef RF_PLANNER_MODEL_QUANT_FORMAT_H
#define RF_PLANNER_MODEL_QUANT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/model/model.h"

#define RF_QUANT_PARTS 3

/* One of the tensors that a matrix becomes. */
struct rf_quant_part {
    const char *suffix; /* of the matrix's name; "": none */
    enum rf_dtype dtype;
    uint32_t rows, columns; /* of the matrix, behind one element of the part;
                               0: all, and the part's shape is [1] */
};

enum rf_quant {
    RF_FP8_TENSOR,
    RF_FP8_BLOCK128,
    RF_FP8_BLOCK128_UE8M0,
    RF_MXFP8,
    RF_NVFP4,
    RF_QUANTS
};

struct rf_quant_format {
    const char *name;
    enum rf_quant id;
    uint32_t rows, columns; /* a block with a scale, which no cut divides; 1:
                               cut anywhere */
    bool whole_blocks;      /* K must be a multiple of `columns` */
    uint32_t n_parts;
    /* values, scales of blocks, and last, if any, the scale of the tensor */
    struct rf_quant_part parts[RF_QUANT_PARTS];
    const char *config; /* quantization_config without its list of modules */
    const char *list;   /* the list's key: modules that are not converted */
};

extern const struct rf_quant_format rf_quant_formats[RF_QUANTS];
/* Their names; ends with NULL. */
extern const char *const rf_quant_names[RF_QUANTS + 1];

/* Whether a tensor has one scale, which depends on all its elements and those
 * of the tensors that engines join to it. */
bool rf_quant_has_tensor_scale(const struct rf_quant_format *format);

/* Whether libraries disagree on the least amax and the division of its blocks:
 * worker/content/convert.h. */
bool rf_quant_has_options(const struct rf_quant_format *format);

/* Bytes of each element of a large matrix, scales included. */
double rf_quant_bytes_each(const struct rf_quant_format *format);

#endif
