/*
 * A fluid model of links: sources send their items one after the other, and
 * concurrent flows share the link into their destination evenly (max-min fair).
 * Deterministic, pure; its own tests are in tests/unit/planner.
 */
#ifndef RF_TESTS_LIB_FLUID_H
#define RF_TESTS_LIB_FLUID_H

#include <stddef.h>
#include <stdint.h>

/* One item of a source: bytes to rank `to`; sending to itself uses no link. */
struct fluid_item {
    uint32_t to;
    double bytes;
};

struct fluid_source {
    const struct fluid_item *items;
    size_t n;
};

/* Limits of a rank in bytes per second: sent, received from all others
 * together, and copied to itself. */
struct fluid_rates {
    double out, in, local;
};

/* Seconds until the last byte has arrived. Rank r is sources[r]. */
double fluid_run(const struct fluid_source *sources, uint32_t n_ranks,
                 const struct fluid_rates *rates);

#endif
