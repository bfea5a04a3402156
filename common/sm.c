/* Table-checked state machine. See sm.h. */
#include "common/sm.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"

void rf_sm_init(struct rf_sm *sm, const char *name,
                const struct rf_sm_state *states, unsigned n_states,
                unsigned initial, int64_t now_ns)
{
    *sm = (struct rf_sm){.name = name,
                         .states = states,
                         .n_states = n_states,
                         .state = initial,
                         .entered_ns = now_ns};
}

bool rf_sm_may_move(const struct rf_sm *sm, unsigned next)
{
    return next < sm->n_states &&
           (sm->states[sm->state].next & RF_SM_NEXT(next)) != 0;
}

void rf_sm_move(struct rf_sm *sm, unsigned next, int64_t now_ns)
{
    if (!rf_sm_may_move(sm, next)) {
        fprintf(stderr, "bug: %s may not move from %s to %s\n", sm->name,
                sm->states[sm->state].name,
                next < sm->n_states ? sm->states[next].name : "?");
        abort();
    }
    rf_trace("%s: %s -> %s", sm->name, sm->states[sm->state].name,
             sm->states[next].name);
    sm->state = next;
    sm->entered_ns = now_ns;
}

const char *rf_sm_state_name(const struct rf_sm *sm)
{
    return sm->states[sm->state].name;
}

int64_t rf_sm_deadline_ns(const struct rf_sm *sm)
{
    int64_t stay = sm->states[sm->state].deadline_ns;
    return stay == 0 ? INT64_MAX : sm->entered_ns + stay;
}
