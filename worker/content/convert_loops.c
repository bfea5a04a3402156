/*
 * Inner loops of conversion. See convert_loops.h.
 *
 * They are plain C over RF_CONVERT_STEP elements without branches, which
 * compilers vectorise at -O2, compiled once for each set of instructions.
 */
#include "worker/content/convert_loops.h"

#include <stdbool.h>
#include <string.h>

#include "common/compiler.h"
#include "common/fp8.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* bfloat16 at any address. */
typedef uint16_t bfloat16 __attribute__((aligned(1), may_alias));

ALWAYS_INLINE void raise_lanes(const bfloat16 *restrict x,
                               struct rf_convert_lanes *restrict lanes)
{
    for (uint32_t i = 0; i < RF_CONVERT_STEP; i++) {
        const int16_t magnitude = (int16_t)(x[i] & 0x7FFF);
        lanes->most[i] =
            magnitude > lanes->most[i] ? magnitude : lanes->most[i];
    }
}

/* Adding 2^20 times a product's power of two (2^-6 at least: below, e4m3 has no
 * finer steps) rounds it to the three bits that e4m3 keeps, to nearest even.
 * The sum's last byte counts these steps, the exponent of `big` those of lower
 * powers: from 2^14 on, eight for each. */
ALWAYS_INLINE void to_e4m3(const bfloat16 *restrict x, float factor,
                           bool divides, uint8_t *restrict out)
{
    for (uint32_t i = 0; i < RF_CONVERT_STEP; i++) {
        const uint32_t least = 121u << 23; /* 2^-6 */
        const float magnitude =
            rf_float_of_bits((uint32_t)(x[i] & 0x7FFF) << 16);
        const float product = divides ? magnitude / factor : magnitude * factor;
        const uint32_t power = rf_bits_of_float(product) & 0x7F800000;
        const uint32_t big = (power > least ? power : least) + (20u << 23);
        const uint32_t sum = rf_bits_of_float(product + rf_float_of_bits(big));
        out[i] = (uint8_t)((uint8_t)(sum + (big >> 20)) - (141u << 3) +
                           (uint8_t)(x[i] >> 8 & 0x80));
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

ALWAYS_INLINE void amax_blocks(const uint8_t *src, uint32_t n, uint16_t *amax)
{
    for (uint32_t b = 0; b < n; b++, src += STEP_BYTES) {
        const bfloat16 *x = (const bfloat16 *)src;
        int16_t most = 0;
        for (uint32_t i = 0; i < RF_CONVERT_STEP; i++) {
            const int16_t magnitude = (int16_t)(x[i] & 0x7FFF);
            most = magnitude > most ? magnitude : most;
        }
        amax[b] = (uint16_t)most;
    }
}

ALWAYS_INLINE void e4m3_blocks(const uint8_t *src, uint32_t n, uint32_t width,
                               const float *factors, bool divides, uint8_t *out)
{
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t c = 0; c < width; c += RF_CONVERT_STEP) {
            to_e4m3((const bfloat16 *)src, factors[b], divides, out);
            src += STEP_BYTES;
            out += RF_CONVERT_STEP;
        }
    }
}

#define LOOPS(name, attribute)                                                 \
    attribute static void raise_##name(const uint8_t *src, uint32_t n,         \
                                       uint32_t width,                         \
                                       struct rf_convert_lanes *lanes)         \
    {                                                                          \
        raise_blocks(src, n, width, lanes);                                    \
    }                                                                          \
    attribute static void amax_##name(const uint8_t *src, uint32_t n,          \
                                      uint16_t *amax)                          \
    {                                                                          \
        amax_blocks(src, n, amax);                                             \
    }                                                                          \
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
    static const struct rf_convert_loops loops_##name = {                      \
        raise_##name, amax_##name, e4m3_##name, quotient_##name};

LOOPS(all, )
#if defined(__x86_64__)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))))

static bool can_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

static bool can_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

static bool can_all(void)
{
    return true;
}

const struct rf_convert_loops *rf_convert_loops(size_t i)
{
    static const struct {
        const struct rf_convert_loops *loops;
        bool (*can)(void);
    } known[] = {
#if defined(__x86_64__)
        {&loops_avx512, can_avx512},
        {&loops_avx2, can_avx2},
#endif
        {&loops_all, can_all}
    };
    for (size_t k = 0; k < RF_ARRAY_SIZE(known); k++) {
        if (known[k].can() && i-- == 0) {
            return known[k].loops;
        }
    }
    return NULL;
}
