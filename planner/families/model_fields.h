/*
 * The table of configuration fields that a model may override, with all
 * spellings and limits; and the names of models with overrides.
 */
#ifndef RF_PLANNER_FAMILIES_MODEL_FIELDS_H
#define RF_PLANNER_FAMILIES_MODEL_FIELDS_H

#include "common/json.h"

#define RF_MODEL_FIELD_MAX_NAMES 4
#define RF_MODEL_FIELD_MAX_KEYS 128

enum rf_model_field_kind {
    RF_MODEL_FIELD_INTEGER,
    RF_MODEL_FIELD_BOOL,
    RF_MODEL_FIELD_DTYPE
};

struct rf_model_field {
    const char *names[RF_MODEL_FIELD_MAX_NAMES]; /* the rest NULL */
    enum rf_model_field_kind kind;
    uint64_t min, max;
};

/* The field with that spelling; NULL: not a field that can be overridden. */
const struct rf_model_field *rf_model_field_of(const char *name);

/* Appends all spellings to `keys`, which has `n`, ends with NULL and has room
 * for RF_MODEL_FIELD_MAX_KEYS. */
void rf_model_field_add_keys(const char **keys, size_t n);

/* Adds all spellings to the JSON Schema of an object. */
void rf_model_field_add_schemas(json_t *object);

/* The field's value in an object, under any of its spellings (`name` first),
 * and that spelling; null counts as absent. NULL: none. */
json_t *rf_model_field_value(const json_t *object,
                             const struct rf_model_field *field,
                             const char **name);

/* The name for a model whose config has none: "base (num_layers 2, hidden_size
 * 512)", listing the overrides in its inline description `model` that change
 * the config. Freed with free(). */
char *rf_model_config_name(const char *base, const json_t *model);

/* The description of the language model in a config: its text_config or
 * llm_config, else the config itself. */
const json_t *rf_model_text_config(const json_t *config);

#endif
