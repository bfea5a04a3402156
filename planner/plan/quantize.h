/*
 * Quantising after a refit: weights arrive in bfloat16, and each inference rank
 * then converts its matrices to fp8 e4m3 with one float32 scale per 128×128
 * block of the tensor (formula "amax_448" of common/fp8.h). This file decides
 * which parts of a rank's arena are quantised and where the results go. Pure.
 *
 * The model's table selects the matrices, by default those of linear layers.
 * Embeddings, the output head, routers, everything that is not a matrix, and
 * the tensors that the checkpoint's quantization_config leaves out stay as they
 * arrived. A block's scale needs the whole block, so a shard may be cut only at
 * block ends: at multiples of 128, or at the tensor's edge.
 */
#ifndef RF_PLANNER_PLAN_QUANTIZE_H
#define RF_PLANNER_PLAN_QUANTIZE_H

#include "planner/plan/plan.h"

/* The part of one logical matrix in one piece. */
struct rf_quantize_part {
    uint32_t piece; /* of the rank's layout */
    uint32_t layer_index, expert;
    uint64_t row, column; /* the first, in the tensor */
    uint64_t rows, columns;
    uint64_t values; /* offset of its fp8 values in the result, row-major */
    uint64_t scales; /* and of its scales, one row per row of blocks */
};

struct rf_quantize {
    struct rf_quantize_part *parts;
    size_t n, capacity;
    uint64_t bytes;       /* of the result, with aligned parts */
    uint64_t value_bytes; /* fp8 values and scales in it */
};

/* The parts that rank `rank` quantises; none if the scenario does not quantise.
 * RF_ERR_CONFIG with the tensor and the rule, such as that no cut divides a
 * block; RF_ERR_UNSUPPORTED if a matrix does not lie row by row.
 * rf_quantize_free() frees *out. */
enum rf_status rf_quantize_plan(const struct rf_plan *plan, uint32_t rank,
                                struct rf_quantize *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_quantize_free(struct rf_quantize *quantize);

/* Checks that rf_quantize_plan() works for all ranks; keeps nothing. */
enum rf_status rf_quantize_check(const struct rf_plan *plan,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether infer.quantize converts one of the family's tensors to fp8, and the
 * converted share of the family: 0 to 1. */
bool rf_quantize_converts(const struct rf_family *family, uint32_t layer_index,
                          uint32_t expert);
double rf_quantize_share(const struct rf_family *family);

/* Blocks along a dimension. */
uint64_t rf_quantize_blocks(uint64_t size);

/* Offset of a part's first element from its piece's base. */
uint64_t rf_quantize_offset(const struct rf_piece *piece,
                            const struct rf_quantize_part *part,
                            const uint64_t stride[RF_BOX_DIMS]);

#endif
