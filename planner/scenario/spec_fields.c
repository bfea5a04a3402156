/* Reads and writes by the key tables. See spec_fields.h. */
#include "planner/scenario/spec_fields.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"

#define KEYS_MAX 32

static enum rf_status read_value(const struct rf_spec_field *field,
                                 const struct rf_jnode *object, void *member,
                                 struct rf_err *err)
{
    uint64_t value = field->standard;
    bool flag = value != 0;
    unsigned word = 0;
    const char *text = NULL;
    switch (field->kind) {
    case RF_SPEC_BOOL:
        RF_TRY(rf_jnode_bool(object, field->key, &flag, err));
        *(bool *)member = flag;
        break;
    case RF_SPEC_U32:
        RF_TRY(rf_jnode_u64(object, field->key, field->least, field->most,
                            &value, err));
        *(uint32_t *)member = (uint32_t)value;
        break;
    case RF_SPEC_U64:
        RF_TRY(rf_jnode_u64(object, field->key, field->least, field->most,
                            &value, err));
        *(uint64_t *)member = value;
        break;
    case RF_SPEC_SHARE:
        RF_TRY(rf_jnode_number(object, field->key, 0, 1, member, err));
        *(double *)member = floor(*(double *)member * 1e9 + 0.5) / 1e9;
        break;
    case RF_SPEC_TEXT:
        RF_TRY(rf_jnode_string(object, field->key, &text, err));
        *(char **)member = text != NULL ? rf_xstrdup(text) : NULL;
        break;
    default: /* a word */
        word = (unsigned)value;
        RF_TRY(field->others != NULL
                   ? rf_jnode_choice_or(object, field->key, field->words,
                                        field->others, &word, err)
                   : rf_jnode_choice(object, field->key, field->words, &word,
                                     err));
        if (field->kind == RF_SPEC_SWITCH) {
            *(bool *)member = word != 0;
        } else {
            *(unsigned *)member =
                field->values != NULL ? field->values[word] : word;
        }
    }
    return RF_OK;
}

static enum rf_status read_one(const struct rf_spec_field *field,
                               const struct rf_jnode *object, void *out,
                               const struct rf_spec_nodes *nodes,
                               struct rf_err *err)
{
    void *member = (char *)out + field->offset;
    if (field->required) {
        RF_TRY(rf_jnode_require(object, field->key, err));
    }
    if (field->read != NULL) {
        return field->read(object, out, nodes, err);
    }
    if (field->kind == RF_SPEC_OBJECT) {
        struct rf_jnode inner = rf_jnode_get(object, field->key);
        return inner.value != NULL ? rf_spec_fields_read(field->keys, &inner,
                                                         member, nodes, err)
                                   : RF_OK;
    }
    return field->kind != RF_SPEC_OWN ? read_value(field, object, member, err)
                                      : RF_OK;
}

const struct rf_spec_field *
rf_spec_field_find(const struct rf_spec_field *fields, const char *key)
{
    while (fields->key != NULL && strcmp(fields->key, key) != 0) {
        fields++;
    }
    return fields->key != NULL ? fields : NULL;
}

static enum rf_status check_keys(const struct rf_spec_field *fields,
                                 const struct rf_jnode *object,
                                 struct rf_err *err)
{
    const char *keys[KEYS_MAX + 1] = {NULL};
    for (size_t n = 0; fields[n].key != NULL; n++) {
        assert(n < KEYS_MAX);
        keys[n] = fields[n].key;
    }
    return rf_jnode_check_keys(object, keys, err);
}

enum rf_status rf_spec_fields_read(const struct rf_spec_field *fields,
                                   const struct rf_jnode *object, void *out,
                                   const struct rf_spec_nodes *nodes,
                                   struct rf_err *err)
{
    RF_TRY(check_keys(fields, object, err));
    for (; fields->key != NULL; fields++) {
        RF_TRY(read_one(fields, object, out, nodes, err));
    }
    return RF_OK;
}

/* The value of a member; for a word its index. */
static uint64_t value_of(const struct rf_spec_field *field, const void *member)
{
    switch (field->kind) {
    case RF_SPEC_BOOL:
    case RF_SPEC_SWITCH:
        return *(const bool *)member;
    case RF_SPEC_U32:
        return *(const uint32_t *)member;
    case RF_SPEC_U64:
        return *(const uint64_t *)member;
    default: /* a word: canonical words come first, in enum order */
        return *(const unsigned *)member;
    }
}

static json_t *write_value(const struct rf_spec_field *field,
                           const void *member)
{
    const uint64_t value = value_of(field, member);
    if (field->optional && value == field->standard) {
        return NULL;
    }
    return field->words != NULL          ? json_string(field->words[value])
           : field->kind == RF_SPEC_BOOL ? json_boolean(value)
                                         : json_integer((json_int_t)value);
}

static json_t *write_object(const struct rf_spec_field *field,
                            const void *member,
                            const struct rf_spec_nodes *nodes)
{
    json_t *object = rf_spec_fields_write(field->keys, member, nodes);
    if (field->optional && json_object_size(object) == 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* NULL: omitted. */
static json_t *write_one(const struct rf_spec_field *field, const void *in,
                         const struct rf_spec_nodes *nodes)
{
    const void *member = (const char *)in + field->offset;
    return field->write != NULL            ? field->write(in, nodes)
           : field->kind == RF_SPEC_OWN    ? NULL
           : field->kind == RF_SPEC_OBJECT ? write_object(field, member, nodes)
           : field->kind == RF_SPEC_TEXT   ? json_string(*(char *const *)member)
           : field->kind == RF_SPEC_SHARE  ? json_real(*(const double *)member)
                                           : write_value(field, member);
}

json_t *rf_spec_fields_write(const struct rf_spec_field *fields, const void *in,
                             const struct rf_spec_nodes *nodes)
{
    json_t *object = json_object();
    for (; fields->key != NULL; fields++) {
        json_t *value = write_one(fields, in, nodes);
        if (value != NULL) {
            json_object_set_new(object, fields->key, value);
        }
    }
    return object;
}

static json_t *value_schema(const struct rf_spec_field *field)
{
    if (field->schema != NULL) {
        return field->schema();
    }
    switch (field->kind) {
    case RF_SPEC_BOOL:
        return rf_json_schema_type("boolean");
    case RF_SPEC_U32:
    case RF_SPEC_U64:
        return rf_json_schema_integer(field->least, field->most);
    case RF_SPEC_SHARE:
        return rf_json_schema_number(0, 1);
    case RF_SPEC_TEXT:
        return rf_json_schema_text();
    case RF_SPEC_OBJECT:
        return rf_spec_fields_schema(field->keys);
    default: /* a word */
        return rf_json_schema_words(field->words);
    }
}

json_t *rf_spec_fields_schema(const struct rf_spec_field *fields)
{
    json_t *object = rf_json_schema_object();
    for (; fields->key != NULL; fields++) {
        rf_json_schema_add(object, fields->key, value_schema(fields));
        if (fields->required) {
            rf_json_schema_require(object, fields->key);
        }
    }
    return object;
}
