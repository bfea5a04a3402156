/*
 * Inner loops of conversion that compilers make half as fast as AVX-512 can.
 * See convert_loops.h; what the sums and their constants mean says code_of() of
 * convert_loops.c.
 */
#include "worker/content/convert_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#define INLINE static inline __attribute__((always_inline)) AVX512
#define LINE_BYTES 64
#define PAIR_COLUMNS (UINT64_C(2) * RF_CONVERT_STEP) /* of two lines */

/* --- e4m3 ------------------------------------------------------------------ */

/* The codes of 16 magnitudes, in the bits from the 8th on of 32; the others
 * mean nothing. */
INLINE __m512i codes_of(__m512i magnitudes, __m512 factor, bool divides)
{
    const __m512 x = _mm512_castsi512_ps(magnitudes);
    const __m512 scaled =
        divides ? _mm512_div_ps(x, factor) : _mm512_mul_ps(x, factor);
    const __m512i power = _mm512_and_si512(_mm512_castps_si512(scaled),
                                           _mm512_set1_epi32(0x7F800000));
    const __m512i big = _mm512_add_epi32(
        _mm512_max_epi32(power, _mm512_set1_epi32(RF_E4M3_LEAST << 23)),
        _mm512_set1_epi32(RF_ROUNDER(RF_E4M3_LEAST, RF_E4M3_FRACTION)));
    const __m512i sum =
        _mm512_castps_si512(_mm512_add_ps(scaled, _mm512_castsi512_ps(big)));
    /* (sum + (sum >> 20)) << 8: the lower half times 256 plus the upper one
     * times 16. */
    return _mm512_madd_epi16(sum, _mm512_set1_epi32(16 << 16 | 256));
}

/* The codes of a line of bfloat16, 32 of them, each in 16 bits. */
INLINE __m512i e4m3_of_line(const uint8_t *src, float factor, bool divides)
{
    const __m512i line = _mm512_loadu_si512(src);
    const __m512i upper = _mm512_set1_epi32(0x7FFF0000);
    const __m512 factors = _mm512_set1_ps(factor);
    const __m512i even = codes_of(
        _mm512_and_si512(_mm512_slli_epi32(line, 16), upper), factors, divides);
    const __m512i odd =
        codes_of(_mm512_and_si512(line, upper), factors, divides);
    const __m512i both =
        _mm512_mask_blend_epi16(0xAAAAAAAA, even, _mm512_slli_epi32(odd, 16));
    const __m512i sign = _mm512_set1_epi16((short)0x8000);
    return _mm512_srli_epi16(_mm512_or_si512(_mm512_and_si512(sign, line),
                                             _mm512_andnot_si512(sign, both)),
                             8);
}

/* The factor of the next line: blocks are of whole lines. */
INLINE float next_factor(const float **factor, uint32_t width, uint32_t *left)
{
    const float now = **factor;
    *left -= RF_CONVERT_STEP;
    if (*left == 0) {
        ++*factor;
        *left = width;
    }
    return now;
}

/* Two lines at a time, past the caches if whole lines are written. */
INLINE void e4m3_of_blocks(const uint8_t *src, uint32_t n, uint32_t width,
                           const float *factors, bool divides, uint8_t *out)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    const uint64_t columns = (uint64_t)n * width;
    const bool streams = (uintptr_t)out % LINE_BYTES == 0;
    uint32_t left = width;
    uint64_t c = 0;
    for (; c + PAIR_COLUMNS <= columns; c += PAIR_COLUMNS) {
        const __m512i first = e4m3_of_line(
            src + 2 * c, next_factor(&factors, width, &left), divides);
        const __m512i second =
            e4m3_of_line(src + 2 * c + LINE_BYTES,
                         next_factor(&factors, width, &left), divides);
        const __m512i codes =
            _mm512_permutexvar_epi64(order, _mm512_packus_epi16(first, second));
        if (streams) {
            _mm512_stream_si512((__m512i *)(void *)(out + c), codes);
        } else {
            _mm512_storeu_si512(out + c, codes);
        }
    }
    if (c < columns) {
        _mm256_storeu_si256(
            (__m256i *)(void *)(out + c),
            _mm512_cvtepi16_epi8(e4m3_of_line(src + 2 * c, *factors, divides)));
    }
}

AVX512 void rf_convert_e4m3_avx512(const uint8_t *src, uint32_t n,
                                   uint32_t width, const float *factors,
                                   uint8_t *out)
{
    e4m3_of_blocks(src, n, width, factors, false, out);
}

AVX512 void rf_convert_quotient_avx512(const uint8_t *src, uint32_t n,
                                       uint32_t width, const float *factors,
                                       uint8_t *out)
{
    e4m3_of_blocks(src, n, width, factors, true, out);
}

/* --- the largest magnitudes ------------------------------------------------ */

#define MERGE(a, b, bits)                                                      \
    _mm512_max_epi16(_mm512_unpacklo_epi##bits(a, b),                          \
                     _mm512_unpackhi_epi##bits(a, b))

/* A tree: each merge of two vectors leaves half as many maxima of each block,
 * those of its blocks side by side. */
AVX512 void rf_convert_amax_group_avx512(const uint8_t *src, uint32_t *amax)
{
    const __m512i magnitude = _mm512_set1_epi16(0x7FFF);
    __m512i x[RF_CONVERT_GROUP / RF_CONVERT_STEP];
    for (size_t i = 0; i < 8; i++) {
        x[i] = _mm512_and_si512(_mm512_loadu_si512(src + i * LINE_BYTES),
                                magnitude);
    }
    for (size_t i = 0; i < 4; i++) {
        x[i] = MERGE(x[2 * i], x[2 * i + 1], 16);
    }
    x[0] = MERGE(MERGE(x[0], x[1], 32), MERGE(x[2], x[3], 32), 64);
    const __m256i half = _mm256_max_epi16(_mm512_castsi512_si256(x[0]),
                                          _mm512_extracti64x4_epi64(x[0], 1));
    _mm256_storeu_si256(
        (__m256i *)(void *)amax,
        _mm256_cvtepu16_epi32(_mm_max_epi16(
            _mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1))));
}

#endif
