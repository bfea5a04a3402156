/*
 * Element casts. See reference_cast.h.
 *
 * Elements are moved with memcpy because a run may start at any byte. A
 * narrowed NaN is quiet and keeps its sign and the upper bits of its payload,
 * as in transport/codec/cast.c. The pattern contains no NaN; checkpoints may.
 */
#include "worker/content/reference_cast.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"

static uint16_t f16_of_f32(uint32_t bits)
{
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t magnitude = bits & 0x7FFFFFFF;
    uint32_t mantissa, shift, rest, half;
    int exponent = (int)(magnitude >> 23) - 127;
    if (magnitude > 0x7F800000) {
        return (uint16_t)(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
    }
    if (magnitude >= 0x477FF000) { /* 65520 and up rounds to infinity */
        return (uint16_t)(sign | 0x7C00);
    }
    if (exponent < -25) { /* less than half the least subnormal */
        return (uint16_t)sign;
    }
    if (exponent >= -14) {
        /* Drop 13 bits and move the bias from 127 to 15; a carry out of the
         * mantissa goes into the exponent, as it should. */
        uint32_t biased = magnitude - ((127u - 15u) << 23);
        return (uint16_t)(sign |
                          ((biased + 0xFFF + ((biased >> 13) & 1)) >> 13));
    }
    mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    shift = (uint32_t)(-exponent - 1); /* 14 … 24 */
    rest = mantissa & ((1u << shift) - 1);
    half = 1u << (shift - 1);
    mantissa >>= shift;
    if (rest > half || (rest == half && (mantissa & 1))) {
        mantissa++;
    }
    return (uint16_t)(sign | mantissa);
}

static uint32_t f32_of_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = (bits >> 10) & 0x1F;
    uint32_t mantissa = bits & 0x3FFu;
    if (exponent == 0x1F) {
        return sign | 0x7F800000 | mantissa << 13;
    }
    if (exponent != 0) {
        return sign | (exponent + 127 - 15) << 23 | mantissa << 13;
    }
    if (mantissa == 0) {
        return sign;
    }
    exponent = 127 - 15 + 1;
    while ((mantissa & 0x400) == 0) {
        mantissa <<= 1;
        exponent--;
    }
    return sign | exponent << 23 | (mantissa & 0x3FF) << 13;
}

static void narrow(uint16_t (*convert)(uint32_t), const uint8_t *src,
                   uint8_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t wide;
        uint16_t small;
        memcpy(&wide, src + 4 * i, sizeof(wide));
        small = convert(wide);
        memcpy(dst + 2 * i, &small, sizeof(small));
    }
}

static void widen(bool from_bf16, const uint8_t *src, uint8_t *dst,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t small;
        uint32_t wide;
        memcpy(&small, src + 2 * i, sizeof(small));
        wide = from_bf16 ? (uint32_t)small << 16 : f32_of_f16(small);
        memcpy(dst + 4 * i, &wide, sizeof(wide));
    }
}

bool rf_reference_cast_supported(enum rf_dtype from, enum rf_dtype to)
{
    return from == to || (from == RF_F32 && (to == RF_BF16 || to == RF_F16)) ||
           (to == RF_F32 && (from == RF_BF16 || from == RF_F16));
}

void rf_reference_cast_elements(enum rf_dtype from, enum rf_dtype to,
                                const void *src, void *dst, size_t count)
{
    assert(rf_reference_cast_supported(from, to));
    if (from == to) {
        memcpy(dst, src, count * rf_dtype_bytes(from));
    } else if (to == RF_BF16) {
        narrow(rf_f32_to_bf16, src, dst, count);
    } else if (to == RF_F16) {
        narrow(f16_of_f32, src, dst, count);
    } else {
        widen(from == RF_BF16, src, dst, count);
    }
}
