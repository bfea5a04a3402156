/* The JSON Schema of the output of `plan --json`. */
#ifndef RF_COORDINATOR_SCENARIO_PLAN_SCHEMA_H
#define RF_COORDINATOR_SCENARIO_PLAN_SCHEMA_H

#include <jansson.h>

json_t *rf_plan_schema(void); /* a new reference */

#endif
