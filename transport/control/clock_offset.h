/*
 * Offset of a peer's monotonic clock from ours, computed from the times in
 * LEASE messages. Pure.
 */
#ifndef RF_TRANSPORT_CONTROL_CLOCK_OFFSET_H
#define RF_TRANSPORT_CONTROL_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define RF_CLOCK_SAMPLES 8

struct rf_clock_sample {
    int64_t offset_ns, round_trip_ns;
};

struct rf_clock_offset {
    struct rf_clock_sample samples[RF_CLOCK_SAMPLES];
    unsigned n, at;
};

/* One exchange: we sent at `sent_ns`, the peer got it at `peer_got_ns` and sent
 * at `peer_sent_ns`, we got that at `got_ns`. Impossible times are ignored. */
void rf_clock_add(struct rf_clock_offset *clock, int64_t sent_ns,
                  int64_t peer_got_ns, int64_t peer_sent_ns, int64_t got_ns);

/* The recent exchange with the shortest round trip: its offset (the peer's
 * clock minus ours) is off by at most half of it. All 0 before the first. */
struct rf_clock_sample rf_clock_best(const struct rf_clock_offset *clock);

#endif
