/* What a run ends with. */
#include <check.h>

#include "common/compiler.h"
#include "coordinator/run/tally.h"
#include "coordinator/scenario/exit_code.h"

static const struct {
    struct rf_run_tally tally;
    int code;
} cases[] = {
    {{.begun = 3}, RF_EXIT_OK},
    {{.begun = 2, .failed = true}, RF_EXIT_FAILED},
    {{.begun = 2, .refused = 1, .failed = true}, RF_EXIT_FAILED},
    {{.begun = 2, .refused = 2, .failed = true}, RF_EXIT_LAUNCH},
    {{.begun = 2, .failed = true, .mismatch = true}, RF_EXIT_MISMATCH},
    {{.begun = 2, .unstored = true}, RF_EXIT_FAILED},
    {{.timed_out = true}, RF_EXIT_FAILED},
    {{.timed_out = true, .launch_failed = true}, RF_EXIT_LAUNCH},
    {{.mismatch = true, .interrupt_code = 130}, 130},
};

START_TEST(test_tally_exit_code_is_what_weighs_most)
{
    ck_assert_int_eq(rf_run_tally_exit_code(&cases[_i].tally), cases[_i].code);
}
END_TEST

START_TEST(test_tally_counts_outcomes)
{
    struct rf_run_tally tally = {.begun = 1};
    rf_run_tally_add(&tally, RF_OUTCOME_OK);
    rf_run_tally_add(&tally, RF_OUTCOME_INTERRUPTED);
    ck_assert(!tally.failed && !tally.mismatch);
    rf_run_tally_add(&tally, RF_OUTCOME_FAILED);
    ck_assert(tally.failed && !tally.mismatch);
    rf_run_tally_add(&tally, RF_OUTCOME_MISMATCH);
    ck_assert(tally.mismatch);
}
END_TEST

Suite *test_tally_suite(void);
Suite *test_tally_suite(void)
{
    Suite *suite = suite_create("tally");
    TCase *tests = tcase_create("tally");
    tcase_add_loop_test(tests, test_tally_exit_code_is_what_weighs_most, 0,
                        (int)RF_ARRAY_SIZE(cases));
    tcase_add_test(tests, test_tally_counts_outcomes);
    suite_add_tcase(suite, tests);
    return suite;
}
