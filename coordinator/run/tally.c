#include "coordinator/run/tally.h"

#include "coordinator/scenario/exit_code.h"

void rf_run_tally_add(struct rf_run_tally *tally, enum rf_outcome outcome)
{
    tally->failed |= outcome == RF_OUTCOME_FAILED;
    tally->mismatch |= outcome == RF_OUTCOME_MISMATCH;
}

int rf_run_tally_exit_code(const struct rf_run_tally *tally)
{
    if (tally->interrupt_code != 0) {
        return tally->interrupt_code;
    }
    if (tally->launch_failed) {
        return RF_EXIT_LAUNCH;
    }
    if (tally->impossible) {
        return RF_EXIT_USAGE;
    }
    if (tally->mismatch) {
        return RF_EXIT_MISMATCH;
    }
    if (tally->timed_out || tally->unstored) {
        return RF_EXIT_FAILED;
    }
    if (tally->failed) {
        return tally->refused == tally->begun ? RF_EXIT_LAUNCH : RF_EXIT_FAILED;
    }
    return RF_EXIT_OK;
}
