/*
 * The pattern, many bytes at a time. See pattern_bytes.h.
 *
 * Words come in blocks of constant size, which compilers turn into vector code
 * where there is a vector multiplication of 64 bits (AVX-512); the widest
 * instruction set is chosen at run time. A stretch may start in the middle of a
 * word: the first and last words are taken apart.
 */
#include "worker/pattern_bytes.h"

#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"

#define BLOCK_WORDS UINT64_C(64)

__attribute__((always_inline)) static inline void
blocks_of(uint64_t seed, uint64_t iteration, uint64_t k, uint64_t blocks,
          uint8_t *dst)
{
    for (uint64_t block = 0; block < blocks; block++) {
        for (uint64_t i = 0; i < BLOCK_WORDS; i++) {
            uint64_t word = rf_pattern_word(seed, iteration, k + i);
            memcpy(dst + 8 * i, &word, sizeof(word));
        }
        k += BLOCK_WORDS;
        dst += 8 * BLOCK_WORDS;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl"))) static void
blocks_avx512(uint64_t seed, uint64_t iteration, uint64_t k, uint64_t blocks,
              uint8_t *dst)
{
    blocks_of(seed, iteration, k, blocks, dst);
}

static bool have_avx512(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static void make_blocks(uint64_t seed, uint64_t iteration, uint64_t k,
                        uint64_t blocks, uint8_t *dst)
{
#if defined(__x86_64__)
    if (have_avx512()) {
        blocks_avx512(seed, iteration, k, blocks, dst);
        return;
    }
#endif
    blocks_of(seed, iteration, k, blocks, dst);
}

/* Bytes [from, from + bytes) of word k. */
static void part_of_word(uint64_t seed, uint64_t iteration, uint64_t k,
                         uint64_t from, uint64_t bytes, uint8_t *dst)
{
    uint64_t word = rf_pattern_word(seed, iteration, k) >> (8 * from);
    memcpy(dst, &word, bytes);
}

void rf_pattern_bytes(uint64_t seed, uint64_t iteration, uint64_t at,
                      uint64_t bytes, void *dst)
{
    uint8_t *to = dst;
    uint64_t k = at / 8, from = at % 8, blocks;
    if (from != 0 && bytes > 0) {
        uint64_t part = RF_MIN(8 - from, bytes);
        part_of_word(seed, iteration, k++, from, part, to);
        to += part;
        bytes -= part;
    }
    blocks = bytes / (8 * BLOCK_WORDS);
    if (blocks > 0) {
        make_blocks(seed, iteration, k, blocks, to);
        k += blocks * BLOCK_WORDS;
        to += blocks * 8 * BLOCK_WORDS;
        bytes -= blocks * 8 * BLOCK_WORDS;
    }
    for (; bytes >= 8; bytes -= 8, to += 8) {
        uint64_t word = rf_pattern_word(seed, iteration, k++);
        memcpy(to, &word, sizeof(word));
    }
    if (bytes > 0) {
        part_of_word(seed, iteration, k, 0, bytes, to);
    }
}
