/* Values in JSON by a path such as "errors[0].text". */
#ifndef RF_TESTS_LIB_JSON_AT_H
#define RF_TESTS_LIB_JSON_AT_H

#include <jansson.h>

/* Borrowed; NULL, NULL and 0 if there is no such value. */
json_t *json_at(const json_t *json, const char *path);
const char *json_text_at(const json_t *json, const char *path);
json_int_t json_integer_at(const json_t *json, const char *path);

#endif
