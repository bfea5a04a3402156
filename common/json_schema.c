/* Parts of JSON Schemas. See json_schema.h. */
#include "common/json_schema.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

json_t *rf_json_schema_type(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

json_t *rf_json_schema_text(void)
{
    return json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
}

json_t *rf_json_schema_pattern(const char *pattern, size_t most_bytes)
{
    return json_pack("{s:s, s:s, s:I}", "type", "string", "pattern", pattern,
                     "maxLength", (json_int_t)most_bytes);
}

json_t *rf_json_schema_integer(uint64_t least, uint64_t most)
{
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
                     (json_int_t)least, "maximum", (json_int_t)most);
}

json_t *rf_json_schema_count(void)
{
    return rf_json_schema_integer(0, INT64_MAX);
}

json_t *rf_json_schema_number(double least, double most)
{
    return json_pack("{s:s, s:f, s:f}", "type", "number", "minimum", least,
                     "maximum", most);
}

json_t *rf_json_schema_words(const char *const *words)
{
    json_t *list = json_array();
    for (; *words != NULL; words++) {
        json_array_append_new(list, json_string(*words));
    }
    return json_pack("{s:o}", "enum", list);
}

json_t *rf_json_schema_list(json_t *items, size_t least, size_t most)
{
    return json_pack("{s:s, s:o, s:I, s:I}", "type", "array", "items", items,
                     "minItems", (json_int_t)least, "maxItems",
                     (json_int_t)most);
}

json_t *rf_json_schema_any_list(json_t *items)
{
    return rf_json_schema_list(items, 0, UINT32_MAX);
}

json_t *rf_json_schema_either(json_t *one, json_t *other)
{
    return json_pack("{s:[o, o]}", "anyOf", one, other);
}

json_t *rf_json_schema_or_null(json_t *schema)
{
    return rf_json_schema_either(schema, rf_json_schema_type("null"));
}

json_t *rf_json_schema_as(const char *key)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/properties/%s", key));
}

json_t *rf_json_schema_object(void)
{
    return json_pack("{s:s, s:{}, s:b}", "type", "object", "properties",
                     "additionalProperties", (int)false);
}

void rf_json_schema_add(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(json_object_get(object, "properties"), key, value);
}

void rf_json_schema_require(json_t *object, const char *key)
{
    json_t *required = json_object_get(object, "required");
    if (required == NULL) {
        required = json_array();
        json_object_set_new(object, "required", required);
    }
    json_array_append_new(required, json_string(key));
}

void rf_json_schema_need(json_t *object, const char *key, json_t *value)
{
    rf_json_schema_add(object, key, value);
    rf_json_schema_require(object, key);
}

json_t *rf_json_schema_record(const char *fields)
{
    json_t *out = rf_json_schema_object();
    char key[64], type[16];
    int used;
    while (sscanf(fields, " %63[^:]:%15s%n", key, type, &used) == 2) {
        const size_t last = strlen(type) - 1;
        const bool or_null = type[last] == '?';
        json_t *value;
        type[or_null ? last : last + 1] = '\0';
        value = strcmp(type, "count") == 0 ? rf_json_schema_count()
                                           : rf_json_schema_type(type);
        rf_json_schema_describe(out, key, or_null ? RF_NULLABLE : RF_REQUIRED,
                                value);
        fields += used;
    }
    assert(fields[0] == '\0');
    return out;
}

void rf_json_schema_drop(json_t *object, const char *key)
{
    json_t *required = json_object_get(object, "required");
    size_t i = json_array_size(required);
    json_object_del(json_object_get(object, "properties"), key);
    while (i-- > 0) {
        if (strcmp(json_string_value(json_array_get(required, i)), key) == 0) {
            json_array_remove(required, i);
        }
    }
}

void rf_json_schema_hoist(json_t *object, const char *key)
{
    json_t *from = json_object_get(json_object_get(object, "properties"), key);
    json_object_set(object, "$defs", json_object_get(from, "$defs"));
    json_object_del(from, "$defs");
}

void rf_json_schema_put(json_t *object, const char *key, enum rf_presence how,
                        json_t *value)
{
    if (value != NULL || how != RF_OPTIONAL) {
        json_object_set_new(object, key, value != NULL ? value : json_null());
    }
}

void rf_json_schema_describe(json_t *object, const char *key,
                             enum rf_presence how, json_t *schema)
{
    (how == RF_OPTIONAL ? rf_json_schema_add : rf_json_schema_need)(
        object, key,
        how == RF_NULLABLE ? rf_json_schema_or_null(schema) : schema);
}
