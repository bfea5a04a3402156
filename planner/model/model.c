/* Names and sizes of families. The readers are in planner/families/. */
#include "planner/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

bool rf_family_is_quantized(const struct rf_family *family)
{
    return family->quantized && family->ndim == 2;
}

bool rf_family_converts(const struct rf_family *family, uint32_t layer_index,
                        uint32_t expert)
{
    const size_t at = (size_t)layer_index * family->n_experts + expert;
    return rf_family_is_quantized(family) &&
           (family->left_as_it_is == NULL || !family->left_as_it_is[at]);
}

double rf_family_converted(const struct rf_family *family)
{
    const size_t n = (size_t)family->n_layers * family->n_experts;
    size_t left = 0;
    if (!rf_family_is_quantized(family)) {
        return 0;
    }
    for (size_t i = 0; family->left_as_it_is != NULL && i < n; i++) {
        left += family->left_as_it_is[i];
    }
    return 1 - (double)left / (double)n;
}

void rf_family_free(struct rf_family *family)
{
    free(family->name);
    free(family->rule);
    free(family->layers);
    free(family->left_as_it_is);
}

void rf_model_destroy(struct rf_model *model)
{
    if (model == NULL) {
        return;
    }
    for (uint32_t i = 0; i < model->n_families; i++) {
        rf_family_free(&model->families[i]);
    }
    for (uint32_t i = 0; i < model->n_not_counted; i++) {
        free(model->not_counted[i]);
    }
    free(model->not_counted);
    free(model->spelling);
    free(model->unclear_module);
    free(model->families);
    free(model->name);
    free(model->model_type);
    free(model->revision);
    json_decref(model->files);
    free(model);
}

void rf_model_fill_name(const char *pattern, int64_t layer, int64_t expert,
                        char *out, size_t size)
{
    size_t used = 0;
    while (*pattern != '\0' && used + 1 < size) {
        int64_t number = -1;
        if (strncmp(pattern, "{L}", 3) == 0) {
            number = layer;
        } else if (strncmp(pattern, "{E}", 3) == 0) {
            number = expert;
        }
        if (number < 0) {
            out[used++] = *pattern++;
            continue;
        }
        int n = snprintf(out + used, size - used, "%lld", (long long)number);
        used = RF_MIN(used + (size_t)n, size - 1);
        pattern += 3;
    }
    out[used] = '\0';
}

void rf_family_tensor_name(const struct rf_family *family, uint32_t layer_index,
                           uint32_t expert, char *out, size_t size)
{
    size_t used;
    rf_model_fill_name(
        family->name,
        family->layers != NULL ? (int64_t)family->layers[layer_index] : -1,
        family->has_experts ? (int64_t)expert : -1, out, size);
    used = strlen(out);
    if (family->suffix != NULL) {
        snprintf(out + used, size - used, "%s", family->suffix);
    }
}

uint64_t rf_family_tensors(const struct rf_family *family)
{
    return family->stacked ? family->n_layers
                           : (uint64_t)family->n_layers * family->n_experts;
}

uint64_t rf_family_tensor_elements(const struct rf_family *family)
{
    uint64_t elements = 1;
    for (uint32_t d = 0; d < family->ndim; d++) {
        elements *= family->shape[d];
    }
    return elements;
}

uint64_t rf_family_elements(const struct rf_family *family)
{
    return rf_family_tensor_elements(family) * family->n_layers *
           family->n_experts;
}

const char *rf_shape_text(const uint64_t *shape, uint32_t ndim,
                          char out[RF_SHAPE_TEXT_SIZE])
{
    size_t used = 0;
    for (uint32_t d = 0; d < ndim; d++) {
        used +=
            (size_t)snprintf(out + used, RF_SHAPE_TEXT_SIZE - used, "%s%llu",
                             d > 0 ? ", " : "[", (unsigned long long)shape[d]);
    }
    snprintf(out + used, RF_SHAPE_TEXT_SIZE - used, "]");
    return out;
}
