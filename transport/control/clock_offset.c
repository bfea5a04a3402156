/*
 * Clock offset from message exchanges. See clock_offset.h.
 *
 * The mean of the two estimates is off by at most half the round trip, so the
 * exchange with the shortest round trip counts. Only recent exchanges are kept,
 * because the clocks of two machines drift.
 */
#include "transport/control/clock_offset.h"

#include "common/compiler.h"

void rf_clock_add(struct rf_clock_offset *clock, int64_t sent_ns,
                  int64_t peer_got_ns, int64_t peer_sent_ns, int64_t got_ns)
{
    int64_t round_trip = (got_ns - sent_ns) - (peer_sent_ns - peer_got_ns);
    if (round_trip < 0 || peer_sent_ns < peer_got_ns || got_ns < sent_ns) {
        return;
    }
    clock->samples[clock->at].offset_ns =
        (peer_got_ns - sent_ns) / 2 + (peer_sent_ns - got_ns) / 2;
    clock->samples[clock->at].round_trip_ns = round_trip;
    clock->at = (clock->at + 1) % RF_CLOCK_SAMPLES;
    clock->n = RF_MIN(clock->n + 1, (unsigned)RF_CLOCK_SAMPLES);
}

struct rf_clock_sample rf_clock_best(const struct rf_clock_offset *clock)
{
    unsigned best = 0;
    if (clock->n == 0) {
        return (struct rf_clock_sample){0};
    }
    for (unsigned i = 1; i < clock->n; i++) {
        if (clock->samples[i].round_trip_ns <
            clock->samples[best].round_trip_ns) {
            best = i;
        }
    }
    return clock->samples[best];
}
