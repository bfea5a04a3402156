/* `memory` of a record: the ranks' peaks beside predictions. */
#ifndef RF_COORDINATOR_STORE_RESULT_MEMORY_H
#define RF_COORDINATOR_STORE_RESULT_MEMORY_H

#include <jansson.h>

#include "coordinator/scenario/attempt.h"

/* A list of all ranks, and the JSON Schema of one. New references. */
json_t *rf_result_memory_json(const struct rf_attempt *attempt);
json_t *rf_result_memory_schema(void);

#endif
