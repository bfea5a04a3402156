/*
 * Jansson writes strings and real numbers, so they look as in every other file.
 * Objects and lists are written here, because they may contain numbers of
 * ranks, which go straight to text.
 */
#include "coordinator/records/record_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/iteration_ranks.h"

#define INDENT 2
#define MOST_DIGITS 9   /* of a real number, as in rf_json_text() */
#define MOST_DECIMAL 64 /* bytes of a number */
#define MOST_LABEL 64   /* bytes before it */
#define MOST_ENTRY                                                             \
    ((RF_ITERATION_RANK_FIELDS + (size_t)1) * (MOST_LABEL + MOST_DECIMAL))
#define EXACT_NS 1000000000 /* has more digits than MOST_DIGITS */
#define EXPONENT_NS 100     /* less is below 1e-4 ms and takes an exponent */

struct text {
    char *bytes;
    size_t used, capacity;
    bool failed;
};

/* Doubling costs no memory: what realloc() adds is untouched until used. */
static char *room(struct text *text, size_t size)
{
    while (text->capacity - text->used < size) {
        text->capacity = RF_MAX(2 * text->capacity, (size_t)4096);
        text->bytes = rf_xrealloc(text->bytes, text->capacity, 1);
    }
    return text->bytes + text->used;
}

static int add_cb(const char *bytes, size_t size, void *data)
{
    struct text *text = data;
    memcpy(room(text, size), bytes, size);
    text->used += size;
    return 0;
}

static void add(struct text *text, const char *bytes)
{
    (void)add_cb(bytes, strlen(bytes), text);
}

static void add_line(struct text *text, unsigned depth)
{
    char *at = room(text, 1 + (size_t)depth * INDENT);
    *at = '\n';
    memset(at + 1, ' ', (size_t)depth * INDENT);
    text->used += 1 + (size_t)depth * INDENT;
}

static void add_scalar(struct text *text, const json_t *value)
{
    text->failed |= json_dump_callback(value, add_cb, text,
                                       JSON_ENCODE_ANY | JSON_REAL_PRECISION(
                                                             MOST_DIGITS)) != 0;
}

/* Fast path: most strings have nothing to escape. */
static void add_string(struct text *text, const char *string)
{
    const char *c = string;
    while ((unsigned char)*c >= ' ' && *c != '"' && *c != '\\') {
        c++;
    }
    if (*c == '\0') {
        add(text, "\"");
        add(text, string);
        add(text, "\"");
    } else {
        json_t *value = json_string_nocheck(string);
        add_scalar(text, value);
        json_decref(value);
    }
}

/* --- Ranks ---------------------------------------------------------------- */

static char *put_digits(char *at, uint64_t number, unsigned least)
{
    char digits[20];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 || n < least);
    while (n > 0) {
        *at++ = digits[--n];
    }
    return at;
}

/* Nanoseconds in milli- or microseconds, as Jansson writes them. Exact for
 * numbers within Jansson's digits that take no exponent. */
static char *put_decimal(char *at, int64_t ns, unsigned decimals)
{
    const bool ms = decimals == 6;
    const uint64_t number = (uint64_t)ns;
    if (ns < 0 || ns >= EXACT_NS || (ms && ns > 0 && ns < EXPONENT_NS)) {
        json_t *real = json_real((double)ns / (ms ? 1e6 : 1e3));
        at += json_dumpb(real, at, MOST_DECIMAL,
                         JSON_ENCODE_ANY | JSON_REAL_PRECISION(MOST_DIGITS));
        json_decref(real);
        return at;
    }
    at = put_digits(at, ms ? number / 1000000 : number / 1000, 1);
    *at++ = '.';
    at = put_digits(at, ms ? number % 1000000 : number % 1000, decimals);
    while (at[-1] == '0' && at[-2] != '.') {
        at--;
    }
    return at;
}

static char *put_number(char *at, int64_t number, unsigned decimals)
{
    if (decimals > 0) {
        return put_decimal(at, number, decimals);
    }
    *at = '-';
    return put_digits(at + (number < 0),
                      number < 0 ? -(uint64_t)number : (uint64_t)number, 1);
}

/* The text before each member of an entry, the same in all entries. */
struct labels {
    char rank[MOST_LABEL], fields[RF_ITERATION_RANK_FIELDS][MOST_LABEL];
    size_t sizes[RF_ITERATION_RANK_FIELDS];
};

static void make_labels(struct labels *labels, unsigned depth)
{
    const int indent = (int)depth * INDENT;
    snprintf(labels->rank, MOST_LABEL, "{\n%*s\"rank\": ", indent, "");
    for (size_t i = 0; i < RF_ITERATION_RANK_FIELDS; i++) {
        labels->sizes[i] = (size_t)snprintf(labels->fields[i], MOST_LABEL,
                                            ",\n%*s\"%s\": ", indent, "",
                                            rf_iteration_rank_fields[i].key);
    }
}

static void add_rank(struct text *text, const struct labels *labels,
                     size_t rank, const struct rf_iteration_rank *numbers)
{
    char *at;
    int64_t number;
    add(text, labels->rank);
    at = room(text, MOST_ENTRY);
    at = put_digits(at, rank, 1);
    for (size_t i = 0; i < RF_ITERATION_RANK_FIELDS; i++) {
        const struct rf_iteration_rank_field *f = &rf_iteration_rank_fields[i];
        if (rf_iteration_rank_number(numbers, f, &number)) {
            memcpy(at, labels->fields[i], labels->sizes[i]);
            at = put_number(at + labels->sizes[i], number, f->decimals);
        }
    }
    text->used = (size_t)(at - text->bytes);
}

static void add_ranks(struct text *text, const struct rf_iteration_rank *ranks,
                      size_t n, unsigned depth)
{
    struct labels labels;
    make_labels(&labels, depth + 2);
    for (size_t r = 0; r < n; r++) {
        add(text, r > 0 ? "," : "[");
        add_line(text, depth + 1);
        add_rank(text, &labels, r, &ranks[r]);
        add_line(text, depth + 1);
        add(text, "}");
    }
    if (n > 0) {
        add_line(text, depth);
    }
    add(text, n > 0 ? "]" : "[]");
}

/* --- The record ----------------------------------------------------------- */

static void add_value(struct text *text, const json_t *value, unsigned depth);

static void add_object(struct text *text, const json_t *object, unsigned depth)
{
    const char *key, *between = "{";
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
        add(text, between);
        add_line(text, depth + 1);
        add_string(text, key);
        add(text, ": ");
        add_value(text, value, depth + 1);
        between = ",";
    }
    add_line(text, depth);
    add(text, "}");
}

static void add_array(struct text *text, const json_t *array, unsigned depth)
{
    const json_t *value;
    size_t i;
    json_array_foreach (array, i, value) {
        add(text, i > 0 ? "," : "[");
        add_line(text, depth + 1);
        add_value(text, value, depth + 1);
    }
    add_line(text, depth);
    add(text, "]");
}

/* Recurses as deep as records nest. */
static void add_value(struct text *text, const json_t *value, unsigned depth)
{
    size_t n;
    const struct rf_iteration_rank *ranks =
        rf_iteration_ranks_numbers(value, &n);
    if (ranks != NULL) {
        add_ranks(text, ranks, n, depth);
    } else if (json_object_size(value) > 0) {
        add_object(text, value, depth);
    } else if (json_array_size(value) > 0) {
        add_array(text, value, depth);
    } else if (json_is_null(value) || json_is_boolean(value)) {
        add(text, json_is_null(value)   ? "null"
                  : json_is_true(value) ? "true"
                                        : "false");
    } else if (json_is_string(value)) {
        add_string(text, json_string_value(value));
    } else if (json_is_integer(value)) {
        text->used = (size_t)(put_number(room(text, MOST_DECIMAL),
                                         json_integer_value(value), 0) -
                              text->bytes);
    } else {
        add_scalar(text, value);
    }
}

char *rf_record_text(const json_t *record)
{
    struct text text = {0};
    add_value(&text, record, 0);
    (void)add_cb("\n", sizeof("\n"), &text);
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}
