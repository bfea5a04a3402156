/* Clock offsets from exchanges with known delays. */

#include "transport/control/clock_offset.h"

#include "tests/unit/unit.h"

#define AHEAD INT64_C(123456789000)

/* An exchange that takes `there` and `back`, with the peer holding it. */
static void exchange(struct rf_clock_offset *clock, int64_t at, int64_t there,
                     int64_t held, int64_t back)
{
    rf_clock_add(clock, at, at + there + AHEAD, at + there + held + AHEAD,
                 at + there + held + back);
}

TEST(test_without_an_exchange_clocks_are_taken_as_equal)
{
    struct rf_clock_offset clock = {0};
    ck_assert_int_eq(rf_clock_best(&clock).offset_ns, 0);
}

TEST(test_equal_delays_give_the_exact_offset)
{
    struct rf_clock_offset clock = {0};
    exchange(&clock, 1000, 500, 2000000000, 500);
    ck_assert_int_eq(rf_clock_best(&clock).offset_ns, AHEAD);
}

TEST(test_the_shortest_round_trip_counts)
{
    struct rf_clock_offset clock = {0};
    exchange(&clock, 0, 100000, 10, 9000000);
    exchange(&clock, 20000000, 4000, 10, 4000);
    exchange(&clock, 40000000, 8000000, 10, 20);
    ck_assert_int_eq(rf_clock_best(&clock).offset_ns, AHEAD);
}

TEST(test_old_exchanges_are_forgotten)
{
    struct rf_clock_offset clock = {0};
    rf_clock_add(&clock, 0, 5, 6, 11); /* the best one, far away */
    for (int i = 1; i <= RF_CLOCK_SAMPLES; i++) {
        exchange(&clock, i * INT64_C(1000000), 3000, 10, 3000);
    }
    ck_assert_int_eq(rf_clock_best(&clock).offset_ns, AHEAD);
}

TEST(test_impossible_times_are_ignored)
{
    struct rf_clock_offset clock = {0};
    rf_clock_add(&clock, 100, 500, 400, 200); /* sent before it was got */
    rf_clock_add(&clock, 200, 500, 500, 100); /* ended before it began */
    rf_clock_add(&clock, 100, 500, 900, 200); /* held longer than it took */
    ck_assert_int_eq(rf_clock_best(&clock).offset_ns, 0);
}
