/* The limit of open descriptors. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

START_TEST(test_descriptors_need_is_what_can_be_opened)
{
    struct rlimit limit = {40, 40};
    struct rf_err err = {0};
    char text[64];
    uint32_t n = 0;
    int last, advised;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (rf_descriptors_need(n + 1, &err) == RF_OK) {
        n++;
    }
    snprintf(text, sizeof(text), "%u more are needed, %u are allowed", n + 1,
             n);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
    ck_assert_int_eq(
        sscanf(strstr(err.text, "`ulimit"), "`ulimit -n %d`", &advised), 1);
    ck_assert_int_eq(advised, 41);
    ck_assert_uint_gt(n, 0);
    for (uint32_t i = 0; i < n; i++) {
        last = dup(STDERR_FILENO);
        ck_assert_int_ge(last, 0);
    }
    ck_assert_int_lt(dup(STDERR_FILENO), 0);
    ck_assert_int_eq(rf_descriptors_need(1, NULL), RF_ERR_LAUNCH);
    close(last);
    ck_assert_int_eq(rf_descriptors_need(1, NULL), RF_OK);
}
END_TEST

Suite *test_descriptors_suite(void);
Suite *test_descriptors_suite(void)
{
    Suite *suite = suite_create("descriptors");
    TCase *tests = tcase_create("descriptors");
    tcase_add_test(tests, test_descriptors_reach_the_hard_limit);
    tcase_add_test(tests, test_descriptors_need_is_what_can_be_opened);
    suite_add_tcase(suite, tests);
    return suite;
}
