/* The pattern in bulk against its formula for single bytes. */
#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"
#include "tests/unit/unit.h"
#include "worker/content/pattern_bytes.h"

static void check_pattern(uint64_t at, uint64_t bytes)
{
    static uint8_t out[8192];
    uint64_t seed = rf_pattern_seed(3, 1, 4);
    ck_assert_uint_le(bytes + 2, sizeof(out));
    memset(out, 0x5A, sizeof(out));
    rf_pattern_bytes(seed, 9, at, bytes, out + 1);
    ck_assert_uint_eq(out[0], 0x5A);
    for (uint64_t i = 0; i < bytes; i++) {
        ck_assert_uint_eq(out[1 + i], rf_pattern_byte(seed, 9, at + i));
    }
    ck_assert_uint_eq(out[1 + bytes], 0x5A);
}

TEST(test_every_start_and_short_length_gives_the_pattern)
{
    for (uint64_t at = 0; at < 17; at++) {
        for (uint64_t bytes = 0; bytes < 40; bytes++) {
            check_pattern(at, bytes);
        }
    }
}

TEST(test_long_stretches_give_the_pattern)
{
    static const uint64_t lengths[] = {511, 512, 513, 519, 1024, 4095, 8000};
    for (size_t i = 0; i < RF_ARRAY_SIZE(lengths); i++) {
        check_pattern(0, lengths[i]);
        check_pattern(3, lengths[i]);
        check_pattern(((uint64_t)1 << 40) + 5, lengths[i]);
    }
}

TEST(test_every_way_gives_the_same_blocks)
{
    enum { N = 3, WORDS = N * RF_PATTERN_BLOCK_BYTES / 8 };
    static uint64_t out[WORDS + 1];
    const uint64_t seed = rf_pattern_seed(2, 7, 1), first = UINT64_MAX - 100;
    for (const struct rf_pattern_way *way = rf_pattern_ways; way->name != NULL;
         way++) {
        if (!way->have()) {
            continue;
        }
        out[WORDS] = 0x5A;
        way->blocks(rf_pattern_state(seed, 4, first), N, (uint8_t *)out);
        for (uint64_t k = 0; k < WORDS; k++) {
            ck_assert_msg(out[k] == rf_pattern_word(seed, 4, first + k),
                          "%s: word %d", way->name, (int)k);
        }
        ck_assert_uint_eq(out[WORDS], 0x5A);
    }
}
