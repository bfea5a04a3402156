/* Values in result files. All return new references. */
#ifndef RF_COORDINATOR_STORE_VALUES_H
#define RF_COORDINATOR_STORE_VALUES_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/scenario/scenario.h"

json_t *rf_values_ms(int64_t ns);
json_t *rf_values_bytes(uint64_t n);
/* The host of a rank. */
json_t *rf_values_host(const struct rf_scenario *scenario, uint32_t rank);

#endif
