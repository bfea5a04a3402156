/* The reference of messages in docs/PROTOCOL.md, from their schemas. */
#ifndef RF_TESTS_UNIT_TRANSPORT_CONTROL_REFERENCE_H
#define RF_TESTS_UNIT_TRANSPORT_CONTROL_REFERENCE_H

#include <stdio.h>

#include "transport/control/schema.h"

/* A Markdown table: key, type with bounds, meaning. Nested schemas appear by
 * name, without the prefix up to the first underscore. */
void reference_print_schema(const struct rf_schema *schema, FILE *to);

/* A table for each message and each part. */
void reference_print_messages(FILE *to);

#endif
