/* Cleaning of text from outside. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/text.h"
#include "tests/unit/unit.h"

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
    {"\xe2\x80\xae"
     "cod.exe \xe2\x81\xa6 \xd8\x9c",
     "???cod.exe ??? ??"}, /* bidi */
    {"a\xe2\x80\xa8"
     "b",
     "a???b"}, /* a line separator */
    {"\xe2\x80\xa6 \xe2\x80\x9c", "\xe2\x80\xa6 \xe2\x80\x9c"}, /* … “ */
};

LOOP_TEST(test_text_clean_keeps_what_can_be_shown, RF_ARRAY_SIZE(samples))
{
    AUTO_FREE char *text = strdup(samples[_i].dirty);
    rf_text_clean(text, strlen(text));
    ck_assert_str_eq(text, samples[_i].clean);
}

/* Jansson takes exactly what is valid: it is the oracle here. */
TEST(test_text_clean_of_random_bytes_is_utf8)
{
    srand(7);
    for (int i = 0; i < 20000; i++) {
        char text[9] = {0}, before[9];
        json_auto_t *was_good, *is_good;
        for (size_t j = 0; j < sizeof(text) - 1; j++) {
            text[j] = (char)(0x80 | rand());
        }
        memcpy(before, text, sizeof(text));
        rf_text_clean(text, sizeof(text) - 1);
        was_good = json_string(before);
        is_good = json_string(text);
        ck_assert_ptr_nonnull(is_good);
        ck_assert(was_good == NULL || strchr(text, '?') == NULL ||
                  strstr(before, "\xc2") != NULL ||
                  strstr(before, "\xd8\x9c") != NULL);
    }
}

TEST(test_text_clean_line_is_one_line)
{
    char text[] = "a\tb\nc\rd";
    rf_text_clean_line(text, strlen(text));
    ck_assert_str_eq(text, "a b c?d");
}

/* Of every length around the room there is. */
LOOP_TEST(test_text_that_does_not_fit_ends_at_a_character, 6)
{
    static const char *const cut[] = {"+",
                                      "a+",
                                      "a+",
                                      "a+",
                                      "a\xe2\x82\xac+",
                                      "a\xe2\x82\xac"
                                      "bc"};
    char text[8];
    size_t size = (size_t)_i + 2;
    int wanted = snprintf(text, size,
                          "a\xe2\x82\xac"
                          "bc");
    rf_text_fit(text, size, wanted);
    ck_assert_str_eq(text, cut[_i]);
}

RF_PRINTF(3, 4)
static void format_line(char *out, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rf_text_line(out, size, fmt, args);
    va_end(args);
}

TEST(test_text_line_is_clean_and_fits)
{
    char text[8];
    format_line(text, sizeof(text), "%d\t%s", 1, "\033x");
    ck_assert_str_eq(text, "1 ?x");
    format_line(text, sizeof(text), "12\n456789");
    ck_assert_str_eq(text, "12 456+");
}

LOOP_TEST(test_text_head_is_of_whole_characters, 8)
{
    static const int bytes[] = {0, 1, 1, 1, 4, 5, 6, 6};
    ck_assert_int_eq(rf_text_head("a\xe2\x82\xac"
                                  "bc",
                                  _i),
                     bytes[_i]);
}

TEST(test_text_json_is_the_cleaned_text)
{
    json_t *text = rf_text_json("a\033[31mb\xff\0c\n\td", 13);
    ck_assert_str_eq(json_string_value(text), "a?[31mb??c\n\td");
    json_decref(text);
    text = rf_text_json("", 0);
    ck_assert_str_eq(json_string_value(text), "");
    json_decref(text);
}

TEST(test_text_last_lines_are_in_order_without_empty_ones)
{
    static const char text[] = "one\n\ntwo\nthree\nfour";
    json_t *lines = rf_text_last_lines(text, strlen(text), 3);
    ck_assert_uint_eq(json_array_size(lines), 3);
    ck_assert_str_eq(json_text_at(lines, "[0]"), "two");
    ck_assert_str_eq(json_text_at(lines, "[2]"), "four");
    json_decref(lines);
    lines = rf_text_last_lines("\n\n", 2, 3);
    ck_assert_uint_eq(json_array_size(lines), 0);
    json_decref(lines);
}

TEST(test_text_redact_hides_parts_of_unique_ids)
{
    char text[] = "Magic 0x12ab != expected 0xFF00; magic: 77, a magic word; "
                  "expected 5, unique id 0x9 magic";
    rf_text_redact(text, strlen(text));
    ck_assert_str_eq(text, "Magic 0x???? != expected 0x????; magic: ??, a "
                           "magic word; expected 5, unique id 0x? magic");
}

TEST(test_text_redact_takes_no_nul_for_a_separator)
{
    char text[] = "magic = 12 magic \0 34";
    rf_text_redact(text, sizeof(text) - 1);
    ck_assert_mem_eq(text, "magic = ?? magic \0 34", sizeof(text) - 1);
}

TEST(test_an_error_text_is_clean_also_where_it_was_cut)
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
        ck_assert_int_eq(err.text[strlen(err.text) - 1], '+');
        ck_assert(i > 0 || strchr(err.text, '?') == NULL);
    }
}

TEST(test_texts_grow_by_what_comes_between)
{
    char *text = NULL;
    rf_text_add(&text, ", ", "%d", 1);
    ck_assert_str_eq(text, "1");
    rf_text_add(&text, ", ", "%s", "");
    rf_text_add(&text, " and ", "%u more", 2);
    ck_assert_str_eq(text, "1,  and 2 more");
    free(text);
}
