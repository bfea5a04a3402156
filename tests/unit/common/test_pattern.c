/* The content formula: known answers, no repeats, always finite. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"
#include "tests/unit/unit.h"

/* The published first outputs of SplitMix64 with seed 1234567. */
TEST(test_pattern_mix_is_splitmix64)
{
    static const uint64_t outputs[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821)};
    uint64_t state = 1234567;
    for (size_t i = 0; i < RF_ARRAY_SIZE(outputs); i++) {
        state += UINT64_C(0x9E3779B97F4A7C15);
        ck_assert_uint_eq(rf_mix64(state), outputs[i]);
    }
}

TEST(test_pattern_bytes_are_the_little_endian_words)
{
    uint64_t seed = rf_pattern_seed(3, 1, 4);
    for (uint64_t k = 0; k < 100; k++) {
        uint64_t word = 0;
        for (uint64_t i = 0; i < 8; i++) {
            word |= (uint64_t)rf_pattern_byte(seed, 2, 8 * k + i) << (8 * i);
        }
        ck_assert_uint_eq(word, rf_pattern_word(seed, 2, k));
    }
}

TEST(test_pattern_differs_by_tensor_place_and_round)
{
    uint64_t seed = rf_pattern_seed(0, 0, 0);
    uint64_t word = rf_pattern_word(seed, 0, 0);
    ck_assert_uint_ne(word, rf_pattern_word(seed, 0, 1));
    ck_assert_uint_ne(word, rf_pattern_word(seed, 1, 0));
    ck_assert_uint_ne(word, rf_pattern_word(rf_pattern_seed(1, 0, 0), 0, 0));
    ck_assert_uint_ne(word, rf_pattern_word(rf_pattern_seed(0, 1, 0), 0, 0));
    ck_assert_uint_ne(word, rf_pattern_word(rf_pattern_seed(0, 0, 1), 0, 0));
    ck_assert_uint_ne(rf_pattern_seed(1, 2, 3), rf_pattern_seed(3, 2, 1));
}

TEST(test_pattern_seeds_do_not_collide)
{
    uint64_t seeds[8 * 16 * 8];
    size_t n = 0;
    for (uint64_t family = 0; family < 8; family++) {
        for (uint64_t layer = 0; layer < 16; layer++) {
            for (uint64_t expert = 0; expert < 8; expert++) {
                seeds[n++] = rf_pattern_seed(family, layer, expert);
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_uint_ne(seeds[i], seeds[j]);
        }
    }
}

TEST(test_pattern_is_finite_in_every_float_type)
{
    uint64_t seed = rf_pattern_seed(5, 6, 7);
    for (uint64_t k = 0; k < 4096; k++) {
        uint64_t word = rf_pattern_word(seed, 9, k);
        uint32_t halves[2] = {(uint32_t)word, (uint32_t)(word >> 32)};
        for (int i = 0; i < 4; i++) {
            uint16_t lane = (uint16_t)(word >> (16 * i));
            ck_assert_uint_ne(lane & 0x7F80, 0x7F80); /* bfloat16 */
            ck_assert_uint_ne(lane & 0x7C00, 0x7C00); /* float16 */
        }
        for (int i = 0; i < 2; i++) {
            float value;
            memcpy(&value, &halves[i], 4);
            ck_assert(isfinite(value));
        }
    }
}

TEST(test_pattern_poison_changes_every_round)
{
    for (uint64_t round = 0; round < 100; round++) {
        ck_assert_uint_ne(rf_poison_byte(round), rf_poison_byte(round + 1));
    }
}

TEST(test_pattern_bfloat16_rounds_to_nearest_even)
{
    static const struct {
        uint32_t f32;
        uint16_t bf16;
    } cases[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3F800000, 0x3F80},
        {0x3F807FFF, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F808001, 0x3F81},
        {0x3F818000, 0x3F82}, {0xBF818000, 0xBF82}, {0x3FFFFFFF, 0x4000},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        ck_assert_uint_eq(rf_f32_to_bf16(cases[i].f32), cases[i].bf16);
    }
}
