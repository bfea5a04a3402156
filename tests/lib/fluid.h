/*
 * A fluid model of links: sources that send one thing after the other, and
 * links into destinations that what flows at one time shares evenly (max-min
 * fair). Deterministic, pure; its own tests are in tests/unit/planner.
 */
#ifndef RF_TESTS_LIB_FLUID_H
#define RF_TESTS_LIB_FLUID_H

#include <stddef.h>
#include <stdint.h>

/* What a source sends next: bytes to `to`; to itself uses no link in. */
struct fluid_item {
    uint32_t to;
    double bytes;
};

struct fluid_source {
    const struct fluid_item *items;
    size_t n;
};

/* Bytes per second that a rank sends at most, gets from others together, and
 * copies to itself. */
struct fluid_rates {
    double out, in, local;
};

/* Seconds until the last byte has arrived. Rank r is sources[r]. */
double fluid_run(const struct fluid_source *sources, uint32_t n_ranks,
                 const struct fluid_rates *rates);

#endif
