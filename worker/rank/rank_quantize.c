/* Quantising on a rank. See rank_quantize.h. */
#include "worker/rank/rank_quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/plan/tensor_groups.h"

enum rf_status rf_rank_amax_make(const struct rf_plan *plan,
                                 const struct rf_quantize *what,
                                 struct rf_rank_amax *amax, struct rf_err *err)
{
    if (plan->converted == NULL ||
        !rf_quant_has_tensor_scale(plan->converted->format)) {
        return RF_OK;
    }
    RF_TRY(rf_quantize_check(plan, &amax->exchanged, err));
    amax->of = rf_xcalloc(what->n_joined, sizeof(*amax->of));
    amax->parts = rf_xcalloc(what->n_joined, sizeof(*amax->parts));
    return RF_OK;
}

void rf_rank_amax_free(struct rf_rank_amax *amax)
{
    free(amax->of);
    free(amax->parts);
    *amax = (struct rf_rank_amax){.of = NULL};
}

/* --- Groups --- */

/* About a millisecond's work. */
#define PART_BYTES (UINT64_C(1) << 20)
#define PART_ROWS UINT64_C(128) /* whole blocks */

static int compare_groups(const void *a, const void *b)
{
    const struct rf_rank_grouped *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->group, y->group),
                      RF_COMPARE(x->matrix, y->matrix));
}

/* The first tensor of each family of a plan. */
static size_t *number_tensors(const struct rf_model *model)
{
    size_t *first = rf_xcalloc(model->n_families + 1, sizeof(*first));
    for (uint32_t f = 0; f < model->n_families; f++) {
        const struct rf_family *family = &model->families[f];
        first[f + 1] = first[f] + (size_t)family->n_layers * family->n_experts;
    }
    return first;
}

/* The group of each tensor. */
static uint32_t *find_groups(const struct rf_plan *plan, const size_t *first)
{
    const struct rf_model *model = plan->model;
    struct rf_tensor_groups groups;
    uint32_t *of = rf_xcalloc(first[model->n_families], sizeof(*of));
    rf_tensor_groups_make(plan, &groups);
    for (size_t i = 0; i < groups.n_slices; i++) {
        const struct rf_group_slice *slice = &groups.slices[i];
        const uint64_t *start = slice->box.start, *extent = slice->box.extent;
        for (uint64_t l = start[0]; l < start[0] + extent[0]; l++) {
            for (uint64_t e = start[1]; e < start[1] + extent[1]; e++) {
                of[first[slice->family] +
                   l * model->families[slice->family].n_experts + e] =
                    slice->group;
            }
        }
    }
    rf_tensor_groups_free(&groups);
    return of;
}

/* The group that a matrix is converted for: the first with a part of it, if
 * parts travel. */
static uint32_t group_of(const struct rf_plan *plan,
                         const struct rf_quantize *what, size_t matrix,
                         const size_t *first, const uint32_t *groups)
{
    const uint32_t n_parts = plan->converted->format->n_parts;
    const uint32_t travelling = rf_plan_is_converted(plan) ? n_parts : 1;
    uint32_t least = UINT32_MAX;
    for (uint32_t k = 0; k < travelling; k++) {
        const struct rf_piece *part =
            &what->result.pieces[matrix * n_parts + k];
        const struct rf_family *family = &plan->model->families[part->family];
        least = RF_MIN(
            least, groups[first[part->family] +
                          part->box.start[RF_DIM_LAYER] * family->n_experts +
                          part->box.start[RF_DIM_EXPERT]]);
    }
    return least;
}

void rf_rank_groups_make(const struct rf_plan *plan,
                         const struct rf_quantize *what,
                         struct rf_rank_groups *groups)
{
    size_t *first;
    uint32_t *found;
    if (!plan->spec->infer.quantize.overlaps || what->n == 0) {
        return;
    }
    first = number_tensors(plan->model);
    found = find_groups(plan, first);
    groups->of = rf_xcalloc(what->n, sizeof(*groups->of));
    for (size_t i = 0; i < what->n; i++) {
        groups->of[i] = (struct rf_rank_grouped){
            group_of(plan, what, i, first, found), (uint32_t)i};
    }
    qsort(groups->of, what->n, sizeof(*groups->of), compare_groups);
    free(found);
    free(first);
}

void rf_rank_groups_free(struct rf_rank_groups *groups)
{
    free(groups->of);
    *groups = (struct rf_rank_groups){.of = NULL};
}

/* Whether the matrix in hand is to be converted for a group: a sender's come in
 * order, so that of a group without an action of its own comes with the next;
 * a receiver's groups arrive in any order. */
static bool is_due(const struct rf_rank_quantize *quantize, uint32_t group)
{
    const struct rf_rank_groups *groups = quantize->groups;
    if (groups->at == quantize->what->n) {
        return false;
    }
    return rf_quantize_side(quantize->env->plan) == RF_TRAIN
               ? groups->of[groups->at].group <= group
               : groups->of[groups->at].group == group;
}

/* Moves on to the first matrix of a group that a receiver has. */
static void go_to(const struct rf_rank_quantize *quantize, uint32_t group)
{
    struct rf_rank_groups *groups = quantize->groups;
    groups->at = 0;
    while (groups->at < quantize->what->n &&
           groups->of[groups->at].group < group) {
        groups->at++;
    }
}

/* Converts a part of the matrix in hand, and moves on behind its last row. */
static enum rf_status convert_part(const struct rf_rank_quantize *quantize,
                                   struct rf_err *err)
{
    const struct rf_quantize *what = quantize->what;
    struct rf_rank_groups *groups = quantize->groups;
    const uint32_t matrix = groups->of[groups->at].matrix;
    const uint64_t *extent = &what->matrices[matrix].box.extent[RF_DIM_TENSOR];
    const uint64_t most =
        RF_MAX(PART_BYTES / (sizeof(uint16_t) * extent[1]), PART_ROWS);
    const struct rf_quantize_rows part = {
        matrix, groups->row,
        RF_MIN(extent[0] - groups->row, most / PART_ROWS * PART_ROWS)};
    RF_TRY(quantize->env->memory->quantizer_part(
        quantize->quantizer, quantize->amax->of, &part, err));
    groups->row += part.rows;
    if (groups->row == extent[0]) {
        groups->row = 0;
        groups->at++;
    }
    return RF_OK;
}

enum rf_status rf_rank_quantize_part(const struct rf_rank_quantize *quantize,
                                     uint32_t group, bool *done,
                                     struct rf_err *err)
{
    const int64_t before = rf_now_ns();
    if (rf_quantize_side(quantize->env->plan) == RF_INFER &&
        !is_due(quantize, group)) {
        go_to(quantize, group);
    }
    if (is_due(quantize, group)) {
        RF_TRY(convert_part(quantize, err));
    }
    *done = !is_due(quantize, group);
    quantize->groups->ns += rf_now_ns() - before;
    return RF_OK;
}

enum rf_status rf_rank_quantize_rest(const struct rf_rank_quantize *quantize,
                                     struct rf_err *err)
{
    while (quantize->groups->of != NULL && is_due(quantize, UINT32_MAX)) {
        RF_TRY(convert_part(quantize, err));
    }
    return RF_OK;
}

/* --- Largest magnitudes --- */

static int compare_parts(const void *a, const void *b)
{
    const struct rf_rank_amax_part *x = a;
    const struct rf_quantize_joined *y = b;
    return RF_THEN_BY(RF_COMPARE(x->family, y->family),
                      RF_THEN_BY(RF_COMPARE(x->layer_index, y->layer_index),
                                 RF_COMPARE(x->expert, y->expert)));
}

/* Raises this rank's magnitudes by those of another. */
static enum rf_status take_parts(const struct rf_rank_quantize *quantize,
                                 const struct rf_blob *blob, struct rf_err *err)
{
    const struct rf_quantize *what = quantize->what;
    struct rf_rank_amax_part part;
    for (size_t at = 0; at + sizeof(part) <= blob->size; at += sizeof(part)) {
        const struct rf_quantize_joined *found;
        memcpy(&part, (const uint8_t *)blob->data + at, sizeof(part));
        found = bsearch(&part, what->joined, what->n_joined,
                        sizeof(*what->joined), compare_parts);
        if (!isfinite(part.amax)) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "a rank sent a largest magnitude that is not "
                              "finite");
        }
        if (found != NULL) {
            float *amax = &quantize->amax->of[found - what->joined];
            *amax = RF_MAX(*amax, part.amax);
        }
    }
    return RF_OK;
}

/* Each rank sends the magnitudes of tensors that it holds in part. */
static enum rf_status exchange(const struct rf_rank_quantize *quantize,
                               struct rf_err *err)
{
    const struct rf_method_env *env = quantize->env;
    const struct rf_quantize *what = quantize->what;
    struct rf_blob *all = NULL;
    size_t n = 0;
    enum rf_status status;
    for (size_t i = 0; i < what->n_joined; i++) {
        const struct rf_quantize_joined *joined = &what->joined[i];
        if (!joined->whole) {
            quantize->amax->parts[n++] = (struct rf_rank_amax_part){
                joined->family, joined->layer_index, joined->expert,
                quantize->amax->of[i]};
        }
    }
    status = rf_share(env, quantize->amax->parts,
                      n * sizeof(*quantize->amax->parts), &all, err);
    for (uint32_t r = 0; status == RF_OK && r < env->plan->world->n_ranks;
         r++) {
        status = take_parts(quantize, &all[r], err);
    }
    rf_shared_free(env, &all);
    return status;
}

/* Records time since *since_ns, which moves on to now. */
static int64_t spent(const struct rf_rank_quantize *quantize,
                     enum rf_trace_kind kind, int64_t *since_ns)
{
    const struct rf_trace_event event = {*since_ns, rf_now_ns(), 0, RF_NO_OP,
                                         kind};
    if (quantize->env->trace != NULL) {
        rf_trace_add(quantize->env->trace, &event);
    }
    *since_ns = event.end_ns;
    return event.end_ns - event.start_ns;
}

enum rf_status rf_rank_quantize_run(const struct rf_rank_quantize *quantize,
                                    int64_t *ns, int64_t *amax_ns,
                                    struct rf_err *err)
{
    const struct rf_memory_ops *memory = quantize->env->memory;
    int64_t at_ns = rf_now_ns(), found_ns = 0;
    *ns = *amax_ns = 0;
    quantize->groups->ns = 0;
    quantize->groups->at = quantize->groups->row = 0;
    if (quantize->amax->of != NULL && quantize->quantizer != NULL) {
        RF_TRY(memory->quantizer_amax(quantize->quantizer, quantize->amax->of,
                                      err));
        found_ns = spent(quantize, RF_TRACE_QUANTIZE, &at_ns);
    }
    if (quantize->amax->of != NULL && quantize->amax->exchanged) {
        RF_TRY(exchange(quantize, err));
        *amax_ns = spent(quantize, RF_TRACE_WAIT, &at_ns);
    }
    *ns = found_ns;
    if (quantize->quantizer != NULL && quantize->groups->of == NULL) {
        RF_TRY(memory->quantizer_run(quantize->quantizer, quantize->amax->of,
                                     ns, err));
        spent(quantize, RF_TRACE_QUANTIZE, &at_ns);
        *ns += found_ns;
    }
    return RF_OK;
}
