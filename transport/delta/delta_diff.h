/*
 * Differences of elements of two bytes, as bytes: docs/PROTOCOL.md, "Chunks of
 * changes". Floats are taken as integers in the order of their values, so that
 * neighbours differ by 1, also across zero. Only elements that have changed have
 * one, so none is 0.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_DIFF_H
#define RF_TRANSPORT_DELTA_DELTA_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encodes the differences from `old` to `new` (n elements each, and eight more
 * that may be read) into `out`, of at least 19 + 2n bytes; with `whole_bytes` in
 * codes of 8 or 16 bits. Returns how many bytes are used. */
size_t rf_delta_diff_encode(const uint16_t *old, const uint16_t *new,
                            uint32_t n, bool whole_bytes, uint8_t *out);

/* Decodes n differences, with room for eight more; they must be all of the
 * bytes. False if they are malformed. */
bool rf_delta_diff_decode(const uint8_t *in, size_t bytes, uint32_t n,
                          uint16_t *diffs);

/* Adds differences to n elements, and to up to eight more. */
void rf_delta_diff_add(const uint16_t *diffs, uint32_t n, uint16_t *values);

#endif
