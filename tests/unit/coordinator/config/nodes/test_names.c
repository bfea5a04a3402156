/* Names that may become part of commands, and those that may not. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/config/nodes/names.h"
#include "tests/unit/unit.h"

TEST(test_names_accepts_good_ones)
{
    ck_assert(rf_names_valid_host("gpu-a"));
    ck_assert(rf_names_valid_host("node_1.cluster.example.org"));
    ck_assert(rf_names_valid_host("10.0.0.2"));
    ck_assert(rf_names_valid_host("::1"));
    ck_assert(rf_names_valid_host("fe80::1%eth0"));
    ck_assert(rf_names_valid_user("rl"));
    ck_assert(rf_names_valid_user("_svc.rl-2"));
    ck_assert(rf_names_valid_worker("refit-worker"));
    ck_assert(rf_names_valid_worker("/opt/refit+x/1.0/refit-worker"));
    ck_assert(rf_names_valid_worker("~/bin/refit-worker"));
    ck_assert(rf_names_valid_worker("build..d/refit-worker"));
}

LOOP_TEST(test_names_refuses_bad_hosts, 17)
{
    static const char *const bad[] = {"",          "-oProxyCommand=x",
                                      "a;b",       "$(x)",
                                      "a b",       "a\nb",
                                      "a/b",       "user@host",
                                      ".hidden",   "1:2",
                                      "::1%a;b",   "[::1]",
                                      "h\xc3",     "a:22",
                                      "a`b`",      "a'b",
                                      "::1%eth0%x"};
    char host[301];
    ck_assert_uint_eq(RF_ARRAY_SIZE(bad), 17);
    ck_assert(!rf_names_valid_host(bad[_i]));
    memset(host, 'a', 300);
    host[300] = '\0';
    ck_assert(!rf_names_valid_host(host));
}

TEST(test_names_refuses_bad_users_and_workers)
{
    static const char *const users[] = {"",     "-l",  ".x",  "a b",
                                        "x -p", "a$b", "a@b", "a/b"};
    static const char *const workers[] = {
        "",     "-x",   "a b",     "../w", "/a/../w", "/a/..", "w;x",
        "$(w)", "a\nb", "~user/w", "w~",   "/opt/",   "~/",    "~/-x"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(users); i++) {
        ck_assert_msg(!rf_names_valid_user(users[i]), "%s", users[i]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(workers); i++) {
        ck_assert_msg(!rf_names_valid_worker(workers[i]), "%s", workers[i]);
    }
}

TEST(test_names_of_files_are_short_and_plain)
{
    static const char *const bad[] = {"",    "-x",  ".x",
                                      "a/b", "a b", "abcdefghi"};
    ck_assert(rf_names_valid_file("a_b-c.d9", 8));
    ck_assert(rf_names_valid_file("s-tp=2+4", 8));
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad); i++) {
        ck_assert_msg(!rf_names_valid_file(bad[i], 8), "%s", bad[i]);
    }
}
