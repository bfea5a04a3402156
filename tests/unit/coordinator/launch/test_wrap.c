/* Commands that start the worker. */
#include <check.h>
#include <stdlib.h>

#include "coordinator/launch/wrap.h"

static const struct rf_launch_config how = {
    .wrap = {"kubectl", "exec", "-i", "pod-{host}.{host}", "a b", "--"},
    .n_wrap = 6};
static const struct rf_launch_config none = {.n_wrap = 0};

START_TEST(test_wrap_words_name_the_node)
{
    static const char *const expected[] = {"kubectl", "exec", "-i", "pod-n1.n1",
                                           "a b",     "--",   "/w", "--stdio"};
    char **words = rf_wrap_words(&how, "n1", "/w", "--stdio");
    for (size_t i = 0; i < 8; i++) {
        ck_assert_str_eq(words[i], expected[i]);
    }
    ck_assert_ptr_null(words[8]);
    rf_wrap_free(words);
}
END_TEST

START_TEST(test_wrap_prefix_is_quoted_for_a_shell)
{
    char *prefix = rf_wrap_prefix(&how, "it's");
    ck_assert_str_eq(prefix, "kubectl exec -i 'pod-it'\\''s.it'\\''s' 'a b' "
                             "-- ");
    free(prefix);
    prefix = rf_wrap_prefix(&none, "n1");
    ck_assert_str_eq(prefix, "");
    free(prefix);
}
END_TEST

Suite *test_wrap_suite(void);
Suite *test_wrap_suite(void)
{
    TCase *tests = tcase_create("wrap");
    Suite *suite = suite_create("wrap");
    tcase_add_test(tests, test_wrap_words_name_the_node);
    tcase_add_test(tests, test_wrap_prefix_is_quoted_for_a_shell);
    suite_add_tcase(suite, tests);
    return suite;
}
