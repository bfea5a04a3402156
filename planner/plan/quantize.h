/*
 * Quantising after a refit: weights arrive in bfloat16 and each inference rank
 * then makes its matrices into fp8 e4m3 with one float32 scale for each 128×128
 * block of the tensor (formula "amax_448" of common/fp8.h). Here: which parts
 * of a rank's arena are quantised and where the results go. Pure.
 *
 * The model's table says which matrices are quantised, by default those of
 * linear layers; embeddings, the output head, routers, everything that is no
 * matrix and what the checkpoint's own list names stay as they arrived. A
 * block's scale needs all of the block, so a shard may be cut only where blocks
 * end: at multiples of 128, or at the tensor's edge.
 */
#ifndef RF_PLANNER_PLAN_QUANTIZE_H
#define RF_PLANNER_PLAN_QUANTIZE_H

#include "planner/plan/plan.h"

/* A part of one logical matrix that one piece holds. */
struct rf_quantize_part {
    uint32_t piece; /* of the rank's layout */
    uint32_t layer_index, expert;
    uint64_t row, column; /* the first, in the tensor */
    uint64_t rows, columns;
    uint64_t values; /* where its fp8 go in the result, row-major */
    uint64_t scales; /* and its scales, one row for each row of blocks */
};

struct rf_quantize {
    struct rf_quantize_part *parts;
    size_t n, capacity;
    uint64_t bytes;       /* the result, aligned parts */
    uint64_t value_bytes; /* fp8 and scales in it */
};

/* What rank `rank` quantises; nothing when the scenario does not ask for it.
 * RF_ERR_CONFIG with the tensor and the rule where a cut is in the way. */
enum rf_status rf_quantize_plan(const struct rf_plan *plan, uint32_t rank,
                                struct rf_quantize *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_quantize_free(struct rf_quantize *quantize);

/* The same for all ranks, without keeping anything. */
enum rf_status rf_quantize_check(const struct rf_plan *plan,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether infer.quantize makes fp8 of one of the family's tensors, and of how
 * much of the family: 0 to 1. */
bool rf_quantize_converts(const struct rf_family *family, uint32_t layer_index,
                          uint32_t expert);
double rf_quantize_share(const struct rf_family *family);

/* Blocks along a dimension. */
uint64_t rf_quantize_blocks(uint64_t size);

/* Offset of a part's first element from the base of its piece. */
uint64_t rf_quantize_offset(const struct rf_piece *piece,
                            const struct rf_quantize_part *part,
                            const uint64_t stride[RF_BOX_DIMS]);

#endif
