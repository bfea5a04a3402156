/*
 * Inner loops of conversion. See convert_loops.h.
 *
 * They are plain C over RF_CONVERT_STEP elements without branches, which
 * compilers vectorise at -O2, compiled once for each set of instructions. Of
 * AVX-512 some are in convert_avx512.c.
 */
#include "worker/content/convert_loops.h"

#include <float.h>
#include <string.h>

#include "common/compiler.h"
#include "common/fp8.h"
#include "common/vectors.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* bfloat16 at any address; two of them, the first in the low bits, and the two
 * bytes that they become. */
typedef uint16_t bfloat16 __attribute__((aligned(1), may_alias));
typedef uint32_t two_bfloat16 __attribute__((aligned(1), may_alias));
typedef uint16_t two_bytes __attribute__((aligned(1), may_alias));

ALWAYS_INLINE void raise_lanes(const bfloat16 *restrict x,
                               struct rf_convert_lanes *restrict lanes)
{
    for (uint32_t i = 0; i < RF_CONVERT_STEP; i++) {
        const int16_t magnitude = (int16_t)(x[i] & 0x7FFF);
        lanes->most[i] =
            magnitude > lanes->most[i] ? magnitude : lanes->most[i];
    }
}

/* A format of small numbers: bits after the point, and the least exponent, plus
 * 127, below which its steps become no finer. */
struct number {
    uint32_t least, fraction;
};

static const struct number e4m3 = {RF_E4M3_LEAST, RF_E4M3_FRACTION};
static const struct number e2m1 = {127, 1};

/* Adding 2^(23 - fraction) times a magnitude's power of two rounds it to the
 * bits that a number keeps, to nearest even; the last bits of the sum count
 * steps. To these, code_of() adds the steps of lower powers, 2^fraction for
 * each. An even number of steps more makes that begin with code 0. */
ALWAYS_INLINE uint32_t rounder(float magnitude, struct number number)
{
    const int32_t least = (int32_t)(number.least << 23);
    const int32_t power = (int32_t)(rf_bits_of_float(magnitude) & 0x7F800000);
    return (uint32_t)(power > least ? power : least) +
           RF_ROUNDER(number.least, number.fraction);
}

/* A magnitude's code; bits from the 20th on mean nothing. */
ALWAYS_INLINE uint32_t code_of(float magnitude, struct number number)
{
    const uint32_t big = rounder(magnitude, number);
    return rf_bits_of_float(magnitude + rf_float_of_bits(big)) +
           (big >> (23 - number.fraction));
}

/* Positive numbers are ordered like their bits. */
ALWAYS_INLINE float at_most(float value, float most)
{
    const int32_t bits = (int32_t)rf_bits_of_float(value);
    const int32_t limit = (int32_t)rf_bits_of_float(most);
    return rf_float_of_bits((uint32_t)(bits < limit ? bits : limit));
}

ALWAYS_INLINE float low(uint32_t both)
{
    return rf_float_of_bits(both << 16 & 0x7FFF0000);
}

ALWAYS_INLINE float high(uint32_t both)
{
    return rf_float_of_bits(both & 0x7FFF0000);
}

/* In 32 bits, and narrowed by a loop of its own: else GCC narrows operands. */
ALWAYS_INLINE void to_e4m3(const two_bfloat16 *restrict x, float factor,
                           bool divides, two_bytes *restrict out)
{
    uint32_t codes[RF_CONVERT_STEP / 2];
    for (uint32_t i = 0; i < RF_CONVERT_STEP / 2; i++) {
        const float first = divides ? low(x[i]) / factor : low(x[i]) * factor;
        const float second =
            divides ? high(x[i]) / factor : high(x[i]) * factor;
        const uint32_t signs = x[i] & 0x80008000;
        codes[i] = code_of(first, e4m3) | code_of(second, e4m3) << 8 |
                   signs >> 8 | signs >> 16;
    }
    for (uint32_t i = 0; i < RF_CONVERT_STEP / 2; i++) {
        out[i] = (uint16_t)codes[i];
    }
}

#define STEP_BYTES (sizeof(bfloat16) * RF_CONVERT_STEP)

ALWAYS_INLINE void raise_blocks(const uint8_t *src, uint32_t n, uint32_t width,
                                struct rf_convert_lanes *lanes)
{
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t c = 0; c < width; c += RF_CONVERT_STEP) {
            raise_lanes((const bfloat16 *)src, &lanes[b]);
            src += STEP_BYTES;
        }
    }
}

ALWAYS_INLINE void amax_blocks(const uint8_t *src, uint32_t n, uint32_t width,
                               uint32_t *amax)
{
    for (uint32_t b = 0; b < n; b++, src += sizeof(bfloat16) * width) {
        const bfloat16 *x = (const bfloat16 *)src;
        int16_t most = 0;
        for (uint32_t i = 0; i < width; i++) {
            const int16_t magnitude = (int16_t)(x[i] & 0x7FFF);
            most = magnitude > most ? magnitude : most;
        }
        amax[b] = (uint32_t)most;
    }
}

ALWAYS_INLINE void e4m3_blocks(const uint8_t *src, uint32_t n, uint32_t width,
                               const float *factors, bool divides, uint8_t *out)
{
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t c = 0; c < width; c += RF_CONVERT_STEP) {
            to_e4m3((const two_bfloat16 *)src, factors[b], divides,
                    (two_bytes *)out);
            src += STEP_BYTES;
            out += RF_CONVERT_STEP;
        }
    }
}

#define MXFP8_BLOCKS (RF_CONVERT_GROUP / RF_CONVERT_STEP)
#define GROUP_BYTES (sizeof(bfloat16) * RF_CONVERT_GROUP)
#define AHEAD_BYTES 2048 /* of what is read, fetched from memory */

ALWAYS_INLINE void fetch_ahead(const uint8_t *src)
{
    for (uint32_t i = 0; i < GROUP_BYTES; i += 64) {
        /* An address: beyond the end it is no pointer into anything. */
        __builtin_prefetch((const void *)((uintptr_t)src + AHEAD_BYTES + i));
    }
}

/* Each group is scaled after the next one is scanned, whose largest magnitudes
 * have then left the processor's queue of stores, from which vectors of them
 * cannot be loaded. */
ALWAYS_INLINE bool mxfp8_groups(const uint8_t *src, uint32_t n, uint8_t *scales,
                                uint8_t *out, rf_amax_group_fn *scan,
                                rf_e4m3_fn *scale)
{
    uint32_t amax[MXFP8_BLOCKS], powers[MXFP8_BLOCKS], most = 0;
    float factors[MXFP8_BLOCKS];
    for (uint32_t g = 0; g <= n; g++) {
        if (g < n) {
            fetch_ahead(src);
            scan(src, amax);
        }
        if (g > 0) {
            scale(src - GROUP_BYTES, MXFP8_BLOCKS, RF_CONVERT_STEP, factors,
                  out);
            out += RF_CONVERT_GROUP;
        }
        if (g < n) {
            for (uint32_t b = 0; b < MXFP8_BLOCKS; b++) {
                powers[b] = rf_power_above(rf_float_of_bits(amax[b] << 16) *
                                           (1.0f / RF_FP8_MAX));
                factors[b] = rf_float_of_bits((254 - powers[b]) << 23);
                most = RF_MAX(most, amax[b]);
            }
            for (uint32_t b = 0; b < MXFP8_BLOCKS; b++) {
                scales[b] = (uint8_t)powers[b];
            }
            scales += MXFP8_BLOCKS;
            src += GROUP_BYTES;
        }
    }
    return most < RF_CONVERT_NOT_FINITE;
}

#define NVFP4_BLOCK 16u
#define NVFP4_BLOCKS (RF_CONVERT_GROUP / NVFP4_BLOCK)

ALWAYS_INLINE void to_e2m1(const two_bfloat16 *restrict x, float factor,
                           uint32_t *restrict codes)
{
    for (uint32_t i = 0; i < NVFP4_BLOCK / 2; i++) {
        const uint32_t first = code_of(at_most(low(x[i]) * factor, 6), e2m1);
        const uint32_t second = code_of(at_most(high(x[i]) * factor, 6), e2m1);
        codes[i] = first | second << 4 | (x[i] >> 12 & 8) | (x[i] >> 24 & 0x80);
    }
}

ALWAYS_INLINE void nvfp4_groups(const uint8_t *src, uint32_t n, float encode,
                                uint8_t *scales, uint8_t *restrict out)
{
    const float multiplier = encode * (1.0f / 6.0f), decode = 1.0f / encode;
    uint32_t amax[NVFP4_BLOCKS], rounded[NVFP4_BLOCKS];
    float factors[NVFP4_BLOCKS];
    uint32_t codes[RF_CONVERT_GROUP / 2];
    for (uint32_t g = 0; g <= n; g++) {
        if (g < n) {
            fetch_ahead(src);
            amax_blocks(src, NVFP4_BLOCKS, NVFP4_BLOCK, amax);
        }
        if (g > 0) {
            const uint8_t *from = src - GROUP_BYTES;
            for (uint32_t b = 0; b < NVFP4_BLOCKS; b++) {
                to_e2m1((const two_bfloat16 *)from, factors[b],
                        &codes[b * NVFP4_BLOCK / 2]);
                from += sizeof(bfloat16) * NVFP4_BLOCK;
            }
            for (uint32_t i = 0; i < RF_CONVERT_GROUP / 2; i++) {
                out[i] = (uint8_t)codes[i];
            }
            out += RF_CONVERT_GROUP / 2;
        }
        if (g < n) {
            for (uint32_t b = 0; b < NVFP4_BLOCKS; b++) {
                const float scale =
                    rf_float_of_bits(amax[b] << 16) * multiplier;
                const float big = rf_float_of_bits(rounder(scale, e4m3));
                const float nearest = scale + big - big;
                rounded[b] = code_of(scale, e4m3);
                factors[b] = at_most(1.0f / (nearest * decode), FLT_MAX);
            }
            for (uint32_t b = 0; b < NVFP4_BLOCKS; b++) {
                scales[b] = (uint8_t)rounded[b];
            }
            scales += NVFP4_BLOCKS;
            src += GROUP_BYTES;
        }
    }
}

/* The loops that have another form for AVX-512. */
#define PLAIN(name, attribute)                                                 \
    attribute static void e4m3_##name(const uint8_t *src, uint32_t n,          \
                                      uint32_t width, const float *factors,    \
                                      uint8_t *out)                            \
    {                                                                          \
        e4m3_blocks(src, n, width, factors, false, out);                       \
    }                                                                          \
    attribute static void quotient_##name(const uint8_t *src, uint32_t n,      \
                                          uint32_t width,                      \
                                          const float *factors, uint8_t *out)  \
    {                                                                          \
        e4m3_blocks(src, n, width, factors, true, out);                        \
    }                                                                          \
    attribute static void amax_group_##name(const uint8_t *src,                \
                                            uint32_t *amax)                    \
    {                                                                          \
        amax_blocks(src, MXFP8_BLOCKS, RF_CONVERT_STEP, amax);                 \
    }

#define LOOPS(name, attribute, e4m3, quotient, amax_group)                     \
    attribute static void raise_##name(const uint8_t *src, uint32_t n,         \
                                       uint32_t width,                         \
                                       struct rf_convert_lanes *lanes)         \
    {                                                                          \
        raise_blocks(src, n, width, lanes);                                    \
    }                                                                          \
    attribute static void amax_##name(const uint8_t *src, uint32_t n,          \
                                      uint32_t *amax)                          \
    {                                                                          \
        amax_blocks(src, n, RF_CONVERT_STEP, amax);                            \
    }                                                                          \
    attribute static bool mxfp8_##name(const uint8_t *src, uint32_t n,         \
                                       float encode, uint8_t *scales,          \
                                       uint8_t *out)                           \
    {                                                                          \
        (void)encode;                                                          \
        return mxfp8_groups(src, n, scales, out, amax_group, e4m3);            \
    }                                                                          \
    attribute static bool nvfp4_##name(const uint8_t *src, uint32_t n,         \
                                       float encode, uint8_t *scales,          \
                                       uint8_t *out)                           \
    {                                                                          \
        nvfp4_groups(src, n, encode, scales, out);                             \
        return true;                                                           \
    }                                                                          \
    static const struct rf_convert_loops loops_##name = {raise_##name,         \
                                                         amax_##name,          \
                                                         e4m3,                 \
                                                         quotient,             \
                                                         mxfp8_##name,         \
                                                         nvfp4_##name};

PLAIN(all, )
LOOPS(all, , e4m3_all, quotient_all, amax_group_all)
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
PLAIN(avx2, AVX2)
LOOPS(avx2, AVX2, e4m3_avx2, quotient_avx2, amax_group_avx2)
LOOPS(avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))),
      rf_convert_e4m3_avx512, rf_convert_quotient_avx512,
      rf_convert_amax_group_avx512)
#endif

const struct rf_convert_loops *rf_convert_loops(size_t i)
{
    static const struct {
        const struct rf_convert_loops *loops;
        bool (*can)(void);
    } known[] = {
#if defined(__x86_64__)
        {&loops_avx512, rf_have_avx512},
        {&loops_avx2, rf_have_avx2},
#endif
        {&loops_all, rf_have_any}
    };
    for (size_t k = 0; k < RF_ARRAY_SIZE(known); k++) {
        if (known[k].can() && i-- == 0) {
            return known[k].loops;
        }
    }
    return NULL;
}
