/*
 * Comparing arrays, 64 elements at a time: a vector comparison gives a mask of
 * them, whose bits become positions. See delta_scan.h.
 *
 * The loop reads memory as fast as two streams can be read, so comparison and
 * positions are one loop, in which four positions of each mask are written
 * whether or not it has so many: most have fewer, and a branch for each would
 * be mispredicted too often. Wider vectors bring nothing.
 */
#include "transport/delta/delta_scan.h"

#include <stdbool.h>
#include <string.h>

#include "common/compiler.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define GROUP 64 /* elements of a mask */
#define TOP (UINT64_C(1) << 63)

/* --- Masks to positions --------------------------------------------------- */

/* The lowest bit of a mask; any number without one. */
INLINE uint16_t lowest(uint64_t mask)
{
    return (uint16_t)__builtin_ctzll(mask | TOP);
}

/* Writes the first four positions of a mask; returns its other bits. */
INLINE uint64_t put_four(uint16_t *at, uint64_t mask, uint16_t base)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint16_t)(base + lowest(mask));
        mask &= mask - 1;
    }
    return mask;
}

/* Appends the positions of a mask's bits. */
INLINE uint16_t *put(uint16_t *at, uint64_t mask, uint16_t base)
{
    const unsigned n = (unsigned)__builtin_popcountll(mask);
    mask = put_four(at, mask, base);
    if (n > 4) {
        mask = put_four(at + 4, mask, base);
        for (unsigned i = 8; i < n; i++, mask &= mask - 1) {
            at[i] = (uint16_t)(base + lowest(mask));
        }
    }
    return at + n;
}

/* --- Without vectors ------------------------------------------------------ */

#define DEFINE_COMPARE(width, type)                                            \
    static uint16_t *compare_##width(const uint8_t *a, const uint8_t *b,       \
                                     size_t from, size_t n, uint16_t *at)      \
    {                                                                          \
        for (size_t i = from; i < n; i++) {                                    \
            type x, y;                                                         \
            memcpy(&x, a + i * sizeof(x), sizeof(x));                          \
            memcpy(&y, b + i * sizeof(y), sizeof(y));                          \
            *at = (uint16_t)i;                                                 \
            at += x != y;                                                      \
        }                                                                      \
        return at;                                                             \
    }
DEFINE_COMPARE(1, uint8_t)
DEFINE_COMPARE(2, uint16_t)
DEFINE_COMPARE(4, uint32_t)
DEFINE_COMPARE(8, uint64_t)
#undef DEFINE_COMPARE

/* Elements [from, n). */
static uint16_t *compare(const uint8_t *a, const uint8_t *b, size_t from,
                         size_t n, uint32_t width, uint16_t *at)
{
    switch (width) {
    case 1:
        return compare_1(a, b, from, n, at);
    case 2:
        return compare_2(a, b, from, n, at);
    case 4:
        return compare_4(a, b, from, n, at);
    default:
        return compare_8(a, b, from, n, at);
    }
}

size_t rf_delta_scan_plain(const void *a, const void *b, size_t n,
                           uint32_t width, uint16_t *at)
{
    return (size_t)(compare(a, b, 0, n, width, at) - at);
}

/* Elements [from, n), 64 of them a word. */
static void mask_plain(const uint8_t *a, const uint8_t *b, size_t from,
                       size_t n, uint32_t width, uint64_t *mask)
{
    uint16_t at[GROUP];
    for (; from < n; from += GROUP) {
        const size_t here = RF_MIN(n - from, (size_t)GROUP);
        const size_t found = rf_delta_scan_plain(
            a + from * width, b + from * width, here, width, at);
        uint64_t word = 0;
        for (size_t i = 0; i < found; i++) {
            word |= UINT64_C(1) << at[i];
        }
        mask[from / GROUP] = word;
    }
}

/* Bits [first, end), where first is in the first word. */
INLINE uint16_t *positions(const uint64_t *mask, size_t first, size_t end,
                           uint16_t *at)
{
    const size_t words = (end + GROUP - 1) / GROUP;
    for (size_t w = 0; w < words; w++) {
        uint64_t word = mask[w];
        if (w == 0) {
            word = word >> first << first;
        }
        if (w == words - 1 && end % GROUP != 0) {
            word &= (UINT64_C(1) << end % GROUP) - 1;
        }
        at = put(at, word, (uint16_t)(w * GROUP - first));
    }
    return at;
}

/* --- With vectors --------------------------------------------------------- */

#if defined(__x86_64__)

INLINE __m128i load(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Vectors of 16 bytes, whose bytes are all ones where elements are equal: 16
 * elements each, of `width` bytes, from vector `v` on. */
INLINE __m128i same_8(const uint8_t *a, const uint8_t *b, size_t v)
{
    return _mm_cmpeq_epi8(load(a + v * 16), load(b + v * 16));
}

INLINE __m128i same_16(const uint8_t *a, const uint8_t *b, size_t v)
{
    const __m128i x = _mm_cmpeq_epi16(load(a + v * 32), load(b + v * 32));
    const __m128i y =
        _mm_cmpeq_epi16(load(a + v * 32 + 16), load(b + v * 32 + 16));
    return _mm_packs_epi16(x, y);
}

INLINE __m128i same_32_half(const uint8_t *a, const uint8_t *b)
{
    return _mm_packs_epi32(_mm_cmpeq_epi32(load(a), load(b)),
                           _mm_cmpeq_epi32(load(a + 16), load(b + 16)));
}

INLINE __m128i same_32(const uint8_t *a, const uint8_t *b, size_t v)
{
    return _mm_packs_epi16(same_32_half(a + v * 64, b + v * 64),
                           same_32_half(a + v * 64 + 32, b + v * 64 + 32));
}

/* Two elements of 8 bytes, as two of 4 in the lower half. */
INLINE __m128i same_64_two(const uint8_t *a, const uint8_t *b)
{
    const __m128i same = _mm_cmpeq_epi32(load(a), load(b));
    return _mm_shuffle_epi32(_mm_and_si128(same, _mm_shuffle_epi32(same, 0xB1)),
                             0x08);
}

INLINE __m128i same_64_half(const uint8_t *a, const uint8_t *b)
{
    const __m128i x =
        _mm_unpacklo_epi64(same_64_two(a, b), same_64_two(a + 16, b + 16));
    const __m128i y = _mm_unpacklo_epi64(same_64_two(a + 32, b + 32),
                                         same_64_two(a + 48, b + 48));
    return _mm_packs_epi32(x, y);
}

INLINE __m128i same_64(const uint8_t *a, const uint8_t *b, size_t v)
{
    return _mm_packs_epi16(same_64_half(a + v * 128, b + v * 128),
                           same_64_half(a + v * 128 + 64, b + v * 128 + 64));
}

typedef __m128i (*same_fn)(const uint8_t *a, const uint8_t *b, size_t v);

/* The mask of 64 elements that differ. */
INLINE uint64_t differ(const uint8_t *a, const uint8_t *b, same_fn same)
{
    uint64_t equal = 0;
    for (size_t v = 0; v < 4; v++) {
        equal |= (uint64_t)(uint32_t)_mm_movemask_epi8(same(a, b, v))
                 << (16 * v);
    }
    return ~equal;
}

INLINE uint16_t *scan_groups(const uint8_t *a, const uint8_t *b, size_t groups,
                             uint32_t width, uint16_t *at, same_fn same)
{
    for (size_t g = 0; g < groups; g++) {
        at = put(at, differ(a, b, same), (uint16_t)(g * GROUP));
        a += (size_t)GROUP * width;
        b += (size_t)GROUP * width;
    }
    return at;
}

INLINE uint16_t *scan_by(const uint8_t *a, const uint8_t *b, size_t groups,
                         uint32_t width, uint16_t *at)
{
    switch (width) {
    case 1:
        return scan_groups(a, b, groups, 1, at, same_8);
    case 2:
        return scan_groups(a, b, groups, 2, at, same_16);
    case 4:
        return scan_groups(a, b, groups, 4, at, same_32);
    default:
        return scan_groups(a, b, groups, 8, at, same_64);
    }
}

static uint16_t *scan_sse2(const uint8_t *a, const uint8_t *b, size_t groups,
                           uint32_t width, uint16_t *at)
{
    return scan_by(a, b, groups, width, at);
}

__attribute__((target("popcnt"))) static uint16_t *
scan_popcnt(const uint8_t *a, const uint8_t *b, size_t groups, uint32_t width,
            uint16_t *at)
{
    return scan_by(a, b, groups, width, at);
}

const char *rf_delta_instructions(void)
{
    return __builtin_cpu_supports("popcnt") ? "popcnt" : "sse2";
}

static uint16_t *scan_groups_here(const uint8_t *a, const uint8_t *b,
                                  size_t groups, uint32_t width, uint16_t *at)
{
    return __builtin_cpu_supports("popcnt")
               ? scan_popcnt(a, b, groups, width, at)
               : scan_sse2(a, b, groups, width, at);
}

INLINE void mask_groups(const uint8_t *a, const uint8_t *b, size_t groups,
                        uint32_t width, uint64_t *mask, same_fn same)
{
    for (size_t g = 0; g < groups; g++) {
        mask[g] = differ(a, b, same);
        a += (size_t)GROUP * width;
        b += (size_t)GROUP * width;
    }
}

static void mask_groups_here(const uint8_t *a, const uint8_t *b, size_t groups,
                             uint32_t width, uint64_t *mask)
{
    switch (width) {
    case 1:
        mask_groups(a, b, groups, 1, mask, same_8);
        break;
    case 2:
        mask_groups(a, b, groups, 2, mask, same_16);
        break;
    case 4:
        mask_groups(a, b, groups, 4, mask, same_32);
        break;
    default:
        mask_groups(a, b, groups, 8, mask, same_64);
    }
}

static uint16_t *positions_sse2(const uint64_t *mask, size_t first, size_t end,
                                uint16_t *at)
{
    return positions(mask, first, end, at);
}

__attribute__((target("popcnt"))) static uint16_t *
positions_popcnt(const uint64_t *mask, size_t first, size_t end, uint16_t *at)
{
    return positions(mask, first, end, at);
}

static uint16_t *positions_here(const uint64_t *mask, size_t first, size_t end,
                                uint16_t *at)
{
    return __builtin_cpu_supports("popcnt")
               ? positions_popcnt(mask, first, end, at)
               : positions_sse2(mask, first, end, at);
}

#else

const char *rf_delta_instructions(void)
{
    return "none";
}

static uint16_t *scan_groups_here(const uint8_t *a, const uint8_t *b,
                                  size_t groups, uint32_t width, uint16_t *at)
{
    return compare(a, b, 0, groups * GROUP, width, at);
}

static void mask_groups_here(const uint8_t *a, const uint8_t *b, size_t groups,
                             uint32_t width, uint64_t *mask)
{
    mask_plain(a, b, 0, groups * GROUP, width, mask);
}

static uint16_t *positions_here(const uint64_t *mask, size_t first, size_t end,
                                uint16_t *at)
{
    return positions(mask, first, end, at);
}

#endif

size_t rf_delta_scan(const void *a, const void *b, size_t n, uint32_t width,
                     uint16_t *at)
{
    const size_t groups = n / GROUP;
    uint16_t *end = scan_groups_here(a, b, groups, width, at);
    return (size_t)(compare(a, b, groups * GROUP, n, width, end) - at);
}

void rf_delta_mask(const void *a, const void *b, size_t n, uint32_t width,
                   uint64_t *mask)
{
    const size_t groups = n / GROUP;
    mask_groups_here(a, b, groups, width, mask);
    mask_plain(a, b, groups * GROUP, n, width, mask);
}

size_t rf_delta_positions(const uint64_t *mask, size_t first, size_t n,
                          uint16_t *at)
{
    const size_t skip = first % GROUP;
    return (size_t)(positions_here(mask + first / GROUP, skip, skip + n, at) -
                    at);
}
