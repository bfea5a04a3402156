/*
 * Finds what changed: compares the elements of two arrays. Bits are compared,
 * never floats: -0.0 differs from +0.0, and every NaN from every other.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_SCAN_H
#define RF_TRANSPORT_DELTA_DELTA_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* Elements that are encoded together (transport/delta/delta_block.h). */
#define RF_DELTA_BLOCK 65536u

/* Positions written beyond the last one. */
#define RF_DELTA_SLACK 16

/* Writes the positions at which two arrays of `n` elements of `width` bytes
 * (1, 2, 4 or 8) differ, ascending, to `at`, which has room for n +
 * RF_DELTA_SLACK; returns their number. n is at most RF_DELTA_BLOCK. */
size_t rf_delta_scan(const void *a, const void *b, size_t n, uint32_t width,
                     uint16_t *at);

/* The same, without instructions that not every processor has: for tests. */
size_t rf_delta_scan_plain(const void *a, const void *b, size_t n,
                           uint32_t width, uint16_t *at);

/* Sets bit i, of (n + 63) / 64 words, where elements i differ; clears the
 * others. */
void rf_delta_mask(const void *a, const void *b, size_t n, uint32_t width,
                   uint64_t *mask);

/* Writes the numbers of the bits in [first, first + n) of a mask, less `first`
 * and plus `base`, as rf_delta_scan() does; n is at most RF_DELTA_BLOCK. */
size_t rf_delta_positions(const uint64_t *mask, size_t first, size_t n,
                          uint16_t base, uint16_t *at);

/* Both at once, for a multiple of 64 elements: positions, plus `base`, and the
 * mask. */
size_t rf_delta_scan_mask(const void *a, const void *b, size_t n,
                          uint32_t width, uint16_t base, uint16_t *at,
                          uint64_t *mask);

/* Which rf_delta_scan() uses here: "popcnt", "sse2", "neon" or "none". */
const char *rf_delta_instructions(void);

#endif
