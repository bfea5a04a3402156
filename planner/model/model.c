/* Names and sizes of families. Readers are in planner/families/. */
#include "planner/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void rf_family_tensor_name(const struct rf_family *family, uint32_t layer_index,
                           uint32_t expert, char *out, size_t size)
{
    size_t used = 0;
    const char *at = family->name;
    out[0] = '\0';
    while (*at != '\0' && used + 1 < size) {
        int wrote;
        if (family->layers != NULL && strncmp(at, "{L}", 3) == 0) {
            wrote = snprintf(out + used, size - used, "%u",
                             family->layers[layer_index]);
            at += 3;
        } else if (family->has_experts && strncmp(at, "{E}", 3) == 0) {
            wrote = snprintf(out + used, size - used, "%u", expert);
            at += 3;
        } else {
            wrote = snprintf(out + used, size - used, "%c", *at++);
        }
        used += (size_t)wrote;
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
