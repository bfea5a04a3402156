/* The sentences under a table. */
#include <check.h>
#include <stdlib.h>

#include "coordinator/results/remarks.h"

static json_t *record(const char *name, const char *method,
                      const char *registration)
{
    return json_pack("{s:s, s:{s:s}, s:{s:s}}", "name", name, "scenario",
                     "method", method, "setup", "registration", registration);
}

static void add(struct rf_remarks *remarks, json_t *of)
{
    rf_remarks_add(remarks, of);
    json_decref(of);
}

START_TEST(test_a_path_that_is_tcp_is_said)
{
    struct rf_remarks remarks = {{NULL}};
    add(&remarks, record("fast", "ucx",
                         "UCX 1.13.1; 4 puts by rc_mlx5/mlx5_0:1; 2 mapped by "
                         "posix/memory"));
    add(&remarks, record("other", "nccl", "none; 1 messages by tcp/eth0"));
    ck_assert_ptr_null(remarks.lines[RF_REMARK_OVER_TCP]);
    add(&remarks,
        record("a\nb", "ucx",
               "UCX 1.13.1; 4 puts by rc_mlx5/mlx5_0:1; 6 messages by "
               "tcp/eth0; 2 messages by ud/mlx5_0:1,tcp/lo"));
    add(&remarks, record("c", "ucx", "UCX 1.13.1; 1 messages by tcp/lo"));
    ck_assert_str_eq(remarks.lines[RF_REMARK_OVER_TCP],
                     "UCX took TCP: a b (6 messages by tcp/eth0, 2 messages by "
                     "ud/mlx5_0:1,tcp/lo); c (1 messages by tcp/lo)");
    ck_assert_ptr_null(remarks.lines[RF_REMARK_UNSTABLE]);
    rf_remarks_free(&remarks);
    ck_assert_ptr_null(remarks.lines[RF_REMARK_OVER_TCP]);
}
END_TEST

START_TEST(test_a_record_without_setup_says_nothing)
{
    struct rf_remarks remarks = {{NULL}};
    add(&remarks,
        json_pack("{s:s, s:{s:s}}", "name", "x", "scenario", "method", "ucx"));
    add(&remarks, record("x", "ucx", "; ; 1 messages; tcp/"));
    ck_assert_ptr_null(remarks.lines[RF_REMARK_OVER_TCP]);
    rf_remarks_free(&remarks);
}
END_TEST

Suite *test_remarks_suite(void);
Suite *test_remarks_suite(void)
{
    Suite *suite = suite_create("remarks");
    TCase *tests = tcase_create("remarks");
    tcase_add_test(tests, test_a_path_that_is_tcp_is_said);
    tcase_add_test(tests, test_a_record_without_setup_says_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
