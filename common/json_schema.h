/*
 * Parts of JSON Schemas (draft 2020-12), which readers make of the tables that
 * they read by. All return new references, and take those that they are given.
 */
#ifndef RF_COMMON_JSON_SCHEMA_H
#define RF_COMMON_JSON_SCHEMA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

json_t *rf_json_schema_type(const char *type); /* "boolean", "object", … */
json_t *rf_json_schema_text(void);             /* as rf_jnode_string() has it */
json_t *rf_json_schema_pattern(const char *pattern, size_t most_bytes);
json_t *rf_json_schema_integer(uint64_t least, uint64_t most);
json_t *rf_json_schema_count(void); /* from 0 */
json_t *rf_json_schema_number(double least, double most);

json_t *rf_json_schema_words(const char *const *words);

json_t *rf_json_schema_list(json_t *items, size_t least, size_t most);
json_t *rf_json_schema_any_list(json_t *items); /* of any length */
json_t *rf_json_schema_either(json_t *one, json_t *other);
json_t *rf_json_schema_or_null(json_t *schema);
/* What describes the key of the outermost object. */
json_t *rf_json_schema_as(const char *key);

/* An object without other keys than those added. */
json_t *rf_json_schema_object(void);
void rf_json_schema_add(json_t *object, const char *key, json_t *value);
void rf_json_schema_require(json_t *object, const char *key);

/* Adds a key that no object lacks. */
void rf_json_schema_need(json_t *object, const char *key, json_t *value);
/* An object that has exactly these fields: "rank:count host:string". Types are
 * "string", "boolean", "number" and "count", an integer from 0; with "?" behind
 * it, the value may also be null. */
json_t *rf_json_schema_record(const char *fields);

/* Removes a key. */
void rf_json_schema_drop(json_t *object, const char *key);
/* Moves the definitions of the schema of a key to the object, where references
 * look for them. */
void rf_json_schema_hoist(json_t *object, const char *key);

/*
 * The members of an object that is written, listed once for both its writer and
 * its schema as M(KIND, key, HOW, value):
 *
 *     #define LINK(M)                                                        \
 *         M(TEXT, host, REQUIRED, json_string(host))                         \
 *         M(NUMBER, gbytes_per_s, NULLABLE, rate_json(host))                 \
 *         M(OF(port_schema()), port, OPTIONAL, port_json(host))
 *
 *     RF_MEMBERS_SCHEMA(link_schema, LINK)    a static function
 *
 *     static json_t *link_json(const char *host)
 *     {
 *         json_t *out = json_object();
 *         LINK(RF_PUT);
 *         return out;
 *     }
 *
 * KIND is COUNT, NUMBER, TEXT, FLAG, TEXTS, or OF() or LIST() of a schema. A
 * value is a new reference; NULL is left out if OPTIONAL, otherwise written as
 * null.
 */
enum rf_presence { RF_REQUIRED, RF_NULLABLE, RF_OPTIONAL };

#define RF_PUT(kind, key, how, value)                                          \
    rf_json_schema_put(out, #key, RF_##how, value);
#define RF_DESCRIBE(kind, key, how, value)                                     \
    rf_json_schema_describe(out, #key, RF_##how, RF_SCHEMA_KIND_##kind);
#define RF_MEMBERS_SCHEMA(name, MEMBERS)                                       \
    static json_t *name(void)                                                  \
    {                                                                          \
        json_t *out = rf_json_schema_object();                                 \
        MEMBERS(RF_DESCRIBE);                                                  \
        return out;                                                            \
    }

#define RF_SCHEMA_KIND_COUNT rf_json_schema_count()
#define RF_SCHEMA_KIND_NUMBER rf_json_schema_type("number")
#define RF_SCHEMA_KIND_TEXT rf_json_schema_type("string")
#define RF_SCHEMA_KIND_FLAG rf_json_schema_type("boolean")
#define RF_SCHEMA_KIND_TEXTS                                                   \
    rf_json_schema_any_list(rf_json_schema_type("string"))
#define RF_SCHEMA_KIND_OF(schema) schema
#define RF_SCHEMA_KIND_LIST(schema) rf_json_schema_any_list(schema)

/* What the lists become: a member of an object, and of its schema. */
void rf_json_schema_put(json_t *object, const char *key, enum rf_presence how,
                        json_t *value);
void rf_json_schema_describe(json_t *object, const char *key,
                             enum rf_presence how, json_t *schema);

#endif
