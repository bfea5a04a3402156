/* Expressions: results, what is not evaluated, and what is refused where. */
#include <string.h>

#include "common/mem.h"
#include "planner/families/expr.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

/* Names of the object in `context`; "unneeded" fails when it is needed. */
static enum rf_status find(void *context, const char *name, bool needed,
                           struct rf_value *out, struct rf_err *err)
{
    const json_t *value = json_object_get(context, name);
    if (needed && value == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG, "\"%s\" is missing", name);
    }
    *out = rf_value_of_json(value);
    return RF_OK;
}

static json_t *names(void)
{
    return quoted_json(
        "{'a': 7, 'b': 3, 'yes': true, 'no': false, 'nothing': null, "
        "'layer': 2, 'kinds': ['full', 'linear', 'full'], 'only': [1, 2], "
        "'sub': {'size': 5, 'deep': {'er': 6}}, 'word': 'full', 'pi': 3.5, "
        "'big': 9223372036854775807, 'mixed': [1, 'x'], 'empty': [], "
        "'numbered': {'02': {'size': 4}, '11': 9}}");
}

static const struct {
    const char *text;
    int64_t number;
    enum rf_value_kind kind;
} right[] = {
    {"0", 0, RF_VALUE_INTEGER},
    {"a", 7, RF_VALUE_INTEGER},
    {"a + b * 2", 13, RF_VALUE_INTEGER},
    {"(a + b) * 2", 20, RF_VALUE_INTEGER},
    {"a - b - 1", 3, RF_VALUE_INTEGER},
    {"12 / b / 2", 2, RF_VALUE_INTEGER},
    {"a % b", 1, RF_VALUE_INTEGER},
    {"-a + 1", -6, RF_VALUE_INTEGER},
    {"- - a", 7, RF_VALUE_INTEGER},
    {"big", INT64_MAX, RF_VALUE_INTEGER},
    {"a > b", 1, RF_VALUE_BOOL},
    {"a >= 7 && a <= 7", 1, RF_VALUE_BOOL},
    {"a < 7 || a == 8", 0, RF_VALUE_BOOL},
    {"!yes", 0, RF_VALUE_BOOL},
    {"!no && !(a == b)", 1, RF_VALUE_BOOL},
    {"a != b", 1, RF_VALUE_BOOL},
    {"yes ? a : b", 7, RF_VALUE_INTEGER},
    {"no ? 1 : no ? 2 : 3", 3, RF_VALUE_INTEGER},
    {"nothing == null", 1, RF_VALUE_BOOL},
    {"a == null", 0, RF_VALUE_BOOL},
    {"nothing", 0, RF_VALUE_NULL},
    {"kinds[layer] == 'full'", 1, RF_VALUE_BOOL},
    {"kinds[layer - 1] == \"linear\"", 1, RF_VALUE_BOOL},
    {"word == kinds[0]", 1, RF_VALUE_BOOL},
    {"word[layer] == 'l'", 1, RF_VALUE_BOOL},
    {"(yes ? word : kinds)[0] == 'f'", 1, RF_VALUE_BOOL},
    {"kinds.length + word.length", 7, RF_VALUE_INTEGER},
    {"sub.deep.length == null && nothing.length == null", 1, RF_VALUE_BOOL},
    {"layer in only", 1, RF_VALUE_BOOL},
    {"a in only", 0, RF_VALUE_BOOL},
    {"a in nothing", 0, RF_VALUE_BOOL},
    {"'linear' in kinds", 1, RF_VALUE_BOOL},
    {"12 in '3, 12'", 1, RF_VALUE_BOOL},
    {"1 in '3,12'", 0, RF_VALUE_BOOL},
    {"0 in ''", 0, RF_VALUE_BOOL},
    {"pi * 2", 7, RF_VALUE_INTEGER},
    {"3 * pi", 10, RF_VALUE_INTEGER},
    {"sub.size + sub.deep.er", 11, RF_VALUE_INTEGER},
    {"sub.none == null && nothing.none == null", 1, RF_VALUE_BOOL},
    {"numbered[layer].size + numbered[11]", 13, RF_VALUE_INTEGER},
    {"numbered[3] == null && numbered[3].size == null", 1, RF_VALUE_BOOL},
    {"inner", -1, RF_VALUE_NULL}, /* see below: a name that starts with "in" */
};

LOOP_TEST(test_expr_gives_the_value, RF_ARRAY_SIZE(right))
{
    json_auto_t *context = names();
    const struct rf_expr_scope scope = {find, context};
    struct rf_err err = {0};
    struct rf_value value = {0};
    json_object_set_new(context, "inner", json_null());
    ck_assert_msg(rf_expr_evaluate(right[_i].text, &scope, &value, &err) ==
                      RF_OK,
                  "%s", err.text);
    ck_assert_int_eq(value.kind, right[_i].kind);
    if (value.kind != RF_VALUE_NULL) {
        ck_assert_int_eq(value.number, right[_i].number);
    }
}

TEST(test_expr_evaluates_only_what_it_needs)
{
    static const char *const texts[] = {
        "yes ? a : absent",
        "no ? absent + 1 : a",
        "no && absent > 1",
        "yes || absent",
        "no ? 1 / 0 : 7",
        "no ? kinds[9] : sub.size",
        "no ? (yes ? absent : absent[1].x in absent) : -a",
    };
    json_auto_t *context = names();
    const struct rf_expr_scope scope = {find, context};
    for (size_t i = 0; i < RF_ARRAY_SIZE(texts); i++) {
        struct rf_err err = {0};
        struct rf_value value = {0};
        ck_assert_msg(rf_expr_evaluate(texts[i], &scope, &value, &err) == RF_OK,
                      "%s: %s", texts[i], err.text);
    }
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"", "column 1: expected a value"},
    {"a +", "column 4: expected a value"},
    {"a b", "\"a b\", column 3: expected an operator or the end"},
    {"(a", "column 3: \")\" is missing"},
    {"kinds[1", "\"]\" is missing"},
    {"yes ? 1", "\":\" is missing"},
    {"'abc", "column 1: unterminated text"},
    {"a / b", "column 3: 7 / 3 leaves a remainder of 1"},
    {"a / 0", "the divisor must be positive"},
    {"a % -1", "the divisor must be positive"},
    {"big + 1", "9223372036854775807 + 1 exceeds 64 bits"},
    {"big * 2", "exceeds 64 bits"},
    {"-big - 2", "exceeds 64 bits"},
    {"99999999999999999999", "number exceeds 64 bits"},
    {"absent", "\"absent\" is missing"},
    {"yes ? absent : 1", "\"absent\" is missing"},
    {"no ? a b : 1", "column 8: \":\" is missing"},
    {"a && yes", "must be true or false, not 7"},
    {"nothing ? 1 : 2", "must be true or false, not null"},
    {"word + 1", "expected an integer, not 'full'"},
    {"pi * pi", "expected an integer, not a fraction"},
    {"pi + 2", "expected an integer, not a fraction"},
    {"pi * big", "3.22818e+19 is too large"},
    {"kinds < 1", "expected an integer, not a list"},
    {"kinds[3]", "index must be 0 to 2, not 3"},
    {"kinds['x']", "index must be 0 to 2, not 'x'"},
    {"word[-1]", "index must be 0 to 3, not -1"},
    {"word[4]", "index must be 0 to 3, not 4"},
    {"''[0]", "column 3: index into an empty value"},
    {"empty[0]", "column 6: index into an empty value"},
    {"a[0]", "[ ] needs a list or a text, not 7"},
    {"a.length", ".length needs an object, not 7"},
    {"numbered['02']", "expected a number as index, not '02'"},
    {"a.size", ".size needs an object, not 7"},
    {"1 in a", "\"in\" needs a list, not 7"},
    {"2 in mixed", "item 1 of the list is 'x', cannot equal 2"},
    {"a $ b", "expected an operator or the end"},
    {"a == 7 == yes", "expected an operator or the end"},
};

LOOP_TEST(test_expr_refuses_with_column_and_reason, RF_ARRAY_SIZE(refused))
{
    json_auto_t *context = names();
    const struct rf_expr_scope scope = {find, context};
    struct rf_err err = {0};
    struct rf_value value = {.number = 42};
    assert_fails(rf_expr_evaluate(refused[_i].text, &scope, &value, &err),
                 RF_ERR_CONFIG, err, refused[_i].says);
    ck_assert_int_eq(value.number, 42);
}

TEST(test_expr_is_bounded)
{
    const struct rf_expr_scope scope = {find, NULL};
    static const char openers[] = "(-!";
    for (int i = 0; i < 3; i++) {
        char text[RF_EXPR_MAX_BYTES + 3] = "";
        struct rf_err err = {0};
        struct rf_value value = {0};
        memset(text, openers[i], RF_EXPR_MAX_BYTES);
        assert_fails(rf_expr_evaluate(text, &scope, &value, &err),
                     RF_ERR_CONFIG, err, "nested deeper than");
        strcat(text, "1");
        assert_fails(rf_expr_evaluate(text, &scope, &value, &err),
                     RF_ERR_CONFIG, err, "longer than 1024 characters");
    }
}
