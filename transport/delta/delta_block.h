/*
 * Blocks: the changed elements of at most RF_DELTA_BLOCK elements, as bytes.
 * docs/PROTOCOL.md, "Chunks of changes", has the format; here a block begins
 * with `how` and ends with its last byte, which the chunk that carries it
 * tells.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_BLOCK_H
#define RF_TRANSPORT_DELTA_DELTA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/delta/delta_scan.h"

enum rf_delta_positions {
    RF_DELTA_DENSE,
    RF_DELTA_GAP8,
    RF_DELTA_IDX16,
    RF_DELTA_BITMAP,
    RF_DELTA_RUNS,
    RF_DELTA_XOR,
    RF_DELTA_POSITIONS
};

/* How a block is encoded: its first byte has the first two. */
struct rf_delta_how {
    enum rf_delta_positions positions;
    bool diff; /* elements of two bytes only */
    bool zstd; /* compressed later: differences have whole bytes */
};

/* The changes of a block. */
struct rf_delta_changes {
    uint32_t width;     /* bytes of an element: 1, 2, 4 or 8 */
    uint32_t count;     /* elements, changed or not */
    uint32_t n;         /* changed elements */
    const uint16_t *at; /* their positions, ascending; NULL: all elements, as
                           decoded from blocks without positions */
    const void *values; /* the new elements, one after another; decoded
                           differences */
    const void *old;    /* and the old ones; only needed for differences, which
                           read up to eight elements more of both */
};

/* Bytes of a block before its positions. */
#define RF_DELTA_HEADER_BYTES 4

/* Bytes that are enough for a block of `count` elements, however encoded. */
size_t rf_delta_bound(uint32_t count, uint32_t width);

/* The encoding of positions with the fewest bytes, by counts alone: of values of
 * `width` bytes; 0: of differences, which are never dense. Changes that are best
 * sent dense must be of all elements. */
enum rf_delta_positions rf_delta_best(uint32_t count, uint32_t n, uint32_t runs,
                                      uint32_t width);
/* The number of runs of neighbouring changes. */
uint32_t rf_delta_runs(const uint16_t *at, uint32_t n);

/* Writes the header of a dense block of `count` elements; returns where they
 * follow. */
uint8_t *rf_delta_begin_dense(uint32_t count, uint8_t *out);

/* Encodes changes into `out`, of rf_delta_bound() bytes; returns how many
 * bytes. RF_DELTA_DENSE and RF_DELTA_XOR take the values of all elements. */
size_t rf_delta_encode(const struct rf_delta_changes *changes,
                       struct rf_delta_how how, uint8_t *out);

/* Room for a decoded block. */
struct rf_delta_scratch {
    uint16_t at[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    uint16_t diffs[RF_DELTA_BLOCK + RF_DELTA_SLACK];
};

/* Decodes a block of `count` elements of `width` bytes. `out` refers to `in`
 * and `scratch`. False if it is malformed. */
bool rf_delta_decode(const uint8_t *in, size_t bytes, uint32_t count,
                     uint32_t width, struct rf_delta_scratch *scratch,
                     struct rf_delta_changes *out, struct rf_delta_how *how);

/* Writes changes [from, to) of a decoded block to `dst`, whose first element is
 * the block's element `first`. */
void rf_delta_apply(const struct rf_delta_changes *changes,
                    struct rf_delta_how how, uint32_t from, uint32_t to,
                    uint32_t first, void *dst);

#endif
