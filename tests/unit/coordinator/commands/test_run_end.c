/* Signals while a run has not begun. */
#include <signal.h>

#include "coordinator/commands/run_app.h"
#include "tests/unit/unit.h"

/* The folder may be open, and the run not made yet, when a signal is seen. */
LOOP_TEST(test_a_signal_before_the_run_is_kept_for_it, 2)
{
    const struct rf_cli cli = {.out = "results"};
    struct rf_run_app app = {.cli = &cli,
                             .waiting = _i == 0 ? RF_RUN_APP_OPENING
                                                : RF_RUN_APP_NOT_WAITING};
    uv_signal_t handle = {.data = &app};
    rf_run_end_signal(&handle, SIGTERM);
    ck_assert_int_eq(app.interrupts, 1);
    ck_assert_int_eq(app.interrupt_code, 128 + SIGTERM);
}
