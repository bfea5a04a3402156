/* Casts against values known by their definition. */
#include <math.h>
#include <string.h>

#include "common/compiler.h"
#include "tests/unit/unit.h"
#include "transport/codec/cast.h"
#include "worker/content/reference_cast.h"

static uint16_t to_f16(float value)
{
    uint16_t out;
    rf_reference_cast_elements(RF_F32, RF_F16, &value, &out, 1);
    return out;
}

static float from_f16(uint16_t bits)
{
    float out;
    rf_reference_cast_elements(RF_F16, RF_F32, &bits, &out, 1);
    return out;
}

static uint16_t to_bf16(float value)
{
    uint16_t out;
    rf_reference_cast_elements(RF_F32, RF_BF16, &value, &out, 1);
    return out;
}

static float from_bf16(uint16_t bits)
{
    float out;
    rf_reference_cast_elements(RF_BF16, RF_F32, &bits, &out, 1);
    return out;
}

/* The value of float16 bits by the definition of the format. */
static double f16_value(uint16_t bits)
{
    int exponent = (bits >> 10) & 31;
    double mantissa = bits & 1023;
    double magnitude = exponent == 0 ? ldexp(mantissa, -24)
                                     : ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(test_every_float16_widens_to_its_value_and_back)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float wide = from_f16((uint16_t)bits);
        if ((bits & 0x7C00) == 0x7C00) {
            continue;
        }
        ck_assert_double_eq((double)wide, f16_value((uint16_t)bits));
        ck_assert_uint_eq(to_f16(wide), bits);
    }
}

TEST(test_float32_halfway_between_float16_values_goes_to_even)
{
    for (uint32_t bits = 0; bits < 0x7BFF; bits++) {
        double low = f16_value((uint16_t)bits);
        double high = f16_value((uint16_t)(bits + 1));
        float half = (float)((low + high) / 2);
        uint32_t even = bits + (bits & 1);
        ck_assert_uint_eq(to_f16(half), even);
        ck_assert_uint_eq(to_f16(nextafterf(half, 0)), bits);
        ck_assert_uint_eq(to_f16(nextafterf(half, INFINITY)), bits + 1);
        ck_assert_uint_eq(to_f16(-half), even | 0x8000);
    }
}

TEST(test_float32_beyond_float16_becomes_infinite_or_zero)
{
    ck_assert_uint_eq(to_f16(65519.996f), 0x7BFF);
    ck_assert_uint_eq(to_f16(65520.0f), 0x7C00);
    ck_assert_uint_eq(to_f16(-1e30f), 0xFC00);
    ck_assert_uint_eq(to_f16(ldexpf(1, -25)), 0);
    ck_assert_uint_eq(to_f16(ldexpf(1.001f, -25)), 1);
    ck_assert_uint_eq(to_f16(-ldexpf(1, -60)), 0x8000);
    ck_assert(isnan(from_f16(to_f16(NAN))));
    ck_assert(isinf(from_f16(0x7C00)));
}

TEST(test_bfloat16_keeps_the_upper_half_and_rounds_to_even)
{
    static const struct {
        uint32_t wide;
        uint16_t narrow;
    } cases[] = {
        {0x3F800000, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82},
        {0x3F808001, 0x3F81}, {0x3F80FFFF, 0x3F81}, {0xBF818000, 0xBF82},
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3FFFFFFF, 0x4000},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        float value;
        memcpy(&value, &cases[i].wide, sizeof(value));
        ck_assert_uint_eq(to_bf16(value), cases[i].narrow);
    }
    ck_assert(isnan(from_bf16(to_bf16(NAN))));
    for (uint32_t bits = 0; bits < 0x7F80; bits++) {
        ck_assert_uint_eq(to_bf16(from_bf16((uint16_t)bits)), bits);
    }
}

TEST(test_nan_narrows_as_methods_cast_it)
{
    static const struct {
        uint32_t wide;
        uint16_t f16, bf16;
    } cases[] = {
        {0x7FC02000, 0x7E01, 0x7FC0}, {0x7F800001, 0x7E00, 0x7FC0},
        {0xFFC00000, 0xFE00, 0xFFC0}, {0xFFFFFFFF, 0xFFFF, 0xFFFF},
        {0x7FBFE000, 0x7FFF, 0x7FFF}, {0x7FC12345, 0x7E09, 0x7FC1},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        uint16_t mine[2], theirs[2];
        rf_reference_cast_elements(RF_F32, RF_F16, &cases[i].wide, &mine[0], 1);
        rf_reference_cast_elements(RF_F32, RF_BF16, &cases[i].wide, &mine[1],
                                   1);
        rf_cast_items(RF_CAST_F32_F16, &theirs[0], &cases[i].wide, 1);
        rf_cast_items(RF_CAST_F32_BF16, &theirs[1], &cases[i].wide, 1);
        ck_assert_uint_eq(mine[0], cases[i].f16);
        ck_assert_uint_eq(mine[1], cases[i].bf16);
        ck_assert_uint_eq(theirs[0], cases[i].f16);
        ck_assert_uint_eq(theirs[1], cases[i].bf16);
    }
}

TEST(test_unaligned_arrays_convert_like_aligned_ones)
{
    float in[67];
    uint8_t shifted[sizeof(in) + 1], out[2 * 67 + 1];
    for (int i = 0; i < 67; i++) {
        in[i] = (float)i * 1.37f - 11;
    }
    memcpy(shifted + 1, in, sizeof(in));
    rf_reference_cast_elements(RF_F32, RF_BF16, shifted + 1, out + 1, 67);
    for (int i = 0; i < 67; i++) {
        uint16_t one;
        memcpy(&one, out + 1 + 2 * i, sizeof(one));
        ck_assert_uint_eq(one, to_bf16(in[i]));
    }
}

TEST(test_only_exact_rules_are_supported)
{
    ck_assert(rf_reference_cast_supported(RF_I64, RF_I64));
    ck_assert(rf_reference_cast_supported(RF_F32, RF_F16));
    ck_assert(rf_reference_cast_supported(RF_BF16, RF_F32));
    ck_assert(!rf_reference_cast_supported(RF_BF16, RF_F16));
    ck_assert(!rf_reference_cast_supported(RF_BF16, RF_F8_E4M3));
    ck_assert(!rf_reference_cast_supported(RF_F64, RF_F32));
}
