/*
 * The JSON Schema of cluster.json, from the tables that read it.
 *
 * Readers describe one scenario. In a file a value may also be a variable and,
 * where it may be an axis of a matrix, a list. Not described: rules between
 * keys, and what only a function can tell, such as whether a host is known.
 */
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/links/links.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/config/model_file.h"
#include "planner/scenario/spec.h"
#include "planner/scenario/spec_fields.h"
#include "transport/info/method_info.h"

#define FILE_NAME "^[A-Za-z0-9_+=][A-Za-z0-9._+=-]*$"

/* --- Variables and lists -------------------------------------------------- */

static json_t *reference(const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", name));
}

/* The values of an axis. */
static json_t *axis_schema(json_t *item)
{
    json_t *out = rf_json_schema_list(item, 1, RF_CONFIG_MAX_SCENARIOS);
    json_object_set_new(out, "uniqueItems", json_true());
    return out;
}

static json_t *allow(json_t *schema, const char *path, const char *key,
                     bool axes);

/* Allows them for the members of objects and lists that `schema` describes; of
 * lists, only pools have axes. */
static void allow_inside(json_t *schema, const char *path, bool axes)
{
    static const char *const inner[] = {"items", "additionalProperties"};
    json_t *properties = json_object_get(schema, "properties"), *value;
    const char *key;
    void *next;
    size_t i;
    json_object_foreach_safe(properties, next, key, value)
    {
        char *at = rf_xasprintf("%s%s%s", path, *path != '\0' ? "." : "", key);
        json_object_set_new(properties, key,
                            allow(json_incref(value), at, key, axes));
        free(at);
    }
    json_array_foreach (json_object_get(schema, "anyOf"), i, value) {
        allow_inside(value, path, axes);
    }
    for (i = 0; i < RF_ARRAY_SIZE(inner); i++) {
        value = json_object_get(schema, inner[i]);
        if (json_is_object(value)) {
            json_object_set_new(schema, inner[i],
                                allow(json_incref(value), path, "",
                                      axes && strcmp(path, "infer") == 0));
        }
    }
}

/* Takes `schema`, that of the value at `path`, which ends with `key`. */
static json_t *allow(json_t *schema, const char *path, const char *key,
                     bool axes)
{
    const char *is = json_string_value(json_object_get(schema, "type"));
    const bool object = is != NULL && strcmp(is, "object") == 0;
    const bool in_model = rf_config_in_model(path);
    json_t *item = NULL, *out;
    if (axes && *key != '\0' && !(object && in_model) &&
        rf_config_may_be_axis(path, key)) {
        item = allow(json_deep_copy(schema), path, key, false);
        if (in_model) {
            json_object_set_new(
                item, "type",
                json_pack("[s, s, s]", "string", "number", "boolean"));
        }
    }
    allow_inside(schema, path, axes);
    out = rf_json_schema_either(schema, reference("variable"));
    if (item != NULL) {
        json_array_append_new(json_object_get(out, "anyOf"), axis_schema(item));
    }
    return out;
}

/* --- Members -------------------------------------------------------------- */

static json_t *method_schema(void)
{
    const char *names[RF_METHOD_COUNT + 1] = {NULL}, *alias;
    json_t *out;
    for (size_t m = 0; m < RF_METHOD_COUNT; m++) {
        names[m] = rf_method_infos[m].name;
    }
    out = rf_json_schema_words(names);
    for (size_t i = 0; (alias = rf_spec_method_alias(i)) != NULL; i++) {
        json_array_append_new(json_object_get(out, "enum"), json_string(alias));
    }
    return out;
}

/* One of a list of models. */
static json_t *named_model_schema(void)
{
    json_t *out = reference("model"), *forms = json_array();
    for (size_t i = 0; rf_config_model_names[i] != NULL; i++) {
        json_array_append_new(
            forms, json_pack("{s:[s]}", "required", rf_config_model_names[i]));
    }
    json_object_set_new(out, "anyOf", forms);
    return rf_json_schema_either(out, reference("variable"));
}

/* A scenario, or defaults of scenarios: no key is required. */
static json_t *scenario_schema(void)
{
    json_t *out = rf_spec_fields_schema(rf_spec_fields);
    json_object_del(out, "required");
    rf_json_schema_add(out, "method", method_schema());
    allow_inside(out, "", true);
    rf_json_schema_add(
        out, "name",
        allow(rf_json_schema_pattern(FILE_NAME, RF_CONFIG_MAX_NAME), "", "",
              false));
    rf_json_schema_add(out, "slow",
                       allow(rf_json_schema_type("boolean"), "", "", false));
    rf_json_schema_add(
        out, "impossible",
        allow(rf_json_schema_words(rf_config_impossible_words), "", "", false));
    rf_json_schema_add(
        out, "model",
        rf_json_schema_either(reference("model"),
                              axis_schema(named_model_schema())));
    return out;
}

static json_t *definitions(void)
{
    return json_pack(
        "{s:o, s:o, s:o}", "variable",
        json_pack("{s:s, s:s}", "type", "string", "pattern", "^\\$"), "model",
        allow(rf_model_file_schema(), "model", "", true), "scenario",
        scenario_schema());
}

static json_t *name_schema(void)
{
    return rf_json_schema_pattern(FILE_NAME, 64);
}

static json_t *model_schema(void)
{
    return allow(rf_model_file_schema(), "model", "", false);
}

static json_t *defaults_schema(void)
{
    return rf_json_schema_either(json_pack("{s:s, s:{s:b}}", "$ref",
                                           "#/$defs/scenario", "properties",
                                           "name", (int)false),
                                 reference("variable"));
}

static json_t *scenarios_schema(void)
{
    json_t *scenario = reference("scenario");
    rf_json_schema_require(scenario, "name");
    return rf_json_schema_either(
        rf_json_schema_list(
            rf_json_schema_either(scenario, reference("variable")), 1,
            RF_CONFIG_MAX_SCENARIOS),
        reference("variable"));
}

static json_t *variables_schema(void)
{
    return rf_json_schema_type("object");
}

const struct rf_config_member rf_config_members[] = {
    {"name", name_schema},
    {"launch", rf_config_launch_schema},
    {"control", rf_config_control_schema},
    {"nodes", rf_config_nodes_schema},
    {"model", model_schema},
    {"defaults", defaults_schema},
    {"scenarios", scenarios_schema},
    {"links", rf_links_schema},
    {"timeline", rf_timeline_schema},
    {"variables", variables_schema},
    {"$schema", rf_json_schema_text},
    {NULL, NULL}};

json_t *rf_config_schema(void)
{
    json_t *out = rf_json_schema_object();
    json_object_set_new(out, "$defs", definitions());
    for (size_t i = 0; rf_config_members[i].key != NULL; i++) {
        rf_json_schema_add(out, rf_config_members[i].key,
                           rf_config_members[i].schema());
    }
    rf_json_schema_require(out, "scenarios");
    return out;
}
