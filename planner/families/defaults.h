/*
 * Default values of keys that a config.json lacks: those of its class in
 * Transformers, for the keys that tables read. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_DEFAULTS_H
#define RF_PLANNER_FAMILIES_DEFAULTS_H

#include <jansson.h>

/* {key: value} for the model type of the wrapped config `inner` (NULL: none),
 * else for that of `config`. A new reference; NULL: both are unknown. */
json_t *rf_family_defaults(const json_t *inner, const json_t *config);

#endif
