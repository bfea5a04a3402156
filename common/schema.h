/*
 * Parts of JSON Schemas (draft 2020-12), which readers make of the tables that
 * they read by. All return new references, and take those that they are given.
 */
#ifndef RF_COMMON_SCHEMA_H
#define RF_COMMON_SCHEMA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

json_t *rf_schema_type(const char *type); /* "boolean", "object", … */
json_t *rf_schema_text(void);             /* as rf_jnode_string() has it */
json_t *rf_schema_pattern(const char *pattern, size_t most_bytes);
json_t *rf_schema_integer(uint64_t least, uint64_t most);
json_t *rf_schema_number(double least, double most);

/* One of the words of `words` or, with `others`, of the synonyms there, as for
 * rf_jnode_choice_or(). */
json_t *rf_schema_words(const char *const *words, const char *const *others);

json_t *rf_schema_list(json_t *items, size_t least, size_t most);
json_t *rf_schema_either(json_t *one, json_t *other);

/* An object without other keys than those added. */
json_t *rf_schema_object(void);
void rf_schema_add(json_t *object, const char *key, json_t *value);
void rf_schema_require(json_t *object, const char *key);

/* Adds a key that no object lacks. */
void rf_schema_need(json_t *object, const char *key, json_t *value);
/* An object that has exactly these fields: "rank:count host:string". Types are
 * "string", "boolean", "number" and "count", an integer from 0; with "?" behind
 * it, the value may also be null. */
json_t *rf_schema_record(const char *fields);

#endif
