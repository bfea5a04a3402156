/* Cleaning of text from outside. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/text.h"

static const struct {
    const char *dirty, *clean;
} samples[] = {
    {"", ""},
    {"plain\ttext\n", "plain\ttext\n"},
    {"stra\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x99\x82",
     "stra\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x99\x82"},
    {"\x1b[2Jgone\r", "?[2Jgone?"},
    {"\xc2\x9b"
     "2J",
     "??2J"},                     /* CSI as one character */
    {"caf\xe9", "caf?"},          /* Latin-1 */
    {"\xc0\xaf", "??"},           /* overlong */
    {"\xed\xa0\x80", "???"},      /* surrogate */
    {"\xf4\x90\x80\x80", "????"}, /* beyond Unicode */
    {"cut \xe2\x82", "cut ??"},   /* ends within a character */
    {"\x80\xff\xfe", "???"},      /* no first bytes */
};

START_TEST(test_text_clean_keeps_what_can_be_shown)
{
    char *text = strdup(samples[_i].dirty);
    rf_text_clean(text);
    ck_assert_str_eq(text, samples[_i].clean);
    free(text);
}
END_TEST

/* Jansson takes exactly what is valid: it is the oracle here. */
START_TEST(test_text_clean_of_random_bytes_is_utf8)
{
    srand(7);
    for (int i = 0; i < 20000; i++) {
        char text[9] = {0}, before[9];
        json_t *was_good, *is_good;
        for (size_t j = 0; j < sizeof(text) - 1; j++) {
            text[j] = (char)(0x80 | rand());
        }
        memcpy(before, text, sizeof(text));
        rf_text_clean(text);
        was_good = json_string(before);
        is_good = json_string(text);
        ck_assert_ptr_nonnull(is_good);
        ck_assert(was_good == NULL || strchr(text, '?') == NULL ||
                  strstr(before, "\xc2") != NULL);
        json_decref(was_good);
        json_decref(is_good);
    }
}
END_TEST

START_TEST(test_an_error_text_is_clean_also_where_it_was_cut)
{
    struct rf_err err;
    char word[2 * sizeof(err.text)];
    json_t *json;
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < sizeof(word) - 1; j++) {
            word[j] = "\xe2\x82\xac"[(i + j) % 3];
        }
        word[sizeof(word) - 1] = '\0';
        rf_err_set(&err, RF_ERR_IO, "%s", word);
        json = json_string(err.text);
        ck_assert_ptr_nonnull(json);
        json_decref(json);
        ck_assert_int_eq(err.text[sizeof(err.text) - 2], '+');
    }
}
END_TEST

Suite *test_text_suite(void);
Suite *test_text_suite(void)
{
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("text");
    tcase_add_loop_test(tests, test_text_clean_keeps_what_can_be_shown, 0,
                        sizeof(samples) / sizeof(samples[0]));
    tcase_add_test(tests, test_text_clean_of_random_bytes_is_utf8);
    tcase_add_test(tests, test_an_error_text_is_clean_also_where_it_was_cut);
    suite_add_tcase(suite, tests);
    return suite;
}
