/* Whether this processor has vectors for which some code is compiled. */
#ifndef RF_COMMON_VECTORS_H
#define RF_COMMON_VECTORS_H

#include <stdbool.h>

static inline bool rf_have_any(void)
{
    return true;
}

#if defined(__x86_64__)
static inline bool rf_have_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

/* All extensions that some code uses; processors have all three or none. */
static inline bool rf_have_avx512(void)
{
    return __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

/* To compress bytes and numbers of 16 bits in vectors. */
static inline bool rf_have_avx512_vbmi2(void)
{
    return rf_have_avx512() && __builtin_cpu_supports("avx512vbmi2");
}
#endif

#endif
