/* Blocks: what is encoded comes back, whatever changes and however encoded, in
 * no more bytes than allowed; what is malformed is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "transport/delta/delta_block.h"
#include "tests/unit/unit.h"

static const uint32_t widths[] = {1, 2, 4, 8};
static const uint32_t counts[] = {1,   2,   3,    7,    8,     9,    64,
                                  255, 256, 1000, 4097, 65535, 65536};

/* Old and new content of a block, and its changes. */
struct block {
    uint32_t count, width, n;
    uint8_t *old, *new, *out;
    uint16_t *at;
    uint8_t *values, *before;
    uint8_t *dst; /* room to decode into */
    struct rf_delta_scratch *scratch;
};

static void block_make(struct block *block, uint32_t count, uint32_t width)
{
    const size_t bytes = ((size_t)count + RF_DELTA_SLACK) * width;
    *block = (struct block){.count = count,
                            .width = width,
                            .old = rf_xcalloc(bytes, 1),
                            .new = rf_xcalloc(bytes, 1),
                            .values = rf_xcalloc(bytes, 1),
                            .before = rf_xcalloc(bytes, 1),
                            .dst = rf_xcalloc(bytes, 1),
                            .out = rf_xmalloc(rf_delta_bound(count, width))};
    block->at = rf_xcalloc(count + RF_DELTA_SLACK, sizeof(*block->at));
    block->scratch = rf_xmalloc(sizeof(*block->scratch));
    for (size_t i = 0; i < bytes; i++) {
        block->old[i] = (uint8_t)rf_mix64(i + count);
    }
    memcpy(block->new, block->old, bytes);
}

static void block_free(struct block *block)
{
    free(block->old);
    free(block->new);
    free(block->out);
    free(block->at);
    free(block->values);
    free(block->before);
    free(block->dst);
    free(block->scratch);
}

static void change(const struct block *block, uint32_t element)
{
    block->new[(size_t)element * block->width] ^=
        (uint8_t)(1 + rf_mix64(element) % 255);
}

/* Whether a block has all elements, changed or not. */
static bool has_all(enum rf_delta_positions positions)
{
    return positions == RF_DELTA_DENSE || positions == RF_DELTA_XOR;
}

static size_t encode(struct block *block, struct rf_delta_how how)
{
    struct rf_delta_changes changes = {.width = block->width,
                                       .count = block->count,
                                       .at = block->at,
                                       .values = block->values,
                                       .old = block->before};
    block->n = (uint32_t)rf_delta_scan(block->old, block->new, block->count,
                                       block->width, block->at);
    changes.n = block->n;
    rf_delta_gather(block->new, block->at, block->n, block->width,
                    block->values);
    rf_delta_gather(block->old, block->at, block->n, block->width,
                    block->before);
    if (has_all(how.positions)) {
        changes.n = block->count;
        changes.values = block->new;
    }
    if (how.positions == RF_DELTA_XOR) {
        for (size_t i = 0; i < (size_t)block->count * block->width; i++) {
            block->values[i] = block->old[i] ^ block->new[i];
        }
        changes.values = block->values;
    }
    return rf_delta_encode(&changes, how, block->out);
}

/* Decodes what is in block->out over the old content, in two ranges. */
static void check(const struct block *block, size_t bytes)
{
    const size_t size = (size_t)block->count * block->width;
    uint8_t *dst = block->dst;
    AUTO_FREE uint8_t *exact = rf_xmalloc(RF_MIN(bytes, 4096));
    const uint8_t *in = bytes > 4096 ? block->out : exact;
    struct rf_delta_changes changes;
    struct rf_delta_how how;
    uint32_t cut, first;
    memcpy(dst, block->old, size);
    memcpy(exact, block->out, RF_MIN(bytes, 4096)); /* ends where memory does */
    ck_assert(rf_delta_decode(in, bytes, block->count, block->width,
                              block->scratch, &changes, &how));
    cut = changes.n / 3;
    ck_assert((changes.at == NULL) == has_all(how.positions));
    first = cut == changes.n ? 0 : changes.at != NULL ? changes.at[cut] : cut;
    rf_delta_apply(&changes, how, 0, cut, 0, dst);
    rf_delta_apply(&changes, how, cut, changes.n, first,
                   dst + (size_t)first * block->width);
    ck_assert_mem_eq(dst, block->new, size);
}

/* A second decoder, tests/lib/decode-blocks; NULL: not asked. */
static FILE *second;

static void ask_second(const struct block *block, size_t bytes)
{
    const uint32_t head[] = {block->width, block->count, (uint32_t)bytes};
    const size_t size = (size_t)block->count * block->width;
    if (second != NULL) {
        ck_assert_uint_eq(fwrite(head, 1, sizeof(head), second), sizeof(head));
        ck_assert_uint_eq(fwrite(block->old, 1, size, second), size);
        ck_assert_uint_eq(fwrite(block->new, 1, size, second), size);
        ck_assert_uint_eq(fwrite(block->out, 1, bytes, second), bytes);
    }
}

static void check_all_ways(struct block *block)
{
    for (uint32_t p = 0; p < RF_DELTA_POSITIONS; p++) {
        for (uint32_t values = 0; values < 3; values++) {
            const struct rf_delta_how how = {.positions =
                                                 (enum rf_delta_positions)p,
                                             .diff = values > 0,
                                             .zstd = values > 1};
            size_t bytes;
            if (how.diff && (block->width != 2 || has_all(how.positions))) {
                continue;
            }
            if (p == RF_DELTA_RUNS &&
                memcmp(block->old, block->new,
                       (size_t)block->count * block->width) == 0) {
                continue; /* there is at least one run */
            }
            bytes = encode(block, how);
            ck_assert_uint_le(bytes,
                              rf_delta_bound(block->count, block->width));
            check(block, bytes);
            ask_second(block, bytes);
        }
    }
}

LOOP_TEST(test_block_comes_back_however_encoded, RF_ARRAY_SIZE(widths))
{
    static const uint32_t every[] = {1,   2,   3,   9,   100,
                                     254, 255, 256, 257, 40000};
    for (size_t c = 0; c < RF_ARRAY_SIZE(counts); c++) {
        struct block block;
        block_make(&block, counts[c], widths[_i]);
        check_all_ways(&block); /* nothing has changed */
        for (size_t e = 0; e < RF_ARRAY_SIZE(every); e++) {
            memcpy(block.new, block.old, (size_t)block.count * block.width);
            for (uint32_t i = every[e] / 2; i < block.count; i += every[e]) {
                change(&block, i);
            }
            check_all_ways(&block);
            for (uint32_t i = 0; i < block.count / 8; i++) { /* and some */
                change(&block,
                       (uint32_t)(rf_mix64(i * 3 + every[e]) % block.count));
            }
            check_all_ways(&block);
        }
        memcpy(block.new, block.old, (size_t)block.count * block.width);
        change(&block, block.count - 1);
        check_all_ways(&block);
        block_free(&block);
    }
}

/* Up to twenty elements of any distance among those that change by few. */
static void change_much(const struct block *block)
{
    for (uint32_t i = 0; i < RF_MIN(block->count, 20u); i++) {
        change(block, (uint32_t)(rf_mix64(i) % block->count));
    }
}

LOOP_TEST(test_another_decoder_agrees, RF_ARRAY_SIZE(widths))
{
    static const uint32_t some[] = {1, 3, 256, 3000, 65536};
    static const uint32_t every[] = {1, 3, 40, 300};
    const uint32_t width = widths[_i];
    second = popen("tests/lib/decode-blocks >/dev/null", "w");
    ck_assert_ptr_nonnull(second);
    for (size_t c = 0; c < RF_ARRAY_SIZE(some); c++) {
        struct block block;
        block_make(&block, some[c], width);
        for (size_t e = some[c] == 65536 ? 2 : 0; e < RF_ARRAY_SIZE(every);
             e++) {
            const size_t size = (size_t)block.count * width;
            memcpy(block.new, block.old, size);
            for (uint32_t i = 0; i < block.count; i += every[e]) {
                block.new[(size_t)i * width] ^= 1;
            }
            check_all_ways(&block);
            change_much(&block);
            check_all_ways(&block);
        }
        block_free(&block);
    }
    ck_assert_int_eq(pclose(second), 0);
    second = NULL;
}

/* From any bits to any others, NaNs and zeros of both signs included. */
TEST(test_differences_are_of_any_bits)
{
    struct block block;
    block_make(&block, 65536, 2);
    for (uint32_t by = 1; by < 65536; by = by * 3 + 1) {
        for (uint32_t i = 0; i < 65536; i++) {
            const uint16_t old = (uint16_t)i, new = (uint16_t)(i + by);
            memcpy(block.old + (size_t)i * 2, &old, 2);
            memcpy(block.new + (size_t)i * 2, &new, 2);
        }
        check(&block,
              encode(&block, (struct rf_delta_how){.positions = RF_DELTA_BITMAP,
                                                   .diff = true}));
    }
    block_free(&block);
}

/* What neighbours in value take: a bit each, across zero, too. */
TEST(test_small_differences_take_few_bits)
{
    static const uint16_t pairs[][2] = {
        {0x3f80, 0x3f81}, {0x3f81, 0x3f80}, {0x0000, 0x8000}, {0x8000, 0x0000}};
    struct block block;
    size_t bytes;
    block_make(&block, 4096, 2);
    for (uint32_t i = 0; i < 4096; i++) {
        memcpy(block.old + (size_t)i * 2, &pairs[i % 4][0], 2);
        memcpy(block.new + (size_t)i * 2, &pairs[i % 4][1], 2);
    }
    bytes = encode(&block, (struct rf_delta_how){.positions = RF_DELTA_BITMAP,
                                                 .diff = true});
    ck_assert_uint_le(bytes, 4096 / 8 + 4096 / 8 + 16);
    check(&block, bytes);
    block_free(&block);
}

/* Where one encoding of positions becomes shorter than the next, and that no
 * other would have been shorter by much. */
TEST(test_best_encoding_is_the_shortest)
{
    for (uint32_t permille = 0; permille <= 1000; permille++) {
        struct block block;
        size_t least = SIZE_MAX, best = 0;
        enum rf_delta_positions chosen;
        block_make(&block, 65536, 2);
        for (uint32_t i = 0; i < 65536; i++) {
            if (rf_mix64(i + ((uint64_t)permille << 32)) % 1000 < permille) {
                change(&block, i);
            }
        }
        (void)encode(&block,
                     (struct rf_delta_how){.positions = RF_DELTA_IDX16});
        chosen =
            rf_delta_best(65536, block.n, rf_delta_runs(block.at, block.n), 2);
        for (uint32_t p = 0; p < RF_DELTA_POSITIONS; p++) {
            const struct rf_delta_how how = {.positions =
                                                 (enum rf_delta_positions)p};
            size_t bytes;
            if (p == RF_DELTA_RUNS && block.n == 0) {
                continue;
            }
            bytes = encode(&block, how);
            least = RF_MIN(least, bytes);
            best = p == (uint32_t)chosen ? bytes : best;
        }
        ck_assert_msg(best <= least + least / 100 + 8,
                      "%u permille: %d with %zu bytes instead of %zu", permille,
                      (int)chosen, best, least);
        block_free(&block);
        permille += permille / 20;
    }
}

static bool ascend(const struct rf_delta_changes *changes, uint32_t count)
{
    bool good = changes->n <= count;
    for (uint32_t i = 0; changes->at != NULL && i < changes->n && good; i++) {
        good = changes->at[i] < count &&
               (i == 0 || changes->at[i] > changes->at[i - 1]);
    }
    return good;
}

/* Any damage is refused or gives a block of the same elements. */
LOOP_TEST(test_damaged_block_stays_inside, RF_DELTA_POSITIONS * 2)
{
    const struct rf_delta_how how = {
        .positions = (enum rf_delta_positions)(_i / 2),
        .diff = _i % 2 == 1 && !has_all((enum rf_delta_positions)(_i / 2))};
    struct block block;
    size_t bytes;
    block_make(&block, 700, 2);
    for (uint32_t i = 0; i < 700; i += 1 + i % 5) {
        change(&block, i);
    }
    bytes = encode(&block, how);
    for (uint64_t seed = 0; seed < 5000; seed++) {
        const uint64_t random = rf_mix64(seed);
        const size_t kept = seed % 4 == 0 ? random % (bytes + 1) : bytes;
        AUTO_FREE uint8_t *in = rf_xmalloc(kept + 1);
        struct rf_delta_changes changes;
        struct rf_delta_how found;
        memcpy(in, block.out, kept);
        if (kept > 0) {
            in[(random >> 20) % (kept < 9 || seed % 3 ? kept : 9)] ^=
                (uint8_t)(random >> 40);
        }
        if (!rf_delta_decode(in, kept, 700, 2, block.scratch, &changes,
                             &found)) {
            continue;
        }
        ck_assert(ascend(&changes, 700));
        rf_delta_apply(&changes, found, 0, changes.n, 0, block.dst);
    }
    block_free(&block);
}
