/* Blocks. See delta_block.h. */
#include "transport/delta/delta_block.h"

#include <string.h>

#include "common/bytes.h"
#include "common/compiler.h"
#include "transport/delta/delta_diff.h"
#include "transport/delta/delta_eight.h"

#define HEADER_BYTES RF_DELTA_HEADER_BYTES
#define DIFF_BIT 0x80
#define ESCAPE 255 /* a gap's byte that goes on */
#define RUN_BYTES 4

/* The most bytes of gaps: one for each change, and escapes. */
#define GAPS_BYTES(count) ((count) + (count) / ESCAPE + 1)

size_t rf_delta_bound(uint32_t count, uint32_t width)
{
    /* Twice the positions, for vectors that write beyond; differences have
     * three bytes more than elements. */
    return HEADER_BYTES + 2 * (size_t)GAPS_BYTES(count) + 2 +
           (size_t)count * (width > 2 ? width : 2) + 19 +
           2 * (size_t)RF_DELTA_SLACK;
}

uint32_t rf_delta_runs(const uint16_t *at, uint32_t n)
{
    uint32_t runs = n > 0 ? 1 : 0, i = 1;
    rf_eight ends = {0};
    for (; i + RF_EIGHT <= n; i += RF_EIGHT) {
        const rf_eight steps =
            rf_eight_load(at + i) - rf_eight_load(at + i - 1);
        ends -= (rf_eight)(steps != 1);
    }
    for (; i < n; i++) {
        runs += at[i] != at[i - 1] + 1;
    }
    return runs + rf_eight_sum(ends);
}

enum rf_delta_positions rf_delta_best(uint32_t count, uint32_t n, uint32_t runs,
                                      uint32_t width)
{
    const uint64_t bitmap = ((uint64_t)count + 7) / 8;
    const uint64_t in_runs = 2 + (uint64_t)runs * RUN_BYTES;
    const uint64_t values = (uint64_t)(count - n) * width;
    /* With q = (1 - p)^255 the share of gaps that go on, n changes at random
     * take n / (1 - q) bytes: two each where p is 0.27 %. */
    const bool few = (uint64_t)n * 10000 < (uint64_t)count * 27;
    enum rf_delta_positions best = few ? RF_DELTA_IDX16 : RF_DELTA_GAP8;
    uint64_t bytes = few ? (uint64_t)n * 2 : n;
    if (bitmap < bytes) {
        best = RF_DELTA_BITMAP;
        bytes = bitmap;
    }
    if (runs > 0 && in_runs < bytes) {
        best = RF_DELTA_RUNS;
        bytes = in_runs;
    }
    return n > 0 && width > 0 && values <= bytes ? RF_DELTA_DENSE : best;
}

/* --- Gaps ----------------------------------------------------------------- */

static uint8_t *put_gap(uint8_t *out, uint32_t gap)
{
    for (; gap >= ESCAPE; gap -= ESCAPE) {
        *out++ = ESCAPE;
    }
    *out++ = (uint8_t)gap;
    return out;
}

static uint8_t *put_gaps(const uint16_t *at, uint32_t n, uint8_t *out)
{
    uint32_t i = n > 0 ? 1 : 0;
    if (n > 0) {
        out = put_gap(out, at[0]);
    }
    for (; i + RF_EIGHT <= n; i += RF_EIGHT) {
        const rf_eight gaps =
            rf_eight_load(at + i) - rf_eight_load(at + i - 1) - 1;
        if (!rf_eight_any((rf_eight)(gaps >= ESCAPE))) {
            rf_eight_store_bytes(out, gaps);
            out += RF_EIGHT;
        } else {
            for (uint32_t k = i; k < i + RF_EIGHT; k++) {
                out = put_gap(out, (uint32_t)at[k] - at[k - 1] - 1);
            }
        }
    }
    for (; i < n; i++) {
        out = put_gap(out, (uint32_t)at[i] - at[i - 1] - 1);
    }
    return out;
}

/* Eight gaps without an escape: their positions, from `next` on, the first that
 * is not yet passed. The next such; UINT32_MAX if one of them is an escape. */
static uint32_t take_eight_gaps(const uint8_t *in, uint32_t next, uint16_t *at)
{
    rf_eight sums = rf_eight_load_bytes(in) + 1;
    rf_eight_bytes gaps;
    memcpy(&gaps, in, sizeof(gaps));
    if ((uint64_t)(gaps == ESCAPE) != 0) {
        return UINT32_MAX;
    }
    sums += rf_eight_up(sums, 1);
    sums += rf_eight_up(sums, 2);
    sums += rf_eight_up(sums, 4);
    rf_eight_store(at, sums + (uint16_t)(next - 1));
    return next + sums[7];
}

/* Takes n gaps; where they end, or NULL. */
static const uint8_t *take_gaps(const uint8_t *in, const uint8_t *end,
                                uint32_t count, uint32_t n, uint16_t *at)
{
    uint32_t next = 0, i = 0; /* next: the first element not passed */
    while (i < n) {
        while (n - i >= RF_EIGHT && end - in >= RF_EIGHT) {
            const uint32_t after = take_eight_gaps(in, next, at + i);
            if (after == UINT32_MAX) {
                break;
            }
            if (after > count) {
                return NULL;
            }
            next = after;
            in += RF_EIGHT;
            i += RF_EIGHT;
        }
        if (i == n) {
            break;
        }
        while (in < end && *in == ESCAPE && next < count) {
            next += ESCAPE;
            in++;
        }
        if (in == end || *in == ESCAPE || next + *in >= count) {
            return NULL;
        }
        next += *in++;
        at[i++] = (uint16_t)next++;
    }
    return in;
}

/* --- The other positions -------------------------------------------------- */

static uint8_t *put_bitmap(const struct rf_delta_changes *changes, uint8_t *out)
{
    const size_t bytes = (changes->count + 7) / 8;
    memset(out, 0, bytes);
    for (uint32_t i = 0; i < changes->n; i++) {
        out[changes->at[i] / 8] |= (uint8_t)(1u << changes->at[i] % 8);
    }
    return out + bytes;
}

static const uint8_t *take_bitmap(const uint8_t *in, const uint8_t *end,
                                  uint32_t count, uint32_t n, uint16_t *at)
{
    const size_t bytes = (count + 7) / 8;
    uint64_t mask[RF_DELTA_BLOCK / 64 + 1];
    if ((size_t)(end - in) < bytes ||
        (count % 8 != 0 && in[bytes - 1] >> count % 8 != 0)) {
        return NULL;
    }
    mask[bytes / 8] = 0;
    memcpy(mask, in, bytes);
    return rf_delta_positions(mask, 0, count, 0, at) == n ? in + bytes : NULL;
}

static uint8_t *put_runs(const uint16_t *at, uint32_t n, uint8_t *out)
{
    uint32_t next = 0, end;
    rf_put_u16(out, (uint16_t)(rf_delta_runs(at, n) - 1));
    out += 2;
    for (uint32_t i = 0; i < n; i = end) {
        for (end = i + 1; end < n && at[end] == at[end - 1] + 1; end++) {
        }
        rf_put_u16(out, (uint16_t)(at[i] - next));
        rf_put_u16(out + 2, (uint16_t)(end - i - 1));
        out += RUN_BYTES;
        next = (uint32_t)at[end - 1] + 1;
    }
    return out;
}

static const uint8_t *take_runs(const uint8_t *in, const uint8_t *end,
                                uint32_t count, uint32_t n, uint16_t *at)
{
    uint32_t next = 0, found = 0, runs;
    if (end - in < 2) {
        return NULL;
    }
    runs = rf_get_u16(in) + 1u;
    in += 2;
    if ((size_t)(end - in) / RUN_BYTES < runs) {
        return NULL;
    }
    for (uint32_t r = 0; r < runs; r++, in += RUN_BYTES) {
        const uint32_t length = rf_get_u16(in + 2) + 1u;
        next += rf_get_u16(in);
        if (next + length > count || found + length > n) {
            return NULL;
        }
        for (uint32_t i = 0; i < length; i++) {
            at[found++] = (uint16_t)next++;
        }
    }
    return found == n ? in : NULL;
}

static uint8_t *put_idx16(const uint16_t *at, uint32_t n, uint8_t *out)
{
    memcpy(out, at, (size_t)n * 2);
    return out + (size_t)n * 2;
}

static const uint8_t *take_idx16(const uint8_t *in, const uint8_t *end,
                                 uint32_t count, uint32_t n, uint16_t *at)
{
    if ((size_t)(end - in) < (size_t)n * 2) {
        return NULL;
    }
    memcpy(at, in, (size_t)n * 2);
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] >= count || (i > 0 && at[i] <= at[i - 1])) {
            return NULL;
        }
    }
    return in + (size_t)n * 2;
}

/* --- Blocks --------------------------------------------------------------- */

static uint8_t *put_positions(const struct rf_delta_changes *changes,
                              enum rf_delta_positions how, uint8_t *out)
{
    switch (how) {
    case RF_DELTA_GAP8:
        return put_gaps(changes->at, changes->n, out);
    case RF_DELTA_IDX16:
        return put_idx16(changes->at, changes->n, out);
    case RF_DELTA_BITMAP:
        return put_bitmap(changes, out);
    case RF_DELTA_RUNS:
        return put_runs(changes->at, changes->n, out);
    case RF_DELTA_DENSE:
    case RF_DELTA_XOR:
    case RF_DELTA_POSITIONS:
        break;
    }
    return out;
}

static uint8_t *put_header(struct rf_delta_how how, uint32_t n, uint8_t *out)
{
    out[0] = (uint8_t)(how.positions | (how.diff ? DIFF_BIT : 0));
    rf_put_u16(out + 1, (uint16_t)(n >> 8));
    out[3] = (uint8_t)n;
    return out + HEADER_BYTES;
}

uint8_t *rf_delta_begin_dense(uint32_t count, uint8_t *out)
{
    return put_header((struct rf_delta_how){.positions = RF_DELTA_DENSE}, count,
                      out);
}

size_t rf_delta_encode(const struct rf_delta_changes *changes,
                       struct rf_delta_how how, uint8_t *out)
{
    const uint32_t n = changes->n;
    uint8_t *at = put_header(how, n, out);
    at = put_positions(changes, how.positions, at);
    if (how.diff) {
        return (size_t)(at - out) + rf_delta_diff_encode(changes->old,
                                                         changes->values, n,
                                                         how.zstd, at);
    }
    memcpy(at, changes->values, (size_t)n * changes->width);
    return (size_t)(at - out) + (size_t)n * changes->width;
}

static const uint8_t *take_positions(const uint8_t *in, const uint8_t *end,
                                     enum rf_delta_positions how,
                                     uint32_t count, uint32_t n, uint16_t *at)
{
    switch (how) {
    case RF_DELTA_DENSE:
    case RF_DELTA_XOR:
        return n == count ? in : NULL;
    case RF_DELTA_GAP8:
        return take_gaps(in, end, count, n, at);
    case RF_DELTA_IDX16:
        return take_idx16(in, end, count, n, at);
    case RF_DELTA_BITMAP:
        return take_bitmap(in, end, count, n, at);
    case RF_DELTA_RUNS:
        return take_runs(in, end, count, n, at);
    case RF_DELTA_POSITIONS:
        break;
    }
    return NULL;
}

bool rf_delta_decode(const uint8_t *in, size_t bytes, uint32_t count,
                     uint32_t width, struct rf_delta_scratch *scratch,
                     struct rf_delta_changes *out, struct rf_delta_how *how)
{
    const uint8_t *end = in + bytes, *at;
    uint32_t n;
    if (bytes < HEADER_BYTES || (in[0] & ~DIFF_BIT) >= RF_DELTA_POSITIONS) {
        return false;
    }
    *how = (struct rf_delta_how){.diff = false};
    how->positions = (enum rf_delta_positions)(in[0] & ~DIFF_BIT);
    how->diff = (in[0] & DIFF_BIT) != 0;
    n = (uint32_t)rf_get_u16(in + 1) << 8 | in[3];
    if (n > count || count > RF_DELTA_BLOCK ||
        (how->diff && (width != 2 || how->positions == RF_DELTA_DENSE ||
                       how->positions == RF_DELTA_XOR))) {
        return false;
    }
    at = take_positions(in + HEADER_BYTES, end, how->positions, count, n,
                        scratch->at);
    if (at == NULL) {
        return false;
    }
    *out = (struct rf_delta_changes){.width = width,
                                     .count = count,
                                     .n = n,
                                     .at = scratch->at,
                                     .values = at};
    if (how->positions == RF_DELTA_DENSE || how->positions == RF_DELTA_XOR) {
        out->at = NULL;
    }
    if (!how->diff) {
        return (size_t)(end - at) == (size_t)n * width;
    }
    out->values = scratch->diffs;
    return rf_delta_diff_decode(at, (size_t)(end - at), n, scratch->diffs);
}

/* --- Writing -------------------------------------------------------------- */

/* Changes are too sparse for processors to foresee their lines, which are asked
 * for this many changes ahead. */
#define AHEAD 32

/* Asks for the element of change i + AHEAD of n, or of the last. */
static inline void ask_for(const uint16_t *at, uint32_t i, uint32_t n,
                           uint32_t first, size_t width, uint8_t *dst)
{
    const uint16_t ahead = at[i + AHEAD < n ? i + AHEAD : n - 1];
    __builtin_prefetch(dst + (ahead - first) * width, 1);
}

#define DEFINE_SCATTER(width)                                                  \
    static void scatter_##width(const uint16_t *at, uint32_t n,                \
                                uint32_t first, const uint8_t *values,         \
                                uint8_t *dst)                                  \
    {                                                                          \
        for (uint32_t i = 0; i < n; i++) {                                     \
            ask_for(at, i, n, first, width, dst);                              \
            memcpy(dst + (size_t)(at[i] - first) * (width),                    \
                   values + (size_t)i * (width), width);                       \
        }                                                                      \
    }
DEFINE_SCATTER(1)
DEFINE_SCATTER(2)
DEFINE_SCATTER(4)
DEFINE_SCATTER(8)
#undef DEFINE_SCATTER

/* Elements that differences are added to at a time. */
#define ADDED 512

/* Gathers, adds and scatters: a loop that adds in place would wait for each
 * element's address to be known not to be the last one's. */
static void add_diffs(const uint16_t *at, uint32_t n, uint32_t first,
                      const uint16_t *diffs, uint8_t *dst)
{
    uint16_t values[ADDED + RF_DELTA_SLACK];
    for (uint32_t from = 0; from < n; from += ADDED) {
        const uint32_t some = RF_MIN(n - from, ADDED);
        for (uint32_t i = from; i < from + some; i++) {
            ask_for(at, i, n, first, 2, dst);
            memcpy(&values[i - from], dst + (size_t)(at[i] - first) * 2, 2);
        }
        rf_delta_diff_add(diffs + from, some, values);
        for (uint32_t i = from; i < from + some; i++) {
            memcpy(dst + (size_t)(at[i] - first) * 2, &values[i - from], 2);
        }
    }
}

static void xor_bytes(const uint8_t *values, size_t bytes, uint8_t *dst)
{
    for (size_t i = 0; i < bytes; i++) {
        dst[i] ^= values[i];
    }
}

void rf_delta_apply(const struct rf_delta_changes *changes,
                    struct rf_delta_how how, uint32_t from, uint32_t to,
                    uint32_t first, void *dst)
{
    const size_t width = changes->width;
    const uint8_t *values = (const uint8_t *)changes->values + from * width;
    const uint32_t n = to - from;
    const uint16_t *at = changes->at;
    if (at == NULL) {
        uint8_t *out = (uint8_t *)dst + (from - first) * width;
        if (how.positions == RF_DELTA_XOR) {
            xor_bytes(values, n * width, out);
        } else {
            memcpy(out, values, n * width);
        }
        return;
    }
    at += from;
    if (how.diff) {
        add_diffs(at, n, first, (const uint16_t *)changes->values + from, dst);
    } else if (width == 1) {
        scatter_1(at, n, first, values, dst);
    } else if (width == 2) {
        scatter_2(at, n, first, values, dst);
    } else if (width == 4) {
        scatter_4(at, n, first, values, dst);
    } else {
        scatter_8(at, n, first, values, dst);
    }
}
