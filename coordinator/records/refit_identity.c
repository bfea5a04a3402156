/* What makes two results ones of the same refit. See refit_identity.h. */
#include "coordinator/records/refit_identity.h"

#include "common/mem.h"

json_t *rf_refit_settings(const json_t *scenario)
{
    /* Those that planner/scenario/spec_fields.h says do not bear on it. */
    static const char *const others[] = {"name", "warmup", "iterations",
                                         "timeout_s", "yardstick"};
    json_t *settings = json_deep_copy(scenario);
    for (size_t i = 0; i < RF_ARRAY_SIZE(others); i++) {
        json_object_del(settings, others[i]);
    }
    return settings;
}

json_t *rf_refit_model(const json_t *model)
{
    static const char *const keys[] = {"parameters", "bytes", "dtype",
                                       "tensors"};
    json_t *size = model != NULL ? json_object() : NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        json_t *value = json_object_get(model, keys[i]);
        if (value != NULL) {
            json_object_set(size, keys[i], value);
        }
    }
    return size;
}
