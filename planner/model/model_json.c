/* Facts about a model, without its tensors. See model_json.h. */
#include "planner/model/model_json.h"

json_t *rf_model_json(const struct rf_model *model)
{
    json_t *not_counted = json_array();
    for (uint32_t i = 0; i < model->n_not_counted; i++) {
        json_array_append_new(not_counted, json_string(model->not_counted[i]));
    }
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:s, s:I, s:i, s:i, s:s, s:o, s:s*}", "name",
        model->name, "model_type", model->model_type, "parameters",
        (json_int_t)model->parameters, "bytes", (json_int_t)model->bytes,
        "dtype", rf_dtype_name(model->dtype), "tensors",
        (json_int_t)model->n_tensors, "num_layers", (int)model->n_layers,
        "num_experts", (int)model->n_experts, "unknown_tensors",
        model->replicate_unknown ? "replicate" : "error", "not_counted",
        not_counted, "revision", model->revision);
}
