/*
 * Expressions of the tables that describe models
 * (planner/families/family_table.h): integers, true, false, null, 'text',
 * names, + - * / % (a division that leaves a rest is an error; a fraction times
 * an integer is rounded down), comparisons, && || !, c ? a : b, parentheses,
 * list[i], text[i], object.member, object[number] (of members called "3" or
 * "03"), list.length, text.length, `x in list`, and `number in '3,4,5'`.
 *
 * Pure: names are looked up by the caller. && || ?: evaluate only what they
 * need, but the whole text must be well formed. Bounded: texts of at most
 * RF_EXPR_MAX_BYTES, nesting of at most RF_EXPR_MAX_DEPTH, 64-bit arithmetic
 * whose overflow is an error.
 */
#ifndef RF_PLANNER_FAMILIES_EXPR_H
#define RF_PLANNER_FAMILIES_EXPR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define RF_EXPR_MAX_BYTES 1024
#define RF_EXPR_MAX_DEPTH 48
#define RF_EXPR_MAX_NAME 63

enum rf_value_kind {
    RF_VALUE_NULL,
    RF_VALUE_BOOL,
    RF_VALUE_INTEGER,
    RF_VALUE_TEXT,
    RF_VALUE_JSON, /* a list, an object, or a number that is no integer */
};

struct rf_value {
    enum rf_value_kind kind;
    int64_t number;   /* of an integer; 0 or 1 of a boolean */
    const char *text; /* borrowed, `length` bytes */
    size_t length;
    const json_t *json; /* borrowed */
};

/* The value of a JSON value, absent (NULL) and null alike; borrows from it. */
struct rf_value rf_value_of_json(const json_t *json);

/*
 * Where names are looked up. `find` is called for every name in the text;
 * `needed` is false in branches that are not taken: *out is ignored then, and
 * an unknown name is no error.
 */
struct rf_expr_scope {
    enum rf_status (*find)(void *context, const char *name, bool needed,
                           struct rf_value *out, struct rf_err *err);
    void *context;
};

/* RF_ERR_CONFIG names the expression, the column and the reason; errors of
 * `find` are passed on as they are. */
enum rf_status rf_expr_evaluate(const char *text,
                                const struct rf_expr_scope *scope,
                                struct rf_value *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Looks up every name, none of them needed, and checks the form alone. */
enum rf_status rf_expr_check(const char *text,
                             const struct rf_expr_scope *scope,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
