/* The JSON Schemas of what the program reads and prints. */
#ifndef RF_COORDINATOR_COMMANDS_SCHEMA_CMD_H
#define RF_COORDINATOR_COMMANDS_SCHEMA_CMD_H

#include <jansson.h>

/* {name: schema} of all that `refit-coord schema` prints. A new reference. */
json_t *rf_schemas(void);

#endif
