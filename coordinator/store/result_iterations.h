/* The iterations of a record. */
#ifndef RF_COORDINATOR_STORE_RESULT_ITERATIONS_H
#define RF_COORDINATOR_STORE_RESULT_ITERATIONS_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/scenario/attempt.h"

/* Those that were measured, or the warm-ups, with their ranks' figures as
 * numbers (records/iteration_ranks.h), and the JSON Schema of one. New
 * references. */
json_t *rf_result_iterations_json(const struct rf_attempt *attempt,
                                  bool warmup);
json_t *rf_result_iterations_schema(void);

/* Why they ended; NULL unless all requested ones finished. A new reference. */
json_t *rf_result_iterations_ended_by(const struct rf_attempt *attempt);

#endif
