/*
 * Adding families. See model_build.h.
 *
 * Invariants of a finished model: every family has a non-empty shape of 1 to 5
 * dimensions; all tensors together stay below 2^63 bytes, so any offset or
 * product of extents inside one tensor fits 64 bits.
 */
#include "planner/families/model_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/family_rules.h"
#include "planner/model/shape_json.h"

#define MODEL_MAX_BYTES (UINT64_C(1) << 63)

/* Adds `family` to the model's totals; false above the limit. */
static bool count_family(struct rf_model *model, const struct rf_family *family,
                         const struct rf_rule *rule)
{
    uint64_t elements = 1, bytes;
    uint64_t places = (uint64_t)family->n_layers * family->n_experts;
    for (uint32_t d = 0; d < family->ndim; d++) {
        if (!rf_mul_u64(elements, family->shape[d], &elements)) {
            return false;
        }
    }
    if (!rf_mul_u64(elements, places, &elements) ||
        !rf_mul_u64(elements, rf_dtype_bytes(family->dtype), &bytes) ||
        !rf_add_u64(model->bytes, bytes, &bytes) || bytes >= MODEL_MAX_BYTES) {
        return false;
    }
    model->n_tensors += rf_family_tensors(family);
    model->parameters += elements * (rule != NULL ? rule->parameters : 1);
    model->bytes = bytes;
    return true;
}

/* Sets the family's shape; for a stacked one without the experts' dimension. */
static enum rf_status set_shape(const struct rf_family_draft *draft,
                                const struct rf_jnode *where,
                                struct rf_family *family, struct rf_err *err)
{
    uint32_t skip = draft->rule != NULL && draft->rule->stacked ? 1 : 0;
    if (draft->ndim < 1 + skip || draft->ndim > RF_TENSOR_MAX_DIMS + skip) {
        return rf_jnode_fail(
            where, err, "%.100s: has %u dimensions, must have %u to %u",
            draft->name, draft->ndim, 1 + skip, RF_TENSOR_MAX_DIMS + skip);
    }
    for (uint32_t d = 0; d < draft->ndim; d++) {
        if (draft->shape[d] == 0) {
            return rf_jnode_fail(where, err,
                                 "%.100s: empty tensor: dimension %u is 0",
                                 draft->name, d);
        }
    }
    if (skip == 1 && draft->shape[0] > RF_MODEL_MAX_EXPERTS) {
        return rf_jnode_fail(where, err, "%.100s: more than %d experts",
                             draft->name, RF_MODEL_MAX_EXPERTS);
    }
    family->stacked = skip == 1;
    family->has_experts = skip == 1 || draft->n_experts > 0;
    family->n_experts =
        skip == 1 ? (uint32_t)draft->shape[0] : RF_MAX(draft->n_experts, 1);
    family->ndim = draft->ndim - skip;
    memcpy(family->shape, draft->shape + skip,
           family->ndim * sizeof(*family->shape));
    return RF_OK;
}

static void copy_layers(const struct rf_family_draft *draft,
                        struct rf_family *family)
{
    if (draft->layers != NULL) {
        family->layers = rf_xcalloc(draft->n_layers, sizeof(*family->layers));
        memcpy(family->layers, draft->layers,
               draft->n_layers * sizeof(*family->layers));
    }
}

enum rf_status rf_model_add_family(struct rf_model *model,
                                   const struct rf_family_draft *draft,
                                   const struct rf_jnode *where,
                                   struct rf_err *err)
{
    struct rf_family family = {
        .role = RF_ROLE_OTHER,
        .n_parts = 1,
        .parts = {{.role = RF_ROLE_OTHER}},
        .quantized = true,
        .dtype = draft->dtype,
        .n_layers = draft->layers != NULL ? draft->n_layers : 1,
    };
    enum rf_status status;
    RF_TRY(set_shape(draft, where, &family, err));
    if (!count_family(model, &family, draft->rule)) {
        return rf_jnode_fail(where, err,
                             "%.100s: the model exceeds 2^63 - 1 bytes",
                             draft->name);
    }
    family.name = rf_xstrdup(draft->name);
    family.parts[0].size = family.shape[0];
    copy_layers(draft, &family);
    status = draft->rule == NULL
                 ? RF_OK
                 : rf_rule_divide(draft->rule, draft->values, &family, err);
    if (status != RF_OK) {
        rf_family_free(&family);
        return status;
    }
    /* capacity: the next power of two */
    if ((model->n_families & (model->n_families - 1)) == 0) {
        model->families =
            rf_xrealloc(model->families, RF_MAX(2 * model->n_families, 1),
                        sizeof(*model->families));
    }
    model->families[model->n_families++] = family;
    return RF_OK;
}

void rf_model_not_counted(struct rf_model *model, const char *fmt, ...)
{
    char line[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    model->not_counted =
        rf_xrealloc(model->not_counted, model->n_not_counted + 1u,
                    sizeof(*model->not_counted));
    model->not_counted[model->n_not_counted++] = rf_xstrdup(line);
}
