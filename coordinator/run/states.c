/* The table of states. See states.h. */
#include "coordinator/run/states.h"

#include <stddef.h>
#include <string.h>

#include "common/clock.h"

/* The scope of a state; each is part of the one before. */
enum scope { OF_RUN, OF_ATTEMPT, OF_ITERATION };

#define TO(state) RF_SM_NEXT(RUN_##state)
#define FAULT (TO(SETTLING) | TO(ABORTING))
#define AFTER (TO(STORING) | TO(STARTING) | TO(STOPPING))

/* X(state, name, deadline in ms, step, scope, phase, next states) */
#define STATES(X)                                                              \
    X(IDLE, "idle", 0, NULL, OF_RUN, LAUNCH, TO(LAUNCHING))                    \
    X(LAUNCHING, "launching", 60000, NULL, OF_RUN, LAUNCH,                     \
      TO(INSPECTING) | TO(STARTING) | TO(STOPPING))                            \
    X(INSPECTING, "inspecting", 60000, NULL, OF_RUN, LAUNCH,                   \
      TO(INSPECTING) | TO(PLANNING) | TO(STARTING) | TO(STOPPING))             \
    X(PLANNING, "planning", 600000, NULL, OF_RUN, PLAN,                        \
      TO(STARTING) | TO(STOPPING))                                             \
    X(STORING, "storing", 0, NULL, OF_RUN, STORE, TO(STARTING) | TO(STOPPING)) \
    X(STARTING, "starting", 600000, NULL, OF_RUN, PLAN, TO(PREPARING) | AFTER) \
    X(PREPARING, "preparing", 120000, "prepare", OF_ATTEMPT, PREPARE,          \
      TO(PROBING) | FAULT)                                                     \
    X(PROBING, "probing", 60000, "probe", OF_ATTEMPT, PROBE,                   \
      TO(FILLING) | FAULT)                                                     \
    X(YARDSTICK, "yardstick", 60000, "yardstick", OF_ITERATION, YARDSTICK,     \
      TO(YARDSTICK) | TO(FILLING) | TO(PROBING_AGAIN) | TO(CLOSING) | FAULT)   \
    X(FILLING, "filling", 60000, "fill", OF_ITERATION, FILL,                   \
      TO(RUNNING) | FAULT)                                                     \
    X(RUNNING, "running", 60000, "run", OF_ITERATION, REFIT,                   \
      TO(VERIFYING) | TO(FILLING) | TO(CLOSING) | FAULT)                       \
    X(VERIFYING, "verifying", 60000, "verify", OF_ITERATION, VERIFY,           \
      TO(YARDSTICK) | TO(FILLING) | TO(PROBING_AGAIN) | TO(CLOSING) |          \
          TO(EXPORTING) | FAULT)                                               \
    X(EXPORTING, "exporting", 60000, "export", OF_ITERATION, EXPORT,           \
      TO(YARDSTICK) | TO(FILLING) | TO(PROBING_AGAIN) | TO(CLOSING) | FAULT)   \
    X(PROBING_AGAIN, "probing again", 60000, "probe", OF_ATTEMPT, PROBE,       \
      TO(CLOSING) | FAULT)                                                     \
    X(CLOSING, "closing", 60000, "close", OF_ATTEMPT, CLOSE, AFTER | FAULT)    \
    X(SETTLING, "settling", 500, NULL, OF_ATTEMPT, CLOSE, TO(ABORTING))        \
    X(ABORTING, "aborting", 30000, NULL, OF_ATTEMPT, CLOSE, AFTER)             \
    X(STOPPING, "stopping", 20000, NULL, OF_RUN, CLOSE, TO(DONE))              \
    X(DONE, "done", 0, NULL, OF_RUN, CLOSE, 0)

const struct rf_sm_state rf_states[RUN_STATES] = {
#define X(state, name, ms, step, scope, phase, next)                           \
    [RUN_##state] = {name, next, (ms)*RF_NS_PER_MS},
    STATES(X)
#undef X
};

static const struct {
    const char *step;
    enum scope scope;
    enum rf_run_phase phase;
} traits[RUN_STATES] = {
#define X(state, name, ms, step, scope, phase, next)                           \
    [RUN_##state] = {step, scope, RF_PHASE_##phase},
    STATES(X)
#undef X
};

const char *rf_state_step(unsigned state)
{
    return traits[state].step;
}

enum rf_run_phase rf_state_phase(unsigned state)
{
    return traits[state].phase;
}

bool rf_state_in_attempt(unsigned state)
{
    return traits[state].scope != OF_RUN;
}

bool rf_state_in_iteration(unsigned state)
{
    return traits[state].scope == OF_ITERATION;
}

bool rf_state_step_in_iteration(const char *step)
{
    for (unsigned i = 0; i < RUN_STATES; i++) {
        if (rf_state_in_iteration(i) && strcmp(traits[i].step, step) == 0) {
            return true;
        }
    }
    return false;
}
