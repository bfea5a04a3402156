/* See xor_codec.h. */
#include "tests/lib/xor_codec.h"

#include <string.h>

#include "common/compiler.h"

#define MOST 37 /* items of a group */

static void invert(uint8_t *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        bytes[i] ^= 0xFF;
    }
}

static void encode(const struct rf_coder *coder, const void *src,
                   struct rf_chunk *chunk, void *out)
{
    const struct rf_copy_shape *shape = &coder->shape;
    const uint64_t item = shape->dst_item, room = chunk->bytes;
    const bool casts = shape->cast != RF_CAST_NONE;
    uint64_t done = 0, at = 0;
    while (done < chunk->items && at + 1 + item <= room) {
        uint64_t n = 1 + (chunk->first + done) * 7 % MOST;
        uint8_t *to = (uint8_t *)out + at;
        n = RF_MIN(RF_MIN(n, chunk->items - done), (room - at - 1) / item);
        *to = (uint8_t)n;
        rf_copy_pack(shape, chunk->first + done, n, to + 1, src, casts);
        invert(to + 1, n * item);
        at += 1 + n * item;
        done += n;
    }
    chunk->items = done;
    chunk->bytes = at;
}

static const char *decode(const struct rf_coder *coder,
                          const struct rf_chunk *chunk, const void *in,
                          void *dst)
{
    const uint64_t item = coder->shape.dst_item;
    const uint8_t *from = in, *end = from + chunk->bytes;
    uint64_t done = 0;
    while (from < end) {
        uint8_t group[MOST * 8];
        const uint64_t n = *from++;
        if (n == 0 || n > MOST || n > chunk->items - done ||
            n * item > (uint64_t)(end - from)) {
            return RF_CHUNK_MALFORMED;
        }
        memcpy(group, from, n * item);
        invert(group, n * item);
        rf_copy_unpack(&coder->shape, chunk->first + done, n, dst, group,
                       false);
        from += n * item;
        done += n;
    }
    return done == chunk->items ? NULL : RF_CHUNK_MALFORMED;
}

const struct rf_codec xor_codec = {
    .number = 99, .sizes_differ = true, .encode = encode, .decode = decode};
