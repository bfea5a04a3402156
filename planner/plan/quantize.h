/*
 * Quantising in a refit: the matrices that a rank converts from bfloat16 to the
 * format of "quantize" (planner/model/quant_format.h), and the places of the
 * results. Inference ranks convert what has arrived, or training ranks what
 * they send. Pure.
 *
 * The model's table selects the matrices, by default those of linear layers.
 * Embeddings, the output head, routers, everything that is not a matrix, and
 * the tensors that the checkpoint's quantization_config leaves out stay as they
 * are. A block's scale needs the whole block, so shards are cut at the
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

/* A rank's matrix: of a piece, one layer and expert. */
struct rf_quantize_matrix {
    struct rf_box box; /* of the family before conversion */
    uint32_t source;   /* the piece of the rank's layout of weights */
    uint32_t joined;   /* index of its tensors below; 0 if there are none */
};

/* Rows [row, row + rows) of one of a rank's matrices. */
struct rf_quantize_rows {
    size_t matrix;
    uint64_t row, rows;
};

/* The tensors with one scale: those of a layer and expert in all families that
 * are joined to `family`, the first of them. */
struct rf_quantize_joined {
    uint32_t family, layer_index, expert;
    bool whole; /* the rank holds all their elements */
};

struct rf_quantize {
    /* Part k of matrix i is piece n_parts · i + k, row-major, a box of
     * plan->converted. A parameter has a part of all matrices of a source. */
    struct rf_rank_layout result;
    struct rf_quantize_matrix *matrices;
    size_t n;
    struct rf_quantize_joined *joined; /* ascending; none in formats without a
                                          tensor scale */
    size_t n_joined;
    uint64_t value_bytes; /* values and scales in the result */
};

/* A rank's weights, and the byte from which results lie in their arena. */
struct rf_quantize_job {
    const struct rf_plan *plan; /* of the weights */
    enum rf_side side;
    uint32_t rank; /* for errors */
    const struct rf_rank_layout *layout;
    uint64_t from_byte;
};

/* The matrices of a layout. Proves that no byte of the result has two pieces.
 * RF_ERR_CONFIG with the tensor and the rule, such as that no cut divides a
 * block; RF_ERR_UNSUPPORTED if a matrix does not lie row by row.
 * rf_quantize_free() frees *out. */
enum rf_status rf_quantize_make(const struct rf_quantize_job *job,
                                struct rf_quantize *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* The matrices of rank `rank` and their results: on the side that converts, in
 * an arena of their own, or where senders convert on both sides, inside the
 * arena of what moves. None on the training side of other plans. */
enum rf_status rf_quantize_plan(const struct rf_plan *plan, enum rf_side side,
                                uint32_t rank, struct rf_quantize *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_quantize_free(struct rf_quantize *quantize);

/* The side that converts. */
enum rf_side rf_quantize_side(const struct rf_plan *plan);

/* Where the parameters of a layout of weights lie without those that are
 * converted; `offsets` (may be NULL) gets a place, or UINT64_MAX, for each.
 * Returns their bytes. */
uint64_t rf_quantize_kept(const struct rf_plan *plan,
                          const struct rf_rank_layout *layout,
                          uint64_t *offsets);

/* The families joined to `family`, itself included, whose tensor of this layer
 * and expert is converted: at most RF_FAMILY_MAX_PARTS. Returns their number. */
uint32_t rf_quantize_joined_to(const struct rf_converted *converted,
                               const struct rf_quantize_joined *joined,
                               uint32_t families[RF_FAMILY_MAX_PARTS]);

/* Bytes that a rank needs beside the arenas of what moves: for results, or for
 * the weights before conversion. */
uint64_t rf_quantize_bytes(const struct rf_plan *plan, uint32_t rank);

/* Checks that rf_quantize_plan() works for all layouts of the side that
 * converts; keeps nothing. *exchanges (may be NULL) is whether a rank holds only
 * some elements of tensors with one scale. */
enum rf_status rf_quantize_check(const struct rf_plan *plan, bool *exchanges,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
