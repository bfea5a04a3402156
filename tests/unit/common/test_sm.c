/* The checked state machine: moves, deadlines, and death by a wrong move. */
#include <signal.h>

#include "common/clock.h"
#include "common/sm.h"
#include "tests/unit/unit.h"

enum { IDLE, BUSY, DONE, N_STATES };

static const struct rf_sm_state states[N_STATES] = {
    [IDLE] = {.name = "idle", .next = RF_SM_NEXT(BUSY) | RF_SM_NEXT(DONE)},
    [BUSY] = {.name = "busy",
              .next = RF_SM_NEXT(DONE) | RF_SM_NEXT(BUSY),
              .deadline_ns = 5 * RF_NS_PER_S},
    [DONE] = {.name = "done"},
};

TEST(test_sm_follows_the_table)
{
    struct rf_sm sm;
    rf_sm_init(&sm, "job", states, N_STATES, IDLE, 100);
    ck_assert_str_eq(rf_sm_state_name(&sm), "idle");
    ck_assert(rf_sm_may_move(&sm, BUSY));
    ck_assert(!rf_sm_may_move(&sm, IDLE));
    ck_assert(!rf_sm_may_move(&sm, N_STATES));
    rf_sm_move(&sm, BUSY, 200);
    rf_sm_move(&sm, DONE, 300);
    ck_assert_uint_eq(sm.state, DONE);
    ck_assert(!rf_sm_may_move(&sm, BUSY));
}

TEST(test_sm_deadline_counts_from_entry)
{
    struct rf_sm sm;
    rf_sm_init(&sm, "job", states, N_STATES, IDLE, 100);
    ck_assert_int_eq(rf_sm_deadline_ns(&sm), INT64_MAX);
    rf_sm_move(&sm, BUSY, 1000);
    ck_assert_int_eq(rf_sm_deadline_ns(&sm), 1000 + 5 * RF_NS_PER_S);
    rf_sm_move(&sm, BUSY, 2000); /* a listed move to itself starts anew */
    ck_assert_int_eq(rf_sm_deadline_ns(&sm), 2000 + 5 * RF_NS_PER_S);
}

SIGNAL_TEST(test_sm_aborts_on_a_move_that_is_not_listed, SIGABRT)
{
    struct rf_sm sm;
    rf_sm_init(&sm, "job", states, N_STATES, DONE, 0);
    rf_sm_move(&sm, IDLE, 1);
}

SIGNAL_TEST(test_sm_aborts_on_a_state_that_does_not_exist, SIGABRT)
{
    struct rf_sm sm;
    rf_sm_init(&sm, "job", states, N_STATES, IDLE, 0);
    rf_sm_move(&sm, N_STATES, 1);
}
