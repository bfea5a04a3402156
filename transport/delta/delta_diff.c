/* Codes of differences, packed in few bits. See delta_diff.h. */
#include "transport/delta/delta_diff.h"

#include <string.h>

#include "common/bytes.h"
#include "common/compiler.h"
#include "transport/delta/delta_eight.h"
#include "transport/delta/delta_scan.h"

#define INLINE static inline __attribute__((always_inline))
#define HEADER_BYTES 3
#define EXCEPTION_BYTES 4

/* The bits of a code: 2 to the power of its index. */
#define WIDTHS 5
#define BYTE 3

/* --- Codes ---------------------------------------------------------------- */

/* All ones where the highest bit is set. */
static rf_eight negative(rf_eight it)
{
    typedef int16_t with_sign __attribute__((vector_size(16)));
    return (rf_eight)((with_sign)it < 0);
}

/* Integers in the order of the floats with these bits, and back. */
static rf_eight order_of(rf_eight bits)
{
    return bits ^ (negative(bits) | 0x8000);
}

static rf_eight bits_of(rf_eight order)
{
    return order ^ (~negative(order) | 0x8000);
}

static rf_eight code_of(rf_eight diff)
{
    return ((diff << 1) ^ negative(diff)) - 1;
}

static rf_eight diff_of(rf_eight code)
{
    const rf_eight zigzag = code + 1;
    return (zigzag >> 1) ^ (0 - (zigzag & 1));
}

void rf_delta_diff_add(const uint16_t *diffs, uint32_t n, uint16_t *values)
{
    for (uint32_t i = 0; i < n; i += RF_EIGHT) {
        rf_eight_store(values + i, bits_of(order_of(rf_eight_load(values + i)) +
                                           rf_eight_load(diffs + i)));
    }
}

/* Makes the codes, and counts those that need more bits than each width. */
static void make_codes(const uint16_t *old, const uint16_t *new, uint32_t n,
                       uint16_t *codes, uint32_t more[WIDTHS])
{
    rf_eight fit_1 = {0}, fit_2 = {0}, fit_4 = {0}, fit_8 = {0};
    for (uint32_t i = 0; i < n; i += RF_EIGHT) {
        const rf_eight code = code_of(order_of(rf_eight_load(new + i)) -
                                      order_of(rf_eight_load(old + i)));
        rf_eight_store(codes + i, code);
        fit_1 -= (rf_eight)(code >> 1 == 0);
        fit_2 -= (rf_eight)(code >> 2 == 0);
        fit_4 -= (rf_eight)(code >> 4 == 0);
        fit_8 -= (rf_eight)(code >> 8 == 0);
    }
    more[0] = n - rf_eight_sum(fit_1);
    more[1] = n - rf_eight_sum(fit_2);
    more[2] = n - rf_eight_sum(fit_4);
    more[3] = n - rf_eight_sum(fit_8);
    more[4] = 0;
    for (uint32_t i = n; i % RF_EIGHT != 0; i++) { /* beyond the last one */
        for (uint32_t w = 0; w < WIDTHS - 1; w++) {
            more[w] += codes[i] >> (1u << w) == 0;
        }
    }
}

static uint64_t bits_with(uint32_t width, uint32_t n,
                          const uint32_t more[WIDTHS])
{
    return ((uint64_t)n << width) + (uint64_t)more[width] * 8 * EXCEPTION_BYTES;
}

/* The index of the width that takes the fewest bytes, from `least` on. */
static uint32_t choose_width(const uint32_t more[WIDTHS], uint32_t n,
                             uint32_t least)
{
    uint32_t best = WIDTHS - 1;
    for (uint32_t w = least; w + 1 < WIDTHS; w++) {
        if (bits_with(w, n, more) < bits_with(best, n, more)) {
            best = w;
        }
    }
    return best;
}

/* --- Packing -------------------------------------------------------------- */

static size_t packed_bytes(uint32_t n, uint32_t width)
{
    return (((size_t)n << width) + 7) / 8;
}

/* Of every `per` bits, the lowest n. */
#define LOWEST(n, per)                                                         \
    (UINT64_MAX / ((UINT64_C(1) << (per)) - 1) * ((1u << (n)) - 1))

/* Eight codes of at most 4 bits, from a byte each to as few bits as they have,
 * and back. */
INLINE uint32_t squeeze(uint64_t codes, uint32_t bits)
{
    codes = (codes | codes >> (8 - bits)) & LOWEST(2 * bits, 16);
    codes = (codes | codes >> (16 - 2 * bits)) & LOWEST(4 * bits, 32);
    return (uint32_t)(codes | codes >> (32 - 4 * bits));
}

INLINE uint64_t spread(uint64_t codes, uint32_t bits)
{
    codes = (codes | codes << (32 - 4 * bits)) & LOWEST(4 * bits, 32);
    codes = (codes | codes << (16 - 2 * bits)) & LOWEST(2 * bits, 16);
    return (codes | codes << (8 - bits)) & LOWEST(bits, 8);
}

/* Packs codes, eight at a time; those with more bits count as 0, as in `few`,
 * which are the codes without them. */
INLINE void pack_by(const uint16_t *codes, uint32_t n, uint32_t bits,
                    uint16_t *few, uint8_t *out)
{
    for (uint32_t i = 0; i < n; i += RF_EIGHT, out += bits) {
        const rf_eight all = rf_eight_load(codes + i);
        const rf_eight fit = all & (rf_eight)(all >> bits == 0);
        rf_eight_store(few + i, fit);
        if (bits == 8) {
            rf_eight_store_bytes(out, fit);
        } else {
            uint64_t bytes;
            uint32_t word;
            rf_eight_store_bytes(&bytes, fit);
            word = squeeze(bytes, bits);
            memcpy(out, &word, bits);
        }
    }
}

static void pack(const uint16_t *codes, uint32_t n, uint32_t bits,
                 uint16_t *few, uint8_t *out)
{
    switch (bits) { /* a constant, in each loop */
    case 1:
        pack_by(codes, n, 1, few, out);
        break;
    case 2:
        pack_by(codes, n, 2, few, out);
        break;
    case 4:
        pack_by(codes, n, 4, few, out);
        break;
    default:
        pack_by(codes, n, 8, few, out);
    }
}

INLINE void unpack_by(const uint8_t *in, uint32_t n, uint32_t bits,
                      uint16_t *codes)
{
    uint32_t i = 0;
    for (; i + RF_EIGHT <= n; i += RF_EIGHT, in += bits) {
        if (bits == 8) {
            rf_eight_store(codes + i, rf_eight_load_bytes(in));
        } else {
            uint32_t word = 0;
            uint64_t bytes;
            memcpy(&word, in, bits);
            bytes = spread(word, bits);
            rf_eight_store(codes + i, rf_eight_load_bytes(&bytes));
        }
    }
    for (uint32_t k = 0; i < n; i++, k += bits) {
        const uint32_t byte = in[k / 8];
        codes[i] = (uint16_t)(byte >> k % 8 & ((1u << bits) - 1));
    }
}

static void unpack(const uint8_t *in, uint32_t n, uint32_t bits,
                   uint16_t *codes)
{
    switch (bits) {
    case 1:
        unpack_by(in, n, 1, codes);
        break;
    case 2:
        unpack_by(in, n, 2, codes);
        break;
    case 4:
        unpack_by(in, n, 4, codes);
        break;
    default:
        unpack_by(in, n, 8, codes);
    }
}

/* Lists the codes that are not among the few. */
static void put_exceptions(const uint16_t *codes, const uint16_t *few,
                           uint32_t n, uint8_t *out)
{
    uint16_t list[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    const size_t found = rf_delta_scan(codes, few, n, 2, list);
    memcpy(out, list, found * 2);
    for (size_t i = 0; i < found; i++) {
        memcpy(out + (found + i) * 2, &codes[list[i]], 2);
    }
}

size_t rf_delta_diff_encode(const uint16_t *old, const uint16_t *new,
                            uint32_t n, bool whole_bytes, uint8_t *out)
{
    uint16_t codes[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    uint16_t few[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    uint32_t more[WIDTHS], width;
    uint8_t *at = out, *index;
    make_codes(old, new, n, codes, more);
    width = choose_width(more, n, whole_bytes ? BYTE : 0);
    *at++ = (uint8_t)(1u << width);
    rf_put_u16(at, (uint16_t)more[width]);
    at += 2;
    if (width == WIDTHS - 1) {
        memcpy(at, codes, (size_t)n * 2);
        return HEADER_BYTES + (size_t)n * 2;
    }
    pack(codes, n, 1u << width, few, at);
    index = at + packed_bytes(n, width);
    put_exceptions(codes, few, n, index);
    at = index + (size_t)more[width] * EXCEPTION_BYTES;
    return (size_t)(at - out);
}

/* Puts the exceptions, which ascend, into their places. */
static bool take_exceptions(const uint8_t *in, uint32_t n_exceptions,
                            uint32_t n, uint32_t width, uint16_t *codes)
{
    int64_t before = -1;
    for (uint32_t i = 0; i < n_exceptions; i++) {
        uint16_t index, code;
        memcpy(&index, in + (size_t)i * 2, 2);
        memcpy(&code, in + ((size_t)n_exceptions + i) * 2, 2);
        if (index <= before || index >= n || codes[index] != 0 ||
            code < 1u << (1u << width)) {
            return false;
        }
        codes[index] = code;
        before = index;
    }
    return true;
}

/* Makes differences of codes, none of which may be 0. */
static bool take_codes(uint16_t *diffs, uint32_t n)
{
    rf_eight none = {0};
    memset(diffs + n, 0, RF_EIGHT * sizeof(*diffs));
    for (uint32_t i = 0; i < n; i += RF_EIGHT) {
        const rf_eight code = rf_eight_load(diffs + i);
        none |= (rf_eight)(code == UINT16_MAX);
        rf_eight_store(diffs + i, diff_of(code));
    }
    return !rf_eight_any(none);
}

bool rf_delta_diff_decode(const uint8_t *in, size_t bytes, uint32_t n,
                          uint16_t *diffs)
{
    uint32_t width = 0, n_exceptions;
    size_t packed;
    if (bytes < HEADER_BYTES) {
        return false;
    }
    while (width < WIDTHS && in[0] != 1u << width) {
        width++;
    }
    n_exceptions = rf_get_u16(in + 1);
    packed = width < WIDTHS ? packed_bytes(n, width) : 0;
    if (width == WIDTHS || (width == WIDTHS - 1 && n_exceptions > 0) ||
        bytes !=
            HEADER_BYTES + packed + (size_t)n_exceptions * EXCEPTION_BYTES) {
        return false;
    }
    if (width == WIDTHS - 1) {
        memcpy(diffs, in + HEADER_BYTES, packed);
    } else {
        unpack(in + HEADER_BYTES, n, 1u << width, diffs);
        if (!take_exceptions(in + HEADER_BYTES + packed, n_exceptions, n, width,
                             diffs)) {
            return false;
        }
    }
    return take_codes(diffs, n);
}
