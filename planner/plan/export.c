/*
 * Places of exported tensors. See export.h.
 *
 * Tensors follow each other family by family, layer by layer, expert by expert;
 * experts that share a tensor in the checkpoint keep sharing it. Scales follow
 * their values in the same file. Headers are padded with spaces to a multiple
 * of 8 bytes, as the safetensors library does, so that the data is aligned.
 */
#include "planner/plan/export.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/model/shape_json.h"
#include "planner/plan/quantize.h"

#define NAME_BYTES 512
#define LENGTH_BYTES 8

/* One tensor of a family as stored on disk; `expert` is 0 if it holds all. */
struct exported_tensor {
    uint32_t family, layer, expert;
};

/* What becomes of the weights of the one pool. */
static const struct rf_converted *converted_of(const struct rf_plan *plan)
{
    return rf_plan_converted(plan, plan->world->rank_of[RF_INFER][0]);
}

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

/* The families of a tensor in the export: what arrived or, after conversion,
 * the format's parts, with the dtypes that are stored. Returns their number. */
static uint32_t stored_as(const struct rf_plan *plan,
                          const struct exported_tensor *tensor,
                          struct rf_family out[RF_QUANT_PARTS])
{
    const struct rf_converted *converted = converted_of(plan);
    const struct rf_family *family = &plan->model->families[tensor->family];
    if (converted != NULL &&
        rf_family_converts(family, tensor->layer, tensor->expert)) {
        for (uint32_t k = 0; k < converted->format->n_parts; k++) {
            out[k] = converted->model.families[rf_converted_number(
                converted, tensor->family, k)];
        }
        return converted->format->n_parts;
    }
    out[0] = *family;
    out[0].dtype = rf_plan_form(plan, RF_INFER, tensor->family).dtype;
    return 1;
}

static const char *name_of(const struct rf_family *stored,
                           const struct exported_tensor *tensor,
                           char out[NAME_BYTES])
{
    rf_family_tensor_name(stored, tensor->layer, tensor->expert, out,
                          NAME_BYTES);
    return out;
}

static uint64_t expert_bytes(const struct rf_family *stored)
{
    return rf_dtype_bytes(stored->dtype) * rf_family_tensor_elements(stored);
}

static uint64_t tensor_bytes(const struct rf_family *stored)
{
    return expert_bytes(stored) * (stored->stacked ? stored->n_experts : 1);
}

/* --- Which tensor goes where ---------------------------------------------- */

/* Offsets count from the start of the data until the headers exist. */
static void place_tensors(const struct rf_plan *plan, uint64_t file_bytes,
                          struct rf_export *export)
{
    struct exported_tensor tensor = {.family = 0};
    uint64_t used = 0; /* of the file */
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        struct rf_family as[RF_QUANT_PARTS];
        uint64_t bytes = 0;
        for (uint32_t k = stored_as(plan, &tensor, as); k-- > 0;) {
            bytes += tensor_bytes(&as[k]);
        }
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

/* Adds all tensors to the headers of their files; sets the files' bytes. */
static void list_tensors(const struct rf_plan *plan,
                         const struct rf_export *export, json_t **headers)
{
    struct exported_tensor tensor = {.family = 0};
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        const struct rf_export_place *place = &export->places[i];
        struct rf_family as[RF_QUANT_PARTS];
        const uint32_t n = stored_as(plan, &tensor, as);
        uint64_t at = place->offset;
        for (uint32_t k = 0; k < n; k++) {
            const uint64_t end = at + tensor_bytes(&as[k]);
            char name[NAME_BYTES];
            json_object_set_new(
                headers[place->file], name_of(&as[k], &tensor, name),
                json_pack(
                    "{s:s, s:o, s:[I, I]}", "dtype",
                    rf_dtype_header_name(as[k].dtype), "shape",
                    rf_shape_to_json(&as[k], as[k].n_experts, as[k].shape),
                    "data_offsets", (json_int_t)at, (json_int_t)end));
            at = end;
        }
        export->files[place->file].bytes = at;
        next_tensor(plan->model, &tensor);
    }
}

static void make_head(const json_t *header, struct rf_export_file *file)
{
    char *text = json_dumps(header, JSON_COMPACT);
    const size_t size = strlen(text), padded = (size + 7) / 8 * 8;
    const uint64_t length = htole64(padded);
    file->head_bytes = LENGTH_BYTES + padded;
    file->head = rf_xmalloc(file->head_bytes);
    memcpy(file->head, &length, LENGTH_BYTES);
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

/* Readers view the bytes of a part as its dtype. Float32 scales follow, or the
 * next tensor. */
static enum rf_status check_alignment(const struct rf_plan *plan, uint32_t f,
                                      struct rf_err *err)
{
    const struct rf_converted *converted = converted_of(plan);
    const struct rf_quant_format *format = converted->format;
    for (uint32_t k = 0; k < format->n_parts; k++) {
        const struct rf_family part =
            converted->model.families[rf_converted_number(converted, f, k)];
        const bool last =
            k + 1 == format->n_parts || format->parts[k + 1].dtype == RF_F32;
        if (last && tensor_bytes(&part) % sizeof(float) != 0) {
            return rf_err_set(
                err, RF_ERR_UNSUPPORTED,
                "--export: %s as %s takes %" PRIu64
                " bytes for its %s, no multiple of 4: float32 numbers "
                "behind them would not be aligned",
                part.name, format->name, tensor_bytes(&part),
                k == 0 ? "values" : "scales");
        }
    }
    return RF_OK;
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
    if (converted_of(plan) != NULL && rf_family_is_quantized(family)) {
        RF_TRY(check_alignment(plan, f, err));
    }
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
    if (plan->spec->n_sides > RF_SIDES) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "--export: writes the model of one pool, and the "
                          "scenario has %u; export each from a scenario with "
                          "that pool alone as \"infer\"",
                          plan->spec->n_sides - RF_INFER);
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

enum rf_status rf_export_plan(const struct rf_plan *of, uint64_t file_bytes,
                              struct rf_export **out, struct rf_err *err)
{
    const struct rf_plan *plan = of->weights;
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
    const struct rf_converted *converted = converted_of(plan);
    const struct rf_converted_from from =
        converted != NULL ? converted->from[family]
                          : (struct rf_converted_from){family, 0};
    const struct exported_tensor tensor = {from.family, (uint32_t)layer,
                                           (uint32_t)expert};
    const struct rf_family *f = &plan->weights->model->families[from.family];
    struct rf_family as[RF_QUANT_PARTS];
    const size_t first =
        export->first[tensor.family] + (size_t)layer * tensors_of_layer(f);
    struct rf_export_place place =
        export->places[first + (f->stacked ? 0 : expert)];
    stored_as(plan->weights, &tensor, as);
    for (uint32_t k = 0; k < from.part; k++) {
        place.offset += tensor_bytes(&as[k]);
    }
    place.offset += f->stacked ? expert * expert_bytes(&as[from.part]) : 0;
    return place;
}

json_t *rf_export_quantization(const struct rf_plan *of)
{
    static const char weight[] = ".weight";
    const struct rf_plan *plan = of->weights;
    struct exported_tensor tensor = {.family = 0};
    const struct rf_quant_format *format = plan->spec->infer.quantize.format;
    json_t *modules, *config;
    if (format == NULL) {
        return NULL;
    }
    modules = json_array();
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        struct rf_family as[RF_QUANT_PARTS];
        char name[NAME_BYTES];
        const bool kept = stored_as(plan, &tensor, as) == 1 && as[0].ndim == 2;
        const size_t size = strlen(name_of(&as[0], &tensor, name));
        const size_t module = size - RF_MIN(size, sizeof(weight) - 1);
        if (kept && strcmp(name + module, weight) == 0) {
            json_array_append_new(modules, json_stringn(name, module));
        }
        next_tensor(plan->model, &tensor);
    }
    config = json_loads(format->config, 0, NULL);
    json_object_set_new(config, format->list, modules);
    return config;
}

char *rf_export_index(const struct rf_export *export, const struct rf_plan *of)
{
    const struct rf_plan *plan = of->weights;
    struct exported_tensor tensor = {.family = 0};
    json_t *map = json_object(), *index;
    char *text;
    for (size_t i = 0; i < plan->model->n_tensors; i++) {
        struct rf_family as[RF_QUANT_PARTS];
        char name[NAME_BYTES];
        for (uint32_t k = stored_as(plan, &tensor, as); k-- > 0;) {
            json_object_set_new(
                map, name_of(&as[k], &tensor, name),
                json_string(export->files[export->places[i].file].name));
        }
        next_tensor(plan->model, &tensor);
    }
    index = json_pack("{s:{s:I, s:s}, s:o}", "metadata", "total_size",
                      (json_int_t) export->bytes, "written_by",
                      RF_EXPORT_WRITER, "weight_map", map);
    text = json_dumps(index, JSON_INDENT(2));
    json_decref(index);
    return text;
}
