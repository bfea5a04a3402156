/*
 * The pattern of common/pattern.h, many bytes at a time, with the processor's
 * widest vector instructions. Pure.
 */
#ifndef RF_WORKER_CONTENT_PATTERN_BYTES_H
#define RF_WORKER_CONTENT_PATTERN_BYTES_H

#include <stdbool.h>
#include <stdint.h>

/* Writes `bytes` bytes of the pattern, from byte offset `at` of a tensor on, to
 * `dst`, which needs no alignment. */
void rf_pattern_bytes(uint64_t seed, uint64_t iteration, uint64_t at,
                      uint64_t bytes, void *dst);

#define RF_PATTERN_BLOCK_BYTES UINT64_C(512)

/* Implementations for whole blocks, fastest first; ends with a NULL name. */
struct rf_pattern_way {
    const char *name;
    bool (*have)(void); /* whether this processor supports it */
    /* Makes consecutive blocks from the word whose rf_pattern_state is
     * `state`. */
    void (*blocks)(uint64_t state, uint64_t blocks, uint8_t *dst);
};
extern const struct rf_pattern_way rf_pattern_ways[];

#endif
