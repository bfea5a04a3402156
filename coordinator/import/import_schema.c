/*
 * Schemas of imported results. See import_schema.h. They are those of a run's
 * files, in which some keys may then be null; the status decides which form a
 * file has.
 */
#include "coordinator/import/import_schema.h"

#include "common/json_schema.h"
#include "coordinator/records/fields.h"
#include "coordinator/store/results.h"

const char *const rf_import_unknown[] = {"started_at", "finished_at", "setup",
                                         "verification", NULL};

static json_t *property(json_t *schema, const char *key)
{
    return json_object_get(json_object_get(schema, "properties"), key);
}

static void add_status(json_t *schema)
{
    json_array_append_new(json_object_get(property(schema, "status"), "enum"),
                          json_string(RF_RESULT_IMPORTED));
}

/* Entries of a list may have this form, too. */
static void add_form(json_t *schema, const char *key, const char *fields)
{
    json_t *list = property(schema, key);
    json_object_set_new(
        list, "items",
        rf_json_schema_either(json_incref(json_object_get(list, "items")),
                              rf_json_schema_record(fields)));
}

/* Values are null where the file is imported, and nowhere else; `repeats`, which
 * refers to them, is not imported. */
static void put_unknown(json_t *schema, const char *const *keys)
{
    json_t *repeat = json_object_get(property(schema, "repeats"), "items");
    json_t *imported = json_object(), *own = json_object();
    for (; *keys != NULL; keys++) {
        json_object_set_new(imported, *keys, rf_json_schema_type("null"));
        json_object_set_new(
            own, *keys, json_pack("{s:o}", "not", rf_json_schema_type("null")));
        if (property(repeat, *keys) != NULL) {
            rf_json_schema_add(
                repeat, *keys,
                json_pack("{s:o}", "$ref",
                          json_sprintf("#/properties/%s/anyOf/0", *keys)));
        }
        rf_json_schema_add(
            schema, *keys,
            rf_json_schema_or_null(json_incref(property(schema, *keys))));
    }
    json_object_update_new(schema,
                           json_pack("{s:{s:{s:{s:s}}}, s:{s:o}, s:{s:o}}",
                                     "if", "properties", "status", "const",
                                     RF_RESULT_IMPORTED, "then", "properties",
                                     imported, "else", "properties", own));
}

static json_t *source_schema(void)
{
    static const char *const texts[] = {"title", "url",     "date",
                                        "label", "assumed", NULL};
    json_t *out = rf_json_schema_record("system:string window:string");
    for (const char *const *text = texts; *text != NULL; text++) {
        rf_json_schema_add(out, *text, rf_json_schema_text());
    }
    rf_json_schema_add(out, "bytes", rf_json_schema_count());
    rf_json_schema_add(
        out, "range_ms",
        rf_json_schema_list(rf_json_schema_type("number"), 2, 2));
    return out;
}

json_t *rf_import_result_schema(void)
{
    json_t *out = rf_result_schema();
    add_status(out);
    add_form(out, "environment", "host:string");
    add_form(out, "iterations", "index:count refit_ms:number");
    put_unknown(out, rf_import_unknown);
    rf_json_schema_add(out, "source", source_schema());
    rf_json_schema_require(json_object_get(out, "then"), "source");
    rf_json_schema_add(json_object_get(out, "else"), "source", json_false());
    return out;
}

json_t *rf_import_run_schema(void)
{
    static const char *const unknown[] = {"configuration", NULL};
    json_t *out = rf_results_schema();
    add_status(out);
    add_status(json_object_get(property(out, "scenarios"), "items"));
    put_unknown(out, unknown);
    return out;
}
