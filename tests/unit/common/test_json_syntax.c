/* What is wrong with a JSON text: Jansson's error and the probable cause. */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "tests/unit/unit.h"

#define PLAIN " (strings and keys need plain double quotes)"
#define BARE " (only true, false and null go without quotes)"
#define OF_NUMBERS " (no leading + or 0 in numbers)"

static const struct {
    const char *text, *message; /* behind the name */
} cases[] = {
    {"", "1:0: '[' or '{' expected near end of file (the file is empty)"},
    {" \n", "2:0: '[' or '{' expected near end of file (the file is empty)"},
    {"null", "1:4: '[' or '{' expected near 'null'"},
    {"}", "1:1: '[' or '{' expected near '}'"},

    /* commas */
    {"{\n \"a\": 1,\n}", "3:1: string or '}' expected near '}' (remove the "
                         "comma before it)"},
    {"{\"a\": [1,\n2,\n]}", "3:1: unexpected token near ']' (remove the comma "
                            "before it)"},
    {"[1,, 2]", "1:4: unexpected token near ',' (extra comma?)"},
    {"[, 1]", "1:2: unexpected token near ',' (extra comma?)"},
    {"{\"a\": 1\n \"b\": 2}",
     "2:4: '}' expected near '\"b\"' (missing comma?)"},
    {"[1 2]", "1:4: ']' expected near '2' (missing comma?)"},
    {"[true\n{}]", "2:1: ']' expected near '{' (missing comma?)"},

    /* comments */
    {"// x\n[]", "1:1: '[' or '{' expected near '/' (JSON has no comments; "
                 "remove it)"},
    {"{\n  # x\n}", "2:3: string or '}' expected near '#' (JSON has no "
                    "comments; remove it)"},
    {"[1, /* x */ 2]", "1:5: invalid token near '/' (JSON has no comments; "
                       "remove it)"},

    /* quotes and words */
    {"{'a': 1}", "1:2: string or '}' expected near '''" PLAIN},
    {"[\xE2\x80\x9Cx\xE2\x80\x9D]",
     "1:2: invalid token near '\xE2\x80\x9C'" PLAIN},
    {"{slots: 1}", "1:6: string or '}' expected near 'slots' (a key needs "
                   "double quotes)"},
    {"{\"a\": host}", "1:10: invalid token near 'host'" BARE},
    {"{\"a\": True}", "1:10: invalid token near 'True'" BARE},
    {"[NaN]", "1:4: invalid token near 'NaN'" BARE},
    {"[abcdefghijklmnopqrstuvwxyz]", "1:27: invalid token" BARE},
    {"{\"a\" 1}", "1:6: ':' expected near '1' (expected \":\" after the key)"},
    {"{\"a\" = 1}",
     "1:6: ':' expected near '=' (expected \":\" after the key)"},

    /* numbers */
    {"[007]", "1:2: invalid token near '0'" OF_NUMBERS},
    {"[+1]", "1:2: invalid token near '+'" OF_NUMBERS},
    {"[0x10]", "1:3: ']' expected near 'x'"},
    {"[80GB]", "1:5: ']' expected near 'GB'"},
    {"[-1.5e+3, 1.]", "1:12: invalid token near '1.'" OF_NUMBERS},
    {"[1, 99999999999999999999]",
     "1:24: too big integer near '99999999999999999999'"},
    {"[1e999]", "1:6: real number overflow near '1e999'"},

    /* strings */
    {"[\"a\\d\"]",
     "1:5: invalid escape near '\"a\\d' (write a backslash as \\\\)"},
    {"{\"a\": \"b\n}",
     "1:8: unexpected newline near '\"b' (unterminated string)"},
    {"{\"a\": \"b",
     "1:8: premature end of input near '\"b' (unterminated string)"},
    {"[\"a\tb\"]",
     "1:3: control character 0x9 near '\"a' (write a tab as \\t)"},
    {"[\"\xff\"]", "1:2: unable to decode byte 0xff near '\"' (not UTF-8; save "
                   "the file as UTF-8)"},

    /* brackets */
    {"{", "1:1: string or '}' expected near end of file (the \"{\" in line 1 "
          "is not closed)"},
    {"{\n\"a\": [1, 2\n}",
     "3:1: ']' expected near '}' (the \"[\" in line 2 is not closed)"},
    {"{\n\"a\": [1, 2]", "2:11: '}' expected near end of file (the \"{\" in "
                         "line 1 is not closed)"},
    {"[1, 2", "1:5: ']' expected near end of file (the \"[\" in line 1 is not "
              "closed)"},
    {"[\"a\": 1]", "1:5: ']' expected near ':'"},
    {"{\"a\": }", "1:7: unexpected token near '}'"},
    {"{\"a\": 1}}", "1:9: end of file expected near '}' (extra bracket?)"},
    {"[1] 2", "1:5: end of file expected near '2'"},

    {"{\n\"a\": 1,\n  \"a\": 2\n}", "3:5: duplicate object key near '\"a\"'"},
};

static void expect(const char *text, const char *message)
{
    struct rf_err err = {0};
    json_t *none = NULL;
    char wanted[400];
    snprintf(wanted, sizeof(wanted), "f.json:%s", message);
    ck_assert_int_eq(rf_json_parse(text, strlen(text), "f.json", &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, wanted);
}

LOOP_TEST(test_json_syntax_errors_say_place_and_cause, RF_ARRAY_SIZE(cases))
{
    expect(cases[_i].text, cases[_i].message);
}

/* Of documents that are a value. */
TEST(test_json_syntax_of_a_value)
{
    struct rf_err err = {0};
    json_t *none = NULL;
    ck_assert_int_eq(rf_json_parse_value("1 2", "x", &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "x:1:3: end of file expected near '2'");
    ck_assert_int_eq(rf_json_parse_value("}", "x", &none, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "x:1:1: unexpected token near '}'");
}

/* Brackets that close nothing do not make room for more open ones. */
TEST(test_json_syntax_survives_any_nesting)
{
    char text[200];
    struct rf_err err = {0};
    json_t *none = NULL;
    memset(text, ']', 99);
    memset(text + 99, '[', 100);
    ck_assert_int_eq(rf_json_parse(text, 199, "f.json", &none, &err),
                     RF_ERR_CONFIG);
    memset(text, '[', 99);
    memset(text + 50, ']', 99);
    ck_assert_int_eq(rf_json_parse_value("]]]]", "x", &none, &err),
                     RF_ERR_CONFIG);
}

/* Whatever is cut off, no byte behind the text is looked at. */
TEST(test_json_syntax_refuses_every_beginning)
{
    static const char whole[] =
        "{\"a\": [1, -2.5e3, \"\\u00e9\\n\", true], \"b\": {\"c\": null}}";
    for (size_t size = 0; size < sizeof(whole) - 1; size++) {
        struct rf_err err = {0};
        json_t *none = NULL;
        char *text = rf_xmalloc(size);
        memcpy(text, whole, size);
        ck_assert_int_eq(rf_json_parse(text, size, "f.json", &none, &err),
                         RF_ERR_CONFIG);
        free(text);
    }
}
