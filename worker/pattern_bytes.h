/*
 * The pattern of common/pattern.h, many bytes at a time, with the widest vector
 * instructions that the processor has. Pure.
 */
#ifndef RF_WORKER_PATTERN_BYTES_H
#define RF_WORKER_PATTERN_BYTES_H

#include <stdint.h>

/* Writes `bytes` bytes of the pattern, from byte offset `at` of a tensor on, to
 * `dst`, which needs no alignment. */
void rf_pattern_bytes(uint64_t seed, uint64_t iteration, uint64_t at,
                      uint64_t bytes, void *dst);

#endif
