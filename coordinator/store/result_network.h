/* `network` of an iteration: what each node's interfaces counted, beside the
 * bytes that its ranks moved over its link. */
#ifndef RF_COORDINATOR_STORE_RESULT_NETWORK_H
#define RF_COORDINATOR_STORE_RESULT_NETWORK_H

#include <jansson.h>

#include "coordinator/scenario/attempt.h"

/* A list of the nodes with counters. Planned bytes are those of the schedule;
 * with an encoding, those that the ranks report; null where no network has to
 * carry them: with method disk and methods that move nothing. A new
 * reference. */
json_t *rf_result_network_json(const struct rf_attempt *attempt,
                               const struct rf_iteration *iteration);

/* The JSON Schema of an entry. A new reference. */
json_t *rf_result_network_schema(void);

#endif
