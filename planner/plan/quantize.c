/* Quantised matrices and the places of their results. See quantize.h. */
#include "planner/plan/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/layout/layout.h"
#include "planner/layout/layout_rules.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/plan_prove.h"

#define DIM_COLUMN (RF_DIM_TENSOR + 1)

static const struct rf_converted *
converted_of(const struct rf_quantize_job *job)
{
    return rf_plan_converted(job->plan, job->rank);
}

static const struct rf_quant_format *
format_of(const struct rf_quantize_job *job)
{
    return converted_of(job)->format;
}

static const char *name_of_side(const struct rf_quantize_job *job)
{
    const enum rf_side pool = rf_world_pool(job->plan->world, job->rank);
    return rf_spec_side_name(job->plan->spec,
                             job->side == RF_TRAIN ? RF_TRAIN : pool);
}

/* Bytes of a part of one of a piece's matrices. */
static uint64_t part_bytes(const struct rf_quant_part *part,
                           const struct rf_piece *piece)
{
    struct rf_box box = piece->box;
    box.extent[RF_DIM_LAYER] = box.extent[RF_DIM_EXPERT] = 1;
    box = rf_converted_box(part, box);
    return rf_box_elements(&box) * rf_dtype_bytes(part->dtype);
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
            n += rf_family_converts(family,
                                    (uint32_t)(box->start[RF_DIM_LAYER] + l),
                                    (uint32_t)(box->start[RF_DIM_EXPERT] + e));
        }
    }
    return n;
}

/* Refuses matrices whose rows are no whole blocks, where the format has no
 * other. */
static enum rf_status check_rows(const struct rf_quant_format *format,
                                 const struct rf_family *family,
                                 struct rf_err *err)
{
    if (!format->whole_blocks) {
        return RF_OK;
    }
    if (family->transposed) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize %s: %.200s is stored as [in, out], but "
                          "blocks of %" PRIu32 " are along the inputs; "
                          "fp8_tensor converts it, and fp8_block128 if no "
                          "shard cuts its blocks",
                          format->name, family->name, format->columns);
    }
    if (family->shape[1] % format->columns != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize %s: rows of %.200s have %" PRIu64
                          " elements, no multiple of %" PRIu32
                          ", the block of one scale; fp8_tensor converts "
                          "it, and fp8_block128 if no shard cuts its blocks",
                          format->name, family->name, family->shape[1],
                          format->columns);
    }
    return RF_OK;
}

/* Refuses a cut inside a block, whose largest magnitude no rank would know, and
 * matrices that do not lie row by row. */
static enum rf_status check_cut(const struct rf_quantize_job *job,
                                const struct rf_piece *piece,
                                struct rf_err *err)
{
    static const char *const names[] = {"rows", "columns"};
    const struct rf_plan *plan = job->plan;
    const struct rf_family *family = &plan->model->families[piece->family];
    const struct rf_side_spec *side = rf_plan_pool(plan, job->rank);
    RF_TRY(check_rows(side->quantize.format, family, err));
    for (uint32_t d = 0; d < 2; d++) {
        const uint64_t start = piece->box.start[RF_DIM_TENSOR + d];
        const uint64_t end = start + piece->box.extent[RF_DIM_TENSOR + d];
        if (!rf_layout_keeps_grain(side, family, d, start, end)) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "quantize %s: rank %" PRIu32 " holds %s %" PRIu64 " to %" PRIu64
                " of %.200s (%s); shards must end at multiples of %" PRIu64
                ", the block of one scale, or at the tensor's edge (%" PRIu64
                "); try a tp that cuts it so%s, or fp8_tensor",
                side->quantize.format->name, job->rank, names[d], start, end,
                family->name, name_of_side(job),
                rf_layout_grain(side, family, d), family->shape[d],
                job->side == RF_TRAIN ? ", \"at\": \"receiver\"" : "");
        }
    }
    if (piece->stride[DIM_COLUMN] != 2 && piece->box.extent[DIM_COLUMN] > 1) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "quantize: %.200s is not row-major in the memory of "
                          "rank %" PRIu32,
                          family->name, job->rank);
    }
    return RF_OK;
}

/* --- Tensors with one scale ----------------------------------------------- */

static int compare_joined(const void *a, const void *b)
{
    const struct rf_quantize_joined *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->family, y->family),
                      RF_THEN_BY(RF_COMPARE(x->layer_index, y->layer_index),
                                 RF_COMPARE(x->expert, y->expert)));
}

uint32_t rf_quantize_joined_to(const struct rf_converted *converted,
                               const struct rf_quantize_joined *joined,
                               uint32_t families[RF_FAMILY_MAX_PARTS])
{
    const struct rf_model *model = converted->before;
    uint32_t n = 0;
    for (uint32_t f = 0; f < model->n_families; f++) {
        if (converted->joined[f] == joined->family &&
            rf_family_converts(&model->families[f], joined->layer_index,
                               joined->expert)) {
            families[n++] = f;
        }
    }
    return n;
}

static struct rf_quantize_joined joined_of(const struct rf_quantize_matrix *m,
                                           uint32_t family,
                                           const uint32_t *first)
{
    return (struct rf_quantize_joined){
        .family = first[family],
        .layer_index = (uint32_t)m->box.start[RF_DIM_LAYER],
        .expert = (uint32_t)m->box.start[RF_DIM_EXPERT]};
}

/* Elements of all converted tensors that are joined. */
static uint64_t joined_elements(const struct rf_converted *converted,
                                const struct rf_quantize_joined *joined)
{
    uint32_t families[RF_FAMILY_MAX_PARTS];
    const uint32_t n = rf_quantize_joined_to(converted, joined, families);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < n; i++) {
        elements += rf_family_tensor_elements(
            &converted->before->families[families[i]]);
    }
    return elements;
}

/* Finds the tensors with one scale, and whether the rank holds all of them. */
static void join(const struct rf_converted *converted,
                 const struct rf_rank_layout *layout, struct rf_quantize *out)
{
    const uint32_t *first = converted->joined;
    uint64_t *held = rf_xcalloc(out->n, sizeof(*held));
    out->joined = rf_xcalloc(out->n, sizeof(*out->joined));
    for (size_t i = 0; i < out->n; i++) {
        const struct rf_quantize_matrix *m = &out->matrices[i];
        out->joined[i] = joined_of(m, layout->pieces[m->source].family, first);
    }
    qsort(out->joined, out->n, sizeof(*out->joined), compare_joined);
    for (size_t i = 0; i < out->n; i++) {
        if (out->n_joined == 0 ||
            compare_joined(&out->joined[out->n_joined - 1], &out->joined[i]) !=
                0) {
            out->joined[out->n_joined++] = out->joined[i];
        }
    }
    for (size_t i = 0; i < out->n; i++) {
        struct rf_quantize_matrix *m = &out->matrices[i];
        const struct rf_quantize_joined key =
            joined_of(m, layout->pieces[m->source].family, first);
        const struct rf_quantize_joined *found = bsearch(
            &key, out->joined, out->n_joined, sizeof(key), compare_joined);
        m->joined = (uint32_t)(found - out->joined);
        held[m->joined] += rf_box_elements(&m->box);
    }
    for (size_t i = 0; i < out->n_joined; i++) {
        out->joined[i].whole =
            held[i] == joined_elements(converted, &out->joined[i]);
    }
    free(held);
}

/* --- What stays as it is ---------------------------------------------------- */

uint64_t rf_quantize_kept(const struct rf_plan *plan,
                          const struct rf_rank_layout *layout,
                          uint64_t *offsets)
{
    bool *keeps = rf_xcalloc(layout->n_params, sizeof(*keeps));
    uint64_t bytes = 0;
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        keeps[piece->param] |=
            rf_family_converted(&plan->model->families[piece->family]) == 0;
    }
    for (size_t p = 0; p < layout->n_params; p++) {
        const struct rf_param *param = &layout->params[p];
        if (offsets != NULL) {
            offsets[p] = keeps[p] ? bytes : UINT64_MAX;
        }
        if (keeps[p]) {
            bytes +=
                param->n_instances * rf_align_up(param->bytes, RF_PARAM_ALIGN);
        }
    }
    free(keeps);
    return bytes;
}

uint64_t rf_quantize_bytes(const struct rf_plan *plan, uint32_t rank)
{
    const enum rf_side side = rf_quantize_side(plan);
    const struct rf_rank_layout *layout =
        rf_plan_layout(plan->weights, side, rank);
    const struct rf_converted *converted = rf_plan_converted(plan, rank);
    uint64_t bytes = 0;
    if (converted == NULL) {
        return 0;
    }
    if (rf_plan_is_converted(plan)) {
        return layout->arena_bytes;
    }
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const uint64_t n =
            count_converted(&plan->model->families[piece->family], &piece->box);
        for (uint32_t k = 0; n > 0 && k < converted->format->n_parts; k++) {
            bytes +=
                n * rf_align_up(part_bytes(&converted->format->parts[k], piece),
                                RF_PARAM_ALIGN);
        }
    }
    return bytes;
}

/* --- The result ----------------------------------------------------------- */

/* Sets the place of part `k` of the matrices of a piece: a parameter with an
 * instance for each. */
static void add_param(const struct rf_quantize_job *job,
                      const struct rf_piece *from, uint32_t k,
                      uint64_t instances, struct rf_quantize *out)
{
    const struct rf_converted *converted = converted_of(job);
    const struct rf_family *family =
        &converted->model
             .families[rf_converted_number(converted, from->family, k)];
    const struct rf_quant_part *part = &converted->format->parts[k];
    struct rf_rank_layout *result = &out->result;
    struct rf_param *param = &result->params[result->n_params++];
    *param = (struct rf_param){.bytes = part_bytes(part, from),
                               .offset = result->arena_bytes,
                               .n_instances = (uint32_t)instances};
    snprintf(param->name, sizeof(param->name), "%s%s", family->name,
             family->suffix != NULL ? family->suffix : "");
    result->arena_bytes +=
        instances * rf_align_up(param->bytes, RF_PARAM_ALIGN);
    out->value_bytes += instances * param->bytes;
}

/* Part `k` of a matrix, whose instance is number `instance` of the parameter. */
static void add_part(const struct rf_quantize_job *job,
                     const struct rf_quantize_matrix *matrix, uint32_t family,
                     uint32_t k, uint64_t instance, struct rf_quantize *out)
{
    const struct rf_quant_format *format = format_of(job);
    struct rf_rank_layout *result = &out->result;
    const uint32_t param = (uint32_t)(result->n_params - format->n_parts + k);
    const uint64_t item = rf_dtype_bytes(format->parts[k].dtype);
    const uint64_t distance =
        rf_align_up(result->params[param].bytes, RF_PARAM_ALIGN);
    struct rf_piece *piece = &result->pieces[result->n_pieces++];
    *piece = (struct rf_piece){
        .family = rf_converted_number(converted_of(job), family, k),
        .param = param,
        .box = rf_converted_box(&format->parts[k], matrix->box),
        .offset = result->params[param].offset + instance * distance};
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        piece->stride[d] = rf_box_step(&piece->box, d) * item;
    }
    piece->stride[RF_DIM_EXPERT] = distance;
    piece->stride[RF_DIM_LAYER] = distance;
}

/* Adds the matrix of a layer and an expert of piece `source`. */
static void add_matrix(const struct rf_quantize_job *job,
                       const struct rf_piece *piece, uint32_t source,
                       uint64_t layer, uint64_t expert, uint64_t instance,
                       struct rf_quantize *out)
{
    struct rf_quantize_matrix *matrix = &out->matrices[out->n++];
    *matrix = (struct rf_quantize_matrix){.box = piece->box, .source = source};
    matrix->box.start[RF_DIM_LAYER] = layer;
    matrix->box.start[RF_DIM_EXPERT] = expert;
    matrix->box.extent[RF_DIM_LAYER] = matrix->box.extent[RF_DIM_EXPERT] = 1;
    for (uint32_t k = 0; k < format_of(job)->n_parts; k++) {
        add_part(job, matrix, piece->family, k, instance, out);
    }
}

/* Adds the matrices of a piece, if any. */
static enum rf_status add_piece(const struct rf_quantize_job *job,
                                uint32_t index, struct rf_quantize *out,
                                struct rf_err *err)
{
    const struct rf_piece *piece = &job->layout->pieces[index];
    const struct rf_family *family = &job->plan->model->families[piece->family];
    const struct rf_box *box = &piece->box;
    const enum rf_dtype dtype =
        rf_plan_form(job->plan, job->side, piece->family).dtype;
    const uint64_t instances = count_converted(family, box);
    uint64_t instance = 0;
    if (instances == 0) {
        return RF_OK;
    }
    if (dtype != RF_BF16) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize: %.200s %s %s, must be bfloat16 "
                          "(%s.dtype)",
                          family->name,
                          job->side == RF_TRAIN ? "is trained as"
                                                : "arrives as",
                          rf_dtype_name(dtype), name_of_side(job));
    }
    for (uint32_t k = 0; k < format_of(job)->n_parts; k++) {
        add_param(job, piece, k, instances, out);
    }
    for (uint64_t l = box->start[0]; l < box->start[0] + box->extent[0]; l++) {
        for (uint64_t e = box->start[1]; e < box->start[1] + box->extent[1];
             e++) {
            if (rf_family_converts(family, (uint32_t)l, (uint32_t)e)) {
                add_matrix(job, piece, index, l, e, instance++, out);
            }
        }
    }
    return check_cut(job, piece, err);
}

/* Room for all matrices of a rank's pieces. */
static void make_room(const struct rf_quantize_job *job,
                      struct rf_quantize *out)
{
    const uint32_t n_parts = format_of(job)->n_parts;
    size_t n = 0, sources = 0;
    for (size_t i = 0; i < job->layout->n_pieces; i++) {
        const struct rf_piece *piece = &job->layout->pieces[i];
        const uint64_t converted = count_converted(
            &job->plan->model->families[piece->family], &piece->box);
        n += converted;
        sources += converted > 0;
    }
    out->matrices = rf_xcalloc(n, sizeof(*out->matrices));
    out->result.pieces = rf_xcalloc(n * n_parts, sizeof(*out->result.pieces));
    out->result.params =
        rf_xcalloc(sources * n_parts, sizeof(*out->result.params));
}

static enum rf_status make(const struct rf_quantize_job *job,
                           struct rf_quantize *out, struct rf_err *err)
{
    const struct rf_plan *plan = job->plan;
    enum rf_status status = RF_OK;
    if (plan->model->unclear_module != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize: unsupported pattern \"%.200s\" in "
                          "quantization_config: list the modules without "
                          "(?...), {...} and backslashes before letters",
                          plan->model->unclear_module);
    }
    make_room(job, out);
    for (size_t i = 0; status == RF_OK && i < job->layout->n_pieces; i++) {
        status = add_piece(job, (uint32_t)i, out, err);
    }
    if (status == RF_OK && rf_quant_has_tensor_scale(format_of(job))) {
        join(converted_of(job), job->layout, out);
    }
    return status;
}

enum rf_status rf_quantize_make(const struct rf_quantize_job *job,
                                struct rf_quantize *out, struct rf_err *err)
{
    struct rf_quantize made = {.result.arena_bytes = job->from_byte};
    uint32_t *items = rf_converted_items(converted_of(job));
    enum rf_status status = make(job, &made, err);
    RF_THEN(status, rf_plan_prove_layout(&made.result, items, err));
    free(items);
    if (status != RF_OK) {
        rf_quantize_free(&made);
        return status;
    }
    *out = made;
    return RF_OK;
}

enum rf_side rf_quantize_side(const struct rf_plan *plan)
{
    return rf_plan_is_converted(plan) ? RF_TRAIN : RF_INFER;
}

enum rf_status rf_quantize_plan(const struct rf_plan *plan, enum rf_side side,
                                uint32_t rank, struct rf_quantize *out,
                                struct rf_err *err)
{
    struct rf_quantize_job job = {
        .plan = plan->weights,
        .side = side,
        .rank = rank,
        .layout = rf_plan_layout(plan->weights, side, rank)};
    *out = (struct rf_quantize){.n = 0};
    if (rf_plan_converted(plan, rank) == NULL ||
        (!rf_plan_is_converted(plan) && side == RF_TRAIN)) {
        return RF_OK;
    }
    if (rf_plan_is_converted(plan)) {
        job.from_byte = rf_quantize_kept(plan->weights, job.layout, NULL);
    }
    return rf_quantize_make(&job, out, err);
}

void rf_quantize_free(struct rf_quantize *quantize)
{
    free(quantize->matrices);
    free(quantize->joined);
    free(quantize->result.pieces);
    free(quantize->result.params);
    memset(quantize, 0, sizeof(*quantize));
}

/* Whether a rank holds only some elements of tensors with one scale. */
static bool holds_partly(const struct rf_quantize *quantize)
{
    size_t i = 0;
    while (i < quantize->n_joined && quantize->joined[i].whole) {
        i++;
    }
    return i < quantize->n_joined;
}

enum rf_status rf_quantize_check(const struct rf_plan *plan, bool *exchanges,
                                 struct rf_err *err)
{
    const enum rf_side side = rf_quantize_side(plan);
    const struct rf_layouts *layouts = &plan->weights->priv->layouts[side];
    bool *checked = rf_xcalloc(layouts->n_layouts, sizeof(*checked));
    bool partly = false;
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; status == RF_OK && i < layouts->n_indices; i++) {
        struct rf_quantize all = {.n = 0};
        if (!checked[layouts->of_index[i]]) {
            checked[layouts->of_index[i]] = true;
            status = rf_quantize_plan(plan, side, plan->world->rank_of[side][i],
                                      &all, err);
        }
        if (status == RF_OK) {
            partly |= holds_partly(&all);
            rf_quantize_free(&all);
        }
    }
    free(checked);
    if (status == RF_OK && exchanges != NULL) {
        *exchanges = partly;
    }
    return status;
}
