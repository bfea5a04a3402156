/* Commands that start the worker. */
#include <stdlib.h>

#include "coordinator/launch/launch_internal.h"
#include "tests/unit/unit.h"

static const struct rf_launch_config how = {
    .wrap = {"kubectl", "exec", "-i", "pod-{host}.{host}", "a b", "--"},
    .n_wrap = 6};
static const struct rf_launch_config none = {.n_wrap = 0};

TEST(test_wrap_words_name_the_node)
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

TEST(test_wrap_prefix_is_quoted_for_a_shell)
{
    char *prefix = rf_wrap_prefix(&how, "it's");
    ck_assert_str_eq(prefix, "kubectl exec -i 'pod-it'\\''s.it'\\''s' 'a b' "
                             "-- ");
    free(prefix);
    prefix = rf_wrap_prefix(&none, "n1");
    ck_assert_str_eq(prefix, "");
    free(prefix);
}
