/* JSON as commands print it. */
#ifndef RF_COMMON_JSON_OUT_H
#define RF_COMMON_JSON_OUT_H

#include <jansson.h>
#include <stdio.h>

/* Prints a document and a line's end; takes it. In ASCII: anybody may have
 * chosen the names. What could not be written is the stream's error. */
void rf_json_out(json_t *document, FILE *to);

#endif
