/* Waiting in the fakes. */
#ifndef RF_TESTS_FAKE_NAP_H
#define RF_TESTS_FAKE_NAP_H

#include <stdint.h>
#include <time.h>

/* Yields the processor for 20 us. Naps in a row grow to 1 ms, since their
 * caller waits for something slow. */
static inline void fake_nap(void)
{
    static _Thread_local int64_t last_ns;
    static _Thread_local unsigned n_in_a_row;
    struct timespec now, span = {.tv_sec = 0};
    int64_t now_ns;
    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    n_in_a_row = now_ns - last_ns < 3000000 ? n_in_a_row + 1 : 0;
    span.tv_nsec = n_in_a_row < 160 ? 20000 << (n_in_a_row / 32) : 1000000;
    nanosleep(&span, NULL);
    last_ns = now_ns + span.tv_nsec;
}

#endif
