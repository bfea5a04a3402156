/* JSON output of commands. */
#ifndef RF_COMMON_JSON_OUT_H
#define RF_COMMON_JSON_OUT_H

#include <jansson.h>
#include <stdio.h>

/* Prints a document and a newline; takes the document. Output is ASCII, since
 * names come from outside. Write failures set the stream's error. */
void rf_json_out(json_t *document, FILE *to);

#endif
