/*
 * A state machine checked against a table: every move must be listed, and a
 * state may have a deadline. The idea is from dqlite's lib/sm.
 */
#ifndef RF_COMMON_SM_H
#define RF_COMMON_SM_H

#include <stdbool.h>
#include <stdint.h>

#define RF_SM_NEXT(state) (UINT64_C(1) << (state))

struct rf_sm_state {
    const char *name;
    uint64_t next;       /* RF_SM_NEXT() of each allowed next state */
    int64_t deadline_ns; /* longest stay, 0 = none */
};

struct rf_sm {
    const char *name;
    const struct rf_sm_state *states;
    unsigned n_states;
    unsigned state;
    int64_t entered_ns;
};

void rf_sm_init(struct rf_sm *sm, const char *name,
                const struct rf_sm_state *states, unsigned n_states,
                unsigned initial, int64_t now_ns);

/* Moves to `next`; a move that the table does not list is a bug and aborts the
 * program with both names. Traces each move. */
void rf_sm_move(struct rf_sm *sm, unsigned next, int64_t now_ns);

bool rf_sm_may_move(const struct rf_sm *sm, unsigned next);
const char *rf_sm_state_name(const struct rf_sm *sm);

/* When the current state must be left, INT64_MAX if it has no deadline. */
int64_t rf_sm_deadline_ns(const struct rf_sm *sm);

#endif
