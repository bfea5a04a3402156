/*
 * Names in expressions. See model_values.h.
 *
 * A value of the table is evaluated on first use and remembered, unless it
 * depends on the layer. A depth limit ends values that need each other.
 */
#include "planner/families/model_values.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/defaults.h"
#include "planner/families/model_fields.h"
#include "planner/families/table.h"

#define MAX_DEPTH 16

static const char *spelling(const char *name)
{
    const struct rf_model_field *field = rf_model_field_of(name);
    return field != NULL ? field->names[0] : name;
}

static struct rf_value number_value(uint64_t number)
{
    return (struct rf_value){.kind = RF_VALUE_INTEGER,
                             .number = (int64_t)number};
}

/* A field with limits, read as strictly as any member of a description. */
static enum rf_status read_field(const struct rf_jnode *object,
                                 const struct rf_model_field *field,
                                 const char *name, struct rf_value *out,
                                 struct rf_err *err)
{
    uint64_t number = 0;
    bool flag = false;
    enum rf_status status = RF_OK;
    switch (field->kind) {
    case RF_MODEL_FIELD_INTEGER:
        status =
            rf_jnode_u64(object, name, field->min, field->max, &number, err);
        *out = number_value(number);
        break;
    case RF_MODEL_FIELD_BOOL:
        status = rf_jnode_bool(object, name, &flag, err);
        *out = (struct rf_value){.kind = RF_VALUE_BOOL, .number = flag};
        break;
    case RF_MODEL_FIELD_DTYPE:
        *out = rf_value_of_json(json_object_get(object->value, name));
        break;
    }
    return status;
}

/* The override of a field, under any of its spellings. */
static enum rf_status find_override(const struct rf_values *values,
                                    const struct rf_model_field *field,
                                    bool *found, struct rf_value *out,
                                    struct rf_err *err)
{
    const char *name = NULL;
    for (size_t k = 0; k < RF_MODEL_FIELD_MAX_NAMES && field->names[k]; k++) {
        if (json_object_get(values->overrides.value, field->names[k]) == NULL) {
            continue;
        }
        if (name != NULL) {
            return rf_jnode_fail(&values->overrides, err,
                                 "\"%s\" and \"%s\" are the same override",
                                 name, field->names[k]);
        }
        name = field->names[k];
    }
    *found = name != NULL;
    return name != NULL ? read_field(&values->overrides, field, name, out, err)
                        : RF_OK;
}

/* A config's value. A wrapper's own tying takes precedence over that of the
 * wrapped config, as in Transformers. A list or object under a field's name
 * means something other than the field and is returned as it is. */
static enum rf_status find_in_config(const struct rf_values *values,
                                     const char *name, bool *found,
                                     struct rf_value *out, struct rf_err *err)
{
    const struct rf_model_field *field = rf_model_field_of(name);
    const bool outer = strcmp(name, "tie_word_embeddings") == 0;
    const json_t *places[] = {outer ? values->config.value : values->inner,
                              outer ? values->inner : values->config.value};
    for (size_t i = 0; i < RF_ARRAY_SIZE(places); i++) {
        struct rf_jnode object = values->config;
        const char *key = name;
        json_t *value = field != NULL
                            ? rf_model_field_value(places[i], field, &key)
                            : json_object_get(places[i], name);
        if (value == NULL || json_is_null(value)) {
            continue;
        }
        *found = true;
        object.value = (json_t *)places[i];
        if (field != NULL && !json_is_array(value) && !json_is_object(value)) {
            return read_field(&object, field, key, out, err);
        }
        *out = rf_value_of_json(value);
        return RF_OK;
    }
    *found = false;
    return RF_OK;
}

/* Whether the config has the key, even as null. */
static bool is_written(const struct rf_values *values, const char *name,
                       const struct rf_model_field *field)
{
    const json_t *places[] = {values->inner, values->config.value};
    bool written = false;
    for (size_t i = 0; i < RF_ARRAY_SIZE(places); i++) {
        written |= json_object_get(places[i], name) != NULL;
        for (size_t k = 0; field != NULL && k < RF_MODEL_FIELD_MAX_NAMES &&
                           field->names[k] != NULL;
             k++) {
            written |= json_object_get(places[i], field->names[k]) != NULL;
        }
    }
    return written;
}

/* The class default of a key that the config lacks. */
static enum rf_status find_default(const struct rf_values *values,
                                   const char *name, bool *found,
                                   struct rf_value *out, struct rf_err *err)
{
    const struct rf_model_field *field = rf_model_field_of(name);
    const struct rf_jnode object = {.value = values->defaults,
                                    .file = "defaults"};
    const char *key = name;
    const json_t *value =
        field != NULL ? rf_model_field_value(values->defaults, field, &key)
                      : json_object_get(values->defaults, name);
    *found = value != NULL && !is_written(values, name, field);
    if (*found && field != NULL) {
        return read_field(&object, field, key, out, err);
    }
    if (*found) {
        *out = rf_value_of_json(value);
    }
    return RF_OK;
}

static enum rf_status missing(struct rf_values *values, const char *name,
                              struct rf_err *err)
{
    const char *names[RF_MODEL_FIELD_MAX_KEYS + 1], *key;
    const json_t *known[] = {values->table ? values->table->values : NULL,
                             values->inner, values->config.value};
    size_t n = 0;
    json_t *value;
    values->missing = true;
    for (size_t i = 0; i < RF_ARRAY_SIZE(known); i++) {
        if (json_object_get(known[i], name) != NULL) {
            return rf_jnode_fail(&values->config, err, "\"%s\" is null", name);
        }
        json_object_foreach ((json_t *)known[i], key, value) {
            if (n < RF_MODEL_FIELD_MAX_KEYS) {
                names[n++] = key;
            }
        }
    }
    names[n] = NULL;
    return rf_jnode_fail(&values->config, err, "\"%s\" is missing%s", name,
                         rf_did_you_mean(name, names).text);
}

/* A condition of "layers" or an entry of "values". */
static enum rf_status find_in_table(struct rf_values *values, const char *name,
                                    const json_t *json, struct rf_value *out,
                                    struct rf_err *err)
{
    struct rf_jnode where = {.value = (json_t *)json,
                             .file = values->table->name};
    bool outside = values->read_layer;
    enum rf_status status;
    for (size_t i = 0; i < values->n_memos; i++) {
        if (values->memos[i].json == json) {
            *out = values->memos[i].value;
            return RF_OK;
        }
    }
    snprintf(where.path, sizeof(where.path), "%s", name);
    if (values->depth >= MAX_DEPTH) {
        return rf_jnode_fail(&where, err, "its value depends on itself");
    }
    values->depth++;
    values->read_layer = false;
    status = rf_values_evaluate(values, &where, json, out, err);
    if (status == RF_OK && !values->read_layer) {
        RF_PUSH(values->memos, values->n_memos, values->cap,
                ((struct rf_value_memo){json, *out}));
    }
    values->read_layer |= outside;
    values->depth--;
    return status;
}

/* Marks a name as used, and the names in the table's value of it. */
static enum rf_status mention(struct rf_values *values, const char *name,
                              const json_t *json, struct rf_err *err)
{
    struct rf_jnode where = {.file = "values"};
    enum rf_status status;
    if (json_object_get(values->used, name) != NULL ||
        values->depth >= MAX_DEPTH) {
        return RF_OK;
    }
    snprintf(where.path, sizeof(where.path), "%s", name);
    json_object_set_new(values->used, name, json_true());
    json_object_set_new(values->used, spelling(name), json_true());
    values->depth++;
    status = rf_values_mention(values, &where, json, err);
    values->depth--;
    return status;
}

static enum rf_status find(void *context, const char *name, bool needed,
                           struct rf_value *out, struct rf_err *err)
{
    struct rf_values *values = context;
    const struct rf_family_table *table = values->table;
    const struct rf_model_field *field = rf_model_field_of(name);
    const json_t *set = table ? json_object_get(table->layers, name) : NULL;
    const json_t *own = table ? json_object_get(table->values, name) : NULL;
    bool found = false;
    if (!needed) {
        return mention(values, name, set != NULL ? set : own, err);
    }
    if (strcmp(name, "layer") == 0 && values->layer >= 0) {
        values->read_layer = true;
        *out = number_value((uint64_t)values->layer);
        return RF_OK;
    }
    if (strcmp(name, "mtp") == 0) {
        values->read_layer = true;
        *out = (struct rf_value){.kind = RF_VALUE_BOOL, .number = values->mtp};
        return RF_OK;
    }
    if (set != NULL) {
        return find_in_table(values, name, set, out, err);
    }
    if (field != NULL) {
        RF_TRY(find_override(values, field, &found, out, err));
    }
    if (!found) {
        RF_TRY(find_in_config(values, name, &found, out, err));
    }
    if (!found) {
        RF_TRY(find_default(values, name, &found, out, err));
    }
    if (found) {
        return RF_OK;
    }
    return own != NULL ? find_in_table(values, name, own, out, err)
                       : missing(values, name, err);
}

void rf_values_init(struct rf_values *values, const struct rf_jnode *node,
                    const struct rf_family_table *table)
{
    *values = (struct rf_values){.overrides = *node,
                                 .config = rf_jnode_get(node, "config"),
                                 .table = table,
                                 .layer = RF_VALUES_NO_LAYER,
                                 .used = json_object()};
    values->inner = rf_model_text_config(values->config.value);
    if (values->inner == values->config.value) {
        values->inner = NULL;
    }
    if (!json_is_object(json_object_get(node->value, "rules"))) {
        values->defaults =
            rf_family_defaults(values->inner, values->config.value);
    }
}

void rf_values_free(struct rf_values *values)
{
    json_decref(values->used);
    json_decref(values->defaults);
    free(values->memos);
}

enum rf_status rf_values_evaluate(struct rf_values *values,
                                  const struct rf_jnode *where,
                                  const json_t *json, struct rf_value *out,
                                  struct rf_err *err)
{
    const struct rf_expr_scope scope = {find, values};
    enum rf_status status;
    values->missing = false;
    if (!json_is_string(json)) {
        *out = rf_value_of_json(json);
        return RF_OK;
    }
    status = rf_expr_evaluate(json_string_value(json), &scope, out, err);
    return values->depth == 0 ? rf_jnode_within(where, status, err) : status;
}

enum rf_status rf_values_test(struct rf_values *values,
                              const struct rf_jnode *where, const json_t *json,
                              bool *out, struct rf_err *err)
{
    struct rf_value value;
    RF_TRY(rf_values_evaluate(values, where, json, &value, err));
    if (value.kind != RF_VALUE_BOOL) {
        return rf_jnode_fail(where, err, "must be true or false");
    }
    *out = value.number != 0;
    return RF_OK;
}

enum rf_status rf_values_mention(struct rf_values *values,
                                 const struct rf_jnode *where,
                                 const json_t *json, struct rf_err *err)
{
    const struct rf_expr_scope scope = {find, values};
    if (!json_is_string(json)) {
        return RF_OK;
    }
    return rf_jnode_within(
        where, rf_expr_check(json_string_value(json), &scope, err), err);
}

bool rf_values_is_used(const struct rf_values *values, const char *name)
{
    return json_object_get(values->used, spelling(name)) != NULL;
}
