/*
 * Strided copies in host memory, by the loops of copy_shape.h. On request,
 * stores bypass the cache (non-temporal), with the best instruction set found
 * at run time. Measurements: see strided_copy.c.
 *
 * All functions work on ranges of a shape's stream, so work can be cut
 * anywhere.
 */
#ifndef RF_TRANSPORT_CODEC_STRIDED_COPY_H
#define RF_TRANSPORT_CODEC_STRIDED_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "planner/schedule/copy_shape.h"

enum rf_copy_side { RF_COPY_SRC, RF_COPY_DST };

/* A place among the runs of a shape. */
struct rf_copy_walk {
    uint64_t at[RF_BOX_DIMS];
    uint64_t src, dst; /* byte offsets of the run */
};

/* To run `run`, by division, and from one run to the next. */
void rf_copy_walk_to(const struct rf_copy_shape *shape, uint64_t run,
                     struct rf_copy_walk *walk);
void rf_copy_walk_on(const struct rf_copy_shape *shape,
                     struct rf_copy_walk *walk);

/* Byte offsets of run `index` on both sides. */
void rf_copy_run_at(const struct rf_copy_shape *shape, uint64_t index,
                    uint64_t *src_offset, uint64_t *dst_offset);

/* Copies items [first, first + n) of the stream, with the shape's cast. With
 * `streaming`, stores bypass the cache where that pays, and the caller calls
 * rf_copy_fence() before publishing the result. */
void rf_copy_range(const struct rf_copy_shape *shape, uint64_t first,
                   uint64_t n, void *dst, const void *src, bool streaming);

/* Copies of one source with adjacent or overlapping runs. */
struct rf_copy_member {
    const struct rf_copy_shape *shape; /* without a cast; same grid and source
                                          strides in all members */
    void *dst;
    const void *src;
};

#define RF_COPY_MEMBERS_MAX 32

/* Copies runs [first, first + n) of all members, run by run, so that the source
 * is read once from front to back. Streaming, as above. */
void rf_copy_rows(const struct rf_copy_member *members, uint32_t n_members,
                  uint64_t first, uint64_t n);

/* Gathers items [first, first + n) of the source into contiguous `out`. With
 * `cast` the items are cast on the way. */
void rf_copy_pack(const struct rf_copy_shape *shape, uint64_t first, uint64_t n,
                  void *out, const void *src, bool cast);

/* Scatters contiguous `in`, items [first, first + n), to the destination. With
 * `cast` the items are cast on the way. */
void rf_copy_unpack(const struct rf_copy_shape *shape, uint64_t first,
                    uint64_t n, void *dst, const void *in, bool cast);

/* Stream items [first, first + n), cut at the end of the stream, in the memory
 * of one side. */
struct rf_copy_span {
    enum rf_copy_side side;
    void *base;
    uint64_t first, n;
};

/* Describes the first items of a span as at most max_iov I/O vectors. Returns
 * the number of vectors; *items is the number of items in them. */
size_t rf_copy_iov(const struct rf_copy_shape *shape,
                   const struct rf_copy_span *span, struct iovec *iov,
                   size_t max_iov, uint64_t *items);

/* Copies one contiguous run past the cache. */
void rf_copy_streaming(void *dst, const void *src, size_t bytes);
void rf_copy_fence(void);

/* Instructions of rf_copy_streaming here: "avx512", "avx2", "sse2" or
 * "memcpy". */
const char *rf_copy_instructions(void);

#endif
