/*
 * A process that floods a port of the loopback interface: it keeps `n`
 * connections open and replaces each that the other side closes.
 */
#ifndef RF_TESTS_LIB_FLOOD_H
#define RF_TESTS_LIB_FLOOD_H

#include <stddef.h>

struct flood;

/* Each of `n` connections first sends `size` bytes of `says`. The process ends
 * by itself after a minute. */
struct flood *flood_start(unsigned port, unsigned n, const void *says,
                          size_t size);
/* Connections opened so far. */
unsigned long flood_count(const struct flood *flood);
void flood_stop(struct flood *flood); /* NULL is allowed */

#endif
