/* The limit of open descriptors. */
#include <check.h>
#include <sys/resource.h>

#include "common/compiler.h"
#include "common/descriptors.h"

START_TEST(test_descriptors_reach_the_hard_limit)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_max = RF_MIN(limit.rlim_max, (rlim_t)200);
    limit.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rf_descriptors_raise();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
    rf_descriptors_raise();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
}
END_TEST

Suite *test_descriptors_suite(void);
Suite *test_descriptors_suite(void)
{
    Suite *suite = suite_create("descriptors");
    TCase *tests = tcase_create("descriptors");
    tcase_add_test(tests, test_descriptors_reach_the_hard_limit);
    suite_add_tcase(suite, tests);
    return suite;
}
