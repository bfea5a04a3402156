/* The inner loops of conversion, for each set of instructions. Private to
 * convert.c and its test. */
#ifndef RF_WORKER_CONTENT_CONVERT_LOOPS_H
#define RF_WORKER_CONTENT_CONVERT_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* Elements that are processed together; divides every wide block. */
#define RF_CONVERT_STEP 32u

/* Largest magnitudes of interleaved series, as the bits of bfloat16, which order
 * like magnitudes. Signed, since older processors compare only those. */
struct rf_convert_lanes {
    int16_t most[RF_CONVERT_STEP];
};

/* e4m3 of the elements times, or over, the factor of each block, which makes
 * them at most 448, but for rounding. */
typedef void rf_e4m3_fn(const uint8_t *src, uint32_t n, uint32_t width,
                        const float *factors, uint8_t *out);

/* Of `n` neighbouring blocks in a row of bfloat16, `width` columns each, a
 * multiple of RF_CONVERT_STEP. */
struct rf_convert_loops {
    /* Raises `lanes`, one entry per block. */
    void (*raise)(const uint8_t *src, uint32_t n, uint32_t width,
                  struct rf_convert_lanes *lanes);
    /* The largest magnitude of each block of RF_CONVERT_STEP columns, or of
     * each block's lanes. */
    void (*amax)(const uint8_t *src, uint32_t n, uint16_t *amax);
    rf_e4m3_fn *e4m3, *quotient;
};

/* Those that this processor can run, from the fastest on; NULL after the
 * last. */
const struct rf_convert_loops *rf_convert_loops(size_t i);

#endif
