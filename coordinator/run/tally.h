/* How a run went, for its exit code. */
#ifndef RF_COORDINATOR_RUN_TALLY_H
#define RF_COORDINATOR_RUN_TALLY_H

#include "coordinator/scenario/attempt.h"

struct rf_run_tally {
    size_t begun, refused; /* scenarios; refused: before anything was sent */
    bool failed, mismatch; /* of some scenario */
    bool launch_failed;
    bool impossible; /* planning with the nodes' headers failed */
    bool timed_out;  /* the whole run */
    bool unstored;   /* a result could not be kept */
    int interrupt_code;
};

void rf_run_tally_add(struct rf_run_tally *tally, enum rf_outcome outcome);

/* The gravest outcome sets the exit code. */
int rf_run_tally_exit_code(const struct rf_run_tally *tally);

#endif
