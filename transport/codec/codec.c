/* The codecs of plain bytes and of casts. See codec.h. */
#include "transport/codec/codec.h"

#include <assert.h>

#include "common/compiler.h"

/* An end without a view casts. */
static void gather(const struct rf_coder *coder, const void *src,
                   struct rf_chunk *chunk, void *out)
{
    chunk->items = RF_MIN(chunk->items, chunk->bytes / coder->wire_item);
    chunk->bytes = chunk->items * coder->wire_item;
    rf_copy_pack(&coder->shape, chunk->first, chunk->items, out, src,
                 !coder->codec->source_view);
}

static const char *scatter(const struct rf_coder *coder,
                           const struct rf_chunk *chunk, const void *in,
                           void *dst)
{
    rf_copy_unpack(&coder->shape, chunk->first, chunk->items, dst, in,
                   !coder->codec->destination_view);
    return NULL;
}

static void copy(const struct rf_coder *coder, uint64_t first, uint64_t n,
                 void *dst, const void *src, bool streaming)
{
    rf_copy_range(&coder->shape, first, n, dst, src, streaming);
}

#define PLAIN .encode = gather, .decode = scatter, .copy = copy

const struct rf_codec rf_codec_raw = {
    .number = 1, .source_view = true, .destination_view = true, PLAIN};
const struct rf_codec rf_codec_cast_at_source = {
    .number = 2, .destination_view = true, PLAIN};
const struct rf_codec rf_codec_cast_at_destination = {
    .number = 3, .source_view = true, PLAIN};

void rf_coder_of(const struct rf_op *op, const struct rf_codec *codec,
                 struct rf_coder *out)
{
    out->codec = codec != NULL               ? codec
                 : rf_op_casts_at_source(op) ? &rf_codec_cast_at_source
                 : rf_op_casts_at_destination(op)
                     ? &rf_codec_cast_at_destination
                     : &rf_codec_raw;
    out->op = op;
    out->width = rf_form_item(op->from);
    rf_copy_shape_of(op, &out->shape);
    out->wire_item = out->codec->sizes_differ  ? 0
                     : out->codec->source_view ? out->shape.src_item
                                               : out->shape.dst_item;
}

bool rf_coder_takes(const struct rf_coder *coder, const struct rf_chunk *chunk)
{
    const uint64_t total = coder->shape.total_items;
    const uint64_t item = coder->wire_item;
    if (chunk->first > total || chunk->items == 0 ||
        chunk->items > total - chunk->first) {
        return false;
    }
    return item > 0 ? chunk->bytes == chunk->items * item
                    : chunk->bytes > 0 && chunk->bytes <= RF_CHUNK_BYTES;
}

static void encode_and_decode(const struct rf_coder *coder, uint64_t first,
                              uint64_t n, void *dst, const void *src)
{
    uint8_t bytes[RF_CHUNK_BYTES];
    while (n > 0) {
        struct rf_chunk chunk = {
            .first = first, .items = n, .bytes = sizeof(bytes)};
        const char *wrong;
        coder->codec->encode(coder, src, &chunk, bytes);
        wrong = coder->codec->decode(coder, &chunk, bytes, dst);
        assert(wrong == NULL && chunk.items > 0);
        (void)wrong;
        first += chunk.items;
        n -= chunk.items;
    }
}

void rf_coder_copy(const struct rf_coder *coder, uint64_t first, uint64_t n,
                   void *dst, const void *src, bool streaming)
{
    if (coder->codec->copy != NULL) {
        coder->codec->copy(coder, first, n, dst, src, streaming);
    } else {
        encode_and_decode(coder, first, n, dst, src);
    }
}
