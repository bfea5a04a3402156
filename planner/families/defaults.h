/*
 * What keys mean that a config.json does not have: the defaults of its class in
 * Transformers, of those keys that tables read. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_DEFAULTS_H
#define RF_PLANNER_FAMILIES_DEFAULTS_H

#include <jansson.h>

/* {key: value} for the model type of the wrapped config `inner` (NULL: none),
 * else for that of `config`. A new reference; NULL: neither is known. */
json_t *rf_family_defaults(const json_t *inner, const json_t *config);

#endif
