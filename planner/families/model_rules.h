/* Families of a config by a table's rules. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_MODEL_RULES_H
#define RF_PLANNER_FAMILIES_MODEL_RULES_H

#include "common/json.h"
#include "planner/model/model.h"

struct rf_values;

/* Adds all families that the rules of `values`' table make of a config, to a
 * model with n_layers and dtype set. */
enum rf_status rf_model_add_rules(struct rf_model *model,
                                  struct rf_values *values,
                                  const struct rf_jnode *where,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
