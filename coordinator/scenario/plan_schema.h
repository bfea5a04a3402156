/* The JSON Schema of the output of `plan --json`, and parts of it that results
 * have, too. All return new references. */
#ifndef RF_COORDINATOR_SCENARIO_PLAN_SCHEMA_H
#define RF_COORDINATOR_SCENARIO_PLAN_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

json_t *rf_plan_schema(void);
json_t *rf_plan_model_schema(void);
json_t *rf_plan_summary_schema(void);
/* Of strategy auto or, with "why", of balance time. */
json_t *rf_plan_choice_schema(bool balance);

#endif
