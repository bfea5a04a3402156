/* Reads and writes by tables of keys. See config_fields.h. */
#include "coordinator/config/config_fields.h"

#include <stdlib.h>

#include "common/json_schema.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/paths.h"

#define KEYS_MAX 16

static enum rf_status read_text(const struct rf_config_field *field,
                                const struct rf_jnode *object,
                                struct rf_config *config, const char **out,
                                struct rf_err *err)
{
    const struct rf_jnode node = rf_jnode_get(object, field->key);
    const char *text = NULL;
    RF_TRY(rf_jnode_string(object, field->key, &text, err));
    if (text == NULL) {
        return RF_OK;
    }
    if (field->valid != NULL && !field->valid(text)) {
        return rf_jnode_fail(&node, err, "\"%.80s\" is not %s", text,
                             field->what);
    }
    *out = field->kind == RF_CONFIG_TEXT
               ? text
               : rf_config_keep(config, rf_paths_resolve(config->folder, text));
    return RF_OK;
}

enum rf_status rf_config_fields_read(const struct rf_config_field *fields,
                                     const struct rf_jnode *object,
                                     struct rf_config *config, void *out,
                                     struct rf_err *err)
{
    const char *keys[KEYS_MAX] = {NULL};
    for (size_t i = 0; fields[i].key != NULL; i++) {
        keys[i] = fields[i].key;
    }
    RF_TRY(rf_jnode_check_keys(object, keys, err));
    for (const struct rf_config_field *field = fields; field->key != NULL;
         field++) {
        void *member = (char *)out + field->offset;
        if (field->required) {
            RF_TRY(rf_jnode_require(object, field->key, err));
        }
        if (field->kind == RF_CONFIG_NUMBER) {
            RF_TRY(rf_jnode_u32(object, field->key, field->least, field->most,
                                member, err));
        } else if (field->kind == RF_CONFIG_FLAG) {
            RF_TRY(rf_jnode_bool(object, field->key, member, err));
        } else if (field->kind != RF_CONFIG_OWN) {
            RF_TRY(read_text(field, object, config, member, err));
        }
    }
    return RF_OK;
}

/* NULL: not given. */
static json_t *write_field(const struct rf_config_field *field,
                           const void *member)
{
    const char *text;
    char *whole;
    json_t *path;
    switch (field->kind) {
    case RF_CONFIG_NUMBER:
        return *(const uint32_t *)member >= field->least
                   ? json_integer(*(const uint32_t *)member)
                   : NULL;
    case RF_CONFIG_FLAG:
        return json_boolean(*(const bool *)member);
    case RF_CONFIG_TEXT:
        return json_string(*(const char *const *)member);
    case RF_CONFIG_PATH:
        text = *(const char *const *)member;
        whole = text != NULL ? rf_paths_absolute(".", text) : NULL;
        path = json_string(whole);
        free(whole);
        return path;
    case RF_CONFIG_OWN:
    default:
        return NULL;
    }
}

json_t *rf_config_fields_write(const struct rf_config_field *fields,
                               const void *in)
{
    json_t *out = json_object();
    for (; fields->key != NULL; fields++) {
        json_t *value = write_field(fields, (const char *)in + fields->offset);
        if (value != NULL) {
            json_object_set_new(out, fields->key, value);
        }
    }
    return out;
}

static json_t *field_schema(const struct rf_config_field *field)
{
    json_t *out = field->schema != NULL ? field->schema()
                  : field->kind == RF_CONFIG_NUMBER
                      ? rf_json_schema_integer(field->least, field->most)
                  : field->kind == RF_CONFIG_FLAG
                      ? rf_json_schema_type("boolean")
                      : rf_json_schema_text();
    if (field->what != NULL) {
        json_object_set_new(out, "description", json_string(field->what));
    }
    return out;
}

json_t *rf_config_fields_schema(const struct rf_config_field *fields)
{
    json_t *out = rf_json_schema_object();
    for (; fields->key != NULL; fields++) {
        rf_json_schema_add(out, fields->key, field_schema(fields));
        if (fields->required) {
            rf_json_schema_require(out, fields->key);
        }
    }
    return out;
}
