/* Codes of differences, packed in few bits. See delta_diff.h. */
#include "transport/delta/delta_diff.h"

#include <string.h>

#include "common/bytes.h"
#include "common/compiler.h"
#include "transport/delta/delta_scan.h"

#define HEADER_BYTES 3
#define EXCEPTION_BYTES 4

/* The bits of a code: 2 to the power of its index. */
#define WIDTHS 5
#define BYTE 3

/* --- Codes ---------------------------------------------------------------- */

/* Eight elements; the compiler finds the processor's instructions. */
typedef uint16_t eight __attribute__((vector_size(16)));
#define EIGHT 8

static eight load(const void *from)
{
    eight it;
    memcpy(&it, from, sizeof(it));
    return it;
}

static void store(void *to, eight it)
{
    memcpy(to, &it, sizeof(it));
}

/* All ones where the highest bit is set. */
static eight negative(eight it)
{
    return 0 - (it >> 15);
}

/* Integers in the order of the floats with these bits, and back. */
static eight order_of(eight bits)
{
    return bits ^ (negative(bits) | 0x8000);
}

static eight bits_of(eight order)
{
    return order ^ (~negative(order) | 0x8000);
}

static eight code_of(eight diff)
{
    return ((diff << 1) ^ negative(diff)) - 1;
}

static eight diff_of(eight code)
{
    const eight zigzag = code + 1;
    return (zigzag >> 1) ^ (0 - (zigzag & 1));
}

void rf_delta_diff_add(const uint16_t *diffs, uint32_t n, uint16_t *values)
{
    for (uint32_t i = 0; i < n; i += EIGHT) {
        store(values + i,
              bits_of(order_of(load(values + i)) + load(diffs + i)));
    }
}

/* Makes the codes, and counts those that need more bits than each width. */
static void make_codes(const uint16_t *old, const uint16_t *new, uint32_t n,
                       uint16_t *codes, uint32_t more[WIDTHS])
{
    eight counts[WIDTHS - 1] = {{0}};
    for (uint32_t i = 0; i < n; i += EIGHT) {
        const eight code =
            code_of(order_of(load(new + i)) - order_of(load(old + i)));
        store(codes + i, code);
        for (uint32_t w = 0; w < WIDTHS - 1; w++) {
            counts[w] -= (eight)(code >> (1u << w) != 0);
        }
    }
    memset(more, 0, WIDTHS * sizeof(*more));
    for (uint32_t w = 0; w < WIDTHS - 1; w++) {
        for (uint32_t k = 0; k < EIGHT; k++) {
            more[w] += counts[w][k];
        }
        /* what follows the last element */
        for (uint32_t i = n; i % EIGHT != 0; i++) {
            more[w] -= codes[i] >> (1u << w) != 0;
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

/* Four codes of at most 4 bits, from 16 bits each to as few as they have, and
 * back. */
static uint32_t squeeze(uint64_t codes, uint32_t bits)
{
    const uint32_t gap = 16 - bits;
    return (uint32_t)(codes | codes >> gap | codes >> 2 * gap |
                      codes >> 3 * gap) &
           ((1u << 4 * bits) - 1);
}

static uint64_t spread(uint64_t codes, uint32_t bits)
{
    const uint32_t gap = 16 - bits;
    return (codes | codes << gap | codes << 2 * gap | codes << 3 * gap) &
           UINT64_C(0x0001000100010001) * ((1u << bits) - 1);
}

/* Packs eight codes at a time, of which those with more bits count as 0. */
static void pack(const uint16_t *codes, uint32_t n, uint32_t bits, uint8_t *out)
{
    for (uint32_t i = 0; i < n; i += EIGHT, out += bits) {
        const eight all = load(codes + i);
        const eight few = all & (eight)(all >> bits == 0);
        uint64_t fours[2];
        memcpy(fours, &few, sizeof(fours));
        if (bits == 8) {
            for (uint32_t k = 0; k < EIGHT; k++) {
                out[k] = (uint8_t)few[k];
            }
        } else {
            const uint32_t word =
                squeeze(fours[0], bits) | squeeze(fours[1], bits) << 4 * bits;
            memcpy(out, &word, bits);
        }
    }
}

static void unpack(const uint8_t *in, uint32_t n, uint32_t bits,
                   uint16_t *codes)
{
    uint32_t i = 0;
    for (; bits < 8 && i + EIGHT <= n; i += EIGHT, in += bits) {
        uint32_t word = 0;
        uint64_t fours[2];
        memcpy(&word, in, bits);
        fours[0] = spread(word & ((1u << 4 * bits) - 1), bits);
        fours[1] = spread(word >> 4 * bits, bits);
        memcpy(codes + i, fours, sizeof(fours));
    }
    for (uint32_t k = 0; i < n; i++, k += bits) {
        const uint32_t byte = in[k / 8];
        codes[i] = (uint16_t)(byte >> k % 8 & ((1u << bits) - 1));
    }
}

/* Lists the codes of more than `bits` bits, without a branch for each. */
static void put_exceptions(const uint16_t *codes, uint32_t n, uint32_t bits,
                           uint8_t *out)
{
    uint16_t list[RF_DELTA_BLOCK + 1];
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        list[found] = (uint16_t)i;
        found += codes[i] >> bits != 0;
    }
    for (uint32_t i = 0; i < found; i++) {
        memcpy(out + (size_t)i * 2, &list[i], 2);
        memcpy(out + ((size_t)found + i) * 2, &codes[list[i]], 2);
    }
}

size_t rf_delta_diff_encode(const uint16_t *old, const uint16_t *new,
                            uint32_t n, bool whole_bytes, uint8_t *out)
{
    uint16_t codes[RF_DELTA_BLOCK + RF_DELTA_SLACK];
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
    pack(codes, n, 1u << width, at);
    index = at + packed_bytes(n, width);
    put_exceptions(codes, n, 1u << width, index);
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
    eight none = {0};
    memset(diffs + n, 0, EIGHT * sizeof(*diffs));
    for (uint32_t i = 0; i < n; i += EIGHT) {
        const eight code = load(diffs + i);
        none |= (eight)(code == UINT16_MAX);
        store(diffs + i, diff_of(code));
    }
    for (uint32_t k = 0; k < EIGHT; k++) {
        if (none[k] != 0) {
            return false;
        }
    }
    return true;
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
