/* Words of a shell's command line. */
#include "common/shell.h"
#include "tests/unit/unit.h"

static const char *const words[][2] = {
    {"plain/word-1.0:x,y+z@h%", "plain/word-1.0:x,y+z@h%"},
    {"", "''"},
    {"two words", "'two words'"},
    {"it's", "'it'\\''s'"},
    {"$(rm)`;\"*", "'$(rm)`;\"*'"},
    {"a\nb", "'a\nb'"},
};

LOOP_TEST(test_shell_words_are_quoted_where_they_must_be, RF_ARRAY_SIZE(words))
{
    AUTO_FREE char *text = rf_shell_word(words[_i][0]);
    ck_assert_str_eq(text, words[_i][1]);
}
