/* The limit of open descriptors. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/fd_limit.h"
#include "tests/unit/unit.h"

TEST(test_fd_limit_reaches_the_hard_limit)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_max = RF_MIN(limit.rlim_max, (rlim_t)200);
    limit.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rf_fd_limit_raise();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
    rf_fd_limit_raise();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
}

TEST(test_fd_limit_need_is_what_can_be_opened)
{
    struct rlimit limit = {40, 40};
    struct rf_err err = {0};
    uint32_t n = 0;
    int last, advised;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (rf_fd_limit_need(n + 1, 0, &err) == RF_OK) {
        n++;
    }
    ck_assert_uint_eq(rf_fd_limit_free(100), n);
    ck_assert_uint_eq(rf_fd_limit_free(1), 1);
    assert_says(err.text, "too low: 40, 41 needed");
    ck_assert_int_eq(
        sscanf(strstr(err.text, "`ulimit"), "`ulimit -n %d`", &advised), 1);
    ck_assert_int_eq(advised, 41);
    ck_assert_uint_gt(n, 0);
    for (uint32_t i = 0; i < n; i++) {
        last = dup(STDERR_FILENO);
        ck_assert_int_ge(last, 0);
    }
    ck_assert_int_lt(dup(STDERR_FILENO), 0);
    ck_assert_int_eq(rf_fd_limit_need(1, 0, NULL), RF_ERR_LAUNCH);
    close(last);
    ck_assert_int_eq(rf_fd_limit_need(1, 0, NULL), RF_OK);
}

/* Of one that is open above the limit, a higher limit has to make room. */
LOOP_TEST(test_fd_limit_advised_is_enough_at_once, 2)
{
    const struct rlimit low = {10, 60};
    struct rlimit limit = low;
    struct rf_err err = {0};
    unsigned advised;
    for (int fd = 12; fd < 18; fd++) {
        ck_assert_int_eq(dup2(STDERR_FILENO, fd), fd);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ck_assert_int_eq(rf_fd_limit_need(20, _i == 0 ? 0 : 50, &err),
                     RF_ERR_LAUNCH);
    ck_assert_int_eq(
        sscanf(strstr(err.text, "`ulimit"), "`ulimit -n %u`", &advised), 1);
    if (_i == 1) {
        ck_assert_uint_eq(advised, 50);
    }
    limit.rlim_cur = advised - 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(rf_fd_limit_need(20, _i == 0 ? 0 : 50, NULL),
                     RF_ERR_LAUNCH);
    limit.rlim_cur = advised;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(rf_fd_limit_need(20, _i == 0 ? 0 : 50, NULL), RF_OK);
}
