/* What `plan` knows about a model, for others to print. */
#ifndef RF_COORDINATOR_COMMANDS_PLAN_CMD_H
#define RF_COORDINATOR_COMMANDS_PLAN_CMD_H

#include "planner/model.h"

/* {"name", "model_type", "parameters", "bytes", "dtype", …}. A new reference.
 */
json_t *rf_model_json(const struct rf_model *model);

#endif
