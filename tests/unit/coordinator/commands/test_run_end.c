/* Signals while a run has not begun. */
#include <check.h>
#include <signal.h>

#include "coordinator/commands/run_app.h"

/* The folder may be open, and the run not made yet, when a signal is seen. */
START_TEST(test_a_signal_before_the_run_is_kept_for_it)
{
    const struct rf_cli cli = {.out = "results"};
    struct rf_run_app app = {.cli = &cli, .opening = _i == 0};
    uv_signal_t handle = {.data = &app};
    rf_run_end_signal(&handle, SIGTERM);
    ck_assert_int_eq(app.interrupts, 1);
    ck_assert_int_eq(app.interrupt_code, 128 + SIGTERM);
}
END_TEST

Suite *test_run_end_suite(void);
Suite *test_run_end_suite(void)
{
    Suite *suite = suite_create("run_end");
    TCase *tests = tcase_create("run_end");
    tcase_add_loop_test(tests, test_a_signal_before_the_run_is_kept_for_it, 0,
                        2);
    suite_add_tcase(suite, tests);
    return suite;
}
