/*
 * A recursive-descent parser that evaluates as it goes. See expr.h.
 *
 * In a branch not taken, `skip` is positive: the text is parsed, no name is
 * needed, and operators give null. The first error is kept; every function
 * returns at once after it.
 */
#include "planner/families/expr.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"

struct parser {
    const char *text, *at;
    const struct rf_expr_scope *scope;
    unsigned depth, skip;
    struct rf_err *err;
    enum rf_status status;
};

static const struct rf_value none = {.kind = RF_VALUE_NULL};

static struct rf_value integer(int64_t number)
{
    return (struct rf_value){.kind = RF_VALUE_INTEGER, .number = number};
}

static struct rf_value boolean(bool value)
{
    return (struct rf_value){.kind = RF_VALUE_BOOL, .number = value};
}

struct rf_value rf_value_of_json(const json_t *json)
{
    if (json == NULL || json_is_null(json)) {
        return none;
    }
    if (json_is_boolean(json)) {
        return boolean(json_is_true(json));
    }
    if (json_is_integer(json)) {
        return integer(json_integer_value(json));
    }
    if (json_is_string(json)) {
        return (struct rf_value){.kind = RF_VALUE_TEXT,
                                 .text = json_string_value(json),
                                 .length = json_string_length(json)};
    }
    return (struct rf_value){.kind = RF_VALUE_JSON, .json = json};
}

static struct rf_value fail(struct parser *p, const char *at, const char *fmt,
                            ...) RF_PRINTF(3, 4);
static struct rf_value fail(struct parser *p, const char *at, const char *fmt,
                            ...)
{
    char why[320];
    va_list args;
    if (p->status == RF_OK) {
        va_start(args, fmt);
        vsnprintf(why, sizeof(why), fmt, args);
        va_end(args);
        p->status =
            rf_err_set(p->err, RF_ERR_CONFIG, "\"%.160s\", column %zu: %s",
                       p->text, (size_t)(at - p->text) + 1, why);
    }
    return none;
}

/* Describes a value for errors: "a list", "text 'x'". */
static const char *describe(struct rf_value value, char out[64])
{
    switch (value.kind) {
    case RF_VALUE_NULL:
        return "null";
    case RF_VALUE_BOOL:
        return value.number ? "true" : "false";
    case RF_VALUE_INTEGER:
        snprintf(out, 64, "%lld", (long long)value.number);
        return out;
    case RF_VALUE_TEXT:
        snprintf(out, 64, "'%.*s'",
                 (int)(value.length < 40 ? value.length : 40), value.text);
        return out;
    case RF_VALUE_JSON:
        break;
    }
    return json_is_array(value.json)    ? "a list"
           : json_is_object(value.json) ? "an object"
                                        : "a fraction";
}

static void skip_spaces(struct parser *p)
{
    p->at += strspn(p->at, " \t\n");
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_byte(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9');
}

/* Takes `word` if it comes next; a word of letters only if it ends there. */
static bool take(struct parser *p, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(p);
    if (p->status != RF_OK || strncmp(p->at, word, length) != 0 ||
        (is_name_start(word[0]) && is_name_byte(p->at[length]))) {
        return false;
    }
    p->at += length;
    return true;
}

static struct rf_value parse_choice(struct parser *p);

static struct rf_value parse_number(struct parser *p)
{
    const char *start = p->at;
    int64_t number = 0;
    for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *p->at - '0', &number)) {
            return fail(p, start, "number exceeds 64 bits");
        }
    }
    return integer(number);
}

static struct rf_value parse_text(struct parser *p)
{
    const char *start = p->at;
    const char *end = strchr(start + 1, *start);
    if (end == NULL) {
        return fail(p, start, "unterminated text");
    }
    p->at = end + 1;
    return (struct rf_value){.kind = RF_VALUE_TEXT,
                             .text = start + 1,
                             .length = (size_t)(end - start - 1)};
}

/* Copies the next name; false: none, or too long. */
static bool parse_name(struct parser *p, char out[RF_EXPR_MAX_NAME + 1])
{
    const char *start = p->at;
    size_t length = 0;
    while (is_name_byte(start[length])) {
        length++;
    }
    if (length == 0 || !is_name_start(*start) || length > RF_EXPR_MAX_NAME) {
        fail(p, start,
             length > RF_EXPR_MAX_NAME ? "name longer than 63 characters"
                                       : "expected a value");
        return false;
    }
    memcpy(out, start, length);
    out[length] = '\0';
    p->at += length;
    return true;
}

static struct rf_value parse_primary(struct parser *p)
{
    char name[RF_EXPR_MAX_NAME + 1];
    struct rf_value value = none;
    skip_spaces(p);
    if (p->status != RF_OK) {
        return none;
    }
    if (*p->at >= '0' && *p->at <= '9') {
        return parse_number(p);
    }
    if (*p->at == '\'' || *p->at == '"') {
        return parse_text(p);
    }
    if (take(p, "(")) {
        value = parse_choice(p);
        return take(p, ")") ? value : fail(p, p->at, "\")\" is missing");
    }
    if (take(p, "true")) {
        return boolean(true);
    }
    if (take(p, "false")) {
        return boolean(false);
    }
    if (take(p, "null") || !parse_name(p, name)) {
        return none;
    }
    p->status =
        p->scope->find(p->scope->context, name, p->skip == 0, &value, p->err);
    return p->status == RF_OK && p->skip == 0 ? value : none;
}

/* The member named by the number, with any leading zeros; null: none. */
static struct rf_value pick_numbered(const json_t *object, int64_t number)
{
    const json_t *member = NULL;
    char name[24];
    for (int width = 1; width <= 8 && member == NULL; width++) {
        snprintf(name, sizeof(name), "%0*lld", width, (long long)number);
        member = json_object_get(object, name);
    }
    return rf_value_of_json(member);
}

/* Items of a list, bytes of a text; false: neither. */
static bool length_of(struct rf_value value, size_t *out)
{
    bool list = value.kind == RF_VALUE_JSON && json_is_array(value.json);
    *out = list ? json_array_size(value.json) : value.length;
    return list || value.kind == RF_VALUE_TEXT;
}

static struct rf_value pick_item(struct parser *p, const char *at,
                                 struct rf_value list, struct rf_value index)
{
    char text[64];
    size_t length;
    if (p->status != RF_OK || p->skip > 0) {
        return none;
    }
    if (list.kind == RF_VALUE_JSON && json_is_object(list.json)) {
        return index.kind == RF_VALUE_INTEGER
                   ? pick_numbered(list.json, index.number)
                   : fail(p, at, "expected a number as index, not %s",
                          describe(index, text));
    }
    if (!length_of(list, &length)) {
        return fail(p, at, "[ ] needs a list or a text, not %s",
                    describe(list, text));
    }
    if (length == 0) {
        return fail(p, at, "index into an empty value");
    }
    if (index.kind != RF_VALUE_INTEGER || index.number < 0 ||
        (uint64_t)index.number >= length) {
        return fail(p, at, "index must be 0 to %zu, not %s", length - 1,
                    describe(index, text));
    }
    return list.kind == RF_VALUE_TEXT
               ? (struct rf_value){.kind = RF_VALUE_TEXT,
                                   .text = list.text + index.number,
                                   .length = 1}
               : rf_value_of_json(
                     json_array_get(list.json, (size_t)index.number));
}

static struct rf_value pick_member(struct parser *p, const char *at,
                                   struct rf_value object)
{
    char name[RF_EXPR_MAX_NAME + 1], text[64];
    size_t length;
    if (!parse_name(p, name) || p->skip > 0 || object.kind == RF_VALUE_NULL) {
        return none;
    }
    if (strcmp(name, "length") == 0 && length_of(object, &length)) {
        return integer((int64_t)length);
    }
    if (object.kind != RF_VALUE_JSON || !json_is_object(object.json)) {
        return fail(p, at, ".%s needs an object, not %s", name,
                    describe(object, text));
    }
    return rf_value_of_json(json_object_get(object.json, name));
}

static struct rf_value parse_postfix(struct parser *p)
{
    struct rf_value value = parse_primary(p);
    while (p->status == RF_OK) {
        const char *at = p->at;
        if (take(p, "[")) {
            struct rf_value index = parse_choice(p);
            if (!take(p, "]")) {
                return fail(p, p->at, "\"]\" is missing");
            }
            value = pick_item(p, at, value, index);
        } else if (take(p, ".")) {
            value = pick_member(p, at, value);
        } else {
            break;
        }
    }
    return value;
}

/* Whether both are integers; fails if not. */
static bool integers(struct parser *p, const char *at, struct rf_value a,
                     struct rf_value b)
{
    const struct rf_value *wrong = a.kind != RF_VALUE_INTEGER ? &a : &b;
    char text[64];
    if (p->status != RF_OK || p->skip > 0) {
        return false;
    }
    if (wrong->kind != RF_VALUE_INTEGER) {
        fail(p, at, "expected an integer, not %s", describe(*wrong, text));
        return false;
    }
    return true;
}

static bool is_true(struct parser *p, const char *at, struct rf_value value)
{
    char text[64];
    if (p->status == RF_OK && p->skip == 0 && value.kind != RF_VALUE_BOOL) {
        fail(p, at, "must be true or false, not %s", describe(value, text));
    }
    return value.number != 0;
}

static struct rf_value parse_unary(struct parser *p)
{
    const char *at;
    struct rf_value value;
    skip_spaces(p);
    at = p->at;
    if (p->depth >= RF_EXPR_MAX_DEPTH) {
        return fail(p, at, "nested deeper than %d levels", RF_EXPR_MAX_DEPTH);
    }
    p->depth++;
    if (*at == '!' && at[1] != '=') {
        p->at++;
        value = parse_unary(p);
        value = boolean(!is_true(p, at, value));
    } else if (*at == '-') {
        p->at++;
        value = parse_unary(p);
        if (integers(p, at, value, value) &&
            __builtin_sub_overflow(0, value.number, &value.number)) {
            fail(p, at, "result exceeds 64 bits");
        }
    } else {
        value = parse_postfix(p);
    }
    p->depth--;
    return value;
}

static struct rf_value divide(struct parser *p, const char *at, char operation,
                              int64_t a, int64_t b)
{
    if (b <= 0) {
        return fail(p, at, "%lld %c %lld: the divisor must be positive",
                    (long long)a, operation, (long long)b);
    }
    if (operation == '%') {
        return integer(a % b);
    }
    if (a % b != 0) {
        return fail(p, at, "%lld / %lld leaves a remainder of %lld",
                    (long long)a, (long long)b, (long long)(a % b));
    }
    return integer(a / b);
}

static bool is_fraction(struct rf_value value)
{
    return value.kind == RF_VALUE_JSON && json_is_real(value.json);
}

/* A fraction times an integer, rounded down. */
static struct rf_value scale(struct parser *p, const char *at,
                             struct rf_value fraction, struct rf_value whole)
{
    double product =
        floor(json_real_value(fraction.json) * (double)whole.number);
    return fabs(product) <= 1e15 ? integer((int64_t)product)
                                 : fail(p, at, "%g is too large", product);
}

static struct rf_value calculate(struct parser *p, const char *at,
                                 char operation, struct rf_value a,
                                 struct rf_value b)
{
    int64_t result = 0;
    bool over;
    if (operation == '*' && is_fraction(a) && b.kind == RF_VALUE_INTEGER) {
        return scale(p, at, a, b);
    }
    if (operation == '*' && is_fraction(b) && a.kind == RF_VALUE_INTEGER) {
        return scale(p, at, b, a);
    }
    if (!integers(p, at, a, b)) {
        return none;
    }
    switch (operation) {
    case '+':
        over = __builtin_add_overflow(a.number, b.number, &result);
        break;
    case '-':
        over = __builtin_sub_overflow(a.number, b.number, &result);
        break;
    case '*':
        over = __builtin_mul_overflow(a.number, b.number, &result);
        break;
    default:
        return divide(p, at, operation, a.number, b.number);
    }
    return over ? fail(p, at, "%lld %c %lld exceeds 64 bits",
                       (long long)a.number, operation, (long long)b.number)
                : integer(result);
}

static struct rf_value parse_product(struct parser *p)
{
    struct rf_value value = parse_unary(p);
    while (p->status == RF_OK) {
        const char *at;
        skip_spaces(p);
        at = p->at;
        if (*at == '\0' || strchr("*/%", *at) == NULL) {
            break;
        }
        p->at++;
        value = calculate(p, at, *at, value, parse_unary(p));
    }
    return value;
}

static struct rf_value parse_sum(struct parser *p)
{
    struct rf_value value = parse_product(p);
    while (p->status == RF_OK) {
        const char *at;
        skip_spaces(p);
        at = p->at;
        if (*at != '+' && *at != '-') {
            break;
        }
        p->at++;
        value = calculate(p, at, *at, value, parse_product(p));
    }
    return value;
}

/* Values of different kinds are unequal; lists and objects are not compared. */
static bool equal(struct rf_value a, struct rf_value b)
{
    if (a.kind != b.kind) {
        return false;
    }
    switch (a.kind) {
    case RF_VALUE_NULL:
        return true;
    case RF_VALUE_BOOL:
    case RF_VALUE_INTEGER:
        return a.number == b.number;
    case RF_VALUE_TEXT:
        return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
    case RF_VALUE_JSON:
        break;
    }
    return json_equal(a.json, b.json);
}

/* Whether the number is one of "3,4,5". */
static bool is_listed(struct rf_value text, int64_t number)
{
    char numeral[24];
    size_t length =
        (size_t)snprintf(numeral, sizeof(numeral), "%lld", (long long)number);
    const char *end = text.text + text.length, *comma;
    for (const char *at = text.text; at < end; at = comma + 1) {
        at += strspn(at, " ");
        comma = memchr(at, ',', (size_t)(end - at));
        comma = comma != NULL ? comma : end;
        if ((size_t)(comma - at) == length &&
            memcmp(at, numeral, length) == 0) {
            return true;
        }
    }
    return false;
}

static struct rf_value is_in(struct parser *p, const char *at,
                             struct rf_value value, struct rf_value list)
{
    char text[64], other[64];
    if (p->status != RF_OK || p->skip > 0) {
        return none;
    }
    if (list.kind == RF_VALUE_NULL) {
        return boolean(false);
    }
    if (list.kind == RF_VALUE_TEXT && value.kind == RF_VALUE_INTEGER) {
        return boolean(is_listed(list, value.number));
    }
    if (list.kind != RF_VALUE_JSON || !json_is_array(list.json)) {
        return fail(p, at, "\"in\" needs a list, not %s", describe(list, text));
    }
    for (size_t i = 0; i < json_array_size(list.json); i++) {
        struct rf_value item = rf_value_of_json(json_array_get(list.json, i));
        if (item.kind != value.kind) {
            return fail(p, at, "item %zu of the list is %s, cannot equal %s", i,
                        describe(item, text), describe(value, other));
        }
        if (equal(item, value)) {
            return boolean(true);
        }
    }
    return boolean(false);
}

/* Longer ones first, so that "<" does not match the start of "<=". */
static const char *const comparisons[] = {"==", "!=", "<=", ">=", "<", ">"};

static struct rf_value compare(struct parser *p, const char *at,
                               const char *operation, struct rf_value a,
                               struct rf_value b)
{
    if (p->status != RF_OK || p->skip > 0) {
        return none;
    }
    if (operation[1] == '=' && (operation[0] == '=' || operation[0] == '!')) {
        return boolean(equal(a, b) == (operation[0] == '='));
    }
    if (!integers(p, at, a, b)) {
        return none;
    }
    if (operation[1] == '=' && a.number == b.number) {
        return boolean(true);
    }
    return boolean(operation[0] == '<' ? a.number < b.number
                                       : a.number > b.number);
}

static struct rf_value parse_comparison(struct parser *p)
{
    struct rf_value value = parse_sum(p);
    const char *at;
    skip_spaces(p);
    at = p->at;
    if (take(p, "in")) {
        return is_in(p, at, value, parse_sum(p));
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(comparisons); i++) {
        if (take(p, comparisons[i])) {
            return compare(p, at, comparisons[i], value, parse_sum(p));
        }
    }
    return value;
}

static struct rf_value parse_and(struct parser *p)
{
    const char *at = p->at;
    struct rf_value value = parse_comparison(p);
    while (p->status == RF_OK && take(p, "&&")) {
        bool first = is_true(p, at, value);
        unsigned skip = p->skip;
        p->skip += !first;
        at = p->at;
        value = parse_comparison(p);
        value = boolean(is_true(p, at, value) && first);
        p->skip = skip;
    }
    return value;
}

static struct rf_value parse_or(struct parser *p)
{
    const char *at = p->at;
    struct rf_value value = parse_and(p);
    while (p->status == RF_OK && take(p, "||")) {
        bool first = is_true(p, at, value);
        unsigned skip = p->skip;
        p->skip += first;
        at = p->at;
        value = parse_and(p);
        value = boolean(is_true(p, at, value) || first);
        p->skip = skip;
    }
    return value;
}

static struct rf_value parse_choice(struct parser *p)
{
    const char *at = p->at;
    struct rf_value value, yes, no;
    unsigned skip = p->skip;
    bool first;
    if (p->depth >= RF_EXPR_MAX_DEPTH) {
        return fail(p, at, "nested deeper than %d levels", RF_EXPR_MAX_DEPTH);
    }
    p->depth++;
    value = parse_or(p);
    if (p->status == RF_OK && take(p, "?")) {
        first = is_true(p, at, value);
        p->skip = skip + !first;
        yes = parse_choice(p);
        if (!take(p, ":")) {
            fail(p, p->at, "\":\" is missing");
        }
        p->skip = skip + first;
        no = parse_choice(p);
        p->skip = skip;
        value = first ? yes : no;
    }
    p->depth--;
    return p->status == RF_OK ? value : none;
}

static enum rf_status parse_all(struct parser *p, struct rf_value *out)
{
    struct rf_value value;
    if (strlen(p->text) > RF_EXPR_MAX_BYTES) {
        return rf_err_set(p->err, RF_ERR_CONFIG,
                          "\"%.40s…\": expression longer than %d characters",
                          p->text, RF_EXPR_MAX_BYTES);
    }
    value = parse_choice(p);
    skip_spaces(p);
    if (p->status == RF_OK && *p->at != '\0') {
        fail(p, p->at, "expected an operator or the end");
    }
    if (p->status == RF_OK) {
        *out = value;
    }
    return p->status;
}

enum rf_status rf_expr_evaluate(const char *text,
                                const struct rf_expr_scope *scope,
                                struct rf_value *out, struct rf_err *err)
{
    struct parser p = {.text = text, .at = text, .scope = scope, .err = err};
    return parse_all(&p, out);
}

enum rf_status rf_expr_check(const char *text,
                             const struct rf_expr_scope *scope,
                             struct rf_err *err)
{
    struct parser p = {
        .text = text, .at = text, .scope = scope, .skip = 1, .err = err};
    struct rf_value ignored;
    return parse_all(&p, &ignored);
}
