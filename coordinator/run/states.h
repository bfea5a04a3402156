/*
 * The states of a run and their fixed properties.
 *
 * - IDLE → LAUNCHING → STARTING → PREPARING → PROBING → FILLING
 * - LAUNCHING → INSPECTING … → PLANNING → STARTING: checkpoints on the nodes;
 *   no PLANNING where the model's is on the head
 * - FILLING → RUNNING → (VERIFYING →) FILLING … → (PROBING_AGAIN →) CLOSING
 * - VERIFYING → YARDSTICK → YARDSTICK → FILLING: yardsticks come after and
 *   before an iteration in turn; without any, PROBING_AGAIN
 * - with a load each iteration goes twice from FILLING to VERIFYING
 * - VERIFYING → EXPORTING → …: the last iteration, with --export
 * - CLOSING → (STORING →) STARTING … → STOPPING → DONE
 * - PREPARING … CLOSING → (SETTLING →) ABORTING
 * - ABORTING → (STORING →) STARTING | STOPPING
 * - LAUNCHING, INSPECTING, PLANNING, STORING, STARTING → STOPPING
 *
 * STORING waits until the last scenario is stored, so that none begins that
 * could not be kept. It has no deadline: a file server may be away for long.
 * SETTLING waits briefly after a rank reports "peer lost": the node of the rank
 * that died names it, and that message may still be under way.
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

/* Names, moves, and deadlines that do not depend on sizes. */
extern const struct rf_sm_state rf_states[RUN_STATES];

/* The STEP that a state asks of the ranks; NULL: none. */
const char *rf_state_step(unsigned state);

/* The scenario phase that its time counts towards. */
enum rf_run_phase rf_state_phase(unsigned state);

/* Whether ranks are at work or being ended. */
bool rf_state_in_attempt(unsigned state);
/* Whether it occurs once in each warm-up and iteration. */
bool rf_state_in_iteration(unsigned state);
/* The same for a step name, as nodes send it; false for an unknown one. */
bool rf_state_step_in_iteration(const char *step);

#endif
