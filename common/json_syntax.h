/* Why a text is no JSON: Jansson says where and what, this adds the cause where
 * it is one of the mistakes that people make. */
#ifndef RF_COMMON_JSON_SYNTAX_H
#define RF_COMMON_JSON_SYNTAX_H

#include <jansson.h>

#include "common/err.h"

#define RF_JSON_MAX_DEPTH 32 /* of nesting */

/* Sets `err` to "<name>:<line>:<column>: <what is wrong> (<cause>)" with
 * RF_ERR_CONFIG and returns that. `why` is Jansson's error about `text`, which
 * nests no deeper than RF_JSON_MAX_DEPTH. */
enum rf_status rf_json_syntax_fail(const char *text, const char *name,
                                   const json_error_t *why, struct rf_err *err);

#endif
