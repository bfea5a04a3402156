/* The order of scenarios and their repeats. */

#include "coordinator/run/agenda.h"

#include "tests/unit/unit.h"

AUTO_POINTER(rf_run_agenda, rf_run_agenda_destroy)

/* The turn that is left after `after` others, as repeat * 10 + scenario; -1:
 * none. */
static int left(const struct rf_run_agenda *agenda, size_t after)
{
    struct rf_run_turn turn;
    return rf_run_agenda_left(agenda, after, &turn)
               ? (int)turn.repeat * 10 + (int)turn.scenario
               : -1;
}

TEST(test_agenda_repeats_come_after_all_scenarios)
{
    AUTO(rf_run_agenda) *agenda = rf_run_agenda_create(2, 2, NULL);
    static const int order[] = {0, 1, 10, 11, -1};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(left(agenda, i), order[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(left(agenda, 0), order[i]);
        rf_run_agenda_take(agenda);
        ck_assert_uint_eq(rf_run_agenda_count(agenda), 4);
    }
    ck_assert_int_eq(left(agenda, 0), -1);
}

TEST(test_agenda_leaves_out_what_is_skipped)
{
    const bool skip[] = {true, false, false, true};
    AUTO(rf_run_agenda) *agenda = rf_run_agenda_create(2, 2, skip);
    ck_assert_uint_eq(rf_run_agenda_count(agenda), 2);
    ck_assert_int_eq(left(agenda, 0), 1);
    ck_assert_int_eq(left(agenda, 1), 10);
    ck_assert_int_eq(left(agenda, 2), -1);
}

TEST(test_agenda_drops_what_is_left_of_a_scenario)
{
    AUTO(rf_run_agenda) *agenda = rf_run_agenda_create(2, 3, NULL);
    rf_run_agenda_take(agenda);
    ck_assert(rf_run_agenda_drop(agenda, 0));
    ck_assert(!rf_run_agenda_drop(agenda, 0));
    ck_assert_uint_eq(rf_run_agenda_count(agenda), 4);
    ck_assert_int_eq(left(agenda, 0), 1);
    ck_assert_int_eq(left(agenda, 1), 11);
    ck_assert_int_eq(left(agenda, 2), 21);
}

TEST(test_agenda_of_no_scenario_is_empty)
{
    AUTO(rf_run_agenda) *agenda = rf_run_agenda_create(0, 3, NULL);
    ck_assert_int_eq(left(agenda, 0), -1);
    ck_assert_uint_eq(rf_run_agenda_count(agenda), 0);
}
