/*
 * Strided copies. See strided_copy.h for the terms.
 *
 * Measurements: streaming stores with a prefetch some 2 KiB ahead copy large
 * data 1.2 to 1.8 times as fast as memcpy, because memcpy reads every
 * destination line before writing it; reads should be contiguous, while strided
 * streaming writes cost nothing. Runs of 1 KB in rows of 4 KB are copied 1.3 to
 * 1.4 times as fast when prefetches go to the next rows instead of beyond the
 * run. Data that is read again soon (send buffers) is packed with plain stores
 * instead.
 *
 * Nothing here allocates, blocks or fails.
 */
#include "transport/codec/strided_copy.h"

#include <string.h>

#include "common/compiler.h"
#include "common/vectors.h"
#include "transport/codec/cast.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Runs shorter than this are not worth streaming: they would be mostly partial
 * cache lines. */
#define STREAM_MIN_BYTES 128
#define LINE_BYTES 64
#define PREFETCH_BYTES 2048

/* --- streaming stores ----------------------------------------------------- */

/* Copy `n_lines` cache lines. Each prefetches one line, from `ahead` on; this
 * is only a hint, and the address may be unmapped. */

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void
lines_avx512(uint8_t *dst, const uint8_t *src, size_t n_lines,
             const uint8_t *ahead)
{
    for (size_t i = 0; i < n_lines; i++) {
        _mm_prefetch((const char *)ahead, _MM_HINT_T0);
        _mm512_stream_si512((__m512i *)(void *)dst, _mm512_loadu_si512(src));
        src += LINE_BYTES;
        dst += LINE_BYTES;
        ahead += LINE_BYTES;
    }
}

__attribute__((target("avx2"))) static void lines_avx2(uint8_t *dst,
                                                       const uint8_t *src,
                                                       size_t n_lines,
                                                       const uint8_t *ahead)
{
    for (size_t i = 0; i < n_lines; i++) {
        const __m256i *from = (const __m256i *)(const void *)src;
        __m256i *to = (__m256i *)(void *)dst;
        _mm_prefetch((const char *)ahead, _MM_HINT_T0);
        __m256i a = _mm256_loadu_si256(from);
        __m256i b = _mm256_loadu_si256(from + 1);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
        src += LINE_BYTES;
        dst += LINE_BYTES;
        ahead += LINE_BYTES;
    }
}

static void lines_sse2(uint8_t *dst, const uint8_t *src, size_t n_lines)
{
    for (size_t i = 0; i < n_lines * 4; i++) {
        _mm_stream_si128((__m128i *)(void *)dst,
                         _mm_loadu_si128((const __m128i *)(const void *)src));
        src += 16;
        dst += 16;
    }
}

static void stream_lines(uint8_t *dst, const uint8_t *src, size_t n_lines,
                         const uint8_t *ahead)
{
    if (rf_have_avx512()) {
        lines_avx512(dst, src, n_lines, ahead);
    } else if (rf_have_avx2()) {
        lines_avx2(dst, src, n_lines, ahead);
    } else {
        lines_sse2(dst, src, n_lines);
    }
}

const char *rf_copy_instructions(void)
{
    if (rf_have_avx512()) {
        return "avx512";
    }
    return rf_have_avx2() ? "avx2" : "sse2";
}

void rf_copy_fence(void)
{
    _mm_sfence();
}

#else

static void stream_lines(uint8_t *dst, const uint8_t *src, size_t n_lines,
                         const uint8_t *ahead)
{
    (void)ahead;
    memcpy(dst, src, n_lines * LINE_BYTES);
}

const char *rf_copy_instructions(void)
{
    return "memcpy";
}

void rf_copy_fence(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

#endif

/* Copies a run; the source is next read at `next`. Unless that is the end of
 * the run, the last 2 KiB prefetch from there: what follows the run in memory
 * are columns of other ranks. */
static void stream_run(uint8_t *dst, const uint8_t *src, size_t bytes,
                       const uint8_t *next)
{
    size_t head =
        (LINE_BYTES - ((uintptr_t)dst & (LINE_BYTES - 1))) & (LINE_BYTES - 1);
    size_t n_lines, n_last;
    if (bytes < STREAM_MIN_BYTES) {
        memcpy(dst, src, bytes);
        return;
    }
    memcpy(dst, src, head);
    n_lines = (bytes - head) / LINE_BYTES;
    n_last =
        next == src + bytes ? 0 : RF_MIN(n_lines, PREFETCH_BYTES / LINE_BYTES);
    stream_lines(dst + head, src + head, n_lines - n_last,
                 src + head + PREFETCH_BYTES);
    head += (n_lines - n_last) * LINE_BYTES;
    stream_lines(dst + head, src + head, n_last, next);
    head += n_last * LINE_BYTES;
    memcpy(dst + head, src + head, bytes - head);
}

void rf_copy_streaming(void *dst, const void *src, size_t bytes)
{
    stream_run(dst, src, bytes, (const uint8_t *)src + bytes);
}

/* --- runs ----------------------------------------------------------------- */

void rf_copy_walk_to(const struct rf_copy_shape *shape, uint64_t run,
                     struct rf_copy_walk *walk)
{
    walk->src = walk->dst = 0;
    for (uint32_t d = shape->n_dims; d-- > 0;) {
        walk->at[d] = run % shape->count[d];
        run /= shape->count[d];
        walk->src += walk->at[d] * shape->src_stride[d];
        walk->dst += walk->at[d] * shape->dst_stride[d];
    }
}

void rf_copy_walk_on(const struct rf_copy_shape *shape,
                     struct rf_copy_walk *walk)
{
    for (uint32_t d = shape->n_dims; d-- > 0;) {
        walk->src += shape->src_stride[d];
        walk->dst += shape->dst_stride[d];
        if (++walk->at[d] < shape->count[d]) {
            return;
        }
        walk->src -= shape->src_stride[d] * shape->count[d];
        walk->dst -= shape->dst_stride[d] * shape->count[d];
        walk->at[d] = 0;
    }
}

void rf_copy_run_at(const struct rf_copy_shape *shape, uint64_t index,
                    uint64_t *src_offset, uint64_t *dst_offset)
{
    struct rf_copy_walk walk;
    rf_copy_walk_to(shape, index, &walk);
    *src_offset = walk.src;
    *dst_offset = walk.dst;
}

/* Steps through stream items [first, first + n): `body` sees the walk, the item
 * inside the run to start at, and the number of items of this run. */
#define FOR_EACH_RUN(shape, first, n, walk, skip, items)                       \
    for (uint64_t left = (n), skip = (first) % (shape)->run_items,             \
                  items = RF_MIN(left, (shape)->run_items - skip);             \
         left > 0;                                                             \
         left -= items, skip = 0, items = RF_MIN(left, (shape)->run_items),    \
                  rf_copy_walk_on((shape), (walk)))

/* Address to prefetch while the last 2 KiB before `end` of a run are copied:
 * the run that far ahead in the innermost dimension. */
static const uint8_t *run_ahead(const struct rf_copy_shape *shape,
                                const uint8_t *end)
{
    const uint64_t runs = RF_MAX(PREFETCH_BYTES / shape->run_items, 1);
    return shape->n_dims == 0 ? end
                              : end - shape->run_items +
                                    runs * shape->src_stride[shape->n_dims - 1];
}

void rf_copy_range(const struct rf_copy_shape *shape, uint64_t first,
                   uint64_t n, void *dst, const void *src, bool streaming)
{
    struct rf_copy_walk walk;
    rf_copy_walk_to(shape, first / shape->run_items, &walk);
    FOR_EACH_RUN(shape, first, n, &walk, skip, items)
    {
        uint8_t *to = (uint8_t *)dst + walk.dst + skip * shape->dst_item;
        const uint8_t *from =
            (const uint8_t *)src + walk.src + skip * shape->src_item;
        if (shape->cast != RF_CAST_NONE) {
            rf_cast_items(shape->cast, to, from, items);
        } else if (streaming) {
            const bool whole = skip + items == shape->run_items;
            stream_run(to, from, items,
                       whole ? run_ahead(shape, from + items) : from + items);
        } else {
            memcpy(to, from, items);
        }
    }
}

void rf_copy_rows(const struct rf_copy_member *members, uint32_t n_members,
                  uint64_t first, uint64_t n)
{
    struct rf_copy_walk walks[RF_COPY_MEMBERS_MAX];
    for (uint32_t m = 0; m < n_members; m++) {
        rf_copy_walk_to(members[m].shape, first, &walks[m]);
    }
    for (uint64_t row = 0; row < n; row++) {
        for (uint32_t m = 0; m < n_members; m++) {
            const struct rf_copy_member *member = &members[m];
            uint8_t *to = (uint8_t *)member->dst + walks[m].dst;
            const uint8_t *from = (const uint8_t *)member->src + walks[m].src;
            const uint32_t next = (m + 1) % n_members; /* 0 is a row ahead */
            rf_copy_walk_on(member->shape, &walks[m]);
            stream_run(to, from, member->shape->run_items,
                       (const uint8_t *)members[next].src + walks[next].src);
        }
    }
}

void rf_copy_pack(const struct rf_copy_shape *shape, uint64_t first, uint64_t n,
                  void *out, const void *src, bool cast)
{
    uint8_t *to = out;
    struct rf_copy_walk walk;
    rf_copy_walk_to(shape, first / shape->run_items, &walk);
    FOR_EACH_RUN(shape, first, n, &walk, skip, items)
    {
        const uint8_t *from =
            (const uint8_t *)src + walk.src + skip * shape->src_item;
        if (cast) {
            rf_cast_items(shape->cast, to, from, items);
            to += items * shape->dst_item;
        } else {
            memcpy(to, from, items * shape->src_item);
            to += items * shape->src_item;
        }
    }
}

void rf_copy_unpack(const struct rf_copy_shape *shape, uint64_t first,
                    uint64_t n, void *dst, const void *in, bool cast)
{
    const uint8_t *from = in;
    struct rf_copy_walk walk;
    rf_copy_walk_to(shape, first / shape->run_items, &walk);
    FOR_EACH_RUN(shape, first, n, &walk, skip, items)
    {
        uint8_t *to = (uint8_t *)dst + walk.dst + skip * shape->dst_item;
        if (cast) {
            rf_cast_items(shape->cast, to, from, items);
            from += items * shape->src_item;
        } else {
            memcpy(to, from, items * shape->dst_item);
            from += items * shape->dst_item;
        }
    }
}

size_t rf_copy_iov(const struct rf_copy_shape *shape,
                   const struct rf_copy_span *span, struct iovec *iov,
                   size_t max_iov, uint64_t *items_out)
{
    const bool src = span->side == RF_COPY_SRC;
    const uint32_t item = src ? shape->src_item : shape->dst_item;
    const uint64_t n = RF_MIN(span->n, shape->total_items - span->first);
    size_t used = 0;
    struct rf_copy_walk walk;
    *items_out = 0;
    rf_copy_walk_to(shape, span->first / shape->run_items, &walk);
    FOR_EACH_RUN(shape, span->first, n, &walk, skip, items)
    {
        uint64_t offset = src ? walk.src : walk.dst;
        if (used == max_iov) {
            break;
        }
        iov[used].iov_base = (uint8_t *)span->base + offset + skip * item;
        iov[used++].iov_len = items * item;
        *items_out += items;
    }
    return used;
}
