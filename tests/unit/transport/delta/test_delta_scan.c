/* Comparing arrays, with and without vectors, against a loop. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "transport/delta/delta_scan.h"
#include "tests/unit/unit.h"

static const uint32_t widths[] = {1, 2, 4, 8};
static const uint32_t counts[] = {0,  1,   2,   15,   16,   17,    63,   64,
                                  65, 127, 128, 4095, 4096, 65535, 65536};
/* Of 2^16: none to all. */
static const uint32_t densities[] = {0, 20, 700, 5000, 20000, 50000, 65536};

/* Elements before those that are listed. */
#define BASE 7

typedef size_t (*list_fn)(const void *now, const void *before, size_t n,
                          uint32_t width, uint16_t base,
                          const struct rf_delta_lists *out, uint64_t *mask);

/* Lists and mask at once, of n elements, a multiple of 64. */
static void compare_lists(list_fn list, const uint8_t *a, const uint8_t *b,
                          uint32_t n, uint32_t width, const uint64_t *mask)
{
    static uint16_t at[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    static uint16_t wanted[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    static uint8_t now[8 * (RF_DELTA_BLOCK + RF_DELTA_SLACK)];
    static uint8_t old[8 * (RF_DELTA_BLOCK + RF_DELTA_SLACK)];
    static uint64_t found[RF_DELTA_BLOCK / 64 + 1];
    const struct rf_delta_lists lists = {at, now, old}, positions = {.at = at};
    const size_t changed = rf_delta_positions(mask, 0, n, BASE, wanted);
    bool same = true;
    found[n / 64] = 1;
    ck_assert_uint_eq(list(a, b, n, width, BASE, &positions, found), changed);
    ck_assert(changed == 0 || memcmp(at, wanted, changed * sizeof(*at)) == 0);
    memset(at, 0, sizeof(at));
    ck_assert_uint_eq(list(a, b, n, width, BASE, &lists, found), changed);
    ck_assert(n == 0 || memcmp(found, mask, n / 8) == 0);
    ck_assert_uint_eq(found[n / 64], 1);
    ck_assert(changed == 0 || memcmp(at, wanted, changed * sizeof(*at)) == 0);
    for (size_t i = 0; i < changed; i++) {
        const size_t from = (size_t)(at[i] - BASE) * width;
        same = same && memcmp(now + i * width, a + from, width) == 0 &&
               memcmp(old + i * width, b + from, width) == 0;
    }
    ck_assert(same);
}

/* Of the elements after the first BASE, as many as lists can have. */
static void compare_groups(const uint8_t *a, const uint8_t *b, uint32_t n,
                           uint32_t width)
{
    static uint64_t mask[RF_DELTA_BLOCK / 64 + 1];
    const size_t skipped = (size_t)BASE * width;
    const uint32_t some = n < BASE ? 0 : (n - BASE) / 64 * 64;
    if (some > 0) {
        rf_delta_mask(a + skipped, b + skipped, some, width, mask);
        compare_lists(rf_delta_list, a + skipped, b + skipped, some, width,
                      mask);
        compare_lists(rf_delta_list_plain, a + skipped, b + skipped, some,
                      width, mask);
    }
}

static void compare(const uint8_t *a, const uint8_t *b, uint32_t n,
                    uint32_t width)
{
    static uint16_t fast[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    static uint16_t plain[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    static uint64_t mask[RF_DELTA_BLOCK / 64 + 1];
    const size_t found = rf_delta_scan(a, b, n, width, fast);
    size_t expected = 0, skipped = 0;
    bool same = true;
    for (uint32_t i = 0; i < n && same; i++) {
        if (memcmp(a + (size_t)i * width, b + (size_t)i * width, width) != 0) {
            same = expected < found && fast[expected] == i;
            expected++;
        }
    }
    ck_assert(same);
    ck_assert_uint_eq(found, expected);
    ck_assert_uint_eq(rf_delta_scan_plain(a, b, n, width, plain), found);
    ck_assert(found == 0 || memcmp(fast, plain, found * sizeof(*fast)) == 0);
    memset(mask, 0xA5, sizeof(mask));
    rf_delta_mask(a, b, n, width, mask);
    ck_assert_uint_eq(rf_delta_positions(mask, 0, n, 0, plain), found);
    ck_assert(found == 0 || memcmp(fast, plain, found * sizeof(*fast)) == 0);
    ck_assert_uint_eq(mask[(n + 63) / 64], UINT64_C(0xA5A5A5A5A5A5A5A5));
    /* A part, from the third element on to the last but one. */
    while (skipped < found && fast[skipped] < 3) {
        skipped++;
    }
    if (n > 4) {
        const bool last = found > skipped && fast[found - 1] == n - 1;
        const size_t part = found - skipped - last;
        ck_assert_uint_eq(rf_delta_positions(mask, 3, n - 4, 2, plain), part);
        for (size_t i = 0; i < part; i++) {
            ck_assert(plain[i] == fast[skipped + i] - 3 + 2);
        }
    }
    compare_groups(a, b, n, width);
}

/* The arrays end where memory does: nothing beyond is read. */
LOOP_TEST(test_scan_finds_what_a_loop_finds, RF_ARRAY_SIZE(widths))
{
    const uint32_t width = widths[_i];
    uint64_t random = 1;
    for (size_t c = 0; c < RF_ARRAY_SIZE(counts); c++) {
        const size_t bytes = (size_t)counts[c] * width;
        AUTO_FREE uint8_t *a = malloc(bytes);
        AUTO_FREE uint8_t *b = malloc(bytes + 1);
        for (size_t d = 0; d < RF_ARRAY_SIZE(densities); d++) {
            for (size_t i = 0; i < bytes; i++) {
                random = rf_mix64(random + 1);
                a[i] = (uint8_t)random;
                b[i + 1] = a[i];
                if ((random >> 16 & 0xffff) < densities[d] / width) {
                    b[i + 1] ^= (uint8_t)(1u << (random >> 40) % 8);
                }
            }
            compare(a, b + 1, counts[c], width);
        }
    }
}

TEST(test_scan_compares_bits)
{
    static const float zeros[][2] = {{0.0f, -0.0f}, {1.0f, 1.0f}};
    const uint32_t nans[] = {0x7fc00000, 0x7fc00001, 0x7fc00000};
    uint16_t at[2 + RF_DELTA_SLACK];
    ck_assert_uint_eq(rf_delta_scan(&zeros[0][0], &zeros[0][1], 1, 4, at), 1);
    ck_assert_uint_eq(rf_delta_scan(&zeros[1][0], &zeros[1][1], 1, 4, at), 0);
    ck_assert_uint_eq(rf_delta_scan(&nans[0], &nans[1], 1, 4, at), 1);
    ck_assert_uint_eq(rf_delta_scan(&nans[0], &nans[2], 1, 4, at), 0);
}
