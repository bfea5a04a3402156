/* Leases in a time that the test sets. */

#include "common/clock.h"
#include "coordinator/cluster/lease.h"
#include "tests/unit/unit.h"

#define S RF_NS_PER_S
#define MS RF_NS_PER_MS
#define START (1000 * S)

TEST(test_lease_comes_in_a_burst_then_every_two_seconds)
{
    struct rf_lease lease = {.quick = 0};
    struct rf_msg message;
    int64_t last = START, second = START + S;
    unsigned soon = 0, late = 0;
    rf_lease_begin(&lease, START);
    for (int64_t now = START; now < START + 11 * S; now += 10 * MS) {
        if (rf_lease_due(&lease, now, &message)) {
            ck_assert_int_eq(message.type, RF_MSG_LEASE);
            ck_assert_int_eq(message.lease.t, now);
            ck_assert(now < second || now - last == 2 * S);
            soon += now < second;
            late += now >= second;
            last = now;
        }
    }
    ck_assert_uint_eq(soon, RF_LEASE_BURST + 1);
    ck_assert_uint_eq(late, 5);
}

TEST(test_lease_echoes_and_compares_clocks)
{
    struct rf_lease lease = {.quick = 0};
    struct rf_msg message;
    struct rf_clock_sample best;
    rf_lease_begin(&lease, START);
    ck_assert(rf_lease_due(&lease, START, &message));
    ck_assert_int_eq(message.lease.echo, RF_ABSENT_I64); /* none heard yet */
    ck_assert_int_eq(message.lease.echo_at, RF_ABSENT_I64);
    /* Its clock is 7 s ahead, each way takes 1 ms, it answers after 2 ms. */
    rf_lease_take(&lease,
                  &(struct rf_msg_lease){.t = START + 7 * S + 3 * MS,
                                         .echo = START,
                                         .echo_at = START + 7 * S + 1 * MS},
                  START + 4 * MS);
    best = rf_clock_best(&lease.exchanges);
    ck_assert_int_eq(best.round_trip_ns, 2 * MS);
    ck_assert_int_eq(best.offset_ns, 7 * S);
    ck_assert(rf_lease_due(&lease, START + 20 * MS, &message));
    ck_assert_int_eq(message.lease.echo, START + 7 * S + 3 * MS);
    ck_assert_int_eq(message.lease.echo_at, START + 4 * MS);
}

LOOP_TEST(test_lease_without_an_echo_says_nothing_of_clocks, 3)
{
    struct rf_lease lease = {.quick = 0};
    struct rf_msg_lease bare[] = {
        {.t = 5, .echo = RF_ABSENT_I64, .echo_at = RF_ABSENT_I64},
        {.t = 5, .echo = 0, .echo_at = 0},
        {.t = 5, .echo = 9, .echo_at = RF_ABSENT_I64}};
    rf_lease_take(&lease, &bare[_i], START);
    ck_assert_uint_eq(lease.exchanges.n, 0);
    ck_assert_int_eq(lease.heard_t, 5);
}

TEST(test_lease_runs_out_after_fifteen_seconds_of_silence)
{
    struct rf_pauses pauses;
    rf_pauses_begin(&pauses, START);
    for (int64_t now = START; now <= START + 15 * S; now += 100 * MS) {
        ck_assert_int_eq(rf_pauses_note(&pauses, now), 0);
        ck_assert_int_eq(rf_lease_silence_ns(START, now, &pauses), 0);
    }
    ck_assert_int_eq(
        rf_lease_silence_ns(START, START + 15 * S + 100 * MS, &pauses),
        15 * S + 100 * MS);
}

TEST(test_lease_survives_a_sleep_of_the_coordinator)
{
    struct rf_pauses pauses;
    int64_t awake = START + 3600 * S;
    rf_pauses_begin(&pauses, START);
    ck_assert_int_eq(rf_pauses_note(&pauses, START + 100 * MS), 0);
    ck_assert_int_eq(rf_pauses_note(&pauses, awake), awake - START - 100 * MS);
    for (int64_t now = awake; now < awake + 4 * S; now += 100 * MS) {
        rf_pauses_note(&pauses, now);
        ck_assert_int_eq(rf_lease_silence_ns(START, now, &pauses), 0);
    }
    /* Nothing was waiting to be read: it is gone. */
    ck_assert_int_gt(rf_lease_silence_ns(START, awake + 4 * S, &pauses), 0);
    ck_assert_int_eq(rf_lease_silence_ns(awake + S, awake + 4 * S, &pauses), 0);
}
