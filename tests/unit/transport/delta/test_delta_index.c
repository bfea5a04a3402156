/* The index of an arena's changes, against a loop. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/unit/unit.h"
#include "transport/delta/delta_index.h"
#include "transport/delta/delta_scan.h"

#define BYTES (3 * 65536 * 2 + 4096) /* more than three blocks of two bytes */

struct arena {
    uint8_t *now, *shadow;
};

static struct arena make_arena(uint64_t changes)
{
    struct arena arena = {rf_xmalloc(BYTES), rf_xmalloc(BYTES)};
    for (size_t i = 0; i < BYTES; i++) {
        arena.now[i] = arena.shadow[i] = (uint8_t)rf_mix64(i);
    }
    for (uint64_t i = 0; i < changes; i++) {
        arena.now[rf_mix64(i * 977 + 1) % BYTES] ^= 1;
    }
    return arena;
}

static void free_arena(struct arena *arena)
{
    free(arena->now);
    free(arena->shadow);
}

static uint32_t find(struct rf_delta_index *index, const uint8_t *at,
                     uint32_t n, uint32_t width, uint16_t *found)
{
    const struct rf_delta_lists positions = {.at = found};
    return rf_delta_index_find(index, at, n, width, &positions);
}

/* The lists of elements, too. */
static bool finds_all(struct rf_delta_index *index, const struct arena *arena,
                      uint64_t at, uint32_t n, uint32_t width)
{
    static uint16_t found[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    static uint8_t now[8 * (RF_DELTA_BLOCK + RF_DELTA_SLACK)];
    static uint8_t old[8 * (RF_DELTA_BLOCK + RF_DELTA_SLACK)];
    const struct rf_delta_lists lists = {found, now, old};
    const uint32_t all =
        rf_delta_index_find(index, arena->now + at, n, width, &lists);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t from = at + (uint64_t)i * width;
        const uint8_t *a = arena->now + from, *b = arena->shadow + from;
        const size_t here = (size_t)k * width;
        if (memcmp(a, b, width) == 0) {
            continue;
        }
        if (k == all || found[k++] != i || memcmp(now + here, a, width) != 0 ||
            memcmp(old + here, b, width) != 0) {
            return false;
        }
    }
    return k == all;
}

static const struct {
    uint32_t unit, width;
    uint64_t changes;
} kinds[] = {{1, 1, 3000}, {1, 2, 3000}, {2, 2, 100},   {2, 2, 300000},
             {2, 4, 3000}, {2, 8, 9000}, {4, 8, 40000}, {8, 8, 1000}};

LOOP_TEST(test_index_finds_what_a_loop_finds, RF_ARRAY_SIZE(kinds))
{
    const uint32_t width = kinds[_i].width;
    struct arena arena = make_arena(kinds[_i].changes);
    struct rf_delta_index *index = rf_delta_index_create(
        arena.now, arena.shadow, BYTES, kinds[_i].unit, true);
    ck_assert_ptr_nonnull(index);
    ck_assert(finds_all(index, &arena, 0, RF_DELTA_BLOCK / width, width));
    for (uint64_t i = 0; i < 300; i++) {
        const uint64_t at = rf_mix64(i) % (BYTES / width) * width;
        const uint64_t left = (BYTES - at) / width;
        const uint64_t most = RF_MIN(left, i % 3 == 0 ? RF_DELTA_BLOCK : 700);
        const uint32_t n = (uint32_t)(1 + rf_mix64(i + 1000) % most);
        ck_assert(finds_all(index, &arena, at, n, width));
    }
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

TEST(test_index_is_of_the_weights_when_it_is_asked)
{
    struct arena arena = make_arena(1000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, BYTES, 2, true);
    ck_assert(finds_all(index, &arena, 0, 5000, 2));
    arena.now[100] ^= 0x40;
    rf_delta_index_forget(index, true);
    ck_assert(finds_all(index, &arena, 0, 5000, 2));
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* Pieces that nobody asked for stay as they are. */
TEST(test_commit_brings_the_shadow_up_to_date)
{
    struct arena arena = make_arena(5000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, BYTES, 2, true);
    const uint64_t block = (uint64_t)RF_DELTA_BLOCK * 2;
    ck_assert(finds_all(index, &arena, 0, RF_DELTA_BLOCK, 2));
    ck_assert(finds_all(index, &arena, 3 * block, 2048, 2));
    rf_delta_index_commit(index);
    ck_assert_mem_eq(arena.shadow, arena.now, block);
    ck_assert_mem_ne(arena.shadow + block, arena.now + block, 2 * block);
    ck_assert_mem_eq(arena.shadow + 3 * block, arena.now + 3 * block,
                     BYTES - 3 * block);
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* Without keeping, the shadow follows at once, and positions stay. */
TEST(test_a_shadow_follows_what_was_found)
{
    static uint16_t first[RF_DELTA_BLOCK + RF_DELTA_SLACK],
        again[7000 + RF_DELTA_SLACK];
    struct arena arena = make_arena(5000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, BYTES, 2, false);
    const uint64_t block = (uint64_t)RF_DELTA_BLOCK * 2;
    const uint32_t n = find(index, arena.now, 7000, 2, first);
    ck_assert_uint_gt(n, 0);
    ck_assert_mem_eq(arena.shadow, arena.now, 7000 * 2);
    ck_assert_mem_ne(arena.shadow + block, arena.now + block, block);
    ck_assert_uint_eq(find(index, arena.now, 7000, 2, again), n);
    ck_assert_mem_eq(again, first, n * sizeof(*first));
    rf_delta_index_commit(index);
    ck_assert_mem_ne(arena.shadow + block, arena.now + block, block);
    rf_delta_index_forget(index, false);
    ck_assert_uint_eq(find(index, arena.now, 7000, 2, again), 0);
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* Whether a piece is known or not; without learning it. */
LOOP_TEST(test_a_sample_counts_what_changed, RF_ARRAY_SIZE(kinds))
{
    const uint32_t width = kinds[_i].width;
    struct arena arena = make_arena(kinds[_i].changes);
    struct rf_delta_index *index = rf_delta_index_create(
        arena.now, arena.shadow, BYTES, kinds[_i].unit, false);
    AUTO_FREE uint8_t *before = rf_xmalloc(BYTES);
    static uint16_t found[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    memcpy(before, arena.shadow, BYTES);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < 300; i++) {
            const uint32_t n = (uint32_t)(1 + rf_mix64(i) % 64);
            const uint64_t at = rf_mix64(i + 1000) % (BYTES / width - n);
            uint32_t changed = 0;
            for (uint64_t k = at; k < at + n; k++) {
                changed += memcmp(arena.now + k * width, before + k * width,
                                  width) != 0;
            }
            ck_assert_uint_eq(
                rf_delta_index_sample(index, arena.now + at * width, n, width),
                changed);
        }
        if (pass == 0) {
            ck_assert_mem_eq(arena.shadow, before, BYTES);
        }
        for (uint64_t at = 0; at < BYTES; at += 4096) { /* learn half of it */
            if (at / 4096 % 2 == 0) {
                find(index, arena.now + at, 4096 / width, width, found);
            }
        }
    }
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

#define PIECE_BYTES 4096 /* of units of two bytes */

/* Of a part of two pieces, all of both; of others, only what changed. */
LOOP_TEST(test_what_is_assumed_has_changed, 2)
{
    const bool keeps = _i == 1;
    static uint16_t found[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    struct arena arena = make_arena(1000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, BYTES, 2, keeps);
    AUTO_FREE uint8_t *before = rf_xmalloc(BYTES);
    const uint32_t two = PIECE_BYTES / 2 * 2;
    memcpy(before, arena.shadow, BYTES);
    rf_delta_index_assume(index, arena.now + PIECE_BYTES + 100, PIECE_BYTES);
    for (uint32_t turn = 0; turn < 2; turn++) {
        ck_assert_uint_eq(find(index, arena.now + PIECE_BYTES, two, 2, found),
                          two);
        ck_assert_uint_eq(
            rf_delta_index_sample(index, arena.now + PIECE_BYTES + 8, 64, 2),
            64);
        ck_assert(
            memcmp(arena.shadow + PIECE_BYTES,
                   (keeps && turn == 0 ? before : arena.now) + PIECE_BYTES,
                   2 * (size_t)PIECE_BYTES) == 0);
        ck_assert_mem_eq(arena.shadow, before, PIECE_BYTES);
        ck_assert_mem_eq(arena.shadow + 3 * PIECE_BYTES,
                         before + 3 * PIECE_BYTES, BYTES - 3 * PIECE_BYTES);
        rf_delta_index_commit(index);
    }
    ck_assert_uint_lt(find(index, arena.now, PIECE_BYTES / 2, 2, found), 100);
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* What is known is not forgotten, and the last piece ends where the arena does.
 */
TEST(test_what_is_known_is_not_assumed)
{
    static uint16_t found[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    struct arena arena = make_arena(5000);
    const size_t bytes = BYTES - 1000;
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, bytes, 2, false);
    const uint32_t n = find(index, arena.now, RF_DELTA_BLOCK, 2, found);
    AUTO_FREE uint8_t *rest = rf_xmalloc(1000);
    memcpy(rest, arena.shadow + bytes, 1000);
    ck_assert_mem_ne(rest, arena.now + bytes, 1000);
    rf_delta_index_assume(index, arena.now, bytes);
    ck_assert_uint_eq(find(index, arena.now, RF_DELTA_BLOCK, 2, found), n);
    ck_assert_mem_eq(arena.shadow, arena.now, bytes);
    ck_assert_mem_eq(arena.shadow + bytes, rest, 1000);
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* Ends in a piece, which is assumed to have changed, and compared in the next
 * iteration. */
LOOP_TEST(test_nothing_follows_after_the_end, 4)
{
    const bool keeps = _i % 2 == 1;
    const size_t bytes = PIECE_BYTES + (_i < 2 ? 600 : 3096);
    uint16_t found[1 + RF_DELTA_SLACK];
    struct arena arena = make_arena(30000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, bytes, 2, keeps);
    AUTO_FREE uint8_t *rest = rf_xmalloc(BYTES);
    memcpy(rest, arena.shadow + bytes, BYTES - bytes);
    ck_assert_mem_ne(rest, arena.now + bytes, 1000);
    rf_delta_index_assume(index, arena.now, bytes);
    rf_delta_index_commit(index);
    ck_assert_mem_eq(arena.shadow, arena.now, bytes);
    rf_delta_index_forget(index, keeps);
    arena.now[bytes - 1] ^= 1;
    ck_assert_uint_eq(find(index, arena.now + bytes - 2, 1, 2, found), 1);
    rf_delta_index_commit(index);
    ck_assert_mem_eq(arena.shadow, arena.now, bytes);
    ck_assert_mem_eq(arena.shadow + bytes, rest, BYTES - bytes);
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* Two want the first piece and a half, one of them all of two. */
TEST(test_the_shadow_follows_when_all_are_served)
{
    static uint16_t found[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    struct arena arena = make_arena(5000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, BYTES, 2, true);
    const uint32_t half = PIECE_BYTES / 2, one = PIECE_BYTES, two = 2 * one;
    uint8_t *now = arena.now;
    AUTO_FREE uint8_t *before = rf_xmalloc(BYTES);
    memcpy(before, arena.shadow, BYTES);
    rf_delta_index_expect(index, now, one + half);
    rf_delta_index_expect(index, now, two);
    for (uint32_t turn = 0; turn < 2; turn++) {
        struct rf_delta_found known = {NULL, 0, 0};
        rf_delta_index_forget(index, true);
        memcpy(arena.shadow, before, BYTES);
        /* two more pieces */
        known.n = find(index, now, two, 2, found);
        known = turn == 0 ? (struct rf_delta_found){NULL, 0, 0}
                          : (struct rf_delta_found){found, known.n, 0};
        rf_delta_index_served(index, now, two, known);
        ck_assert_mem_eq(arena.shadow, before, BYTES);
        ck_assert(rf_delta_index_has_old(index, now, two));
        rf_delta_index_served(index, now, one, known);
        ck_assert_mem_eq(arena.shadow, now, one);
        ck_assert_mem_eq(arena.shadow + one, before + one, BYTES - one);
        ck_assert(!rf_delta_index_has_old(index, now + one - 2, 4));
        ck_assert(rf_delta_index_has_old(index, now + one, one));
        known.base = one / 2;
        rf_delta_index_served(index, now + one, half, known);
        ck_assert_mem_eq(arena.shadow, now, two);
        ck_assert_mem_eq(arena.shadow + two, before + two, BYTES - two);
    }
    rf_delta_index_destroy(index);
    free_arena(&arena);
}

/* The shadow follows where something has changed, and nowhere else. */
TEST(test_the_shadow_follows_what_is_known_to_have_changed)
{
    static uint16_t found[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    struct arena arena = make_arena(5000);
    struct rf_delta_index *index =
        rf_delta_index_create(arena.now, arena.shadow, BYTES, 2, true);
    const uint32_t one = PIECE_BYTES, half = one / 2, all = 5 * one;
    uint8_t *now = arena.now;
    AUTO_FREE uint8_t *wanted = rf_xmalloc(BYTES);
    struct rf_delta_found known = {.at = found};
    uint64_t same = one;
    rf_delta_index_expect(index, now, all);
    rf_delta_index_forget(index, true);
    memcpy(wanted, arena.shadow, BYTES);
    memcpy(wanted + one, now + one, 3 * one);
    known.n = find(index, now, all / 2, 2, found);
    while (memcmp(now + same, arena.shadow + same, 2) != 0) {
        same += 2;
    }
    now[same] ^= 1; /* too late to be found */
    known.base = half / 2;
    rf_delta_index_served(index, now + half, half, known);
    known.base = one / 2;
    rf_delta_index_served(index, now + one, 3 * one, known);
    ck_assert_mem_eq(arena.shadow, wanted, BYTES);
    rf_delta_index_destroy(index);
    free_arena(&arena);
}
