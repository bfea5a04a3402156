/*
 * Quantising after a refit: weights arrive in bfloat16, and each inference rank
 * then converts its matrices to the format of "quantize"
 * (planner/model/quant_format.h). Pure.
 *
 * The model's table selects the matrices, by default those of linear layers.
 * Embeddings, the output head, routers, everything that is not a matrix, and
 * the tensors that the checkpoint's quantization_config leaves out stay as they
 * arrived. A block's scale needs the whole block, so shards are cut at the
 * grain (rf_layout_grain()): scales of blocks are whole and disjoint where
 * matrices are.
 *
 * The one scale of a tensor follows from its largest magnitude, and that of
 * every tensor which engines join to it (rf_layout_joined()): q, k and v have
 * the same scale, and so have gate and up, of each expert. Each rank with some
 * of the elements has that scale, so ranks that hold only some exchange
 * maxima.
 */
#ifndef RF_PLANNER_PLAN_QUANTIZE_H
#define RF_PLANNER_PLAN_QUANTIZE_H

#include "planner/plan/plan.h"

/* The family of results `number`, below n_parts · n_families: part k of family
 * f is k · n_families + f. Names end in the part's suffix, as engines read
 * them. The scenario must quantise. Borrows the model's memory. */
struct rf_family rf_quantize_family(const struct rf_plan *plan,
                                    uint32_t number);

/* A rank's matrix: of a piece, one layer and expert. */
struct rf_quantize_matrix {
    struct rf_box box; /* of the arrived family */
    uint32_t source;   /* the piece of the rank's layout */
    uint32_t joined;   /* index of its tensors below; 0 if there are none */
};

/* The tensors with one scale: those of a layer and expert in all families that
 * are joined to `family`, the first of them. */
struct rf_quantize_joined {
    uint32_t family, layer_index, expert;
    bool whole; /* the rank holds all their elements */
};

struct rf_quantize {
    struct rf_rank_layout result; /* part k of matrix i is piece n_parts · i +
                                     k, row-major */
    struct rf_quantize_matrix *matrices;
    size_t n;
    struct rf_quantize_joined *joined; /* ascending; none in formats without a
                                          tensor scale */
    size_t n_joined;
    uint64_t value_bytes; /* values and scales in the result */
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

/* The families joined to `family`, itself included, whose tensor of this layer
 * and expert is converted: at most RF_FAMILY_MAX_PARTS. Returns their number. */
uint32_t rf_quantize_joined_to(const struct rf_plan *plan,
                               const struct rf_quantize_joined *joined,
                               uint32_t families[RF_FAMILY_MAX_PARTS]);

/* Bytes of that result, aligned. */
uint64_t rf_quantize_bytes(const struct rf_plan *plan, uint32_t rank);

/* Checks that rf_quantize_plan() works for all layouts; keeps nothing.
 * *exchanges (may be NULL) is whether a rank holds only some elements of
 * tensors with one scale. */
enum rf_status rf_quantize_check(const struct rf_plan *plan, bool *exchanges,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether "quantize" converts one of the family's tensors, and the converted
 * share of the family: 0 to 1. */
bool rf_quantize_converts(const struct rf_family *family, uint32_t layer_index,
                          uint32_t expert);
double rf_quantize_share(const struct rf_family *family);

#endif
