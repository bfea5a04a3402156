/*
 * Comparing arrays, 64 elements at a time: a vector comparison gives a mask of
 * them, whose bits become positions. See delta_scan.h.
 *
 * Memory limits the loop, so comparison and positions are one, in which four
 * positions of each mask are written whether or not it has so many: most have
 * fewer, and a branch for each would be mispredicted too often. AVX-512 takes
 * positions and elements from their vectors by the mask.
 */
#include "transport/delta/delta_scan.h"

#include <stdbool.h>
#include <string.h>

#include "common/compiler.h"
#include "common/vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define GROUP 64 /* elements of a mask */
#define TOP (UINT64_C(1) << 63)

/* Intel's processors stop reading ahead where a page ends, need some lines of
 * the next to start again, and fetch more at once from several pages. There the
 * loops ask for what comes after two pages while they compare these, a line of
 * either page at a time. AMD's are faster alone. */
#define PAGE_BYTES 4096
#define AHEAD_BYTES ((uintptr_t)2 * PAGE_BYTES)
#define LINE_BYTES ((uintptr_t)64)

INLINE void ask_after(const uint8_t *at, size_t bytes)
{
    const uintptr_t end = (uintptr_t)at + bytes;
    for (uintptr_t now = (uintptr_t)at; now < end; now += 2 * LINE_BYTES) {
        const uintptr_t done = now % AHEAD_BYTES;
        const uintptr_t line = now - done + AHEAD_BYTES + done / 2;
        __builtin_prefetch((const void *)line);
        __builtin_prefetch((const void *)(line + PAGE_BYTES));
    }
}

INLINE void ask_for(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    ask_after(a, bytes);
    ask_after(b, bytes);
}

#if defined(__x86_64__)
static bool reads_ahead(void)
{
    return __builtin_cpu_is("intel");
}
#else
static bool reads_ahead(void)
{
    return false;
}
#endif

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

/* Bits [first, end), where first is in the first word, and from `base` on. */
INLINE uint16_t *positions(const uint64_t *mask, size_t first, size_t end,
                           uint16_t base, uint16_t *at)
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
        at = put(at, word, (uint16_t)(w * GROUP - first + base));
    }
    return at;
}

/* --- With vectors --------------------------------------------------------- */

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
#define HAS_POPCNT __builtin_cpu_supports("popcnt")
#define WITH_POPCNT __attribute__((target("popcnt")))
#define BASE "sse2"
#else
#define HAS_POPCNT false
#define WITH_POPCNT
#define BASE "neon"
#endif

/* Each of its elements, of whatever size, is all ones or 0. */
typedef uint8_t flags __attribute__((vector_size(16)));

/* The flags of both, in half the bytes. */
INLINE flags narrow(flags x, flags y)
{
#if defined(__x86_64__)
    return (flags)_mm_packs_epi16((__m128i)x, (__m128i)y);
#else
    return vuzp1q_u8(x, y);
#endif
}

/* A bit for each byte. */
INLINE uint64_t bits_of(flags v0, flags v1, flags v2, flags v3)
{
#if defined(__x86_64__)
    return (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)v0) |
           (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)v1) << 16 |
           (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)v2) << 32 |
           (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)v3) << 48;
#else
    const flags bits = {1, 2, 4, 8, 16, 32, 64, 128,
                        1, 2, 4, 8, 16, 32, 64, 128};
    flags sums = vpaddq_u8(vpaddq_u8(v0 & bits, v1 & bits),
                           vpaddq_u8(v2 & bits, v3 & bits));
    sums = vpaddq_u8(sums, sums);
    return vgetq_lane_u64(vreinterpretq_u64_u8(sums), 0);
#endif
}

/* Which elements are equal: those of 16 bytes, and twice as many. */
#define DEFINE_SAME(name, type)                                                \
    INLINE flags name(const uint8_t *a, const uint8_t *b)                      \
    {                                                                          \
        typedef type vector __attribute__((vector_size(16)));                  \
        vector x, y;                                                           \
        memcpy(&x, a, sizeof(x));                                              \
        memcpy(&y, b, sizeof(y));                                              \
        return (flags)(x == y);                                                \
    }
#define DEFINE_TWICE(name, half, bytes)                                        \
    INLINE flags name(const uint8_t *a, const uint8_t *b)                      \
    {                                                                          \
        const flags x = half(a, b), y = half(a + (bytes), b + (bytes));        \
        return narrow(x, y);                                                   \
    }
DEFINE_SAME(same_1x16, uint8_t)
DEFINE_SAME(same_2x8, uint16_t)
DEFINE_TWICE(same_2x16, same_2x8, 16)
DEFINE_SAME(same_4x4, uint32_t)
DEFINE_TWICE(same_4x8, same_4x4, 16)
DEFINE_TWICE(same_4x16, same_4x8, 32)
/* SSE2 does not compare 8 bytes: both halves of an element have to be equal. */
INLINE flags same_8x2(const uint8_t *a, const uint8_t *b)
{
    typedef uint64_t vector __attribute__((vector_size(16)));
    const vector halves = (vector)same_4x4(a, b);
    return (flags)(halves & (halves >> 32 | halves << 32));
}
DEFINE_TWICE(same_8x4, same_8x2, 16)
DEFINE_TWICE(same_8x8, same_8x4, 32)
DEFINE_TWICE(same_8x16, same_8x8, 64)
#undef DEFINE_SAME
#undef DEFINE_TWICE

/* Of 16 elements. */
typedef flags (*same_fn)(const uint8_t *a, const uint8_t *b);

/* The mask of 64 elements that differ. */
INLINE uint64_t differ(const uint8_t *a, const uint8_t *b, uint32_t width,
                       same_fn same)
{
    const size_t step = (size_t)width * 16;
    /* From front to back, which compilers need not do with arguments: memory
     * is faster then. */
    const flags v0 = same(a, b);
    const flags v1 = same(a + step, b + step);
    const flags v2 = same(a + 2 * step, b + 2 * step);
    const flags v3 = same(a + 3 * step, b + 3 * step);
    return ~bits_of(v0, v1, v2, v3);
}

/* With a `mask`, sets it, too, and may read ahead. */
INLINE uint16_t *scan_groups(const uint8_t *a, const uint8_t *b, size_t groups,
                             uint32_t width, uint16_t base, uint16_t *at,
                             uint64_t *mask, same_fn same)
{
    const bool ahead = mask != NULL && reads_ahead();
    for (size_t g = 0; g < groups; g++) {
        uint64_t word;
        ask_for(a, b, ahead ? (size_t)GROUP * width : 0);
        word = differ(a, b, width, same);
        at = put(at, word, (uint16_t)(g * GROUP + base));
        if (mask != NULL) {
            mask[g] = word;
        }
        a += (size_t)GROUP * width;
        b += (size_t)GROUP * width;
    }
    return at;
}

INLINE uint16_t *scan_by(const uint8_t *a, const uint8_t *b, size_t groups,
                         uint32_t width, uint16_t base, uint16_t *at,
                         uint64_t *mask)
{
    switch (width) {
    case 1:
        return scan_groups(a, b, groups, 1, base, at, mask, same_1x16);
    case 2:
        return scan_groups(a, b, groups, 2, base, at, mask, same_2x16);
    case 4:
        return scan_groups(a, b, groups, 4, base, at, mask, same_4x16);
    default:
        return scan_groups(a, b, groups, 8, base, at, mask, same_8x16);
    }
}

static uint16_t *scan_base(const uint8_t *a, const uint8_t *b, size_t groups,
                           uint32_t width, uint16_t base, uint16_t *at,
                           uint64_t *mask)
{
    return scan_by(a, b, groups, width, base, at, mask);
}

WITH_POPCNT static uint16_t *scan_popcnt(const uint8_t *a, const uint8_t *b,
                                         size_t groups, uint32_t width,
                                         uint16_t base, uint16_t *at,
                                         uint64_t *mask)
{
    return scan_by(a, b, groups, width, base, at, mask);
}

static uint16_t *scan_groups_here(const uint8_t *a, const uint8_t *b,
                                  size_t groups, uint32_t width, uint16_t base,
                                  uint16_t *at, uint64_t *mask)
{
    return (HAS_POPCNT ? scan_popcnt : scan_base)(a, b, groups, width, base, at,
                                                  mask);
}

INLINE void mask_groups(const uint8_t *a, const uint8_t *b, size_t groups,
                        uint32_t width, uint64_t *mask, same_fn same)
{
    const bool ahead = reads_ahead();
    for (size_t g = 0; g < groups; g++) {
        ask_for(a, b, ahead ? (size_t)GROUP * width : 0);
        mask[g] = differ(a, b, width, same);
        a += (size_t)GROUP * width;
        b += (size_t)GROUP * width;
    }
}

static void mask_groups_here(const uint8_t *a, const uint8_t *b, size_t groups,
                             uint32_t width, uint64_t *mask)
{
    switch (width) {
    case 1:
        mask_groups(a, b, groups, 1, mask, same_1x16);
        break;
    case 2:
        mask_groups(a, b, groups, 2, mask, same_2x16);
        break;
    case 4:
        mask_groups(a, b, groups, 4, mask, same_4x16);
        break;
    default:
        mask_groups(a, b, groups, 8, mask, same_8x16);
    }
}

static uint16_t *positions_base(const uint64_t *mask, size_t first, size_t end,
                                uint16_t base, uint16_t *at)
{
    return positions(mask, first, end, base, at);
}

WITH_POPCNT static uint16_t *positions_popcnt(const uint64_t *mask,
                                              size_t first, size_t end,
                                              uint16_t base, uint16_t *at)
{
    return positions(mask, first, end, base, at);
}

static uint16_t *positions_here(const uint64_t *mask, size_t first, size_t end,
                                uint16_t base, uint16_t *at)
{
    return (HAS_POPCNT ? positions_popcnt : positions_base)(mask, first, end,
                                                            base, at);
}

#else

#define HAS_POPCNT false
#define BASE "none"

static void mask_groups_here(const uint8_t *a, const uint8_t *b, size_t groups,
                             uint32_t width, uint64_t *mask)
{
    mask_plain(a, b, 0, groups * GROUP, width, mask);
}

static uint16_t *positions_here(const uint64_t *mask, size_t first, size_t end,
                                uint16_t base, uint16_t *at)
{
    return positions(mask, first, end, base, at);
}

static uint16_t *scan_groups_here(const uint8_t *a, const uint8_t *b,
                                  size_t groups, uint32_t width, uint16_t base,
                                  uint16_t *at, uint64_t *mask)
{
    if (mask == NULL) {
        return compare(a, b, 0, groups * GROUP, width, at);
    }
    mask_groups_here(a, b, groups, width, mask);
    return positions_here(mask, 0, groups * GROUP, base, at);
}

#endif

/* --- With AVX-512 --------------------------------------------------------- */

#if defined(__x86_64__)

#define HAS_AVX512 rf_have_avx512_vbmi2()
#define WITH_AVX512                                                            \
    __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))

/* Of two bytes each. */
struct list_group {
    __m512i low, high; /* elements 0 to 31, and 32 to 63 */
};

WITH_AVX512 INLINE struct list_group load_group(const uint8_t *from)
{
    return (struct list_group){_mm512_loadu_si512(from),
                               _mm512_loadu_si512(from + 64)};
}

/* Writes those of the elements that are in the mask. */
WITH_AVX512 INLINE void put_elements(uint16_t *out, struct list_group group,
                                     uint64_t mask)
{
    const __mmask32 low = (__mmask32)mask, high = (__mmask32)(mask >> 32);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi16(low, group.low));
    _mm512_storeu_si512(out + __builtin_popcount(low),
                        _mm512_maskz_compress_epi16(high, group.high));
}

/* Writes the numbers of a mask's bits. */
WITH_AVX512 INLINE void put_numbers(uint16_t *out, uint64_t mask, uint16_t base)
{
    const __m512i all = _mm512_set_epi64(
        0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928,
        0x2726252423222120, 0x1f1e1d1c1b1a1918, 0x1716151413121110,
        0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i bits = _mm512_maskz_compress_epi8(mask, all);
    const __m512i bases = _mm512_set1_epi16((short)base);
    const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bits));
    _mm512_storeu_si512(out, _mm512_add_epi16(low, bases));
    if (__builtin_popcountll(mask) > 32) {
        const __m512i high =
            _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bits, 1));
        _mm512_storeu_si512(out + 32, _mm512_add_epi16(high, bases));
    }
}

WITH_AVX512 static size_t list_avx512(const uint8_t *now, const uint8_t *before,
                                      size_t groups, uint16_t base,
                                      const struct rf_delta_lists *out,
                                      uint64_t *mask)
{
    const bool ahead = reads_ahead();
    const size_t bytes = (size_t)GROUP * 2;
    size_t found = 0;
    for (size_t g = 0; g < groups; g++, now += bytes, before += bytes) {
        const struct list_group x = load_group(now), y = load_group(before);
        const uint64_t word = _mm512_cmpneq_epu16_mask(x.low, y.low) |
                              (uint64_t)_mm512_cmpneq_epu16_mask(x.high, y.high)
                                  << 32;
        ask_for(now, before, ahead ? bytes : 0);
        mask[g] = word;
        put_numbers(out->at + found, word, (uint16_t)(g * GROUP + base));
        if (out->values != NULL) {
            put_elements((uint16_t *)out->values + found, x, word);
        }
        if (out->old != NULL) {
            put_elements((uint16_t *)out->old + found, y, word);
        }
        found += (size_t)__builtin_popcountll(word);
    }
    return found;
}

#else

#define HAS_AVX512 false
#endif

/* --- Any ------------------------------------------------------------------ */

const char *rf_delta_instructions(void)
{
    return HAS_AVX512 ? "avx512" : HAS_POPCNT ? "popcnt" : BASE;
}

size_t rf_delta_scan(const void *a, const void *b, size_t n, uint32_t width,
                     uint16_t *at)
{
    const size_t groups = n / GROUP;
    uint16_t *end = scan_groups_here(a, b, groups, width, 0, at, NULL);
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
                          uint16_t base, uint16_t *at)
{
    const size_t skip = first % GROUP;
    return (
        size_t)(positions_here(mask + first / GROUP, skip, skip + n, base, at) -
                at);
}

void rf_delta_gather(const void *from, const uint16_t *at, size_t n,
                     uint32_t width, void *out)
{
    const uint8_t *in = from;
    uint8_t *to = out;
    switch (width) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            to[i] = in[at[i]];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * 2, in + (size_t)at[i] * 2, 2);
        }
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * 4, in + (size_t)at[i] * 4, 4);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * 8, in + (size_t)at[i] * 8, 8);
        }
        break;
    }
}

void rf_delta_gather_lists(const void *now, const void *before, size_t n,
                           uint32_t width, const struct rf_delta_lists *lists)
{
    if (lists->values != NULL) {
        rf_delta_gather(now, lists->at, n, width, lists->values);
    }
    if (lists->old != NULL) {
        rf_delta_gather(before, lists->at, n, width, lists->old);
    }
}

size_t rf_delta_list_plain(const void *now, const void *before, size_t n,
                           uint32_t width, uint16_t base,
                           const struct rf_delta_lists *out, uint64_t *mask)
{
    const size_t first = (size_t)base * width;
    const size_t found = (size_t)(scan_groups_here(now, before, n / GROUP,
                                                   width, base, out->at, mask) -
                                  out->at);
    rf_delta_gather_lists((const uint8_t *)now - first,
                          (const uint8_t *)before - first, found, width, out);
    return found;
}

size_t rf_delta_list(const void *now, const void *before, size_t n,
                     uint32_t width, uint16_t base,
                     const struct rf_delta_lists *out, uint64_t *mask)
{
#if defined(__x86_64__)
    if (width == 2 && HAS_AVX512) {
        return list_avx512(now, before, n / GROUP, base, out, mask);
    }
#endif
    return rf_delta_list_plain(now, before, n, width, base, out, mask);
}
