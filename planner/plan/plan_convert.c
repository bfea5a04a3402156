/*
 * Layouts after conversion. See plan_convert.h.
 *
 * Parameters that stay as they are keep their order; behind them lie the
 * results of rf_quantize_make(), with one piece for the matrices of a source.
 */
#include "planner/plan/plan_convert.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/layout.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/quantize.h"

/* Places of a layout's parameters before and after. */
struct moving {
    uint64_t *offsets;
    uint32_t *params;
};

static void keep_params(const struct rf_rank_layout *from,
                        const struct moving *moving, struct rf_rank_layout *out)
{
    for (size_t p = 0; p < from->n_params; p++) {
        if (moving->offsets[p] != UINT64_MAX) {
            moving->params[p] = (uint32_t)out->n_params;
            out->params[out->n_params] = from->params[p];
            out->params[out->n_params++].offset = moving->offsets[p];
        }
    }
}

static void keep_pieces(const struct rf_plan *weights,
                        const struct rf_rank_layout *from,
                        const struct moving *moving, struct rf_rank_layout *out)
{
    for (size_t i = 0; i < from->n_pieces; i++) {
        struct rf_piece piece = from->pieces[i];
        const uint32_t param = piece.param;
        if (rf_family_converted(&weights->model->families[piece.family]) == 0) {
            piece.param = moving->params[param];
            piece.offset += moving->offsets[param] - from->params[param].offset;
            piece.family = rf_converted_number(weights->converted[RF_TRAIN],
                                               piece.family, 0);
            out->pieces[out->n_pieces++] = piece;
        }
    }
}

/* Joins the results of each source, which lie at constant distances. */
static void add_results(const struct rf_rank_layout *from, uint32_t n_parts,
                        const struct rf_quantize *quantize,
                        struct rf_rank_layout *out)
{
    const struct rf_rank_layout *result = &quantize->result;
    const uint32_t first = (uint32_t)out->n_params;
    for (size_t p = 0; p < result->n_params; p++) {
        out->params[out->n_params++] = result->params[p];
    }
    for (size_t i = 0; i < quantize->n; i++) {
        const uint32_t source = quantize->matrices[i].source;
        const struct rf_box *box = &from->pieces[source].box;
        if (i > 0 && quantize->matrices[i - 1].source == source) {
            continue;
        }
        for (uint32_t k = 0; k < n_parts; k++) {
            struct rf_piece piece = result->pieces[i * n_parts + k];
            piece.param += first;
            for (uint32_t d = 0; d < RF_DIM_TENSOR; d++) {
                piece.box.extent[d] = box->extent[d];
            }
            piece.stride[RF_DIM_LAYER] =
                piece.stride[RF_DIM_EXPERT] * box->extent[RF_DIM_EXPERT];
            out->pieces[out->n_pieces++] = piece;
        }
    }
}

static enum rf_status convert_layout(const struct rf_quantize_job *job,
                                     struct rf_rank_layout *out,
                                     struct rf_err *err)
{
    const struct rf_rank_layout *from = job->layout;
    const uint32_t n_parts =
        rf_plan_converted(job->plan, job->rank)->format->n_parts;
    const struct moving moving = {
        .offsets = rf_xcalloc(from->n_params, sizeof(*moving.offsets)),
        .params = rf_xcalloc(from->n_params, sizeof(*moving.params))};
    struct rf_quantize_job placed = *job;
    struct rf_quantize quantize = {.n = 0};
    enum rf_status status;
    placed.from_byte = rf_quantize_kept(job->plan, from, moving.offsets);
    status = rf_quantize_make(&placed, &quantize, err);
    if (status == RF_OK) {
        out->params = rf_xcalloc(from->n_params + quantize.result.n_params,
                                 sizeof(*out->params));
        out->pieces =
            rf_xcalloc(from->n_pieces * n_parts, sizeof(*out->pieces));
        out->arena_bytes = quantize.result.arena_bytes;
        keep_params(from, &moving, out);
        keep_pieces(job->plan, from, &moving, out);
        add_results(from, n_parts, &quantize, out);
        rf_layout_sort(out);
    }
    rf_quantize_free(&quantize);
    free(moving.offsets);
    free(moving.params);
    return status;
}

static enum rf_status convert_side(struct rf_plan *plan, enum rf_side side,
                                   struct rf_err *err)
{
    const struct rf_layouts *from = &plan->weights->priv->layouts[side];
    struct rf_layouts *out = &plan->priv->layouts[side];
    out->layouts = rf_xcalloc(from->n_layouts, sizeof(*out->layouts));
    out->of_index = rf_xcalloc(from->n_indices, sizeof(*out->of_index));
    out->n_indices = from->n_indices;
    out->n_layouts = from->n_layouts;
    for (uint32_t i = 0; i < from->n_indices; i++) {
        const uint32_t l = out->of_index[i] = from->of_index[i];
        const struct rf_quantize_job job = {.plan = plan->weights,
                                            .side = side,
                                            .rank =
                                                plan->world->rank_of[side][i],
                                            .layout = &from->layouts[l]};
        if (out->layouts[l].params == NULL) {
            RF_TRY(convert_layout(&job, &out->layouts[l], err));
        }
    }
    return RF_OK;
}

/* Families that are converted in some layers or experts only would have to be
 * taken apart. */
static enum rf_status check_whole(const struct rf_plan *plan,
                                  struct rf_err *err)
{
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        const double share = rf_family_converted(&plan->model->families[f]);
        if (share > 0 && share < 1) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "quantize at the sender: quantization_config "
                              "leaves out some tensors of %.200s and not "
                              "others; \"at\": \"receiver\" converts them",
                              plan->model->families[f].name);
        }
    }
    return RF_OK;
}

enum rf_status rf_plan_convert(struct rf_plan *plan, struct rf_err *err)
{
    struct rf_plan *before;
    RF_TRY(check_whole(plan, err));
    before = rf_xcalloc(1, sizeof(*before));
    *before = *plan;
    before->weights = before;
    before->priv = rf_xcalloc(1, sizeof(*before->priv));
    for (int side = 0; side < RF_SIDES; side++) {
        before->priv->layouts[side] = plan->priv->layouts[side];
        plan->priv->layouts[side] = (struct rf_layouts){.n_layouts = 0};
    }
    plan->weights = plan->priv->before = before;
    plan->model = &plan->converted[RF_TRAIN]->model;
    RF_TRY(convert_side(plan, RF_TRAIN, err));
    return convert_side(plan, RF_INFER, err);
}
