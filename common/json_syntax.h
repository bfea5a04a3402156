/* Explains JSON syntax errors: Jansson gives the place and the error, this adds
 * the cause if it is a common mistake. */
#ifndef RF_COMMON_JSON_SYNTAX_H
#define RF_COMMON_JSON_SYNTAX_H

#include <jansson.h>

#include "common/err.h"

#define RF_JSON_MAX_DEPTH 32 /* maximum nesting */

/* Sets `err` to "<name>:<line>:<column>: <error> (<cause>)" with RF_ERR_CONFIG;
 * returns that. `why` is Jansson's error for `text`, which nests no deeper than
 * RF_JSON_MAX_DEPTH. */
enum rf_status rf_json_syntax_fail(const char *text, const char *name,
                                   const json_error_t *why, struct rf_err *err);

#endif
