/* `setup` of a record: times by phase, and how ranks were set up. */
#ifndef RF_COORDINATOR_STORE_RESULT_SETUP_H
#define RF_COORDINATOR_STORE_RESULT_SETUP_H

#include <jansson.h>

#include "coordinator/scenario/attempt.h"

/* It, and its JSON Schema. New references. */
json_t *rf_result_setup_json(const struct rf_attempt *attempt,
                             const struct rf_config *config);
json_t *rf_result_setup_schema(void);

#endif
