/* Times by the device's clock: what events say lies inside what the host sees
 * around them, and the whole holds its parts. */
#include "cuda/device/events.h"

#include <stdlib.h>

#include "common/clock.h"
#include "cuda/device/device.h"
#include "tests/unit/unit.h"

/* Events hold microseconds in a float. */
#define ROUNDING_NS INT64_C(1000)

static cudaEvent_t make_event(void)
{
    cudaEvent_t event = NULL;
    ck_assert_int_eq(cudaEventCreate(&event), 0);
    return event;
}

TAG("device")

TEST(test_events_lie_within_the_host_s_time)
{
    enum { STEPS = 5 };
    cudaStream_t stream = NULL;
    cudaEvent_t events[STEPS + 1];
    struct rf_err err;
    int64_t host_ns, whole_ns, sum_ns = 0;
    ck_assert_int_eq(rf_device_use(0, &err), 0);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     0);
    for (int i = 0; i <= STEPS; i++) {
        events[i] = make_event();
    }
    host_ns = rf_now_ns();
    for (int i = 0; i <= STEPS; i++) {
        ck_assert_int_eq(cudaEventRecord(events[i], stream), 0);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stream), 0);
    host_ns = rf_now_ns() - host_ns;
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_ge(rf_events_ns(events[i], events[i + 1]), 0);
        sum_ns += rf_events_ns(events[i], events[i + 1]);
    }
    whole_ns = rf_events_ns(events[0], events[STEPS]);
    ck_assert_int_gt(whole_ns, 0);
    ck_assert_int_le(whole_ns, host_ns + ROUNDING_NS);
    ck_assert_int_le(llabs(whole_ns - sum_ns), STEPS * ROUNDING_NS);
    for (int i = 0; i <= STEPS; i++) {
        cudaEventDestroy(events[i]);
    }
    cudaStreamDestroy(stream);
}

TEST(test_an_event_never_recorded_has_no_time)
{
    struct rf_err err;
    cudaEvent_t begin, end;
    ck_assert_int_eq(rf_device_use(0, &err), 0);
    begin = make_event();
    end = make_event();
    ck_assert_int_eq(cudaEventRecord(begin, NULL), 0);
    ck_assert_int_eq(cudaEventSynchronize(begin), 0);
    ck_assert_int_eq(rf_events_ns(begin, end), 0);
    ck_assert_int_eq(cudaGetLastError(), 0); /* nobody finds it later */
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
}
