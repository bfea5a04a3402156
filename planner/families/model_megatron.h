/* Models from Megatron-LM's argument names. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_MODEL_MEGATRON_H
#define RF_PLANNER_FAMILIES_MODEL_MEGATRON_H

#include "common/json.h"
#include "planner/model/model.h"

/* Fills an empty model. `node` is the whole inline description. */
enum rf_status rf_model_read_megatron(const struct rf_jnode *node,
                                      struct rf_model *model,
                                      struct rf_err *err) RF_MUST_CHECK;

/* Adds the keys of the block to the JSON Schema of an object. */
void rf_model_megatron_add_schemas(json_t *object);

#endif
