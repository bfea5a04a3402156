/*
 * What is wrong with the syntax of a JSON text, in our own words: where, what
 * may stand there, what does, and what is probably the cause. For texts that
 * Jansson has refused; it says nothing else that people can act on.
 */
#ifndef RF_COMMON_JSON_SYNTAX_H
#define RF_COMMON_JSON_SYNTAX_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* How deep a document may nest. */
#define RF_JSON_MAX_DEPTH 32

/* Sets `err` to "<name>:<line>:<column>: <what is wrong>" with RF_ERR_CONFIG
 * and returns that. `why` is Jansson's error about `text`, which nests no
 * deeper than RF_JSON_MAX_DEPTH and has no NUL; `any` says that a document may
 * be a single value. Columns count characters from 1. */
enum rf_status rf_json_syntax_fail(const char *text, size_t size,
                                   const char *name, bool any,
                                   const json_error_t *why, struct rf_err *err);

#endif
