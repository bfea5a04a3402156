/*
 * Expressions of the tables that describe models
 * (planner/families/family_table.h): integers, true, false, null, 'text',
 * names, + - * / % (a division with a remainder is an error; a fraction times
 * an integer is rounded down), comparisons, && || !, c ? a : b, parentheses,
 * list[i], text[i], object.member, object[number] (of members called "3" or
 * "03"), list.length, text.length, `x in list`, and `number in '3,4,5'`.
 *
 * Pure: the caller looks up names. && || ?: evaluate only what they need, but
 * the whole text must be well formed. Bounded: texts of at most
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
    RF_VALUE_JSON, /* a list, an object, or a non-integer number */
};

struct rf_value {
    enum rf_value_kind kind;
    int64_t number;   /* an integer; 0 or 1 for a boolean */
    const char *text; /* borrowed, `length` bytes */
    size_t length;
    const json_t *json; /* borrowed */
};

/* The value of `json`; absent (NULL) reads as null. Borrows from it. */
struct rf_value rf_value_of_json(const json_t *json);

/*
 * Looks up names. `find` is called for every name in the text; `needed` is
 * false in branches not taken, where *out is ignored and an unknown name is no
 * error.
 */
struct rf_expr_scope {
    enum rf_status (*find)(void *context, const char *name, bool needed,
                           struct rf_value *out, struct rf_err *err);
    void *context;
};

/* RF_ERR_CONFIG names the expression, the column and the reason; errors of
 * `find` are returned unchanged. */
enum rf_status rf_expr_evaluate(const char *text,
                                const struct rf_expr_scope *scope,
                                struct rf_value *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Checks the form only; looks up every name with `needed` false. */
enum rf_status rf_expr_check(const char *text,
                             const struct rf_expr_scope *scope,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
