/* The model after "quantize". See converted.h. */
#include "planner/plan/converted.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/layout/layout.h"

struct rf_box rf_converted_box(const struct rf_quant_part *part,
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

static struct rf_family part_of(const struct rf_family *matrix,
                                const struct rf_quant_part *part)
{
    const struct rf_box box = rf_converted_box(part, rf_box_whole(matrix));
    struct rf_family family = *matrix;
    family.quantized = false;
    family.is_result = true;
    family.dtype = part->dtype;
    family.suffix = part->suffix[0] != '\0' ? part->suffix : NULL;
    family.ndim = part->rows > 0 ? family.ndim : 1;
    for (uint32_t d = 0; d < family.ndim; d++) {
        family.shape[d] = box.extent[RF_DIM_TENSOR + d];
    }
    return family;
}

static void add(struct rf_converted *converted, const struct rf_family *family,
                uint32_t from, uint32_t part)
{
    struct rf_model *model = &converted->model;
    model->n_tensors += rf_family_tensors(family);
    model->bytes += rf_family_elements(family) * rf_dtype_bytes(family->dtype);
    converted->from[model->n_families] =
        (struct rf_converted_from){.family = from, .part = part};
    model->families[model->n_families++] = *family;
}

struct rf_converted *rf_converted_make(const struct rf_model *model,
                                       const struct rf_quant_format *format)
{
    struct rf_converted *converted = rf_xcalloc(1, sizeof(*converted));
    const size_t most = (size_t)format->n_parts * model->n_families;
    converted->format = format;
    converted->before = model;
    converted->model = *model;
    converted->model.n_families = 0;
    converted->model.n_tensors = converted->model.bytes = 0;
    converted->model.families =
        rf_xcalloc(most, sizeof(*converted->model.families));
    converted->from = rf_xcalloc(most, sizeof(*converted->from));
    converted->numbers = rf_xcalloc(most, sizeof(*converted->numbers));
    converted->joined =
        rf_xcalloc(model->n_families, sizeof(*converted->joined));
    rf_layout_joined(model, converted->joined);
    for (size_t i = 0; i < most; i++) {
        const uint32_t f = (uint32_t)(i % model->n_families);
        const uint32_t k = (uint32_t)(i / model->n_families);
        const struct rf_family *family = &model->families[f];
        const bool converts = rf_family_converted(family) > 0;
        const struct rf_family part =
            converts ? part_of(family, &format->parts[k]) : *family;
        if (converts || k == 0) {
            converted->numbers[i] = converted->model.n_families;
            add(converted, &part, f, k);
        }
    }
    return converted;
}

void rf_converted_free(struct rf_converted *converted)
{
    if (converted != NULL) {
        free(converted->model.families);
        free(converted->from);
        free(converted->numbers);
        free(converted->joined);
        free(converted);
    }
}

uint32_t rf_converted_number(const struct rf_converted *converted,
                             uint32_t family, uint32_t part)
{
    return converted->numbers[part * converted->before->n_families + family];
}

uint32_t *rf_converted_items(const struct rf_converted *converted)
{
    const struct rf_model *model = &converted->model;
    uint32_t *items = rf_xcalloc(model->n_families, sizeof(*items));
    for (uint32_t f = 0; f < model->n_families; f++) {
        items[f] = rf_dtype_bytes(model->families[f].dtype);
    }
    return items;
}
