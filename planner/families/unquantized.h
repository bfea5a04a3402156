/*
 * What a checkpoint's quantization_config says is not quantised: lists of
 * modules, as Transformers, vLLM and compressed-tensors write them. Private to
 * the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_UNQUANTIZED_H
#define RF_PLANNER_FAMILIES_UNQUANTIZED_H

#include "planner/families/model_values.h"
#include "planner/model/model.h"

/*
 * Marks what the lists name in the families of a finished model. An entry is a
 * module, with all that is in it, the end of a module's name, or a regular
 * expression (POSIX's extended ones; "re:" before it does no harm) for the
 * beginning of one. One that is none of these becomes the model's
 * unclear_module.
 */
enum rf_status rf_model_leave_unquantized(struct rf_model *model,
                                          const struct rf_values *values,
                                          struct rf_err *err) RF_MUST_CHECK;

#endif
