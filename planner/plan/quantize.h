/*
 * Quantising after a refit: weights arrive in bfloat16, and each inference rank
 * then converts its matrices to fp8 e4m3 with one float32 scale per 128×128
 * block of the tensor (formula "amax_448" of common/fp8.h). Pure.
 *
 * The model's table selects the matrices, by default those of linear layers.
 * Embeddings, the output head, routers, everything that is not a matrix, and
 * the tensors that the checkpoint's quantization_config leaves out stay as they
 * arrived. A block's scale needs the whole block, so shards are cut at the
 * grain (rf_layout_grain()): a matrix's piece divided by it is a piece of its
 * scales, and scales are whole and disjoint where matrices are.
 */
#ifndef RF_PLANNER_PLAN_QUANTIZE_H
#define RF_PLANNER_PLAN_QUANTIZE_H

#include "planner/plan/plan.h"

/* The family of results `number`, below 2 · n_families: the fp8 values of
 * family `number`, or the scales of family `number` - n_families, whose names
 * end in "_scale_inv", as engines read them. Borrows the model's memory. */
struct rf_family rf_quantize_family(const struct rf_model *model,
                                    uint32_t number);

/* What a rank's matrices become: of each, one layer and expert of a piece. */
struct rf_quantize {
    struct rf_rank_layout result; /* values and scales of matrix i are pieces
                                     2 i and 2 i + 1, row-major */
    uint32_t *sources; /* of matrices: the piece of the rank's layout */
    size_t n;
    uint64_t value_bytes; /* fp8 values and scales in the result */
};

/* The matrices of rank `rank`; none if the scenario does not quantise. Proves
 * that no byte of the result has two pieces.
 * RF_ERR_CONFIG with the tensor and the rule, such as that no cut divides a
 * block; RF_ERR_UNSUPPORTED if a matrix does not lie row by row.
 * rf_quantize_free() frees *out. */
enum rf_status rf_quantize_plan(const struct rf_plan *plan, uint32_t rank,
                                struct rf_quantize *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_quantize_free(struct rf_quantize *quantize);

/* Bytes of that result, aligned. */
uint64_t rf_quantize_bytes(const struct rf_plan *plan, uint32_t rank);

/* Checks that rf_quantize_plan() works for all layouts; keeps nothing. */
enum rf_status rf_quantize_check(const struct rf_plan *plan,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether infer.quantize converts one of the family's tensors to fp8, and the
 * converted share of the family: 0 to 1. */
bool rf_quantize_converts(const struct rf_family *family, uint32_t layer_index,
                          uint32_t expert);
double rf_quantize_share(const struct rf_family *family);

#endif
