/* The inner loops of conversion, for each set of instructions. Private to
 * convert.c and its test. */
#ifndef RF_WORKER_CONTENT_CONVERT_LOOPS_H
#define RF_WORKER_CONTENT_CONVERT_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fp8.h"

/* Elements that are processed together; divides every wide block. */
#define RF_CONVERT_STEP 32u

#define RF_CONVERT_NOT_FINITE 0x7F80 /* bfloat16 magnitudes from here on */

/* Exponent of the least power of two from `value` on, plus 127: E8M0. 2^-127 is
 * itself a denormal number. */
static inline uint32_t rf_power_above(float value)
{
    const uint32_t bits = rf_bits_of_float(value), exponent = bits >> 23;
    return exponent +
           ((bits & 0x7FFFFF) > (exponent == 0 ? 0x400000u : 0u) ? 1u : 0u);
}

/* Largest magnitudes of interleaved series, as the bits of bfloat16, which order
 * like magnitudes. Signed, since older processors compare only those. */
struct rf_convert_lanes {
    int16_t most[RF_CONVERT_STEP];
};

/* Of e4m3: bits after the point, and the least exponent, plus 127, below which
 * its steps become no finer. */
#define RF_E4M3_FRACTION 3
#define RF_E4M3_LEAST 121
/* What makes a magnitude's power of two round it; see code_of(). */
#define RF_ROUNDER(least, fraction)                                            \
    (((23 - (fraction)) << 23) + (1 << (23 - (fraction))) -                    \
     (((least) + 23 - (fraction)) << (fraction)))

/* e4m3 of the elements times, or over, the factor of each block, which makes
 * them at most 448, but for rounding. May store past the caches, so that others
 * see it after rf_copy_fence(). */
typedef void rf_e4m3_fn(const uint8_t *src, uint32_t n, uint32_t width,
                        const float *factors, uint8_t *out);
/* The largest magnitude of each block of mxfp8 in a group. */
typedef void rf_amax_group_fn(const uint8_t *src, uint32_t *amax);

/* Columns that these formats convert together. */
#define RF_CONVERT_GROUP 256u

/* Scales and values of `n` groups in a row of bfloat16. `encode` is that of
 * nvfp4. False: an element of mxfp8 is infinite or NaN. */
typedef bool rf_groups_fn(const uint8_t *src, uint32_t n, float encode,
                          uint8_t *scales, uint8_t *out);

/* Of `n` neighbouring blocks in a row of bfloat16, `width` columns each, a
 * multiple of RF_CONVERT_STEP. */
struct rf_convert_loops {
    /* Raises `lanes`, one entry per block. */
    void (*raise)(const uint8_t *src, uint32_t n, uint32_t width,
                  struct rf_convert_lanes *lanes);
    /* The largest magnitude of each block of RF_CONVERT_STEP columns, or of
     * each block's lanes. */
    void (*amax)(const uint8_t *src, uint32_t n, uint32_t *amax);
    rf_e4m3_fn *e4m3, *quotient;
    rf_groups_fn *mxfp8, *nvfp4;
};

/* Those that this processor can run, from the fastest on; NULL after the
 * last. */
const struct rf_convert_loops *rf_convert_loops(size_t i);

#if defined(__x86_64__)
rf_e4m3_fn rf_convert_e4m3_avx512, rf_convert_quotient_avx512;
rf_amax_group_fn rf_convert_amax_group_avx512;
#endif

#endif
