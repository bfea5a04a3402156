/* See fast_clock.h. This program's clock_gettime() stands in for the C
 * library's. */
#include "tests/unit/ucx/fast_clock.h"

#include <dlfcn.h>
#include <time.h>

#include "common/clock.h"

typedef int clock_fn(clockid_t, struct timespec *);

static int64_t faster = 1, from_ns;

int clock_gettime(clockid_t id, struct timespec *out)
{
    static clock_fn *real;
    int failed;
    int64_t now_ns;
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    failed = real(id, out);
    if (failed == 0 && id == CLOCK_MONOTONIC && faster > 1) {
        now_ns = (int64_t)out->tv_sec * RF_NS_PER_S + out->tv_nsec;
        now_ns = from_ns + (now_ns - from_ns) * faster;
        out->tv_sec = (time_t)(now_ns / RF_NS_PER_S);
        out->tv_nsec = (long)(now_ns % RF_NS_PER_S);
    }
    return failed;
}

void fast_clock(int64_t times)
{
    faster = 1;
    from_ns = rf_now_ns();
    faster = times;
}

void fast_clock_late(uint32_t rank)
{
    if (rank == 2 || rank == 3) {
        rf_sleep_until_ns(rf_now_ns() + (rank == 2 ? 2 : 4) * RF_NS_PER_S);
    }
    fast_clock(10);
}
