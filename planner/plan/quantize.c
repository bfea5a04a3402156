/* Quantised matrices and the places of their results. See quantize.h. */
#include "planner/plan/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fp8.h"
#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/layout/layout_rules.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/plan_prove.h"

#define DIM_COLUMN (RF_DIM_TENSOR + 1)

struct rf_family rf_quantize_family(const struct rf_model *model,
                                    uint32_t number)
{
    const bool scales = number >= model->n_families;
    struct rf_family family =
        model->families[scales ? number - model->n_families : number];
    family.dtype = scales ? RF_F32 : RF_F8_E4M3;
    family.suffix = scales ? "_scale_inv" : NULL;
    for (uint32_t d = 0; d < family.ndim && scales; d++) {
        family.shape[d] = rf_div_up(family.shape[d], RF_FP8_BLOCK);
    }
    return family;
}

bool rf_quantize_converts(const struct rf_family *family, uint32_t layer_index,
                          uint32_t expert)
{
    const size_t at = (size_t)layer_index * family->n_experts + expert;
    return rf_family_is_quantized(family) &&
           (family->left_as_it_is == NULL || !family->left_as_it_is[at]);
}

/* Tensors of a family in a box that are converted. */
static uint64_t count_converted(const struct rf_family *family,
                                const struct rf_box *box)
{
    uint64_t n = 0;
    if (!rf_family_is_quantized(family)) {
        return 0;
    }
    if (family->left_as_it_is == NULL) {
        return box->extent[RF_DIM_LAYER] * box->extent[RF_DIM_EXPERT];
    }
    for (uint64_t l = 0; l < box->extent[RF_DIM_LAYER]; l++) {
        for (uint64_t e = 0; e < box->extent[RF_DIM_EXPERT]; e++) {
            n += rf_quantize_converts(
                family, (uint32_t)(box->start[RF_DIM_LAYER] + l),
                (uint32_t)(box->start[RF_DIM_EXPERT] + e));
        }
    }
    return n;
}

double rf_quantize_share(const struct rf_family *family)
{
    const struct rf_box whole = rf_box_whole(family);
    return (double)count_converted(family, &whole) /
           ((double)family->n_layers * family->n_experts);
}

/* The box of a matrix's scales. */
static struct rf_box scales_of(const struct rf_plan *plan,
                               const struct rf_piece *piece)
{
    const struct rf_family *family = &plan->model->families[piece->family];
    struct rf_box box = piece->box;
    for (uint32_t d = 0; d < family->ndim; d++) {
        const uint64_t grain = rf_layout_grain(&plan->spec->infer, family, d);
        box.start[RF_DIM_TENSOR + d] /= grain;
        box.extent[RF_DIM_TENSOR + d] =
            rf_div_up(box.extent[RF_DIM_TENSOR + d], grain);
    }
    return box;
}

uint64_t rf_quantize_bytes(const struct rf_plan *plan, uint32_t rank)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, rank);
    uint64_t bytes = 0;
    for (size_t i = 0; plan->spec->infer.quantize && i < layout->n_pieces;
         i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const struct rf_box scales = scales_of(plan, piece);
        const uint64_t tensors = RF_MAX(piece->box.extent[RF_DIM_LAYER] *
                                            piece->box.extent[RF_DIM_EXPERT],
                                        UINT64_C(1));
        const uint64_t values = rf_box_elements(&piece->box) / tensors;
        const uint64_t blocks = rf_box_elements(&scales) / tensors;
        bytes += count_converted(&plan->model->families[piece->family],
                                 &piece->box) *
                 (rf_align_up(values, RF_PARAM_ALIGN) +
                  rf_align_up(blocks * sizeof(float), RF_PARAM_ALIGN));
    }
    return bytes;
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

/* Appends a piece, in a parameter of its own, to the result. */
static void add_result(const struct rf_model *model, struct rf_piece piece,
                       struct rf_quantize *out)
{
    const struct rf_family family = rf_quantize_family(model, piece.family);
    const uint64_t item = rf_dtype_bytes(family.dtype);
    struct rf_rank_layout *result = &out->result;
    struct rf_param *param = &result->params[result->n_params];
    *param = (struct rf_param){.bytes = rf_box_elements(&piece.box) * item,
                               .offset = result->arena_bytes,
                               .n_instances = 1};
    snprintf(param->name, sizeof(param->name), "%s%s", family.name,
             family.suffix != NULL ? family.suffix : "");
    piece.param = (uint32_t)result->n_params++;
    piece.offset = param->offset;
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        piece.stride[d] = rf_box_step(&piece.box, d) * item;
    }
    piece.stride[RF_DIM_LAYER] = piece.stride[RF_DIM_EXPERT] =
        rf_align_up(param->bytes, RF_PARAM_ALIGN);
    result->arena_bytes += piece.stride[RF_DIM_LAYER];
    out->value_bytes += param->bytes;
    result->pieces[result->n_pieces++] = piece;
}

/* Adds the matrix of a layer and an expert of piece `source`. */
static void add_matrix(const struct rf_plan *plan, const struct rf_piece *piece,
                       uint32_t source, uint64_t layer, uint64_t expert,
                       struct rf_quantize *out)
{
    struct rf_piece part = {.family = piece->family, .box = piece->box};
    part.box.start[RF_DIM_LAYER] = layer;
    part.box.start[RF_DIM_EXPERT] = expert;
    part.box.extent[RF_DIM_LAYER] = part.box.extent[RF_DIM_EXPERT] = 1;
    add_result(plan->model, part, out);
    part.box = scales_of(plan, &part);
    part.family += plan->model->n_families;
    add_result(plan->model, part, out);
    out->sources[out->n++] = source;
}

/* Adds the matrices of a piece, if any. */
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
                add_matrix(plan, piece, index, l, e, out);
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

/* Room for all matrices of a rank's pieces. */
static void make_room(const struct rf_plan *plan,
                      const struct rf_rank_layout *layout,
                      struct rf_quantize *out)
{
    size_t n = 0;
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        n +=
            count_converted(&plan->model->families[piece->family], &piece->box);
    }
    out->sources = rf_xcalloc(n, sizeof(*out->sources));
    out->result.pieces = rf_xcalloc(2 * n, sizeof(*out->result.pieces));
    out->result.params = rf_xcalloc(2 * n, sizeof(*out->result.params));
}

static enum rf_status prove(const struct rf_plan *plan,
                            const struct rf_quantize *quantize,
                            struct rf_err *err)
{
    const uint32_t n = 2 * plan->model->n_families;
    uint32_t *items = rf_xcalloc(n, sizeof(*items));
    enum rf_status status;
    for (uint32_t f = 0; f < n; f++) {
        items[f] = rf_dtype_bytes(rf_quantize_family(plan->model, f).dtype);
    }
    status = rf_plan_prove_layout(&quantize->result, items, err);
    free(items);
    return status;
}

enum rf_status rf_quantize_plan(const struct rf_plan *plan, uint32_t rank,
                                struct rf_quantize *out, struct rf_err *err)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, rank);
    struct rf_quantize made = {.n = 0};
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
    make_room(plan, layout, &made);
    for (size_t i = 0; status == RF_OK && i < layout->n_pieces; i++) {
        status =
            add_piece(plan, rank, (uint32_t)i, &layout->pieces[i], &made, err);
    }
    RF_THEN(status, prove(plan, &made, err));
    if (status != RF_OK) {
        rf_quantize_free(&made);
        return status;
    }
    *out = made;
    return RF_OK;
}

void rf_quantize_free(struct rf_quantize *quantize)
{
    free(quantize->sources);
    free(quantize->result.pieces);
    free(quantize->result.params);
    memset(quantize, 0, sizeof(*quantize));
}

enum rf_status rf_quantize_check(const struct rf_plan *plan, struct rf_err *err)
{
    const struct rf_layouts *layouts = &plan->priv->layouts[RF_INFER];
    bool *checked = rf_xcalloc(layouts->n_layouts, sizeof(*checked));
    enum rf_status status = RF_OK;
    for (uint32_t r = 0; status == RF_OK && r < plan->world->n_ranks; r++) {
        const uint32_t index = plan->world->ranks[r].index[RF_INFER];
        struct rf_quantize all = {.n = 0};
        if (index != RF_NONE && !checked[layouts->of_index[index]]) {
            checked[layouts->of_index[index]] = true;
            status = rf_quantize_plan(plan, r, &all, err);
            rf_quantize_free(&all);
        }
    }
    free(checked);
    return status;
}
