/*
 * Unquantised modules of a checkpoint: the lists in its quantization_config, as
 * Transformers, vLLM and compressed-tensors write them. Private to the model
 * readers.
 */
#ifndef RF_PLANNER_FAMILIES_UNQUANTIZED_H
#define RF_PLANNER_FAMILIES_UNQUANTIZED_H

#include "planner/families/model_values.h"
#include "planner/model/model.h"

/*
 * Marks the modules on the lists in the families of a finished model. An entry
 * is a module with all its contents, the end of a module's name, or a regular
 * expression (POSIX extended; a leading "re:" is accepted) for the beginning of
 * a name. An entry of no such form becomes the model's unclear_module.
 */
enum rf_status rf_model_leave_unquantized(struct rf_model *model,
                                          const struct rf_values *values,
                                          struct rf_err *err) RF_MUST_CHECK;

#endif
