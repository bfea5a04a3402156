/* The table of states. */

#include "coordinator/run/states.h"

#include "tests/unit/unit.h"

TEST(test_states_that_ask_belong_to_an_attempt_and_have_a_deadline)
{
    for (unsigned i = 0; i < RUN_STATES; i++) {
        ck_assert_ptr_nonnull(rf_states[i].name);
        if (rf_state_step(i) != NULL) {
            ck_assert(rf_state_in_attempt(i));
            ck_assert_int_gt(rf_states[i].deadline_ns, 0);
            ck_assert(rf_states[i].next & RF_SM_NEXT(RUN_ABORTING));
            ck_assert(rf_states[i].next & RF_SM_NEXT(RUN_SETTLING));
        }
    }
}

TEST(test_states_come_to_an_end_from_everywhere)
{
    uint64_t reach = RF_SM_NEXT(RUN_DONE), before = 0;
    while (reach != before) {
        before = reach;
        for (unsigned i = 0; i < RUN_STATES; i++) {
            reach |= rf_states[i].next & reach ? RF_SM_NEXT(i) : 0;
        }
    }
    ck_assert_uint_eq(reach, RF_SM_NEXT(RUN_STATES) - 1);
}

TEST(test_states_know_the_steps_of_an_iteration)
{
    ck_assert(rf_state_step_in_iteration("fill"));
    ck_assert(rf_state_step_in_iteration("run"));
    ck_assert(rf_state_step_in_iteration("verify"));
    ck_assert(!rf_state_step_in_iteration("probe"));
    ck_assert(!rf_state_step_in_iteration("allocating"));
    ck_assert(rf_state_in_iteration(RUN_RUNNING));
    ck_assert(rf_state_in_attempt(RUN_RUNNING));
    ck_assert(!rf_state_in_iteration(RUN_ABORTING));
    ck_assert(!rf_state_in_attempt(RUN_STORING));
}
