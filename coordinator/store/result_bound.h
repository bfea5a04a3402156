/* The lower bounds of a record. */
#ifndef RF_COORDINATOR_STORE_RESULT_BOUND_H
#define RF_COORDINATOR_STORE_RESULT_BOUND_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/scenario/attempt.h"

/* Whether the measured iterations, which `record` has, moved all bytes, so that
 * a rate makes sense. */
bool rf_result_bound_has_rate(const struct rf_attempt *attempt,
                              const json_t *record);

/* `bound` and `schedule_bound`, with their JSON Schemas. New references. */
json_t *rf_result_bound_json(const struct rf_attempt *attempt,
                             const json_t *record);
json_t *rf_result_bound_schema(void);
json_t *rf_result_bound_schedule_json(const struct rf_attempt *attempt,
                                      const json_t *record);
json_t *rf_result_bound_schedule_schema(void);

/* The JSON Schema of one probe of nodes and pairs. A new reference. */
json_t *rf_result_bound_probe_schema(void);

#endif
