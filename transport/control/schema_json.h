/* The JSON Schema of the objects that a table of fields describes. */
#ifndef RF_TRANSPORT_CONTROL_SCHEMA_JSON_H
#define RF_TRANSPORT_CONTROL_SCHEMA_JSON_H

#include "transport/control/schema.h"

/* Of what rf_schema_encode() makes of a struct within its bounds. A new
 * reference. */
json_t *rf_schema_json(const struct rf_schema *schema);

#endif
