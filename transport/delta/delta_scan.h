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

/* Positions and elements written beyond the last one of a list. */
#define RF_DELTA_SLACK 32

/* Writes the positions at which two arrays of `n` elements of `width` bytes
 * (1, 2, 4 or 8) differ, ascending, to `at`, which has room for n +
 * RF_DELTA_SLACK; returns their number. n is at most RF_DELTA_BLOCK. */
size_t rf_delta_scan(const void *a, const void *b, size_t n, uint32_t width,
                     uint16_t *at);

/* The same, without instructions that not every processor has: for tests. */
size_t rf_delta_scan_plain(const void *a, const void *b, size_t n,
                           uint32_t width, uint16_t *at);

/* Sets bit i, of (n + 63) / 64 words, where elements i differ; clears the
 * others. What comes after them may be read ahead. */
void rf_delta_mask(const void *a, const void *b, size_t n, uint32_t width,
                   uint64_t *mask);

/* Writes the numbers of the bits in [first, first + n) of a mask, less `first`
 * and plus `base`, as rf_delta_scan() does; n is at most RF_DELTA_BLOCK. */
size_t rf_delta_positions(const uint64_t *mask, size_t first, size_t n,
                          uint16_t base, uint16_t *at);

/* Collects the elements at `at` of `from` into `out`. */
void rf_delta_gather(const void *from, const uint16_t *at, size_t n,
                     uint32_t width, void *out);

/* Lists of the changes of n elements, each with room for n + RF_DELTA_SLACK. */
struct rf_delta_lists {
    uint16_t *at; /* positions, ascending */
    void *values; /* what the elements are, or NULL: not asked for */
    void *old;    /* what they were, or NULL */
};

/* Collects, by its n positions, what else of `lists` is asked for. */
void rf_delta_gather_lists(const void *now, const void *before, size_t n,
                           uint32_t width, const struct rf_delta_lists *lists);

/* Lists the changes of n elements, a multiple of 64, and sets their bits in
 * `mask`; returns their number. `base` elements of the same arrays, at most
 * RF_DELTA_BLOCK together with these, come before them, and positions count from
 * there. What comes after them may be read ahead. */
size_t rf_delta_list(const void *now, const void *before, size_t n,
                     uint32_t width, uint16_t base,
                     const struct rf_delta_lists *out, uint64_t *mask);

/* The same without AVX-512: for tests. */
size_t rf_delta_list_plain(const void *now, const void *before, size_t n,
                           uint32_t width, uint16_t base,
                           const struct rf_delta_lists *out, uint64_t *mask);

/* Which are used here: "avx512", "popcnt", "sse2", "neon" or "none". */
const char *rf_delta_instructions(void);

#endif
