/* See delta_index.h. */
#include "transport/delta/delta_index.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"
#include "transport/delta/delta_scan.h"

#define WORDS (RF_DELTA_BLOCK / 64) /* of a block */

struct rf_delta_index {
    const uint8_t *now;
    uint8_t *shadow;
    uint64_t bytes;
    uint32_t unit;
    size_t n_blocks;
    uint64_t *bits; /* WORDS per block */
    bool *known;    /* by block */
    uint16_t at[RF_DELTA_BLOCK + RF_DELTA_SLACK];
};

struct rf_delta_index *rf_delta_index_create(const void *now, void *shadow,
                                             uint64_t bytes, uint32_t unit)
{
    const uint64_t block = (uint64_t)RF_DELTA_BLOCK * unit;
    struct rf_delta_index *index = rf_calloc(1, sizeof(*index));
    if (index == NULL) {
        return NULL;
    }
    index->now = now;
    index->shadow = shadow;
    index->bytes = bytes;
    index->unit = unit;
    index->n_blocks = (size_t)((bytes + block - 1) / block);
    index->bits = rf_calloc(index->n_blocks + 1, WORDS * sizeof(uint64_t));
    index->known = rf_calloc(index->n_blocks + 1, sizeof(*index->known));
    if (index->bits == NULL || index->known == NULL) {
        rf_delta_index_destroy(index);
        return NULL;
    }
    return index;
}

void rf_delta_index_destroy(struct rf_delta_index *index)
{
    if (index == NULL) {
        return;
    }
    free(index->bits);
    free(index->known);
    free(index);
}

const uint8_t *rf_delta_index_shadow(const struct rf_delta_index *index,
                                     const void *at)
{
    return index->shadow + ((const uint8_t *)at - index->now);
}

void rf_delta_index_forget(struct rf_delta_index *index)
{
    memset(index->known, 0, index->n_blocks * sizeof(*index->known));
}

static void learn(struct rf_delta_index *index, size_t block)
{
    const uint64_t from = (uint64_t)block * RF_DELTA_BLOCK * index->unit;
    const uint64_t units = (index->bytes - from) / index->unit;
    uint64_t *bits = index->bits + block * WORDS;
    const size_t n = rf_delta_scan(index->now + from, index->shadow + from,
                                   (size_t)RF_MIN(units, RF_DELTA_BLOCK),
                                   index->unit, index->at);
    memset(bits, 0, WORDS * sizeof(*bits));
    for (size_t i = 0; i < n; i++) {
        bits[index->at[i] / 64] |= UINT64_C(1) << index->at[i] % 64;
    }
    index->known[block] = true;
}

uint32_t rf_delta_index_find(struct rf_delta_index *index, const void *at,
                             uint32_t n, uint32_t width, uint16_t *out)
{
    /* width / unit, as a shift */
    const int shift = __builtin_ctz(width) - __builtin_ctz(index->unit);
    const uint64_t first =
        (uint64_t)((const uint8_t *)at - index->now) / index->unit;
    const uint64_t end = first + ((uint64_t)n << shift);
    uint32_t found = 0;
    for (size_t b = first / RF_DELTA_BLOCK; b * RF_DELTA_BLOCK < end; b++) {
        if (!index->known[b]) {
            learn(index, b);
        }
    }
    for (uint64_t w = first / 64; w * 64 < end; w++) {
        uint64_t word = index->bits[w];
        const uint64_t before = w * 64 < first ? first - w * 64 : 0;
        const uint64_t past = (w + 1) * 64 > end ? (w + 1) * 64 - end : 0;
        word = word >> before << before;
        word = word << past >> past;
        for (; word != 0; word &= word - 1) {
            const uint64_t unit = w * 64 + (uint64_t)__builtin_ctzll(word);
            const uint16_t position = (uint16_t)((unit - first) >> shift);
            /* Several units of an element may have changed. */
            found -= shift > 0 && found > 0 && out[found - 1] == position;
            out[found++] = position;
        }
    }
    return found;
}

static void commit_word(struct rf_delta_index *index, uint64_t first,
                        uint64_t word)
{
    const uint32_t unit = index->unit;
    if (word == UINT64_MAX) {
        memcpy(index->shadow + first * unit, index->now + first * unit,
               (size_t)unit * 64);
        return;
    }
    for (; word != 0; word &= word - 1) {
        const uint64_t at = (first + (uint64_t)__builtin_ctzll(word)) * unit;
        if (unit == 2) { /* a store, not a call */
            memcpy(index->shadow + at, index->now + at, 2);
        } else {
            memcpy(index->shadow + at, index->now + at, unit);
        }
    }
}

void rf_delta_index_commit(struct rf_delta_index *index)
{
    for (size_t b = 0; b < index->n_blocks; b++) {
        for (size_t w = 0; index->known[b] && w < WORDS; w++) {
            commit_word(index, (b * WORDS + w) * 64,
                        index->bits[b * WORDS + w]);
        }
    }
}
