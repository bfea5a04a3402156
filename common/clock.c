/* Clocks. See clock.h. */
#include "common/clock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

int64_t rf_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * RF_NS_PER_S + now.tv_nsec;
}

void rf_sleep_until_ns(int64_t deadline_ns)
{
    struct timespec when = {.tv_sec = (time_t)(deadline_ns / RF_NS_PER_S),
                            .tv_nsec = (long)(deadline_ns % RF_NS_PER_S)};
    if (deadline_ns <= 0) {
        return;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) ==
           EINTR) {
    }
}

void rf_pause_between_polls(int64_t idle_since_ns)
{
    const struct timespec nap = {.tv_nsec = 50 * RF_NS_PER_US};
    if (rf_now_ns() - idle_since_ns < RF_NS_PER_MS) {
        sched_yield();
    } else {
        nanosleep(&nap, NULL);
    }
}

void rf_utc_stamp(char *out, size_t size)
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
