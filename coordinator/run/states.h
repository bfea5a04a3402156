/*
 * The states of a run and what is fixed about each of them.
 *
 * - IDLE → LAUNCHING → STARTING → PREPARING → PROBING → FILLING
 * - LAUNCHING → INSPECTING → PLANNING → STARTING: a checkpoint of the nodes
 * - FILLING → RUNNING → VERIFYING → FILLING … → (PROBING_AGAIN →) CLOSING
 * - VERIFYING → YARDSTICK → YARDSTICK → FILLING: beside each iteration, before
 *   it and after it in turn; if there are none, PROBING_AGAIN
 * - VERIFYING → EXPORTING → …: the last iteration, with --export
 * - CLOSING → (STORING →) STARTING … → STOPPING → DONE
 * - PREPARING … CLOSING → (SETTLING →) ABORTING
 * - ABORTING → (STORING →) STARTING | STOPPING
 * - LAUNCHING, INSPECTING, PLANNING, STORING, STARTING → STOPPING
 *
 * STORING waits until the last scenario is stored: none begins that could not
 * be kept. It has no deadline, since a file server may be away for long.
 * SETTLING waits a moment after a rank has said "peer lost": its node names the
 * rank that died, and that message may still be under way.
 */
#ifndef RF_COORDINATOR_RUN_STATES_H
#define RF_COORDINATOR_RUN_STATES_H

#include "common/sm.h"
#include "coordinator/scenario/attempt.h"

enum rf_state {
    RUN_IDLE,
    RUN_LAUNCHING,
    RUN_INSPECTING,
    RUN_PLANNING,
    RUN_STORING,
    RUN_STARTING,
    RUN_PREPARING,
    RUN_PROBING,
    RUN_FILLING,
    RUN_RUNNING,
    RUN_VERIFYING,
    RUN_YARDSTICK,
    RUN_EXPORTING,
    RUN_PROBING_AGAIN,
    RUN_CLOSING,
    RUN_SETTLING,
    RUN_ABORTING,
    RUN_STOPPING,
    RUN_DONE,
    RUN_STATES,
};

/* Names, moves and the deadlines that hold where sizes do not matter. */
extern const struct rf_sm_state rf_states[RUN_STATES];

/* What a state asks of the ranks, as STEP names it; NULL: nothing. */
const char *rf_state_step(unsigned state);

/* What of a scenario its time belongs to. */
enum rf_run_phase rf_state_phase(unsigned state);

/* Whether ranks are at work in it, or being ended. */
bool rf_state_in_attempt(unsigned state);
/* Whether it comes once in each warm-up and iteration. */
bool rf_state_in_iteration(unsigned state);
/* The same for a step's name, such as a node gives; false for an unknown one.
 */
bool rf_state_step_in_iteration(const char *step);

#endif
