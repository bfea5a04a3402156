/*
 * Places of exported tensors. See export.h.
 *
 * Tensors follow each other family by family, layer by layer, expert by expert;
 * experts that share a tensor in the checkpoint keep sharing it. Headers are
 * padded with spaces to a multiple of 8 bytes, as the safetensors library does,
 * so that the data is aligned.
 */
#include "planner/plan/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"

#define NAME_BYTES 512
#define LENGTH_BYTES 8

/* One tensor of a family as stored on disk; `expert` is 0 if it holds all. */
struct exported_tensor {
    uint32_t family, layer, expert;
};

static uint32_t tensors_of_layer(const struct rf_family *family)
{
    return family->stacked ? 1 : family->n_experts;
}

/* Moves on from one of the model's n_tensors tensors; the first is all 0. */
static void next_tensor(const struct rf_model *model,
                        struct exported_tensor *at)
{
    const struct rf_family *family = &model->families[at->family];
    if (++at->expert < tensors_of_layer(family)) {
        return;
    }
    at->expert = 0;
    if (++at->layer == family->n_layers) {
        at->layer = 0;
        at->family++;
    }
}

static const char *name_of(const struct rf_model *model,
                           const struct exported_tensor *tensor,
                           char out[NAME_BYTES])
{
    rf_family_tensor_name(&model->families[tensor->family], tensor->layer,
                          tensor->expert, out, NAME_BYTES);
    return out;
}

static uint64_t expert_bytes(const struct rf_plan *plan, uint32_t family)
{
    return rf_form_item(rf_plan_form(plan, RF_INFER, family)) *
           rf_family_tensor_elements(&plan->model->families[family]);
}

static uint64_t tensor_bytes(const struct rf_plan *plan, uint32_t family)
{
    const struct rf_family *f = &plan->model->families[family];
    return expert_bytes(plan, family) * (f->stacked ? f->n_experts : 1);
}

/* --- Which tensor goes where ---------------------------------------------- */

/* Offsets count from the start of the data until the headers exist. */
static void place_tensors(const struct rf_plan *plan, uint64_t file_bytes,
                          struct rf_export *export)
{
    struct exported_tensor tensor = {.family = 0};
    uint64_t used = 0; /* of the file */
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        const uint64_t bytes = tensor_bytes(plan, tensor.family);
        if (tensor.layer == 0 && tensor.expert == 0) {
            export->first[tensor.family] = i;
        }
        if (export->n_files == 0 || (used > 0 && used + bytes > file_bytes)) {
            export->n_files++;
            used = 0;
        }
        export->places[i] = (struct rf_export_place){export->n_files - 1, used};
        used += bytes;
        export->bytes += bytes;
        next_tensor(plan->model, &tensor);
    }
}

/* --- Headers -------------------------------------------------------------- */

static json_t *shape_json(const struct rf_family *family)
{
    json_t *shape = json_array();
    if (family->stacked) {
        json_array_append_new(shape, json_integer(family->n_experts));
    }
    for (uint32_t d = 0; d < family->ndim; d++) {
        json_array_append_new(shape,
                              json_integer((json_int_t)family->shape[d]));
    }
    return shape;
}

/* Adds all tensors to the headers of their files; sets the files' bytes. */
static void list_tensors(const struct rf_plan *plan,
                         const struct rf_export *export, json_t **headers)
{
    struct exported_tensor tensor = {.family = 0};
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        const struct rf_export_place *place = &export->places[i];
        const uint64_t end = place->offset + tensor_bytes(plan, tensor.family);
        const struct rf_form form = rf_plan_form(plan, RF_INFER, tensor.family);
        char name[NAME_BYTES];
        json_object_set_new(
            headers[place->file], name_of(plan->model, &tensor, name),
            json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                      rf_dtype_header_name(form.dtype), "shape",
                      shape_json(&plan->model->families[tensor.family]),
                      "data_offsets", (json_int_t)place->offset,
                      (json_int_t)end));
        export->files[place->file].bytes = end;
        next_tensor(plan->model, &tensor);
    }
}

static void make_head(const json_t *header, struct rf_export_file *file)
{
    char *text = json_dumps(header, JSON_COMPACT);
    const size_t size = strlen(text), padded = (size + 7) / 8 * 8;
    file->head_bytes = LENGTH_BYTES + padded;
    file->head = rf_xmalloc(file->head_bytes);
    for (unsigned i = 0; i < LENGTH_BYTES; i++) {
        file->head[i] = (char)(padded >> (8 * i) & 0xFF);
    }
    memset(file->head + LENGTH_BYTES, ' ', padded);
    memcpy(file->head + LENGTH_BYTES, text, size);
    free(text);
}

static void make_files(const struct rf_plan *plan, struct rf_export *export)
{
    const uint32_t n = export->n_files;
    json_t **headers = rf_xcalloc(n, sizeof(*headers));
    export->files = rf_xcalloc(n, sizeof(*export->files));
    for (uint32_t i = 0; i < n; i++) {
        headers[i] = json_pack("{s:{s:s, s:s}}", "__metadata__", "format", "pt",
                               "written_by", RF_EXPORT_WRITER);
    }
    list_tensors(plan, export, headers);
    for (uint32_t i = 0; i < n; i++) {
        struct rf_export_file *file = &export->files[i];
        if (n == 1) {
            snprintf(file->name, sizeof(file->name), "model.safetensors");
        } else {
            snprintf(file->name, sizeof(file->name),
                     "model-%05u-of-%05u.safetensors", i + 1, n);
        }
        make_head(headers[i], file);
        file->bytes += file->head_bytes;
        json_decref(headers[i]);
    }
    free(headers);
}

/* --- What can be exported ------------------------------------------------- */

/* The distinct boxes of a family that ranks of the side hold. */
static struct rf_box *boxes_of(const struct rf_plan *plan, uint32_t family,
                               size_t *n_out)
{
    struct rf_box *boxes = NULL;
    size_t n = 0, capacity = 0;
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            if (layout->pieces[p].family == family &&
                rf_export_writes(plan, r, &layout->pieces[p])) {
                RF_PUSH(boxes, n, capacity, layout->pieces[p].box);
            }
        }
    }
    *n_out = n;
    return boxes;
}

static enum rf_status check_family(const struct rf_plan *plan, uint32_t f,
                                   struct rf_err *err)
{
    const struct rf_family *family = &plan->model->families[f];
    uint64_t elements = 0;
    size_t n = 0;
    struct rf_box *boxes = boxes_of(plan, f, &n);
    const bool disjoint = n == 0 || rf_boxes_disjoint(boxes, n);
    for (size_t i = 0; i < n; i++) {
        elements += rf_box_elements(&boxes[i]);
    }
    free(boxes);
    if (disjoint && elements == rf_family_elements(family)) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_CONFIG,
                      "--export: the inference side %s %s, so no whole "
                      "tensors can be written",
                      disjoint ? "does not hold all of"
                               : "cuts in two different ways",
                      family->name);
}

static enum rf_status check(const struct rf_plan *plan, struct rf_err *err)
{
    if (plan->spec->infer.quantize) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "--export does not support infer.quantize: it writes "
                          "weights as received, before quantization; choose a "
                          "scenario without infer.quantize");
    }
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        RF_TRY(check_family(plan, f, err));
    }
    return RF_OK;
}

static int compare_boxes(const void *a, const void *b)
{
    const struct rf_piece *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->family, y->family),
                      rf_box_compare(&x->box, &y->box));
}

static bool holds(const struct rf_rank_layout *layout,
                  const struct rf_piece *piece)
{
    return layout->n_pieces > 0 &&
           bsearch(piece, layout->pieces, layout->n_pieces, sizeof(*piece),
                   compare_boxes) != NULL;
}

bool rf_export_writes(const struct rf_plan *plan, uint32_t rank,
                      const struct rf_piece *piece)
{
    const struct rf_rank_layout *before = NULL;
    if (piece > rf_plan_layout(plan, RF_INFER, rank)->pieces &&
        compare_boxes(piece - 1, piece) == 0) {
        return false; /* a second copy on this rank */
    }
    for (uint32_t r = 0; r < rank; r++) {
        const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, r);
        if (layout != before && holds(layout, piece)) {
            return false;
        }
        before = layout;
    }
    return true;
}

/* --- All of it ------------------------------------------------------------ */

enum rf_status rf_export_plan(const struct rf_plan *plan, uint64_t file_bytes,
                              struct rf_export **out, struct rf_err *err)
{
    struct rf_export *export;
    RF_TRY(check(plan, err));
    export = rf_xcalloc(1, sizeof(*export));
    export->places =
        rf_xcalloc(plan->model->n_tensors, sizeof(*export->places));
    export->first = rf_xcalloc(plan->model->n_families, sizeof(*export->first));
    place_tensors(plan, file_bytes, export);
    make_files(plan, export);
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        struct rf_export_place *place = &export->places[i];
        place->offset += export->files[place->file].head_bytes;
    }
    *out = export;
    return RF_OK;
}

void rf_export_destroy(struct rf_export *export)
{
    if (export == NULL) {
        return;
    }
    for (uint32_t i = 0; i < export->n_files; i++) {
        free(export->files[i].head);
    }
    free(export->files);
    free(export->places);
    free(export->first);
    free(export);
}

struct rf_export_place rf_export_place_of(const struct rf_export *export,
                                          const struct rf_plan *plan,
                                          uint32_t family, uint64_t layer,
                                          uint64_t expert)
{
    const struct rf_family *f = &plan->model->families[family];
    const size_t first =
        export->first[family] + (size_t)layer * tensors_of_layer(f);
    struct rf_export_place place =
        export->places[first + (f->stacked ? 0 : expert)];
    place.offset += f->stacked ? expert * expert_bytes(plan, family) : 0;
    return place;
}

char *rf_export_index(const struct rf_export *export,
                      const struct rf_plan *plan)
{
    struct exported_tensor tensor = {.family = 0};
    json_t *map = json_object(), *index;
    char *text;
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        char name[NAME_BYTES];
        json_object_set_new(
            map, name_of(plan->model, &tensor, name),
            json_string(export->files[export->places[i].file].name));
        next_tensor(plan->model, &tensor);
    }
    index = json_pack("{s:{s:I, s:s}, s:o}", "metadata", "total_size",
                      (json_int_t) export->bytes, "written_by",
                      RF_EXPORT_WRITER, "weight_map", map);
    text = json_dumps(index, JSON_INDENT(2));
    json_decref(index);
    return text;
}
