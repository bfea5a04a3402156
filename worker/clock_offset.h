/*
 * How far the coordinator's monotonic clock is from ours, from the times that
 * LEASE messages carry. Pure.
 */
#ifndef RF_WORKER_CLOCK_OFFSET_H
#define RF_WORKER_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define RF_CLOCK_SAMPLES 8

struct rf_clock_offset {
    struct {
        int64_t offset_ns, round_trip_ns;
    } samples[RF_CLOCK_SAMPLES];
    unsigned n, at;
};

/* One exchange: we sent at `sent_ns`, the peer got it at `peer_got_ns` and sent
 * at `peer_sent_ns`, we got that at `got_ns`. Impossible times are ignored. */
void rf_clock_add(struct rf_clock_offset *clock, int64_t sent_ns,
                  int64_t peer_got_ns, int64_t peer_sent_ns, int64_t got_ns);

/* Peer's clock minus ours by the recent exchange with the least round trip; 0
 * before the first. */
int64_t rf_clock_offset_ns(const struct rf_clock_offset *clock);

#endif
