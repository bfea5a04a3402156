/*
 * A process that floods a port of the loopback interface: it holds a number of
 * connections and opens a new one for each that is closed on it.
 */
#ifndef RF_TESTS_LIB_FLOOD_H
#define RF_TESTS_LIB_FLOOD_H

#include <stddef.h>

struct flood;

/* Each of `n` connections first sends `size` bytes of `says`. It ends by itself
 * after a minute. */
struct flood *flood_start(unsigned port, unsigned n, const void *says,
                          size_t size);
/* Connections that were opened so far. */
unsigned long flood_count(const struct flood *flood);
void flood_stop(struct flood *flood); /* NULL is fine */

#endif
