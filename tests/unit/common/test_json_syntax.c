/* What is wrong with a JSON text: place, what may stand there, what does, and
 * the probable cause. */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "tests/unit/unit.h"

#define OR_KEY "expected a key in double quotes or \"}\", found "
#define OF_NUMBERS                                                             \
    " (numbers have no +, leading zero, bare point or unit; anything else is " \
    "a string in double quotes)"

static const struct {
    const char *text, *message; /* behind the name */
} cases[] = {
    {"", "1:1: expected \"{\" or \"[\", found the end of the input (it is "
         "empty)"},
    {" \n", "2:1: expected \"{\" or \"[\", found the end of the input (it is "
            "empty)"},
    {"null", "1:1: expected \"{\" or \"[\", found \"null\""},
    {"\"text\"", "1:1: expected \"{\" or \"[\", found a string"},
    {"}", "1:1: expected \"{\" or \"[\", found \"}\""},

    /* commas */
    {"{\n \"a\": 1,\n}", "3:1: expected a key in double quotes, found \"}\" "
                         "(remove the comma before it, in line 2)"},
    {"{\"a\": [1,\n2,\n]}", "3:1: expected a value, found \"]\" (remove the "
                            "comma before it, in line 2)"},
    {"[1,, 2]", "1:4: expected a value, found \",\" (one comma too many?)"},
    {"[, 1]", "1:2: expected a value or \"]\", found \",\""},
    {"{\"a\": 1\n \"b\": 2}", "2:2: expected \",\" or \"}\", found a string "
                              "(is a comma missing before it, in line 1?)"},
    {"[1 2]", "1:4: expected \",\" or \"]\", found \"2\" (is a comma missing "
              "before it, in line 1?)"},

    /* comments */
    {"// x\n[]", "1:1: expected \"{\" or \"[\", found \"/\" (JSON has no "
                 "comments; remove it)"},
    {"{\n  # x\n}", "2:3: " OR_KEY "\"#\" (JSON has no comments; remove it)"},
    {"[1, /* x */ 2]", "1:5: expected a value, found \"/\" (JSON has no "
                       "comments; remove it)"},

    /* quotes and words */
    {"{'a': 1}",
     "1:2: " OR_KEY "\"'\" (strings and keys stand in plain double quotes)"},
    {"[\xE2\x80\x9Cx\xE2\x80\x9D]",
     "1:2: expected a value or \"]\", found byte 0xe2 (strings and keys stand "
     "in plain double quotes)"},
    {"{slots: 1}", "1:2: " OR_KEY "\"slots\""},
    {"{\"a\": host}", "1:7: expected a value, found \"host\" (a string needs "
                      "double quotes)"},
    {"{\"a\": True}", "1:7: expected a value, found \"True\" (write true)"},
    {"{\"a\": None}", "1:7: expected a value, found \"None\" (write null)"},
    {"[NaN]", "1:2: expected a value or \"]\", found \"NaN\" (JSON has none)"},
    {"{\"a\" 1}", "1:6: expected \":\" behind the key, found \"1\""},
    {"{\"a\" = 1}", "1:6: expected \":\" behind the key, found \"=\" (write "
                    "\":\" for \"=\")"},
    {"[abcdefghijklmnopqrstuvwxyz]",
     "1:2: expected a value or \"]\", found \"abcdefghijklmnopqrstuvwx...\" (a "
     "string needs double quotes)"},

    /* numbers */
    {"[007]", "1:2: expected a value or \"]\", found \"007\"" OF_NUMBERS},
    {"[+1]", "1:2: expected a value or \"]\", found \"+1\"" OF_NUMBERS},
    {"[0x10]", "1:2: expected a value or \"]\", found \"0x10\"" OF_NUMBERS},
    {"[80GB]", "1:2: expected a value or \"]\", found \"80GB\"" OF_NUMBERS},
    {"[.5]", "1:2: expected a value or \"]\", found \".5\"" OF_NUMBERS},
    {"[-1.5e+3, 1.]", "1:11: expected a value, found \"1.\"" OF_NUMBERS},
    {"[1, 99999999999999999999]",
     "1:25: the number that ends here is too large"},
    {"[1e999]", "1:7: the number that ends here is too large"},

    /* strings */
    {"[\"a\\d\"]", "1:4: a backslash begins an escape such as \\n or \\\"; "
                   "write \\\\ for a backslash itself"},
    {"{\"a\": \"b\n}", "1:7: the string that begins here has no closing quote "
                       "in its line"},
    {"[\"a\tb\"]", "1:4: a string may not hold a control character; write \\t "
                   "for a tab"},
    {"[\"\xC3\xA9\xC3\xA9\", x]",
     "1:8: expected a value, found \"x\" (a string "
     "needs double quotes)"},
    {"[\"\xff\"]", "1:3: not UTF-8; save the file as UTF-8"},

    /* brackets */
    {"{", "1:2: " OR_KEY "the end of the input (the \"{\" in line 1 is not "
          "closed)"},
    {"{\n\"a\": [1, 2\n}", "3:1: expected \",\" or \"]\", found \"}\" (the "
                           "\"[\" in line 2 is not closed)"},
    {"{\"a\": 1}}", "1:9: expected the end of the input, found \"}\" (one "
                    "\"}\" too many?)"},
    {"[1] 2", "1:5: expected the end of the input, found \"2\""},
    {"[\x01]", "1:2: expected a value or \"]\", found byte 0x01"},

    {"{\n\"a\": 1,\n  \"a\": 2\n}",
     "3:3: the key \"a\" appears twice; remove or rename one"},
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
    ck_assert_str_eq(err.text,
                     "x:1:3: expected the end of the input, found \"2\"");
    ck_assert_int_eq(rf_json_parse_value("}", "x", &none, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "x:1:1: expected a value, found \"}\"");
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

/* Every beginning of a document that has everything is explained. */
TEST(test_json_syntax_explains_every_beginning)
{
    static const char whole[] =
        "{\"a\": [1, -2.5e3, \"\\u00e9\\n\", true], \"b\": {\"c\": null}}";
    for (size_t size = 0; size < sizeof(whole) - 1; size++) {
        struct rf_err err = {0};
        json_t *none = NULL;
        char *text = rf_xmalloc(size); /* no byte behind it is anyone's */
        memcpy(text, whole, size);
        ck_assert_int_eq(rf_json_parse(text, size, "f.json", &none, &err),
                         RF_ERR_CONFIG);
        ck_assert_msg(strstr(err.text, "expected") != NULL ||
                          strstr(err.text, "closing quote") != NULL ||
                          strstr(err.text, "backslash") != NULL,
                      "%s", err.text);
        free(text);
    }
}
