#include "transport/control/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "common/text.h"

static enum rf_status fail(const struct rf_jnode *node, struct rf_err *err,
                           const char *what)
{
    (void)rf_jnode_fail(node, err, "%s", what);
    if (err != NULL) {
        err->status = RF_ERR_PROTOCOL;
    }
    return RF_ERR_PROTOCOL;
}

/* Omits the bounds of the type itself. */
void rf_schema_describe_range(const struct rf_field *field, char *out,
                              size_t size)
{
    const bool real = field->kind == RF_FIELD_REAL;
    if (field->max >= (double)INT64_MAX) {
        snprintf(out, size, ", %.0f or more", field->min);
    } else {
        snprintf(out, size, real ? " from %g to %g" : " from %.0f to %.0f",
                 field->min, field->max);
    }
}

void rf_schema_describe_bytes(double min, double max, char *out, size_t size)
{
    if (min == max) {
        snprintf(out, size, " of %.0f bytes", max);
    } else if (min > 0) {
        snprintf(out, size, " of %.0f to %.0f bytes", min, max);
    } else {
        snprintf(out, size, " of at most %.0f bytes", max);
    }
}

static enum rf_status outside(const struct rf_field *field,
                              const struct rf_jnode *node, struct rf_err *err,
                              const char *what)
{
    char range[80], text[120];
    rf_schema_describe_range(field, range, sizeof(range));
    snprintf(text, sizeof(text), "must be %s%s", what, range);
    return fail(node, err, text);
}

static bool in_bounds(const struct rf_field *field, double value)
{
    return value >= field->min && value <= field->max;
}

/* --- Values --------------------------------------------------------------- */

static void *member(const struct rf_field *field, const void *in)
{
    return (char *)(uintptr_t)in + field->offset;
}

static bool is_secret(const struct rf_field *field)
{
    return field->kind == RF_FIELD_SECRET || field->kind == RF_FIELD_SECRETS;
}

static enum rf_status decode_integer(const struct rf_field *field,
                                     const struct rf_jnode *node, void *at,
                                     struct rf_err *err)
{
    const int64_t value = json_integer_value(node->value);
    if (!json_is_integer(node->value) || !in_bounds(field, (double)value)) {
        return outside(field, node, err, "an integer");
    }
    if (field->kind == RF_FIELD_U32) {
        *(uint32_t *)at = (uint32_t)value;
    } else {
        *(int64_t *)at = value; /* or a uint64_t of the same size */
    }
    return RF_OK;
}

static enum rf_status decode_real(const struct rf_field *field,
                                  const struct rf_jnode *node, double *at,
                                  struct rf_err *err)
{
    const double value = json_number_value(node->value);
    if (!json_is_number(node->value) || !in_bounds(field, value)) {
        return outside(field, node, err, "a number");
    }
    *at = value;
    return RF_OK;
}

static void wipe_string(json_t *value)
{
    if (json_is_string(value)) {
        char *copy = (char *)(uintptr_t)json_string_value(value);
        explicit_bzero(copy, json_string_length(value));
    }
}

/* Wipes a secret at its source as soon as it is copied. */
static enum rf_status decode_text(const struct rf_field *field, double min,
                                  const struct rf_jnode *node, char **out,
                                  struct rf_err *err)
{
    size_t size = json_string_length(node->value);
    char range[80], text[120];
    if (json_is_string(node->value) && (double)size >= min &&
        (double)size <= field->max) {
        *out = rf_xstrdup(json_string_value(node->value));
        if (is_secret(field)) {
            wipe_string(node->value);
        }
        return RF_OK;
    }
    rf_schema_describe_bytes(min, field->max, range, sizeof(range));
    snprintf(text, sizeof(text), "must be a string%s", range);
    return fail(node, err, text);
}

/* jansson rejects text that is not UTF-8 (cut inside a character, say) and
 * would omit the member. */
static json_t *encode_text(const char *text)
{
    json_t *value = json_string(text);
    if (value == NULL && text != NULL) {
        char *copy = rf_xstrdup(text);
        rf_text_clean(copy, strlen(copy));
        value = json_string(copy);
        free(copy);
    }
    return value;
}

static void free_text(const struct rf_field *field, char **text)
{
    if (is_secret(field) && *text != NULL) {
        explicit_bzero(*text, strlen(*text));
    }
    free(*text);
    *text = NULL;
}

static enum rf_status decode_pairs(const struct rf_field *field,
                                   const struct rf_jnode *node,
                                   struct rf_text_pairs *pairs,
                                   struct rf_err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(node->value) ||
        (double)json_object_size(node->value) > field->min) {
        char text[80];
        snprintf(text, sizeof(text),
                 "must be an object of at most %.0f members", field->min);
        return fail(node, err, text);
    }
    pairs->list =
        rf_xcalloc(json_object_size(node->value) + 1, sizeof(*pairs->list));
    json_object_foreach (node->value, key, value) {
        struct rf_text_pair *pair = &pairs->list[pairs->n];
        struct rf_jnode at = rf_jnode_get(node, key);
        if (!json_is_null(value)) {
            RF_TRY(decode_text(field, 0, &at, &pair->value, err));
        }
        pair->key = rf_xstrdup(key);
        pairs->n++;
    }
    return RF_OK;
}

static json_t *encode_pairs(const struct rf_text_pairs *pairs)
{
    json_t *object = json_object();
    for (size_t i = 0; i < pairs->n; i++) {
        const char *value = pairs->list[i].value;
        json_object_set_new(object, pairs->list[i].key,
                            value != NULL ? encode_text(value) : json_null());
    }
    return object;
}

static void free_pairs(struct rf_text_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++) {
        free(pairs->list[i].key);
        free(pairs->list[i].value);
    }
    free(pairs->list);
    *pairs = (struct rf_text_pairs){NULL, 0};
}

/* --- Lists ---------------------------------------------------------------- */

static enum rf_status decode_value(const struct rf_field *field,
                                   const struct rf_jnode *node, void *at,
                                   struct rf_err *err);
static json_t *encode_value(const struct rf_field *field, const void *at);
static void free_value(const struct rf_field *field, void *at);

/* The field of one element of a list, and the element's size. */
static struct rf_field element_of(const struct rf_field *field, size_t *size)
{
    const enum rf_field_kind kind =
        field->kind == RF_FIELD_LIST      ? RF_FIELD_PART
        : field->kind == RF_FIELD_U64S    ? RF_FIELD_U64
        : field->kind == RF_FIELD_SECRETS ? RF_FIELD_SECRET
                                          : RF_FIELD_TEXT;
    *size = kind == RF_FIELD_PART  ? field->of->size
            : kind == RF_FIELD_U64 ? sizeof(uint64_t)
                                   : sizeof(char *);
    return (struct rf_field){.kind = kind, .max = field->max, .of = field->of};
}

/* The element count: beside the list pointer; of a LIST, in the enclosing
 * struct. */
static size_t *count_of(const struct rf_field *field, const void *at)
{
    _Static_assert(sizeof(struct rf_integers) == sizeof(struct rf_texts),
                   "a pointer and a number");
    char *base = (char *)(uintptr_t)at;
    base += field->kind == RF_FIELD_LIST ? field->count_offset - field->offset
                                         : offsetof(struct rf_texts, n);
    return (size_t *)(void *)base;
}

void rf_schema_describe_count(const struct rf_field *field, char *out,
                              size_t size)
{
    const bool parts = field->kind == RF_FIELD_LIST;
    if (parts && field->min > 0) {
        snprintf(out, size, " of %.0f to %.0f", field->min, field->max);
    } else {
        snprintf(out, size, " of at most %.0f",
                 parts ? field->max : field->min);
    }
}

static enum rf_status decode_list(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    const bool parts = field->kind == RF_FIELD_LIST;
    const size_t n = json_array_size(node->value);
    size_t size, *count = count_of(field, at);
    const struct rf_field element = element_of(field, &size);
    char *list, range[60], text[80];
    if (!json_is_array(node->value) || (parts && (double)n < field->min) ||
        (double)n > (parts ? field->max : field->min)) {
        rf_schema_describe_count(field, range, sizeof(range));
        snprintf(text, sizeof(text), "must be a list%s", range);
        return fail(node, err, text);
    }
    list = rf_xcalloc(n + 1, size);
    *(void **)at = list;
    while (*count < n) {
        struct rf_jnode value = rf_jnode_at(node, *count);
        void *to = list + *count * size;
        if (parts) {
            rf_schema_init(field->of, to);
        }
        ++*count;
        RF_TRY(decode_value(&element, &value, to, err));
    }
    return RF_OK;
}

static json_t *encode_list(const struct rf_field *field, const void *at)
{
    const char *list = *(void *const *)at;
    const size_t n = *count_of(field, at);
    json_t *array = json_array();
    size_t size;
    const struct rf_field element = element_of(field, &size);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(array, encode_value(&element, list + i * size));
    }
    return array;
}

static void free_list(const struct rf_field *field, void *at)
{
    char *list = *(void **)at;
    size_t size, *count = count_of(field, at);
    const struct rf_field element = element_of(field, &size);
    for (size_t i = 0; i < *count; i++) {
        free_value(&element, list + i * size);
    }
    free(list);
    *(void **)at = NULL;
    *count = 0;
}

/* --- Values of any kind --------------------------------------------------- */

static enum rf_status decode_members(const struct rf_schema *schema,
                                     const struct rf_jnode *object, void *out,
                                     struct rf_err *err);
/* Frees what the members own, but does not make all absent: the caller does so,
 * or frees the struct. */
static void free_members(const struct rf_schema *schema, void *in);

/* `at` is the member, `node` its value, present and not null. */
static enum rf_status decode_value(const struct rf_field *field,
                                   const struct rf_jnode *node, void *at,
                                   struct rf_err *err)
{
    switch (field->kind) {
    case RF_FIELD_BOOL:
        if (!json_is_boolean(node->value)) {
            return fail(node, err, "must be true or false");
        }
        *(bool *)at = json_is_true(node->value);
        break;
    case RF_FIELD_U32:
    case RF_FIELD_U64:
    case RF_FIELD_I64:
        return decode_integer(field, node, at, err);
    case RF_FIELD_REAL:
        return decode_real(field, node, at, err);
    case RF_FIELD_TEXT:
    case RF_FIELD_SECRET:
        return decode_text(field, field->min, node, at, err);
    case RF_FIELD_TREE:
        if (!json_is_object(node->value)) {
            return fail(node, err, "must be an object");
        }
        *(json_t **)at = json_incref(node->value);
        break;
    case RF_FIELD_PAIRS:
        return decode_pairs(field, node, at, err);
    case RF_FIELD_U64S:
    case RF_FIELD_TEXTS:
    case RF_FIELD_SECRETS:
    case RF_FIELD_LIST:
        return decode_list(field, node, at, err);
    case RF_FIELD_PART:
        return decode_members(field->of, node, at, err);
    case RF_FIELD_MAYBE:
        *(void **)at = rf_schema_new(field->of);
        return decode_members(field->of, node, *(void **)at, err);
    }
    return RF_OK;
}

static json_t *encode_value(const struct rf_field *field, const void *at)
{
    switch (field->kind) {
    case RF_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case RF_FIELD_U32:
        return json_integer(*(const uint32_t *)at);
    case RF_FIELD_U64:
    case RF_FIELD_I64:
        return json_integer(*(const int64_t *)at);
    case RF_FIELD_REAL:
        return json_real(*(const double *)at);
    case RF_FIELD_TEXT:
    case RF_FIELD_SECRET:
        return encode_text(*(char *const *)at);
    case RF_FIELD_TREE:
        return json_incref(*(json_t *const *)at);
    case RF_FIELD_PAIRS:
        return encode_pairs(at);
    case RF_FIELD_U64S:
    case RF_FIELD_TEXTS:
    case RF_FIELD_SECRETS:
    case RF_FIELD_LIST:
        return encode_list(field, at);
    case RF_FIELD_PART:
        return rf_schema_encode(field->of, at);
    case RF_FIELD_MAYBE:
        return rf_schema_encode(field->of, *(void *const *)at);
    }
    return NULL;
}

static bool is_absent(const struct rf_field *field, const void *at)
{
    switch (field->kind) {
    case RF_FIELD_BOOL:
        return !*(const bool *)at;
    case RF_FIELD_U32:
        return *(const uint32_t *)at == RF_ABSENT_U32;
    case RF_FIELD_U64:
        return *(const uint64_t *)at == RF_ABSENT_U64;
    case RF_FIELD_I64:
        return *(const int64_t *)at == RF_ABSENT_I64;
    case RF_FIELD_REAL:
        return isnan(*(const double *)at);
    case RF_FIELD_PART:
    case RF_FIELD_LIST:
        return false;
    default: /* kinds that begin with a pointer */
        return *(void *const *)at == NULL;
    }
}

/* Makes a zeroed member absent. */
static void init_value(const struct rf_field *field, void *at)
{
    switch (field->kind) {
    case RF_FIELD_U32:
        *(uint32_t *)at = RF_ABSENT_U32;
        break;
    case RF_FIELD_U64:
        *(uint64_t *)at = RF_ABSENT_U64;
        break;
    case RF_FIELD_I64:
        *(int64_t *)at = RF_ABSENT_I64;
        break;
    case RF_FIELD_REAL:
        *(double *)at = RF_ABSENT_REAL;
        break;
    case RF_FIELD_PART:
        rf_schema_init(field->of, at);
        break;
    default:
        break;
    }
}

static void free_value(const struct rf_field *field, void *at)
{
    switch (field->kind) {
    case RF_FIELD_TEXT:
    case RF_FIELD_SECRET:
        free_text(field, at);
        break;
    case RF_FIELD_TREE:
        json_decref(*(json_t **)at);
        *(json_t **)at = NULL;
        break;
    case RF_FIELD_PAIRS:
        free_pairs(at);
        break;
    case RF_FIELD_U64S:
    case RF_FIELD_TEXTS:
    case RF_FIELD_SECRETS:
    case RF_FIELD_LIST:
        free_list(field, at);
        break;
    case RF_FIELD_PART:
        free_members(field->of, at);
        break;
    case RF_FIELD_MAYBE:
        if (*(void **)at != NULL) {
            free_members(field->of, *(void **)at);
            free(*(void **)at);
            *(void **)at = NULL;
        }
        break;
    default:
        break;
    }
}

/* --- Schemas -------------------------------------------------------------- */

bool rf_schema_may_be_absent(const struct rf_field *field)
{
    return field->presence != RF_REQUIRED || field->kind == RF_FIELD_MAYBE ||
           (field->kind == RF_FIELD_LIST && field->min < 1);
}

static enum rf_status decode_members(const struct rf_schema *schema,
                                     const struct rf_jnode *object, void *out,
                                     struct rf_err *err)
{
    if (!json_is_object(object->value)) {
        return fail(object, err, "must be an object");
    }
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        const json_t *value = json_object_get(object->value, field->key);
        const bool absent = value == NULL || json_is_null(value);
        struct rf_jnode node;
        if (absent && rf_schema_may_be_absent(field)) {
            continue;
        }
        node = rf_jnode_get(object, field->key);
        RF_TRY(absent ? fail(&node, err, "is missing")
                      : decode_value(field, &node, member(field, out), err));
    }
    return RF_OK;
}

/* Saves a walk over the object: most messages have no secrets. */
static bool has_secrets(const struct rf_schema *schema)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        if (is_secret(field) || (field->of != NULL && has_secrets(field->of))) {
            return true;
        }
    }
    return false;
}

void rf_schema_wipe(const struct rf_schema *schema, json_t *object)
{
    if (object == NULL || !has_secrets(schema)) {
        return;
    }
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        json_t *value = json_object_get(object, field->key), *element;
        size_t at;
        if (field->kind == RF_FIELD_SECRET) {
            wipe_string(value);
        } else if (field->kind == RF_FIELD_SECRETS) {
            json_array_foreach (value, at, element) {
                wipe_string(element);
            }
        } else if (field->kind == RF_FIELD_LIST && has_secrets(field->of)) {
            json_array_foreach (value, at, element) {
                rf_schema_wipe(field->of, element);
            }
        } else if (field->of != NULL && field->kind != RF_FIELD_LIST) {
            rf_schema_wipe(field->of, value);
        }
    }
}

enum rf_status rf_schema_decode(const struct rf_schema *schema, json_t *object,
                                const char *name, void *out, struct rf_err *err)
{
    struct rf_jnode root = rf_jnode_root(object, name);
    enum rf_status status;
    rf_schema_init(schema, out);
    status = decode_members(schema, &root, out, err);
    if (status != RF_OK) {
        rf_schema_wipe(schema, object); /* secrets not yet taken */
        rf_schema_free(schema, out);
    }
    return status;
}

json_t *rf_schema_encode(const struct rf_schema *schema, const void *in)
{
    json_t *object = json_object();
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        const void *at = member(field, in);
        if (!rf_schema_may_be_absent(field) || !is_absent(field, at)) {
            json_object_set_new(object, field->key, encode_value(field, at));
        } else if (field->presence == RF_NULLABLE) {
            json_object_set_new(object, field->key, json_null());
        }
    }
    return object;
}

void rf_schema_init(const struct rf_schema *schema, void *out)
{
    memset(out, 0, schema->size);
    for (size_t i = 0; i < schema->n_fields; i++) {
        init_value(&schema->fields[i], member(&schema->fields[i], out));
    }
}

void rf_schema_copy(const struct rf_schema *schema, const void *from, void *to)
{
    json_t *object = rf_schema_encode(schema, from);
    struct rf_err err = {0};
    if (rf_schema_decode(schema, object, schema->name, to, &err) != RF_OK) {
        assert(!"a struct that keeps to the bounds");
    }
    json_decref(object);
}

void *rf_schema_new(const struct rf_schema *schema)
{
    void *out = rf_xcalloc(1, schema->size);
    rf_schema_init(schema, out);
    return out;
}

static void free_members(const struct rf_schema *schema, void *in)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        free_value(&schema->fields[i], member(&schema->fields[i], in));
    }
}

void rf_schema_free(const struct rf_schema *schema, void *in)
{
    free_members(schema, in);
    rf_schema_init(schema, in);
}
