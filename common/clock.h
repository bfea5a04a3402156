/* Monotonic time and UTC stamps. Durations never come from wall time. */
#ifndef RF_COMMON_CLOCK_H
#define RF_COMMON_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define RF_NS_PER_US INT64_C(1000)
#define RF_NS_PER_MS INT64_C(1000000)
#define RF_NS_PER_S INT64_C(1000000000)

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t rf_now_ns(void);

/* Sleeps until CLOCK_MONOTONIC reaches `deadline_ns`; returns at once if it
 * has passed. */
void rf_sleep_until_ns(int64_t deadline_ns);

/* Between two looks of a loop that polls, idle since `idle_since_ns`: yields for
 * the first millisecond, then sleeps 50 us, lest those who wait hold up those
 * who work where they share processors. */
void rf_pause_between_polls(int64_t idle_since_ns);

/* UTC wall time as "2026-01-02T03:04:05Z" (21 bytes with the NUL). */
void rf_utc_stamp(char *out, size_t size);

#endif
