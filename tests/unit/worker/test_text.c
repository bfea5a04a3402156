/* Text of unknown origin. */
#include <check.h>
#include <string.h>

#include "worker/text.h"

START_TEST(test_control_characters_and_other_bytes_become_question_marks)
{
    json_t *text = rf_text_json("a\033[31mb\xff\0c\n\td", 13);
    ck_assert_str_eq(json_string_value(text), "a?[31mb??c\n\td");
    json_decref(text);
    text = rf_text_json("", 0);
    ck_assert_str_eq(json_string_value(text), "");
    json_decref(text);
}
END_TEST

START_TEST(test_last_lines_are_kept_in_order_without_empty_ones)
{
    static const char text[] = "one\n\ntwo\nthree\nfour";
    json_t *lines = rf_text_last_lines(text, strlen(text), 3);
    ck_assert_uint_eq(json_array_size(lines), 3);
    ck_assert_str_eq(json_string_value(json_array_get(lines, 0)), "two");
    ck_assert_str_eq(json_string_value(json_array_get(lines, 2)), "four");
    json_decref(lines);
    lines = rf_text_last_lines("\n\n", 2, 3);
    ck_assert_uint_eq(json_array_size(lines), 0);
    json_decref(lines);
}
END_TEST

START_TEST(test_parts_of_unique_ids_are_overwritten)
{
    char text[] = "magic 0x12ab != expected 0xFF00; magic: 77, a magic word; "
                  "expected 5 magic";
    rf_text_redact(text, strlen(text));
    ck_assert_str_eq(text, "magic 0x???? != expected 0x????; magic: ??, a "
                           "magic word; expected 5 magic");
}
END_TEST

Suite *test_text_suite(void);
Suite *test_text_suite(void)
{
    Suite *suite = suite_create("worker/text");
    TCase *tests = tcase_create("text");
    tcase_add_test(
        tests, test_control_characters_and_other_bytes_become_question_marks);
    tcase_add_test(tests, test_last_lines_are_kept_in_order_without_empty_ones);
    tcase_add_test(tests, test_parts_of_unique_ids_are_overwritten);
    suite_add_tcase(suite, tests);
    return suite;
}
