/*
 * Element casts. Independent of the casts of verification, so that an error in
 * either shows as a mismatch.
 *
 * Pure integer arithmetic; never fails, writes only the output.
 */
#include "transport/codec/cast.h"

#include <string.h>

#define F32_EXPONENT 0x7F800000u
#define F16_EXPONENT 0x7C00u

static uint16_t to_bf16(uint32_t bits)
{
    if ((bits & ~0x80000000u) > F32_EXPONENT) {
        return (uint16_t)((bits >> 16) | 0x40); /* quiet NaN */
    }
    return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

static uint16_t to_f16(uint32_t bits)
{
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t magnitude = bits & 0x7FFFFFFF;
    uint32_t exponent = magnitude >> 23, mantissa, shift, half;
    if (magnitude > F32_EXPONENT) { /* quiet NaN, the payload's upper bits */
        return (uint16_t)(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
    }
    if (magnitude >= 0x47800000) { /* 65536 and above: infinity */
        return (uint16_t)(sign | F16_EXPONENT);
    }
    if (exponent >= 113) { /* normal in float16 */
        half = magnitude - (112u << 23);
        half += 0x0FFF + ((half >> 13) & 1);
        return (uint16_t)(sign | (half >> 13));
    }
    if (exponent < 102) { /* below half of the smallest subnormal */
        return (uint16_t)sign;
    }
    mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    shift = 126 - exponent;
    half = mantissa >> shift;
    mantissa &= (1u << shift) - 1;
    half += mantissa > (1u << (shift - 1)) ||
            (mantissa == (1u << (shift - 1)) && (half & 1));
    return (uint16_t)(sign | half);
}

static uint32_t from_bf16(uint16_t bits)
{
    return (uint32_t)bits << 16;
}

static uint32_t from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t magnitude = bits & 0x7FFF, exponent = 113;
    if (magnitude >= F16_EXPONENT) {
        return sign | F32_EXPONENT | ((magnitude & 0x3FF) << 13);
    }
    if (magnitude >= 0x400) {
        return sign | ((magnitude << 13) + (112u << 23));
    }
    if (magnitude == 0) {
        return sign;
    }
    while ((magnitude & 0x400) == 0) {
        magnitude <<= 1;
        exponent--;
    }
    return sign | (exponent << 23) | ((magnitude & 0x3FF) << 13);
}

static void narrow(uint16_t (*convert)(uint32_t), uint8_t *dst,
                   const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t in;
        uint16_t out;
        memcpy(&in, src + 4 * i, 4);
        out = convert(in);
        memcpy(dst + 2 * i, &out, 2);
    }
}

static void widen(uint32_t (*convert)(uint16_t), uint8_t *dst,
                  const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint16_t in;
        uint32_t out;
        memcpy(&in, src + 2 * i, 2);
        out = convert(in);
        memcpy(dst + 4 * i, &out, 4);
    }
}

void rf_cast_items(enum rf_cast cast, void *dst, const void *src, uint64_t n)
{
    switch (cast) {
    case RF_CAST_F32_BF16:
        narrow(to_bf16, dst, src, n);
        break;
    case RF_CAST_F32_F16:
        narrow(to_f16, dst, src, n);
        break;
    case RF_CAST_BF16_F32:
        widen(from_bf16, dst, src, n);
        break;
    case RF_CAST_F16_F32:
        widen(from_f16, dst, src, n);
        break;
    case RF_CAST_NONE:
        break;
    }
}
