/* What a run ends with. */

#include "common/compiler.h"
#include "coordinator/run/tally.h"
#include "coordinator/scenario/exit_code.h"
#include "tests/unit/unit.h"

static const struct {
    struct rf_run_tally tally;
    int code;
} cases[] = {
    {{.begun = 3}, RF_EXIT_OK},
    {{.begun = 2, .failed = true}, RF_EXIT_FAILED},
    {{.begun = 2, .refused = 1, .failed = true}, RF_EXIT_FAILED},
    {{.begun = 2, .refused = 2, .failed = true}, RF_EXIT_LAUNCH},
    {{.begun = 2, .failed = true, .mismatch = true}, RF_EXIT_MISMATCH},
    {{.mismatch = true, .timed_out = true}, RF_EXIT_MISMATCH},
    {{.begun = 2, .unstored = true}, RF_EXIT_FAILED},
    {{.timed_out = true}, RF_EXIT_FAILED},
    {{.timed_out = true, .launch_failed = true}, RF_EXIT_LAUNCH},
    {{.mismatch = true, .interrupt_code = 130}, 130},
};

LOOP_TEST(test_tally_exit_code_is_what_weighs_most, RF_ARRAY_SIZE(cases))
{
    ck_assert_int_eq(rf_run_tally_exit_code(&cases[_i].tally), cases[_i].code);
}

TEST(test_tally_counts_outcomes)
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
