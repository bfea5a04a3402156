/* Adding families to a new model. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_MODEL_BUILD_H
#define RF_PLANNER_FAMILIES_MODEL_BUILD_H

#include "common/json.h"
#include "planner/model/model.h"

struct rf_rule;
struct rf_values;

/* Appends a family, divided by its rule (NULL: its role is unknown), and adds
 * it to the model's totals. `layers` is copied (NULL: none, n_layers 1);
 * n_experts 0 means no expert dimension. Shapes are checked: 1 to 5 dimensions,
 * none 0, the model below 2^63 bytes. */
struct rf_family_draft {
    const char *name;
    enum rf_dtype dtype;
    const uint32_t *layers;
    uint32_t n_layers, n_experts;
    uint32_t ndim; /* as it is on disk */
    uint64_t shape[RF_TENSOR_MAX_DIMS + 1];
    const struct rf_rule *rule;
    struct rf_values *values; /* for the rule's expressions */
};
enum rf_status rf_model_add_family(struct rf_model *model,
                                   const struct rf_family_draft *draft,
                                   const struct rf_jnode *where,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Adds a line to the model's not_counted. */
void rf_model_not_counted(struct rf_model *model, const char *fmt, ...)
    RF_PRINTF(2, 3);

#endif
