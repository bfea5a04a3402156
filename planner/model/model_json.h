/* A model in results and in `plan --json`. Fields: docs/RESULTS.md. */
#ifndef RF_PLANNER_MODEL_MODEL_JSON_H
#define RF_PLANNER_MODEL_MODEL_JSON_H

#include "planner/model/model.h"

/* {"name", "model_type", "parameters", "bytes", "dtype", …}. A new reference.
 */
json_t *rf_model_json(const struct rf_model *model);

#endif
