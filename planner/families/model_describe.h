/* Facts about a model derived from its families and values. Private to the
 * model readers. */
#ifndef RF_PLANNER_FAMILIES_MODEL_DESCRIBE_H
#define RF_PLANNER_FAMILIES_MODEL_DESCRIBE_H

#include "common/json.h"
#include "planner/model/model.h"

struct rf_values;

/* Sets what follows from the families, and the heads from `values`. With
 * `derive`, a missing head size is taken from shapes, and shapes must agree
 * with the heads. */
enum rf_status rf_model_describe(struct rf_model *model,
                                 struct rf_values *values,
                                 const struct rf_jnode *where, bool derive,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
