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

static const struct rf_quant_format *format_of(const struct rf_plan *plan)
{
    return plan->spec->infer.quantize;
}

/* The box of a matrix's part. */
static struct rf_box part_box(const struct rf_quant_part *part,
                              struct rf_box box)
{
    const uint32_t unit[] = {part->rows, part->columns};
    for (uint32_t d = 0; d < RF_ARRAY_SIZE(unit); d++) {
        uint64_t *start = &box.start[RF_DIM_TENSOR + d];
        uint64_t *extent = &box.extent[RF_DIM_TENSOR + d];
        if (unit[d] == 0) {
            *start = 0;
            *extent = 1;
        } else {
            *start /= unit[d];
            *extent = rf_div_up(*extent, unit[d]);
        }
    }
    return box;
}

struct rf_family rf_quantize_family(const struct rf_plan *plan, uint32_t number)
{
    const uint32_t n = plan->model->n_families;
    const struct rf_quant_part *part = &format_of(plan)->parts[number / n];
    struct rf_family family = plan->model->families[number % n];
    const struct rf_box whole = rf_box_whole(&family);
    const struct rf_box box = part_box(part, whole);
    family.dtype = part->dtype;
    family.suffix = part->suffix[0] != '\0' ? part->suffix : NULL;
    family.ndim = part->rows > 0 ? family.ndim : 1;
    for (uint32_t d = 0; d < family.ndim; d++) {
        family.shape[d] = box.extent[RF_DIM_TENSOR + d];
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

uint64_t rf_quantize_bytes(const struct rf_plan *plan, uint32_t rank)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, rank);
    const struct rf_quant_format *format = format_of(plan);
    uint64_t bytes = 0;
    for (size_t i = 0; format != NULL && i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const uint64_t converted =
            count_converted(&plan->model->families[piece->family], &piece->box);
        struct rf_box box = piece->box;
        box.extent[RF_DIM_LAYER] = box.extent[RF_DIM_EXPERT] = 1;
        for (uint32_t k = 0; converted > 0 && k < format->n_parts; k++) {
            const struct rf_quant_part *part = &format->parts[k];
            const struct rf_box of = part_box(part, box);
            bytes += converted * rf_align_up(rf_box_elements(&of) *
                                                 rf_dtype_bytes(part->dtype),
                                             RF_PARAM_ALIGN);
        }
    }
    return bytes;
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
                          "fp8_block128 and fp8_tensor convert it",
                          format->name, family->name, format->columns);
    }
    if (family->shape[1] % format->columns != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize %s: rows of %.200s have %" PRIu64
                          " elements, no multiple of %" PRIu32
                          ", the block of one scale; fp8_block128 and "
                          "fp8_tensor convert it",
                          format->name, family->name, family->shape[1],
                          format->columns);
    }
    return RF_OK;
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
    RF_TRY(check_rows(side->quantize, family, err));
    for (uint32_t d = 0; d < 2; d++) {
        const uint64_t start = piece->box.start[RF_DIM_TENSOR + d];
        const uint64_t end = start + piece->box.extent[RF_DIM_TENSOR + d];
        if (!rf_layout_keeps_grain(side, family, d, start, end)) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "quantize %s: rank %" PRIu32 " holds %s %" PRIu64 " to %" PRIu64
                " of %.200s; shards must end at multiples of %" PRIu64
                ", the block of one scale, or at the tensor's edge (%" PRIu64
                "); try another layout, smaller sizes or fp8_tensor",
                side->quantize->name, rank, names[d], start, end, family->name,
                rf_layout_grain(side, family, d), family->shape[d]);
        }
    }
    if (piece->stride[DIM_COLUMN] != 2 && piece->box.extent[DIM_COLUMN] > 1) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "quantize: %.200s is not row-major in the memory of "
                          "rank %" PRIu32,
                          family->name, rank);
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

uint32_t rf_quantize_joined_to(const struct rf_plan *plan,
                               const struct rf_quantize_joined *joined,
                               uint32_t families[RF_FAMILY_MAX_PARTS])
{
    const struct rf_model *model = plan->model;
    uint32_t *first = rf_xcalloc(model->n_families, sizeof(*first)), n = 0;
    rf_layout_joined(model, first);
    for (uint32_t f = 0; f < model->n_families; f++) {
        if (first[f] == joined->family &&
            rf_quantize_converts(&model->families[f], joined->layer_index,
                                 joined->expert)) {
            families[n++] = f;
        }
    }
    free(first);
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
static uint64_t joined_elements(const struct rf_model *model,
                                const struct rf_quantize_joined *joined,
                                const uint32_t *first)
{
    uint64_t elements = 0;
    for (uint32_t f = 0; f < model->n_families; f++) {
        const struct rf_family *family = &model->families[f];
        if (first[f] == joined->family &&
            rf_quantize_converts(family, joined->layer_index, joined->expert)) {
            elements += rf_family_tensor_elements(family);
        }
    }
    return elements;
}

/* Finds the tensors with one scale, and whether the rank holds all of them. */
static void join(const struct rf_plan *plan,
                 const struct rf_rank_layout *layout, struct rf_quantize *out)
{
    uint32_t *first = rf_xcalloc(plan->model->n_families, sizeof(*first));
    uint64_t *held = rf_xcalloc(out->n, sizeof(*held));
    out->joined = rf_xcalloc(out->n, sizeof(*out->joined));
    rf_layout_joined(plan->model, first);
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
            held[i] == joined_elements(plan->model, &out->joined[i], first);
    }
    free(held);
    free(first);
}

/* --- The result ----------------------------------------------------------- */

/* Appends part `k` of a matrix, in a parameter of its own, to the result. */
static void add_part(const struct rf_plan *plan, uint32_t family_index,
                     const struct rf_box *box, uint32_t k,
                     struct rf_quantize *out)
{
    const uint32_t number = k * plan->model->n_families + family_index;
    const struct rf_family family = rf_quantize_family(plan, number);
    const uint64_t item = rf_dtype_bytes(family.dtype);
    struct rf_rank_layout *result = &out->result;
    struct rf_param *param = &result->params[result->n_params];
    struct rf_piece *piece = &result->pieces[result->n_pieces++];
    *piece =
        (struct rf_piece){.family = number,
                          .param = (uint32_t)result->n_params++,
                          .box = part_box(&format_of(plan)->parts[k], *box),
                          .offset = result->arena_bytes};
    *param = (struct rf_param){.bytes = rf_box_elements(&piece->box) * item,
                               .offset = piece->offset,
                               .n_instances = 1};
    snprintf(param->name, sizeof(param->name), "%s%s", family.name,
             family.suffix != NULL ? family.suffix : "");
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        piece->stride[d] = rf_box_step(&piece->box, d) * item;
    }
    piece->stride[RF_DIM_LAYER] = piece->stride[RF_DIM_EXPERT] =
        rf_align_up(param->bytes, RF_PARAM_ALIGN);
    result->arena_bytes += piece->stride[RF_DIM_LAYER];
    out->value_bytes += param->bytes;
}

/* Adds the matrix of a layer and an expert of piece `source`. */
static void add_matrix(const struct rf_plan *plan, const struct rf_piece *piece,
                       uint32_t source, uint64_t layer, uint64_t expert,
                       struct rf_quantize *out)
{
    struct rf_quantize_matrix *matrix = &out->matrices[out->n++];
    *matrix = (struct rf_quantize_matrix){.box = piece->box, .source = source};
    matrix->box.start[RF_DIM_LAYER] = layer;
    matrix->box.start[RF_DIM_EXPERT] = expert;
    matrix->box.extent[RF_DIM_LAYER] = matrix->box.extent[RF_DIM_EXPERT] = 1;
    for (uint32_t k = 0; k < format_of(plan)->n_parts; k++) {
        add_part(plan, piece->family, &matrix->box, k, out);
    }
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
                          "quantize: %.200s arrives as %s, must be bfloat16 "
                          "(infer.dtype)",
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
    out->matrices = rf_xcalloc(n, sizeof(*out->matrices));
    n *= format_of(plan)->n_parts;
    out->result.pieces = rf_xcalloc(n, sizeof(*out->result.pieces));
    out->result.params = rf_xcalloc(n, sizeof(*out->result.params));
}

static enum rf_status prove(const struct rf_plan *plan,
                            const struct rf_quantize *quantize,
                            struct rf_err *err)
{
    const uint32_t n = format_of(plan)->n_parts * plan->model->n_families;
    uint32_t *items = rf_xcalloc(n, sizeof(*items));
    enum rf_status status;
    for (uint32_t f = 0; f < n; f++) {
        items[f] = rf_dtype_bytes(rf_quantize_family(plan, f).dtype);
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
    if (format_of(plan) == NULL) {
        *out = made;
        return RF_OK;
    }
    if (plan->model->unclear_module != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize: unsupported pattern \"%.200s\" in "
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
    if (status == RF_OK && rf_quant_has_tensor_scale(format_of(plan))) {
        join(plan, layout, &made);
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
    free(quantize->matrices);
    free(quantize->joined);
    free(quantize->result.pieces);
    free(quantize->result.params);
    memset(quantize, 0, sizeof(*quantize));
}

enum rf_status rf_quantize_check(const struct rf_plan *plan, bool *exchanges,
                                 struct rf_err *err)
{
    const struct rf_layouts *layouts = &plan->priv->layouts[RF_INFER];
    bool *checked = rf_xcalloc(layouts->n_layouts, sizeof(*checked));
    bool partly = false;
    enum rf_status status = RF_OK;
    for (uint32_t r = 0; status == RF_OK && r < plan->world->n_ranks; r++) {
        const uint32_t index = plan->world->ranks[r].index[RF_INFER];
        struct rf_quantize all = {.n = 0};
        if (index != RF_NONE && !checked[layouts->of_index[index]]) {
            checked[layouts->of_index[index]] = true;
            status = rf_quantize_plan(plan, r, &all, err);
            for (size_t i = 0; i < all.n_joined; i++) {
                partly |= !all.joined[i].whole;
            }
            rf_quantize_free(&all);
        }
    }
    free(checked);
    if (status == RF_OK && exchanges != NULL) {
        *exchanges = partly;
    }
    return status;
}
