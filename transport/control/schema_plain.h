/*
 * Reads a payload straight into its struct. At a barrier thousands of ranks
 * answer at once, and most of the time would go into JSON values that live only
 * until the struct is filled.
 */
#ifndef RF_TRANSPORT_CONTROL_SCHEMA_PLAIN_H
#define RF_TRANSPORT_CONTROL_SCHEMA_PLAIN_H

#include "transport/control/schema.h"

/*
 * Fills the struct `out` like a parser and rf_schema_decode(), if the text is
 * plain: every member known and present once; no long numbers or exponents;
 * texts of printable ASCII without escapes. False, with all members absent, if
 * it is not plain or breaks the schema; the parser then finds the reason.
 */
bool rf_schema_read_plain(const struct rf_schema *schema, const char *text,
                          size_t size, void *out);

#endif
