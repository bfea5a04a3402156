/* Monotonic time, waiting, UTC stamps. */
#include <string.h>

#include "common/clock.h"
#include "tests/unit/unit.h"

TEST(test_clock_never_goes_back)
{
    int64_t before = rf_now_ns();
    for (int i = 0; i < 1000; i++) {
        int64_t now = rf_now_ns();
        ck_assert_int_ge(now, before);
        before = now;
    }
}

TEST(test_clock_sleeps_until_the_deadline_and_not_before)
{
    int64_t deadline = rf_now_ns() + 3 * RF_NS_PER_MS;
    rf_sleep_until_ns(deadline);
    ck_assert_int_ge(rf_now_ns(), deadline);
}

TEST(test_clock_past_deadlines_return_at_once)
{
    rf_sleep_until_ns(INT64_MIN);
    rf_sleep_until_ns(-1);
    rf_sleep_until_ns(0);
    rf_sleep_until_ns(1);
    rf_sleep_until_ns(rf_now_ns() - RF_NS_PER_S);
}

TEST(test_clock_stamp_is_iso_8601_utc)
{
    char stamp[21];
    rf_utc_stamp(stamp, sizeof(stamp));
    ck_assert_uint_eq(strlen(stamp), 20);
    for (size_t i = 0; i < 20; i++) {
        char shape = "dddd-dd-ddTdd:dd:ddZ"[i];
        if (shape == 'd') {
            ck_assert(stamp[i] >= '0' && stamp[i] <= '9');
        } else {
            ck_assert_int_eq(stamp[i], shape);
        }
    }
}
