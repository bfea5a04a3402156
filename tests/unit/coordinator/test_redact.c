/* What lines of logs may not show. */
#include <check.h>
#include <string.h>

#include "coordinator/redact.h"

START_TEST(test_redact_hides_the_magic_and_control_bytes)
{
    char out[128];
    const char *line = "NCCL bad magic 0x12ab != expected 0xFF00 ok\033[2J";
    rf_redact_line(line, strlen(line), out, sizeof(out));
    ck_assert_str_eq(out, "NCCL bad magic 0x[redacted] != expected "
                          "0x[redacted] ok?[2J");
    rf_redact_line("abcdef", 6, out, 4);
    ck_assert_str_eq(out, "abc");
}
END_TEST

Suite *test_redact_suite(void);
Suite *test_redact_suite(void)
{
    Suite *suite = suite_create("redact");
    TCase *tests = tcase_create("redact");
    tcase_add_test(tests, test_redact_hides_the_magic_and_control_bytes);
    suite_add_tcase(suite, tests);
    return suite;
}
