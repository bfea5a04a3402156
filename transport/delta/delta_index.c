/* See delta_index.h. */
#include "transport/delta/delta_index.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"
#include "transport/delta/delta_scan.h"

/* What is compared at once, and stays in the first cache until the shadow has
 * followed and the changes are collected. */
#define PIECE 2048
#define WORDS (PIECE / 64)

/* Of a piece: not compared; compared; and in the shadow, too. */
enum { UNKNOWN, KNOWN, FOLLOWED };

struct rf_delta_index {
    const uint8_t *now;
    uint8_t *shadow;
    uint64_t bytes;
    uint32_t unit;
    size_t n_pieces;
    bool keeps;     /* the shadow as it was, as long as it is needed */
    uint64_t *bits; /* WORDS per piece; none after the arena's end */
    uint8_t *state; /* by piece, as are */
    uint32_t *expected, *left; /* bytes to be served, and still to be */
    uint16_t *listed;          /* changes, when it was last listed */
    uint16_t at[PIECE + RF_DELTA_SLACK];
};

struct rf_delta_index *rf_delta_index_create(const void *now, void *shadow,
                                             uint64_t bytes, uint32_t unit,
                                             bool keeps)
{
    const uint64_t piece = (uint64_t)PIECE * unit;
    struct rf_delta_index *index = rf_calloc(1, sizeof(*index));
    if (index == NULL) {
        return NULL;
    }
    index->now = now;
    index->shadow = shadow;
    index->bytes = bytes;
    index->unit = unit;
    index->keeps = keeps;
    index->n_pieces = (size_t)((bytes + piece - 1) / piece);
    index->bits = rf_calloc(index->n_pieces + 1, WORDS * sizeof(uint64_t));
    index->state = rf_calloc(index->n_pieces + 1, sizeof(*index->state));
    index->expected = rf_calloc(index->n_pieces + 1, sizeof(*index->expected));
    index->left = rf_calloc(index->n_pieces + 1, sizeof(*index->left));
    index->listed = rf_calloc(index->n_pieces + 1, sizeof(*index->listed));
    if (index->bits == NULL || index->state == NULL ||
        index->expected == NULL || index->left == NULL ||
        index->listed == NULL) {
        rf_delta_index_destroy(index);
        return NULL;
    }
    return index;
}

void rf_delta_index_destroy(struct rf_delta_index *index)
{
    if (index == NULL) {
        return;
    }
    free(index->bits);
    free(index->state);
    free(index->expected);
    free(index->left);
    free(index->listed);
    free(index);
}

const uint8_t *rf_delta_index_shadow(const struct rf_delta_index *index,
                                     const void *at)
{
    return index->shadow + ((const uint8_t *)at - index->now);
}

void rf_delta_index_forget(struct rf_delta_index *index, bool keeps)
{
    index->keeps = keeps;
    memset(index->state, UNKNOWN, index->n_pieces * sizeof(*index->state));
    memcpy(index->left, index->expected,
           index->n_pieces * sizeof(*index->left));
}

/* A part of `bytes` from `at` on, in one piece. */
struct piece_part {
    size_t piece;
    uint32_t bytes;
};

/* From part to part; the first comes after {0}. False after the last. */
static bool next_part(const struct rf_delta_index *index, const void *at,
                      uint64_t bytes, struct piece_part *part)
{
    const uint64_t piece = (uint64_t)PIECE * index->unit;
    const uint64_t first = (uint64_t)((const uint8_t *)at - index->now);
    const uint64_t end = first + bytes;
    uint64_t from;
    part->piece = part->bytes == 0 ? first / piece : part->piece + 1;
    from = RF_MAX(first, part->piece * piece);
    if (from >= end) {
        return false;
    }
    part->bytes = (uint32_t)(RF_MIN(end, (part->piece + 1) * piece) - from);
    return true;
}

void rf_delta_index_expect(struct rf_delta_index *index, const void *at,
                           uint64_t bytes)
{
    for (struct piece_part part = {0}; next_part(index, at, bytes, &part);) {
        index->expected[part.piece] += part.bytes;
        index->left[part.piece] += part.bytes;
    }
}

static void copy_piece(struct rf_delta_index *index, size_t piece)
{
    const uint64_t bytes = (uint64_t)PIECE * index->unit;
    const uint64_t from = piece * bytes;
    memcpy(index->shadow + from, index->now + from,
           (size_t)RF_MIN(index->bytes - from, bytes));
}

/* Stores what has changed in a piece: at[], less `base`, are n of its units. */
static void follow(struct rf_delta_index *index, size_t piece, uint32_t base,
                   const uint16_t *at, size_t n)
{
    const uint32_t unit = index->unit;
    const uint64_t from = ((uint64_t)piece * PIECE - base) * unit;
    uint8_t *shadow = index->shadow + from;
    const uint8_t *now = index->now + from;
    index->state[piece] = FOLLOWED;
    if (n > PIECE / 4) { /* most lines change */
        copy_piece(index, piece);
        return;
    }
    if (unit == 2) { /* stores, not calls */
        for (size_t i = 0; i < n; i++) {
            memcpy(shadow + (size_t)at[i] * 2, now + (size_t)at[i] * 2, 2);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t to = (size_t)at[i] * unit;
        memcpy(shadow + to, now + to, unit);
    }
}

static void commit_piece(struct rf_delta_index *index, size_t piece)
{
    const size_t n =
        rf_delta_positions(index->bits + piece * WORDS, 0, PIECE, 0, index->at);
    follow(index, piece, 0, index->at, n);
}

/* How many units of a piece there are: the arena may end in it. */
static size_t units_of(const struct rf_delta_index *index, size_t piece)
{
    const uint64_t from = (uint64_t)piece * PIECE;
    return (size_t)RF_MIN(index->bytes / index->unit - from, PIECE);
}

/* Of a piece that is not known, while both are in the cache. */
static void learn(struct rf_delta_index *index, size_t piece)
{
    const uint64_t from = (uint64_t)piece * PIECE * index->unit;
    rf_delta_mask(index->now + from, index->shadow + from,
                  units_of(index, piece), index->unit,
                  index->bits + piece * WORDS);
    index->state[piece] = KNOWN;
    if (!index->keeps) {
        commit_piece(index, piece);
    }
}

/* Learns all of a piece, and lists it: positions from `base` on. */
static uint32_t learn_lists(struct rf_delta_index *index, size_t piece,
                            uint16_t base, const struct rf_delta_lists *out)
{
    const uint64_t from = (uint64_t)piece * PIECE * index->unit;
    const size_t n =
        rf_delta_list(index->now + from, index->shadow + from, PIECE,
                      index->unit, base, out, index->bits + piece * WORDS);
    index->state[piece] = KNOWN;
    index->listed[piece] = (uint16_t)n;
    if (!index->keeps) {
        follow(index, piece, base, out->at, n);
    }
    return (uint32_t)n;
}

/* Where a list of elements goes on after n of them. */
static void *after(void *list, uint32_t n, uint32_t width)
{
    return list != NULL ? (uint8_t *)list + (size_t)n * width : NULL;
}

/* Positions of elements of several units, of which some may have changed. */
static uint32_t find_wide(const struct rf_delta_index *index, uint64_t first,
                          uint64_t end, int shift, uint16_t *out)
{
    uint32_t found = 0;
    for (uint64_t w = first / 64; w * 64 < end; w++) {
        uint64_t word = index->bits[w];
        const uint64_t before = w * 64 < first ? first - w * 64 : 0;
        const uint64_t past = (w + 1) * 64 > end ? (w + 1) * 64 - end : 0;
        word = word >> before << before;
        word = word << past >> past;
        for (; word != 0; word &= word - 1) {
            const uint64_t unit = w * 64 + (uint64_t)__builtin_ctzll(word);
            const uint16_t position = (uint16_t)((unit - first) >> shift);
            found -= found > 0 && out[found - 1] == position;
            out[found++] = position;
        }
    }
    return found;
}

/* Units [first, end). */
static uint32_t find_units(struct rf_delta_index *index, uint64_t first,
                           uint64_t end, const struct rf_delta_lists *out)
{
    const uint32_t unit = index->unit;
    uint32_t found = 0;
    for (size_t p = first / PIECE; p * PIECE < end; p++) {
        const uint64_t from = RF_MAX(first, (uint64_t)p * PIECE);
        const uint64_t to = RF_MIN(end, (uint64_t)(p + 1) * PIECE);
        const uint16_t base = (uint16_t)(from - first);
        const struct rf_delta_lists here = {out->at + found,
                                            after(out->values, found, unit),
                                            after(out->old, found, unit)};
        uint32_t more;
        if (index->state[p] == UNKNOWN && to - from == PIECE) {
            found += learn_lists(index, p, base, &here);
            continue;
        }
        if (index->state[p] == UNKNOWN) {
            learn(index, p);
        }
        more = (uint32_t)rf_delta_positions(index->bits, from, to - from, base,
                                            here.at);
        rf_delta_gather_lists(index->now + first * unit,
                              index->shadow + first * unit, more, unit, &here);
        found += more;
    }
    return found;
}

uint32_t rf_delta_index_find(struct rf_delta_index *index, const void *at,
                             uint32_t n, uint32_t width,
                             const struct rf_delta_lists *out)
{
    /* width / unit, as a shift */
    const int shift = __builtin_ctz(width) - __builtin_ctz(index->unit);
    const uint64_t first =
        (uint64_t)((const uint8_t *)at - index->now) / index->unit;
    const uint64_t end = first + ((uint64_t)n << shift);
    uint32_t found;
    if (shift == 0) {
        return find_units(index, first, end, out);
    }
    for (size_t p = first / PIECE; p * PIECE < end; p++) {
        if (index->state[p] == UNKNOWN) {
            learn(index, p);
        }
    }
    found = find_wide(index, first, end, shift, out->at);
    rf_delta_gather_lists(at, rf_delta_index_shadow(index, at), found, width,
                          out);
    return found;
}

uint32_t rf_delta_index_sample(struct rf_delta_index *index, const void *at,
                               uint32_t n, uint32_t width)
{
    const uint64_t first =
        (uint64_t)((const uint8_t *)at - index->now) / index->unit;
    const uint64_t last = first + (uint64_t)n * width / index->unit - 1;
    uint16_t found[64 + RF_DELTA_SLACK];
    const struct rf_delta_lists positions = {.at = found};
    uint64_t mask;
    if (index->state[first / PIECE] != UNKNOWN ||
        index->state[last / PIECE] != UNKNOWN) {
        return rf_delta_index_find(index, at, n, width, &positions);
    }
    rf_delta_mask(at, rf_delta_index_shadow(index, at), n, width, &mask);
    return (uint32_t)__builtin_popcountll(mask);
}

static void set_all(struct rf_delta_index *index, size_t piece)
{
    const size_t units = units_of(index, piece);
    uint64_t *bits = index->bits + piece * WORDS;
    for (size_t i = 0; i < units; i += 64) {
        bits[i / 64] =
            units - i < 64 ? (UINT64_C(1) << (units - i)) - 1 : UINT64_MAX;
    }
}

void rf_delta_index_assume(struct rf_delta_index *index, const void *at,
                           uint64_t bytes)
{
    for (struct piece_part part = {0}; next_part(index, at, bytes, &part);) {
        const size_t p = part.piece;
        if (index->state[p] != UNKNOWN) {
            continue;
        }
        set_all(index, p);
        index->state[p] = index->keeps ? KNOWN : FOLLOWED;
        if (!index->keeps) {
            copy_piece(index, p);
        }
    }
}

bool rf_delta_index_has_old(const struct rf_delta_index *index, const void *at,
                            uint64_t bytes)
{
    struct piece_part part = {0};
    bool has = true;
    while (has && next_part(index, at, bytes, &part)) {
        has = index->state[part.piece] == KNOWN;
    }
    return has;
}

/* Skips the positions before `end`, which are probably `likely`; returns the
 * number of them. If they are not, it is a search, since each of a block's many
 * short spans begins where those before it end. */
static uint32_t skip(struct rf_delta_found *found, uint32_t end,
                     uint32_t likely)
{
    uint32_t low = 0, high = found->n;
    if (likely <= high && (likely == 0 || found->at[likely - 1] < end) &&
        (likely == high || found->at[likely] >= end)) {
        low = high = likely;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (found->at[middle] < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    found->at = low > 0 ? found->at + low : found->at;
    found->n -= low;
    return low;
}

void rf_delta_index_served(struct rf_delta_index *index, const void *at,
                           uint64_t bytes, struct rf_delta_found found)
{
    const bool knows = found.at != NULL;
    for (struct piece_part part = {0}; next_part(index, at, bytes, &part);) {
        const uint32_t units = part.bytes / index->unit;
        uint32_t *left = &index->left[part.piece];
        bool commits;
        *left -= RF_MIN(*left, part.bytes);
        commits = *left == 0 && index->state[part.piece] == KNOWN;
        if (commits && knows && units == PIECE) {
            const uint16_t *changes;
            uint32_t n;
            (void)skip(&found, found.base, 0);
            changes = found.at;
            n = skip(&found, found.base + units, index->listed[part.piece]);
            follow(index, part.piece, found.base, changes, n);
        } else if (commits) {
            commit_piece(index, part.piece);
        }
        found.base += units;
    }
}

void rf_delta_index_commit(struct rf_delta_index *index)
{
    for (size_t p = 0; p < index->n_pieces; p++) {
        if (index->state[p] == KNOWN) {
            commit_piece(index, p);
        }
    }
}
