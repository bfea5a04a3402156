/*
 * float32 and bfloat16 to fp8 e4m3 (the "fn" variant: no infinities, largest
 * value 448), like hardware with saturation: round to nearest even. One header
 * for the C compiler and nvcc, integer arithmetic only, so that both give the
 * same bits.
 *
 * The constants are those of fp8_block128 (worker/content/convert.h).
 */
#ifndef RF_COMMON_FP8_H
#define RF_COMMON_FP8_H

#include <stdint.h>

#include "common/pattern.h"

#define RF_FP8_BLOCK 128
#define RF_FP8_MAX 448.0f
#define RF_FP8_AMAX_FLOOR 1e-4f

union rf_float_bits {
    float value;
    uint32_t bits;
};

RF_PATTERN_FN uint32_t rf_bits_of_float(float value)
{
    union rf_float_bits f;
    f.value = value;
    return f.bits;
}

RF_PATTERN_FN float rf_float_of_bits(uint32_t bits)
{
    union rf_float_bits f;
    f.bits = bits;
    return f.value;
}

RF_PATTERN_FN float rf_bf16_to_f32(uint16_t bits)
{
    return rf_float_of_bits((uint32_t)bits << 16);
}

/* e4m3: 1 sign, 4 exponent (bias 7), 3 mantissa bits; 0x7F is NaN. */
RF_PATTERN_FN uint8_t rf_f32_to_e4m3(float value)
{
    const uint32_t bits = rf_bits_of_float(value);
    const uint32_t sign = (bits >> 24) & 0x80;
    uint32_t magnitude = bits & 0x7FFFFFFF, shift, half, result;
    int32_t exponent;
    if (magnitude > 0x7F800000) {
        return 0x7F; /* for either sign, like cuda_fp8.h */
    }
    if (magnitude >= 0x43E80000) { /* 464: halfway to the next, saturates */
        return (uint8_t)(sign | 0x7E);
    }
    exponent = (int32_t)(magnitude >> 23) - 127;
    if (exponent < -10) {
        return (uint8_t)sign;
    }
    /* 24-bit mantissa down to 3 bits (normal) or fewer (subnormal). */
    magnitude = (magnitude & 0x7FFFFF) | 0x800000;
    shift = exponent < -6 ? (uint32_t)(20 + (-6 - exponent)) : 20;
    half = 1u << (shift - 1);
    result = (magnitude + half - 1 + ((magnitude >> shift) & 1)) >> shift;
    if (exponent >= -6) {
        result += (uint32_t)(exponent + 6) << 3;
    }
    return (uint8_t)(sign | result);
}

#endif
