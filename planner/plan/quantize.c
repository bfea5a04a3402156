/* Quantised parts and the places of their results. See quantize.h. */
#include "planner/plan/quantize.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/fp8.h"
#include "common/mem.h"
#include "planner/layout/layout_rules.h"

#define PART_ALIGN 256
#define DIM_ROW 2 /* of a box: after layer and expert */
#define DIM_COLUMN 3

uint64_t rf_quantize_blocks(uint64_t size)
{
    return (size + RF_FP8_BLOCK - 1) / RF_FP8_BLOCK;
}

bool rf_quantize_converts(const struct rf_family *family, uint32_t layer_index,
                          uint32_t expert)
{
    const size_t at = (size_t)layer_index * family->n_experts + expert;
    return rf_family_is_quantized(family) &&
           (family->left_as_it_is == NULL || !family->left_as_it_is[at]);
}

double rf_quantize_share(const struct rf_family *family)
{
    const uint64_t all = (uint64_t)family->n_layers * family->n_experts;
    uint64_t converted = 0;
    if (family->left_as_it_is == NULL) {
        return rf_quantize_converts(family, 0, 0) ? 1 : 0;
    }
    for (uint32_t l = 0; l < family->n_layers; l++) {
        for (uint32_t e = 0; e < family->n_experts; e++) {
            converted += rf_quantize_converts(family, l, e);
        }
    }
    return (double)converted / (double)all;
}

/* Refuses a cut inside a block, whose largest magnitude no rank would know, and
 * matrices that do not lie row by row. */
static enum rf_status check_cut(const struct rf_plan *plan, uint32_t rank,
                                const struct rf_piece *piece,
                                struct rf_err *err)
{
    static const char *const names[] = {"rows", "columns"};
    const struct rf_family *family = &plan->model->families[piece->family];
    const struct rf_side_spec *side = &plan->spec->infer;
    for (uint32_t d = 0; d < 2; d++) {
        const uint64_t start = piece->box.start[RF_DIM_TENSOR + d];
        const uint64_t end = start + piece->box.extent[RF_DIM_TENSOR + d];
        if (!rf_layout_keeps_grain(side, family, d, start, end)) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "infer.quantize: rank %" PRIu32 " holds %s %" PRIu64
                " to %" PRIu64
                " of %.200s; shards must end at multiples of %d, the block of "
                "one scale, or at the tensor's edge (%" PRIu64
                "); try another layout or smaller sizes",
                rank, names[d], start, end, family->name, RF_FP8_BLOCK,
                family->shape[d]);
        }
    }
    if (piece->stride[DIM_COLUMN] != 2 && piece->box.extent[DIM_COLUMN] > 1) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "infer.quantize: %.200s is not row-major in the "
                          "memory of rank %" PRIu32,
                          family->name, rank);
    }
    return RF_OK;
}

static void add_part(struct rf_quantize *out, uint32_t index,
                     const struct rf_piece *piece, uint32_t layer_index,
                     uint32_t expert)
{
    const struct rf_box *box = &piece->box;
    struct rf_quantize_part part = {.piece = index,
                                    .layer_index = layer_index,
                                    .expert = expert,
                                    .row = box->start[DIM_ROW],
                                    .column = box->start[DIM_COLUMN],
                                    .rows = box->extent[DIM_ROW],
                                    .columns = box->extent[DIM_COLUMN],
                                    .values = out->bytes};
    const uint64_t values = part.rows * part.columns;
    const uint64_t scales = rf_quantize_blocks(part.rows) *
                            rf_quantize_blocks(part.columns) * sizeof(float);
    part.scales = part.values + rf_align_up(values, PART_ALIGN);
    out->bytes = part.scales + rf_align_up(scales, PART_ALIGN);
    out->value_bytes += values + scales;
    RF_PUSH(out->parts, out->n, out->capacity, part);
}

/* Adds the quantised parts of a piece, if any. */
static enum rf_status add_piece(const struct rf_plan *plan, uint32_t rank,
                                uint32_t index, const struct rf_piece *piece,
                                struct rf_quantize *out, struct rf_err *err)
{
    const struct rf_family *family = &plan->model->families[piece->family];
    const struct rf_box *box = &piece->box;
    const enum rf_dtype dtype =
        rf_plan_form(plan, RF_INFER, piece->family).dtype;
    const size_t before = out->n;
    for (uint64_t l = box->start[0]; l < box->start[0] + box->extent[0]; l++) {
        for (uint64_t e = box->start[1]; e < box->start[1] + box->extent[1];
             e++) {
            if (rf_quantize_converts(family, (uint32_t)l, (uint32_t)e)) {
                add_part(out, index, piece, (uint32_t)l, (uint32_t)e);
            }
        }
    }
    if (out->n > before && dtype != RF_BF16) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "infer.quantize: %.200s arrives as %s, must be "
                          "bfloat16 (infer.dtype)",
                          family->name, rf_dtype_name(dtype));
    }
    return out->n > before ? check_cut(plan, rank, piece, err) : RF_OK;
}

enum rf_status rf_quantize_plan(const struct rf_plan *plan, uint32_t rank,
                                struct rf_quantize *out, struct rf_err *err)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, rank);
    struct rf_quantize made = {0};
    enum rf_status status = RF_OK;
    if (!plan->spec->infer.quantize) {
        *out = made;
        return RF_OK;
    }
    if (plan->model->unclear_module != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "infer.quantize: unsupported pattern \"%.200s\" in "
                          "quantization_config: list the modules without "
                          "(?...), {...} and backslashes before letters",
                          plan->model->unclear_module);
    }
    for (size_t i = 0; status == RF_OK && i < layout->n_pieces; i++) {
        status =
            add_piece(plan, rank, (uint32_t)i, &layout->pieces[i], &made, err);
    }
    if (status != RF_OK) {
        rf_quantize_free(&made);
        return status;
    }
    *out = made;
    return RF_OK;
}

void rf_quantize_free(struct rf_quantize *quantize)
{
    free(quantize->parts);
    memset(quantize, 0, sizeof(*quantize));
}

enum rf_status rf_quantize_check(const struct rf_plan *plan, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (uint32_t r = 0; status == RF_OK && plan->spec->infer.quantize &&
                         r < plan->world->n_ranks;
         r++) {
        struct rf_quantize all = {0};
        status = rf_quantize_plan(plan, r, &all, err);
        if (status == RF_OK) {
            rf_quantize_free(&all);
        }
    }
    return status;
}

uint64_t rf_quantize_offset(const struct rf_piece *piece,
                            const struct rf_quantize_part *part,
                            const uint64_t stride[RF_BOX_DIMS])
{
    return (part->layer_index - piece->box.start[0]) * stride[0] +
           (part->expert - piece->box.start[1]) * stride[1];
}
