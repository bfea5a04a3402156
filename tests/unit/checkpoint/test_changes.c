/* What differs between two states of tensors, by counts made by hand and by a
 * plainer count of random bits. */
#include "checkpoint/changes.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/unit/unit.h"

/* Sixteen of 64 elements, in runs of four, each the next float. */
TEST(test_bounds_of_a_known_change)
{
    struct rf_changes changes = {0};
    uint16_t before[64], after[64];
    double raw, diff;
    for (uint16_t i = 0; i < 64; i++) {
        before[i] = (uint16_t)(0x3F80 + i);
        after[i] = (uint16_t)(before[i] + (i % 16 < 4));
    }
    rf_changes_begin(&changes);
    rf_changes_add(&changes, before, after, 64, 2, RF_ORDER_FLOAT);
    rf_changes_end(&changes);
    ck_assert_uint_eq(changes.elements, 64);
    ck_assert_uint_eq(changes.bytes, 128);
    ck_assert_uint_eq(changes.changed, 16);
    ck_assert_uint_eq(changes.runs, 4);
    ck_assert_uint_eq(changes.at_distance[0], 16);
    rf_changes_settle(&changes);
    rf_changes_bounds(&changes, &raw, &diff);
    /* 48 H(4/48) + 16 H(4/16) = 32.84 bits, and 16 values of 16 bits. */
    ck_assert_double_eq_tol(raw, (32.84 + 256) / 8, 0.01);
    ck_assert_double_eq_tol(diff, 32.84 / 8, 0.01);
    rf_changes_free(&changes);
}

TEST(test_neighbours_are_one_ulp_apart_also_across_zero)
{
    static const struct {
        uint16_t before, after;
        size_t class;
    } cases[] = {{0x0000, 0x8000, 0}, {0x8000, 0x0000, 0}, {0x0001, 0x8000, 1},
                 {0x8001, 0x0001, 2}, {0x3F80, 0x3F7F, 0}, {0xBF80, 0xBF7F, 0},
                 {0x3F80, 0x3F90, 3}, {0x3F80, 0x3FFF, 4}, {0x3F80, 0x4000, 5},
                 {0x7FFF, 0xFFFF, 5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rf_changes changes = {0};
        rf_changes_begin(&changes);
        rf_changes_add(&changes, &cases[i].before, &cases[i].after, 1, 2,
                       RF_ORDER_FLOAT);
        rf_changes_end(&changes);
        ck_assert_uint_eq(changes.at_distance[cases[i].class], 1);
        rf_changes_free(&changes);
    }
}

/* A float as an integer: its bits, from the other end where it is negative. */
static double value_of(const uint8_t *at, uint32_t width)
{
    uint64_t bits = 0;
    const double sign = ldexp(1, (int)(8 * width - 1));
    memcpy(&bits, at, width);
    return (double)bits >= sign ? sign - 1 - (double)bits : (double)bits;
}

/* Parts of any size are as the whole; so is the sum of two. */
LOOP_TEST(test_parts_are_as_the_whole, 4)
{
    enum { ELEMENTS = 5000, BYTES = ELEMENTS * 8 };
    const uint32_t width = 1u << _i;
    AUTO_FREE uint8_t *before = rf_xmalloc(BYTES), *after = rf_xmalloc(BYTES);
    struct rf_changes whole = {0}, parts = {0}, sum = {0};
    double bounds[4];
    uint64_t changed = 0, near = 0;
    for (uint64_t i = 0; i < BYTES; i++) {
        before[i] = after[i] = (uint8_t)rf_mix64(i);
    }
    for (uint64_t i = 0; i < ELEMENTS; i += 1 + rf_mix64(i) % 90) {
        after[i * width] ^= (uint8_t)(1 + rf_mix64(i) % 7);
    }
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        const double far = fabs(value_of(before + i * width, width) -
                                value_of(after + i * width, width));
        changed += memcmp(before + i * width, after + i * width, width) != 0;
        near += far == 1;
    }
    rf_changes_begin(&whole);
    rf_changes_add(&whole, before, after, ELEMENTS, width, RF_ORDER_FLOAT);
    rf_changes_end(&whole);
    ck_assert_uint_eq(whole.changed, changed);
    ck_assert(width == 8 || whole.at_distance[0] == near);
    rf_changes_begin(&parts);
    for (uint64_t at = 0, n; at < ELEMENTS; at += n) {
        n = RF_MIN(1 + rf_mix64(at) % 100, ELEMENTS - at);
        rf_changes_add(&parts, before + at * width, after + at * width, n,
                       width, RF_ORDER_FLOAT);
    }
    rf_changes_end(&parts);
    rf_changes_sum(&sum, &parts);
    rf_changes_settle(&whole);
    rf_changes_settle(&sum);
    ck_assert_double_gt(whole.difference_bits, 0);
    rf_changes_bounds(&whole, &bounds[0], &bounds[1]);
    rf_changes_bounds(&sum, &bounds[2], &bounds[3]);
    ck_assert_double_eq(bounds[0], bounds[2]);
    ck_assert_double_eq(bounds[1], bounds[3]);
    ck_assert_uint_eq(sum.runs, whole.runs);
    ck_assert_uint_eq(sum.elements, whole.elements);
    ck_assert_mem_eq(sum.at_distance, whole.at_distance,
                     sizeof(sum.at_distance));
    rf_changes_free(&whole);
    rf_changes_free(&parts);
    rf_changes_free(&sum);
}

/* One change in two up, the other down; and one further than differences are
 * counted. */
TEST(test_differences_take_their_entropy)
{
    static const float zero = 0, one = 1;
    struct rf_changes changes = {0}, all = {0};
    uint16_t before[64], after[64];
    for (uint16_t i = 0; i < 64; i++) {
        before[i] = (uint16_t)(0x3F80 + i);
        after[i] = (uint16_t)(before[i] + (i % 2 == 0 ? 1 : -1));
    }
    rf_changes_begin(&changes);
    rf_changes_add(&changes, before, after, 64, 2, RF_ORDER_FLOAT);
    rf_changes_end(&changes);
    rf_changes_settle(&changes);
    ck_assert_double_eq_tol(changes.difference_bits, 64, 1e-9);
    rf_changes_sum(&all, &changes);
    changes = (struct rf_changes){0};
    rf_changes_begin(&changes);
    rf_changes_add(&changes, &zero, &one, 1, 4, RF_ORDER_FLOAT);
    rf_changes_end(&changes);
    rf_changes_settle(&changes);
    ck_assert_double_eq_tol(changes.difference_bits, 32, 1e-9);
    rf_changes_sum(&all, &changes);
    ck_assert_double_eq_tol(all.difference_bits, 96, 1e-9);
    ck_assert_uint_eq(all.changed, 65);
    rf_changes_free(&all);
}

/* -1 and 0, 127 and 128. */
TEST(test_integers_have_an_order_of_their_own)
{
    static const uint8_t before[] = {0xFF, 0x7F}, after[] = {0x00, 0x80};
    static const struct {
        enum rf_changes_order order;
        uint64_t near; /* of the two */
    } cases[] = {
        {RF_ORDER_SIGNED, 1}, {RF_ORDER_UNSIGNED, 1}, {RF_ORDER_FLOAT, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rf_changes changes = {0};
        rf_changes_begin(&changes);
        rf_changes_add(&changes, before, after, 2, 1, cases[i].order);
        rf_changes_end(&changes);
        ck_assert_uint_eq(changes.at_distance[0], cases[i].near);
        rf_changes_free(&changes);
    }
}

TEST(test_nothing_takes_no_bytes)
{
    struct rf_changes changes = {0};
    double raw, diff;
    rf_changes_begin(&changes);
    rf_changes_add(&changes, "", "", 0, 2, RF_ORDER_FLOAT);
    rf_changes_end(&changes);
    rf_changes_bounds(&changes, &raw, &diff);
    ck_assert(raw == 0 && diff == 0);
    rf_changes_free(&changes);
}

/* All elements but one, by differences that are all different: the positions
 * would come on top. */
TEST(test_no_more_than_all_bytes_are_needed)
{
    static uint16_t before[65536], after[65536];
    struct rf_changes changes = {0};
    double raw, diff;
    for (uint32_t i = 0; i < 65536; i++) {
        after[i] = (uint16_t)(i * 331);
    }
    after[30000] = 0;
    rf_changes_begin(&changes);
    rf_changes_add(&changes, before, after, 65536, 2, RF_ORDER_UNSIGNED);
    rf_changes_end(&changes);
    rf_changes_settle(&changes);
    rf_changes_bounds(&changes, &raw, &diff);
    ck_assert(changes.position_bits / 8 + (double)changes.changed_bytes >
              131072);
    ck_assert(raw == 131072 && diff <= 131072);
    rf_changes_free(&changes);
}
