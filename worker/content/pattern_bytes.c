/*
 * The pattern, many bytes at a time. See pattern_bytes.h.
 *
 * Words are made in blocks of constant size. Compilers vectorise them for
 * AVX-512. AVX2 has no 64-bit product, and their code for it is half as fast as
 * the code here. The widest instruction set is chosen at run time. A range
 * may start or end inside a word: the first and last words are handled
 * separately.
 */
#include "worker/content/pattern_bytes.h"

#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"
#include "common/vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BLOCK_BYTES RF_PATTERN_BLOCK_BYTES
#define BLOCK_WORDS (BLOCK_BYTES / 8)

__attribute__((always_inline)) static inline void
blocks_of(uint64_t state, uint64_t blocks, uint8_t *dst)
{
    for (; blocks > 0; blocks--, dst += BLOCK_BYTES) {
        for (uint64_t i = 0; i < BLOCK_WORDS; i++) {
            const uint64_t word =
                rf_mix64(state + i * RF_PATTERN_STEP) & RF_PATTERN_MASK;
            memcpy(dst + 8 * i, &word, sizeof(word));
        }
        state += BLOCK_WORDS * RF_PATTERN_STEP;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl"))) static void
blocks_avx512(uint64_t state, uint64_t blocks, uint8_t *dst)
{
    blocks_of(state, blocks, dst);
}

/* (z ^ (z >> shift)) · factor in each lane, from 32-bit products. */
__attribute__((target("avx2"), always_inline)) static inline __m256i
mix_avx2(__m256i z, int shift, uint64_t factor)
{
    const __m256i low = _mm256_set1_epi64x((long long)(factor & UINT32_MAX));
    const __m256i high = _mm256_set1_epi64x((long long)(factor >> 32));
    const __m256i a = _mm256_xor_si256(z, _mm256_srli_epi64(z, shift));
    const __m256i cross =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), low),
                         _mm256_mul_epu32(a, high));
    return _mm256_add_epi64(_mm256_mul_epu32(a, low),
                            _mm256_slli_epi64(cross, 32));
}

__attribute__((target("avx2"))) static void
blocks_avx2(uint64_t state, uint64_t blocks, uint8_t *dst)
{
    const __m256i mask = _mm256_set1_epi64x((long long)RF_PATTERN_MASK);
    const __m256i step = _mm256_set1_epi64x((long long)(4 * RF_PATTERN_STEP));
    __m256i states = _mm256_setr_epi64x(
        (long long)state, (long long)(state + RF_PATTERN_STEP),
        (long long)(state + 2 * RF_PATTERN_STEP),
        (long long)(state + 3 * RF_PATTERN_STEP));
    for (uint64_t n = blocks * BLOCK_WORDS / 4; n > 0; n--, dst += 32) {
        __m256i z = mix_avx2(states, 30, RF_MIX64_FIRST);
        z = mix_avx2(z, 27, RF_MIX64_SECOND);
        z = _mm256_xor_si256(z, _mm256_srli_epi64(z, 31));
        _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_and_si256(z, mask));
        states = _mm256_add_epi64(states, step);
    }
}
#endif

static void blocks_portable(uint64_t state, uint64_t blocks, uint8_t *dst)
{
    blocks_of(state, blocks, dst);
}

const struct rf_pattern_way rf_pattern_ways[] = {
#if defined(__x86_64__)
    {"avx512", rf_have_avx512, blocks_avx512},
    {"avx2", rf_have_avx2, blocks_avx2},
#endif
    {"portable", rf_have_any, blocks_portable},
    {NULL, NULL, NULL},
};

static void make_blocks(uint64_t state, uint64_t blocks, uint8_t *dst)
{
    const struct rf_pattern_way *way = rf_pattern_ways;
    while (!way->have()) {
        way++;
    }
    way->blocks(state, blocks, dst);
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
    blocks = bytes / BLOCK_BYTES;
    if (blocks > 0) {
        make_blocks(rf_pattern_state(seed, iteration, k), blocks, to);
        k += blocks * BLOCK_WORDS;
        to += blocks * BLOCK_BYTES;
        bytes -= blocks * BLOCK_BYTES;
    }
    for (; bytes >= 8; bytes -= 8, to += 8) {
        uint64_t word = rf_pattern_word(seed, iteration, k++);
        memcpy(to, &word, sizeof(word));
    }
    if (bytes > 0) {
        part_of_word(seed, iteration, k, 0, bytes, to);
    }
}
