/*
 * A payload read straight into its struct. A barrier of thousands of ranks
 * brings their answers all at once, and most of the time that these take would
 * go into JSON values that live until the struct is filled.
 */
#ifndef RF_TRANSPORT_CONTROL_SCHEMA_PLAIN_H
#define RF_TRANSPORT_CONTROL_SCHEMA_PLAIN_H

#include "transport/control/schema.h"

/*
 * Fills the struct `out` as parsing the text and rf_schema_decode() would, if
 * the text is plain: every member known and there once; no long numbers, none
 * with exponents; texts of printable ASCII without escapes. False, with all
 * members absent, where it is not or breaks the schema: parsing then tells
 * which, and why.
 */
bool rf_schema_read_plain(const struct rf_schema *schema, const char *text,
                          size_t size, void *out);

#endif
