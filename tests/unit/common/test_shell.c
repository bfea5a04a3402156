/* Words of a shell's command line. */
#include <check.h>
#include <stdlib.h>

#include "common/shell.h"

static const char *const words[][2] = {
    {"plain/word-1.0:x,y+z@h%", "plain/word-1.0:x,y+z@h%"},
    {"", "''"},
    {"two words", "'two words'"},
    {"it's", "'it'\\''s'"},
    {"$(rm)`;\"*", "'$(rm)`;\"*'"},
    {"a\nb", "'a\nb'"},
};

START_TEST(test_shell_words_are_quoted_where_they_must_be)
{
    char *text = rf_shell_word(words[_i][0]);
    ck_assert_str_eq(text, words[_i][1]);
    free(text);
}
END_TEST

Suite *test_shell_suite(void);
Suite *test_shell_suite(void)
{
    TCase *tests = tcase_create("shell");
    Suite *suite = suite_create("shell");
    tcase_add_loop_test(tests, test_shell_words_are_quoted_where_they_must_be,
                        0, (int)(sizeof(words) / sizeof(words[0])));
    suite_add_tcase(suite, tests);
    return suite;
}
