/* A process's monotonic clock, for waits that are too long for a test. */
#ifndef RF_TESTS_UNIT_UCX_FAST_CLOCK_H
#define RF_TESTS_UNIT_UCX_FAST_CLOCK_H

#include <stdint.h>

/* From now on the clock runs so many times as fast, 1: as ever. Nothing may
 * sleep until a time of a fast clock. */
void fast_clock(int64_t times);

/* Starts a clock that runs ten times as fast, by which ranks 2 and 3 return 20 s
 * and 40 s late. */
void fast_clock_late(uint32_t rank);

#endif
