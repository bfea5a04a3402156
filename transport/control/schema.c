#include "transport/control/schema.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "common/text.h"

/* What one kind of field does. `at` is the member, `node` its value, which is
 * there and not null. */
struct field_codec {
    const char *type; /* in the reference */
    enum rf_status (*decode)(const struct rf_field *field,
                             const struct rf_jnode *node, void *at,
                             struct rf_err *err);
    json_t *(*encode)(const struct rf_field *field, const void *at);
    /* NULL where a zeroed member says it. */
    bool (*absent)(const void *at);
    void (*init)(void *at);
    void (*free)(const struct rf_field *field, void *at); /* NULL: nothing */
};

static size_t *count_of(const struct rf_field *field, const void *at)
{
    char *base = (char *)(uintptr_t)at - field->offset;
    return (size_t *)(void *)(base + field->count_offset);
}

static enum rf_status fail(const struct rf_jnode *node, struct rf_err *err,
                           const char *what)
{
    (void)rf_jnode_fail(node, err, "%s", what);
    if (err != NULL) {
        err->status = RF_ERR_PROTOCOL;
    }
    return RF_ERR_PROTOCOL;
}

/* What a member must be, for errors and the reference: "a whole number, 0 or
 * more". Bounds that the type has anyway are not named. */
static void describe_range(const struct rf_field *field, char *out, size_t size)
{
    const bool real = field->kind == RF_FIELD_REAL;
    if (field->max >= (double)INT64_MAX) {
        snprintf(out, size, ", %.0f or more", field->min);
    } else {
        snprintf(out, size, real ? " from %g to %g" : " from %.0f to %.0f",
                 field->min, field->max);
    }
}

static void describe_bytes(double min, double max, char *out, size_t size)
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
    describe_range(field, range, sizeof(range));
    snprintf(text, sizeof(text), "must be %s%s", what, range);
    return fail(node, err, text);
}

static bool in_bounds(const struct rf_field *field, double value)
{
    return value >= field->min && value <= field->max;
}

/* --- Numbers -------------------------------------------------------------- */

static enum rf_status decode_bool(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    (void)field;
    if (!json_is_boolean(node->value)) {
        return fail(node, err, "must be true or false");
    }
    *(bool *)at = json_is_true(node->value);
    return RF_OK;
}

static json_t *encode_bool(const struct rf_field *field, const void *at)
{
    (void)field;
    return json_boolean(*(const bool *)at);
}

static bool bool_absent(const void *at)
{
    return !*(const bool *)at;
}

static enum rf_status get_integer(const struct rf_field *field,
                                  const struct rf_jnode *node, int64_t *out,
                                  struct rf_err *err)
{
    *out = json_integer_value(node->value);
    return json_is_integer(node->value) && in_bounds(field, (double)*out)
               ? RF_OK
               : outside(field, node, err, "a whole number");
}

#define INTEGER(name, type, ABSENT)                                            \
    static enum rf_status decode_##name(const struct rf_field *field,          \
                                        const struct rf_jnode *node, void *at, \
                                        struct rf_err *err)                    \
    {                                                                          \
        int64_t value;                                                         \
        enum rf_status status = get_integer(field, node, &value, err);         \
        if (status == RF_OK) {                                                 \
            *(type *)at = (type)value;                                         \
        }                                                                      \
        return status;                                                         \
    }                                                                          \
    static json_t *encode_##name(const struct rf_field *field, const void *at) \
    {                                                                          \
        (void)field;                                                           \
        return json_integer((json_int_t) * (const type *)at);                  \
    }                                                                          \
    static bool name##_absent(const void *at)                                  \
    {                                                                          \
        return *(const type *)at == (ABSENT);                                  \
    }                                                                          \
    static void init_##name(void *at)                                          \
    {                                                                          \
        *(type *)at = (ABSENT);                                                \
    }
INTEGER(u32, uint32_t, RF_ABSENT_U32)
INTEGER(u64, uint64_t, RF_ABSENT_U64)
INTEGER(i64, int64_t, RF_ABSENT_I64)

static enum rf_status decode_real(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    double value = json_number_value(node->value);
    if (!json_is_number(node->value) || !in_bounds(field, value)) {
        return outside(field, node, err, "a number");
    }
    *(double *)at = value;
    return RF_OK;
}

static json_t *encode_real(const struct rf_field *field, const void *at)
{
    (void)field;
    return json_real(*(const double *)at);
}

static bool real_absent(const void *at)
{
    return isnan(*(const double *)at);
}

static void init_real(void *at)
{
    *(double *)at = RF_ABSENT_REAL;
}

/* --- Texts and trees ------------------------------------------------------ */

static void wipe_string(json_t *value)
{
    if (json_is_string(value)) {
        char *copy = (char *)(uintptr_t)json_string_value(value);
        explicit_bzero(copy, json_string_length(value));
    }
}

/* A secret is wiped where it was as soon as it is taken. */
static enum rf_status get_text(const struct rf_field *field, double min,
                               const struct rf_jnode *node, char **out,
                               struct rf_err *err)
{
    size_t size = json_string_length(node->value);
    char range[80], text[120];
    if (json_is_string(node->value) && (double)size >= min &&
        (double)size <= field->max) {
        *out = rf_xstrdup(json_string_value(node->value));
        if (field->kind == RF_FIELD_SECRET || field->kind == RF_FIELD_SECRETS) {
            wipe_string(node->value);
        }
        return RF_OK;
    }
    describe_bytes(min, field->max, range, sizeof(range));
    snprintf(text, sizeof(text), "must be a text%s", range);
    return fail(node, err, text);
}

static enum rf_status decode_text(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    return get_text(field, field->min, node, at, err);
}

/* What is not UTF-8, as a text that was cut inside a character, is no string to
 * jansson: it would be left out. */
static json_t *string_of(const char *text)
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

static json_t *encode_text(const struct rf_field *field, const void *at)
{
    (void)field;
    return string_of(*(char *const *)at);
}

/* Texts, trees, lists and structs that may be missing begin with a pointer. */
static bool pointer_absent(const void *at)
{
    const void *pointer;
    memcpy(&pointer, at, sizeof(pointer));
    return pointer == NULL;
}

static void free_text(const struct rf_field *field, void *at)
{
    char **text = at;
    if (field->kind == RF_FIELD_SECRET && *text != NULL) {
        explicit_bzero(*text, strlen(*text));
    }
    free(*text);
    *text = NULL;
}

static enum rf_status decode_tree(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    (void)field;
    if (!json_is_object(node->value)) {
        return fail(node, err, "must be an object");
    }
    *(json_t **)at = json_incref(node->value);
    return RF_OK;
}

static json_t *encode_tree(const struct rf_field *field, const void *at)
{
    (void)field;
    return json_incref(*(json_t *const *)at);
}

static void free_tree(const struct rf_field *field, void *at)
{
    (void)field;
    json_decref(*(json_t **)at);
    *(json_t **)at = NULL;
}

/* --- Several of them ------------------------------------------------------ */

static void describe_count(double least, double most, char *out, size_t size)
{
    if (least > 0) {
        snprintf(out, size, " of %.0f to %.0f", least, most);
    } else {
        snprintf(out, size, " of at most %.0f", most);
    }
}

/* Whether `node` is an array of so many elements. */
static enum rf_status check_array(const struct rf_jnode *node, double least,
                                  double most, struct rf_err *err)
{
    const double n = (double)json_array_size(node->value);
    char range[60], text[80];
    if (json_is_array(node->value) && n >= least && n <= most) {
        return RF_OK;
    }
    describe_count(least, most, range, sizeof(range));
    snprintf(text, sizeof(text), "must be a list%s", range);
    return fail(node, err, text);
}

static enum rf_status decode_pairs(const struct rf_field *field,
                                   const struct rf_jnode *node, void *at,
                                   struct rf_err *err)
{
    struct rf_text_pairs *pairs = at;
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
        struct rf_jnode member = rf_jnode_get(node, key);
        enum rf_status status = RF_OK;
        if (!json_is_null(value)) {
            status = get_text(field, 0, &member, &pair->value, err);
        }
        if (status != RF_OK) {
            return status;
        }
        pair->key = rf_xstrdup(key);
        pairs->n++;
    }
    return RF_OK;
}

static json_t *encode_pairs(const struct rf_field *field, const void *at)
{
    const struct rf_text_pairs *pairs = at;
    json_t *object = json_object();
    (void)field;
    for (size_t i = 0; i < pairs->n; i++) {
        const char *value = pairs->list[i].value;
        json_object_set_new(object, pairs->list[i].key,
                            value != NULL ? string_of(value) : json_null());
    }
    return object;
}

static void free_pairs(const struct rf_field *field, void *at)
{
    struct rf_text_pairs *pairs = at;
    (void)field;
    for (size_t i = 0; i < pairs->n; i++) {
        free(pairs->list[i].key);
        free(pairs->list[i].value);
    }
    free(pairs->list);
    *pairs = (struct rf_text_pairs){NULL, 0};
}

static enum rf_status decode_u64s(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    struct rf_integers *out = at;
    const struct rf_field bounds = {.kind = field->kind, .max = field->max};
    size_t n = json_array_size(node->value);
    RF_TRY(check_array(node, 0, field->min, err));
    out->list = rf_xcalloc(n + 1, sizeof(*out->list));
    for (; out->n < n; out->n++) {
        struct rf_jnode element = rf_jnode_at(node, out->n);
        int64_t value;
        RF_TRY(get_integer(&bounds, &element, &value, err));
        out->list[out->n] = (uint64_t)value;
    }
    return RF_OK;
}

static json_t *encode_u64s(const struct rf_field *field, const void *at)
{
    const struct rf_integers *in = at;
    json_t *array = json_array();
    (void)field;
    for (size_t i = 0; i < in->n; i++) {
        json_array_append_new(array, json_integer((json_int_t)in->list[i]));
    }
    return array;
}

static void free_u64s(const struct rf_field *field, void *at)
{
    struct rf_integers *integers = at;
    (void)field;
    free(integers->list);
    *integers = (struct rf_integers){NULL, 0};
}

static enum rf_status decode_texts(const struct rf_field *field,
                                   const struct rf_jnode *node, void *at,
                                   struct rf_err *err)
{
    struct rf_texts *out = at;
    size_t n = json_array_size(node->value);
    RF_TRY(check_array(node, 0, field->min, err));
    out->list = rf_xcalloc(n + 1, sizeof(*out->list));
    for (; out->n < n; out->n++) {
        struct rf_jnode element = rf_jnode_at(node, out->n);
        RF_TRY(get_text(field, 0, &element, &out->list[out->n], err));
    }
    return RF_OK;
}

static json_t *encode_texts(const struct rf_field *field, const void *at)
{
    const struct rf_texts *in = at;
    json_t *array = json_array();
    (void)field;
    for (size_t i = 0; i < in->n; i++) {
        json_array_append_new(array, string_of(in->list[i]));
    }
    return array;
}

static void free_texts(const struct rf_field *field, void *at)
{
    struct rf_texts *texts = at;
    for (size_t i = 0; i < texts->n; i++) {
        if (field->kind == RF_FIELD_SECRETS) {
            explicit_bzero(texts->list[i], strlen(texts->list[i]));
        }
        free(texts->list[i]);
    }
    free(texts->list);
    *texts = (struct rf_texts){NULL, 0};
}

/* --- Structs inside ------------------------------------------------------- */

static enum rf_status decode_members(const struct rf_schema *schema,
                                     const struct rf_jnode *object, void *out,
                                     struct rf_err *err);
/* Of what is freed itself, or made absent, next. */
static void free_members(const struct rf_schema *schema, void *in);

static enum rf_status decode_part(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    return decode_members(field->of, node, at, err);
}

static json_t *encode_part(const struct rf_field *field, const void *at)
{
    return rf_schema_encode(field->of, at);
}

static void free_part(const struct rf_field *field, void *at)
{
    free_members(field->of, at);
}

static enum rf_status decode_maybe(const struct rf_field *field,
                                   const struct rf_jnode *node, void *at,
                                   struct rf_err *err)
{
    void *part = rf_schema_new(field->of);
    *(void **)at = part;
    return decode_members(field->of, node, part, err);
}

static json_t *encode_maybe(const struct rf_field *field, const void *at)
{
    return rf_schema_encode(field->of, *(void *const *)at);
}

static void free_maybe(const struct rf_field *field, void *at)
{
    void *part = *(void **)at;
    if (part != NULL) {
        free_members(field->of, part);
        free(part);
        *(void **)at = NULL;
    }
}

static enum rf_status decode_list(const struct rf_field *field,
                                  const struct rf_jnode *node, void *at,
                                  struct rf_err *err)
{
    const size_t n = json_array_size(node->value), size = field->of->size;
    size_t *count = count_of(field, at);
    enum rf_status status = check_array(node, field->min, field->max, err);
    char *list;
    if (status != RF_OK) {
        return status;
    }
    list = rf_xcalloc(n + 1, size);
    *(void **)at = list;
    while (status == RF_OK && *count < n) {
        struct rf_jnode element = rf_jnode_at(node, *count);
        void *part = list + *count * size;
        rf_schema_init(field->of, part);
        ++*count;
        status = decode_members(field->of, &element, part, err);
    }
    return status;
}

static json_t *encode_list(const struct rf_field *field, const void *at)
{
    const char *list = *(char *const *)at;
    const size_t n = *count_of(field, at);
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            array, rf_schema_encode(field->of, list + i * field->of->size));
    }
    return array;
}

static void free_list(const struct rf_field *field, void *at)
{
    char *list = *(char **)at;
    size_t *count = count_of(field, at);
    for (size_t i = 0; i < *count; i++) {
        free_members(field->of, list + i * field->of->size);
    }
    free(list);
    *(void **)at = NULL;
    *count = 0;
}

/* --- Schemas -------------------------------------------------------------- */

static const struct field_codec kinds[] = {
    [RF_FIELD_BOOL] = {"true or false", decode_bool, encode_bool, bool_absent,
                       NULL, NULL},
    [RF_FIELD_U32] = {"whole number", decode_u32, encode_u32, u32_absent,
                      init_u32, NULL},
    [RF_FIELD_U64] = {"whole number", decode_u64, encode_u64, u64_absent,
                      init_u64, NULL},
    [RF_FIELD_I64] = {"whole number", decode_i64, encode_i64, i64_absent,
                      init_i64, NULL},
    [RF_FIELD_REAL] = {"number", decode_real, encode_real, real_absent,
                       init_real, NULL},
    [RF_FIELD_TEXT] = {"text", decode_text, encode_text, pointer_absent, NULL,
                       free_text},
    [RF_FIELD_SECRET] = {"secret text", decode_text, encode_text,
                         pointer_absent, NULL, free_text},
    [RF_FIELD_TREE] = {"object", decode_tree, encode_tree, pointer_absent, NULL,
                       free_tree},
    [RF_FIELD_PAIRS] = {"object", decode_pairs, encode_pairs, pointer_absent,
                        NULL, free_pairs},
    [RF_FIELD_U64S] = {"list", decode_u64s, encode_u64s, pointer_absent, NULL,
                       free_u64s},
    [RF_FIELD_TEXTS] = {"list", decode_texts, encode_texts, pointer_absent,
                        NULL, free_texts},
    [RF_FIELD_SECRETS] = {"list", decode_texts, encode_texts, pointer_absent,
                          NULL, free_texts},
    [RF_FIELD_PART] = {"", decode_part, encode_part, NULL, NULL, free_part},
    [RF_FIELD_MAYBE] = {"", decode_maybe, encode_maybe, pointer_absent, NULL,
                        free_maybe},
    [RF_FIELD_LIST] = {"list", decode_list, encode_list, NULL, NULL, free_list},
};

static void *member(const struct rf_field *field, const void *in)
{
    return (char *)(uintptr_t)in + field->offset;
}

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
                      : kinds[field->kind].decode(field, &node,
                                                  member(field, out), err));
    }
    return RF_OK;
}

/* Most messages hold none, however many members theirs have. */
static bool has_secrets(const struct rf_schema *schema)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        if (field->kind == RF_FIELD_SECRET || field->kind == RF_FIELD_SECRETS ||
            (field->of != NULL && has_secrets(field->of))) {
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
        rf_schema_wipe(schema, object); /* those that were not taken */
        rf_schema_free(schema, out);
    }
    return status;
}

json_t *rf_schema_encode(const struct rf_schema *schema, const void *in)
{
    json_t *object = json_object();
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        const struct field_codec *kind = &kinds[field->kind];
        const void *at = member(field, in);
        if (!rf_schema_may_be_absent(field) || kind->absent == NULL ||
            !kind->absent(at)) {
            json_object_set_new(object, field->key, kind->encode(field, at));
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
        const struct rf_field *field = &schema->fields[i];
        const struct field_codec *kind = &kinds[field->kind];
        if (field->kind == RF_FIELD_PART) {
            rf_schema_init(field->of, member(field, out));
        } else if (kind->init != NULL) {
            kind->init(member(field, out));
        }
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
        const struct rf_field *field = &schema->fields[i];
        if (kinds[field->kind].free != NULL) {
            kinds[field->kind].free(field, member(field, in));
        }
    }
}

void rf_schema_free(const struct rf_schema *schema, void *in)
{
    free_members(schema, in);
    rf_schema_init(schema, in);
}

/* --- The reference -------------------------------------------------------- */

/* "msg_hello" is hello. */
static const char *short_name(const struct rf_schema *schema)
{
    const char *underscore = strchr(schema->name, '_');
    return underscore != NULL ? underscore + 1 : schema->name;
}

/* What a value looks like, behind the name of its type. */
static void describe(const struct rf_field *field, char *out, size_t size)
{
    char count[60], each[80];
    describe_count(0, field->min, count, sizeof(count));
    describe_bytes(0, field->max, each, sizeof(each));
    out[0] = '\0';
    switch (field->kind) {
    case RF_FIELD_U32:
    case RF_FIELD_U64:
    case RF_FIELD_I64:
    case RF_FIELD_REAL:
        describe_range(field, out, size);
        break;
    case RF_FIELD_TEXT:
    case RF_FIELD_SECRET:
        describe_bytes(field->min, field->max, out, size);
        break;
    case RF_FIELD_PAIRS:
        snprintf(out, size, "%s members: text%s or null", count, each);
        break;
    case RF_FIELD_U64S:
        describe_range(
            &(struct rf_field){.kind = field->kind, .max = field->max}, each,
            sizeof(each));
        snprintf(out, size, "%s: whole number%s", count, each);
        break;
    case RF_FIELD_TEXTS:
        snprintf(out, size, "%s: text%s", count, each);
        break;
    case RF_FIELD_SECRETS:
        snprintf(out, size, "%s: secret text%s", count, each);
        break;
    case RF_FIELD_PART:
    case RF_FIELD_MAYBE:
        snprintf(out, size, "`%s`", short_name(field->of));
        break;
    case RF_FIELD_LIST:
        describe_count(field->min, field->max, count, sizeof(count));
        snprintf(out, size, "%s: `%s`", count, short_name(field->of));
        break;
    case RF_FIELD_BOOL:
    case RF_FIELD_TREE:
        break;
    }
}

static const char *presence_of(const struct rf_field *field)
{
    return field->presence == RF_NULLABLE   ? ", may be null"
           : rf_schema_may_be_absent(field) ? ", may be absent"
                                            : "";
}

void rf_schema_print(const struct rf_schema *schema, FILE *to)
{
    fprintf(to, "| key | value | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        char value[200];
        describe(field, value, sizeof(value));
        fprintf(to, "| `%s` | %s%s%s | %s |\n", field->key,
                kinds[field->kind].type, value, presence_of(field),
                field->meaning);
    }
}
