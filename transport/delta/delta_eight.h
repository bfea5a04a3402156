/*
 * Eight numbers of 16 bits at a time, in the compilers' own notation, which
 * becomes vector instructions where there are any. Comparisons give all ones
 * or 0, once cast to rf_eight.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_EIGHT_H
#define RF_TRANSPORT_DELTA_DELTA_EIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define RF_EIGHT 8
typedef uint16_t rf_eight __attribute__((vector_size(16)));
typedef uint8_t rf_eight_bytes __attribute__((vector_size(8)));

static inline rf_eight rf_eight_load(const void *from)
{
    rf_eight it;
    memcpy(&it, from, sizeof(it));
    return it;
}

static inline void rf_eight_store(void *to, rf_eight it)
{
    memcpy(to, &it, sizeof(it));
}

/* From and to eight bytes; of larger numbers the lower halves. */
static inline rf_eight rf_eight_load_bytes(const void *from)
{
    rf_eight_bytes bytes;
    memcpy(&bytes, from, sizeof(bytes));
    return __builtin_convertvector(bytes, rf_eight);
}

static inline void rf_eight_store_bytes(void *to, rf_eight it)
{
    const rf_eight_bytes bytes = __builtin_convertvector(it, rf_eight_bytes);
    memcpy(to, &bytes, sizeof(bytes));
}

/* Number i at i + n, and 0 at the first n; n is a constant. */
#if defined(__x86_64__)
#define rf_eight_up(it, n) ((rf_eight)_mm_slli_si128((__m128i)(it), 2 * (n)))
#elif defined(__aarch64__)
#define rf_eight_up(it, n) vextq_u16((rf_eight){0}, it, RF_EIGHT - (n))
#else
static inline rf_eight rf_eight_up(rf_eight it, int n)
{
    rf_eight out = {0};
    for (int i = n; i < RF_EIGHT; i++) {
        out[i] = it[i - n];
    }
    return out;
}
#endif

/* Whether one of them is not 0. */
static inline bool rf_eight_any(rf_eight it)
{
    typedef uint64_t two __attribute__((vector_size(16)));
    const two halves = (two)it;
    return (halves[0] | halves[1]) != 0;
}

static inline uint32_t rf_eight_sum(rf_eight it)
{
    uint32_t sum = 0;
    for (int i = 0; i < RF_EIGHT; i++) {
        sum += it[i];
    }
    return sum;
}

#endif
