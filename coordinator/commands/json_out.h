/* JSON on standard output. */
#ifndef RF_COORDINATOR_COMMANDS_JSON_OUT_H
#define RF_COORDINATOR_COMMANDS_JSON_OUT_H

#include <jansson.h>

/* Prints a document of what result files have, and a line's end; takes it. In
 * ASCII: anybody may have chosen the names. */
void rf_json_out(json_t *document);

#endif
