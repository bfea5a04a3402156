/*
 * One pass over the text, recursing as deep as schemas nest. It stops at
 * anything unexpected and reports no reason: the full parser does.
 */
#include "transport/control/schema_plain.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define MOST_FIELDS 64
#define MOST_DIGITS 18 /* no number overflows */

struct cursor {
    const char *at, *end;
};

static char after_space(struct cursor *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' ||
                                *in->at == '\t' || *in->at == '\r')) {
        in->at++;
    }
    return in->at < in->end ? *in->at : '\0';
}

/* Workers write no spaces. */
static inline char next(struct cursor *in)
{
    return in->at == in->end || *in->at <= ' ' ? after_space(in) : *in->at;
}

static inline bool take(struct cursor *in, char c)
{
    if (next(in) != c) {
        return false;
    }
    in->at++;
    return true;
}

static bool take_word(struct cursor *in, const char *word)
{
    const size_t size = strlen(word);
    if (next(in) != *word || (size_t)(in->end - in->at) < size ||
        memcmp(in->at, word, size) != 0) {
        return false;
    }
    in->at += size;
    return true;
}

static bool read_object(const struct rf_schema *schema, struct cursor *in,
                        void *out);

/* A JSON integer. */
static bool take_integer(struct cursor *in, int64_t *out)
{
    const bool negative = take(in, '-');
    const char *const first = in->at, *at = first;
    const char *const end =
        in->end - first > MOST_DIGITS ? first + MOST_DIGITS : in->end;
    int64_t value = 0;
    for (; at < end && (unsigned char)(*at - '0') <= 9; at++) {
        value = value * 10 + (*at - '0');
    }
    in->at = at;
    *out = negative ? -value : value;
    return at > first && (*first != '0' || at == first + 1);
}

static bool read_integer(const struct rf_field *field, struct cursor *in,
                         void *out)
{
    int64_t value;
    if (!take_integer(in, &value) || (double)value < field->min ||
        (double)value > field->max) {
        return false;
    }
    if (field->kind == RF_FIELD_U32) {
        *(uint32_t *)out = (uint32_t)value;
    } else {
        *(int64_t *)out = value; /* or a uint64_t of the same size */
    }
    return true;
}

/* Without an exponent. */
static bool read_real(const struct rf_field *field, struct cursor *in,
                      double *out)
{
    char number[2 * MOST_DIGITS + 3];
    const char *first, *point;
    int64_t whole;
    size_t size;
    (void)next(in);
    first = in->at;
    if (!take_integer(in, &whole)) {
        return false;
    }
    if (in->at < in->end && *in->at == '.') {
        point = in->at++;
        while (in->at < in->end && *in->at >= '0' && *in->at <= '9' &&
               in->at - point <= MOST_DIGITS) {
            in->at++;
        }
        if (in->at == point + 1) {
            return false;
        }
    }
    size = (size_t)(in->at - first);
    memcpy(number, first, size);
    number[size] = '\0';
    *out = strtod(number, NULL);
    return *out >= field->min && *out <= field->max;
}

static bool read_text(const struct rf_field *field, struct cursor *in,
                      char **out)
{
    const char *text;
    double size;
    if (!take(in, '"')) {
        return false;
    }
    text = in->at;
    while (in->at < in->end && *in->at >= ' ' && *in->at < '\x7f' &&
           *in->at != '"' && *in->at != '\\') {
        in->at++;
    }
    size = (double)(in->at - text);
    if (in->at == in->end || *in->at != '"' || size < field->min ||
        size > field->max) {
        return false;
    }
    *out = rf_xasprintf("%.*s", (int)(in->at++ - text), text);
    return true;
}

static bool read_list(const struct rf_field *field, struct cursor *in,
                      char **list, size_t *n)
{
    const size_t size = field->of->size;
    size_t capacity = 0;
    if (!take(in, '[')) {
        return false;
    }
    if (take(in, ']')) {
        return field->min < 1;
    }
    do {
        char *element;
        if (*n == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 8;
            *list = rf_xrealloc(*list, capacity, size);
        }
        element = *list + (*n)++ * size;
        rf_schema_init(field->of, element);
        if (!read_object(field->of, in, element)) {
            return false;
        }
    } while ((double)*n < field->max && take(in, ','));
    return take(in, ']') && (double)*n >= field->min;
}

static bool read_member(const struct rf_field *field, struct cursor *in,
                        void *out)
{
    void *at = (char *)out + field->offset;
    switch (field->kind) {
    case RF_FIELD_BOOL:
        *(bool *)at = take_word(in, "true");
        return *(bool *)at || take_word(in, "false");
    case RF_FIELD_U32:
    case RF_FIELD_U64:
    case RF_FIELD_I64:
        return read_integer(field, in, at);
    case RF_FIELD_REAL:
        return read_real(field, in, at);
    case RF_FIELD_TEXT:
        return read_text(field, in, at);
    case RF_FIELD_PART:
        return read_object(field->of, in, at);
    case RF_FIELD_MAYBE:
        *(void **)at = rf_schema_new(field->of);
        return read_object(field->of, in, *(void **)at);
    case RF_FIELD_LIST:
        return read_list(field, in, at,
                         (size_t *)((char *)out + field->count_offset));
    default:
        return false; /* not in messages that arrive by the thousand */
    }
}

static bool take_key(struct cursor *in, const char *key)
{
    const char *at = in->at;
    while (*key != '\0' && at < in->end && *at == *key) {
        at++;
        key++;
    }
    if (*key != '\0' || at == in->end || *at != '"') {
        return false;
    }
    in->at = at + 1;
    return true;
}

/* The field of the next key; n_fields: none. Tries field `from` first, then
 * those after it, since keys mostly come in the order of the fields. */
static size_t take_field(const struct rf_schema *schema, size_t from,
                         struct cursor *in)
{
    size_t at = from;
    if (!take(in, '"')) {
        return schema->n_fields;
    }
    for (size_t i = 0; i < schema->n_fields; i++, at++) {
        at = at < schema->n_fields ? at : 0;
        if (take_key(in, schema->fields[at].key)) {
            return at;
        }
    }
    return schema->n_fields;
}

static bool may_end(const struct rf_schema *schema, uint64_t seen)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        if ((seen >> i & 1) == 0 &&
            !rf_schema_may_be_absent(&schema->fields[i])) {
            return false;
        }
    }
    return true;
}

/* `out` is initialised; free it with rf_schema_free() in any case. */
static bool read_object(const struct rf_schema *schema, struct cursor *in,
                        void *out)
{
    uint64_t seen = 0, nulls = 0;
    size_t at = 0;
    if (schema->n_fields > MOST_FIELDS || !take(in, '{')) {
        return false;
    }
    if (take(in, '}')) {
        return may_end(schema, 0);
    }
    do {
        at = take_field(schema, at, in);
        if (at == schema->n_fields || (seen >> at & 1) != 0 || !take(in, ':')) {
            return false;
        }
        seen |= (uint64_t)1 << at;
        if (next(in) == 'n' && take_word(in, "null")) {
            nulls |= (uint64_t)1 << at;
        } else if (!read_member(&schema->fields[at], in, out)) {
            return false;
        }
        at++;
    } while (take(in, ','));
    return take(in, '}') && may_end(schema, seen & ~nulls);
}

bool rf_schema_read_plain(const struct rf_schema *schema, const char *text,
                          size_t size, void *out)
{
    struct cursor in = {text, text + size};
    rf_schema_init(schema, out);
    if (read_object(schema, &in, out) && next(&in) == '\0' && in.at == in.end) {
        return true;
    }
    rf_schema_free(schema, out);
    return false;
}
