/*
 * Codecs: how the elements of an op become bytes between ranks, and elements
 * again. A carrier moves an op as *chunks*: bytes that stand for consecutive
 * items of the op's stream (planner/schedule/copy_shape.h). It knows neither
 * element types nor encodings.
 *
 * If all items of a codec have the same number of bytes, an op is one chunk,
 * which carriers cut between any two items. Otherwise a chunk is encoded and
 * decoded as a whole, and has at most RF_CHUNK_BYTES bytes.
 *
 * An end of an op has a *view* if its memory holds the very bytes of the wire.
 * There a carrier may send or receive runs in place, without the codec.
 */
#ifndef RF_TRANSPORT_CODEC_CODEC_H
#define RF_TRANSPORT_CODEC_CODEC_H

#include "transport/codec/strided_copy.h"

#define RF_CHUNK_BYTES (UINT64_C(64) << 10)

/* Bytes that do not stand for the chunk's items. */
#define RF_CHUNK_MALFORMED "that is malformed"

struct rf_codec;

/* A codec and the op it works on. */
struct rf_coder {
    const struct rf_codec *codec;
    const struct rf_op *op; /* borrowed */
    struct rf_copy_shape shape;
    uint32_t width;     /* bytes of an element at the source */
    uint32_t wire_item; /* bytes of every item on the wire; 0: they differ */
};

struct rf_chunk {
    uint64_t first, items;
    uint64_t bytes;
    uint64_t queued; /* before encoding: bytes before it that the link has not
                        taken yet; 0 where the carrier does not know */
};

struct rf_codec {
    uint32_t number; /* on the wire */
    bool source_view, destination_view;
    bool sizes_differ; /* of items on the wire */
    bool for_links;    /* not for copies inside a node: they do without it */
    /* Encodes items of `src` from chunk->first on, at most chunk->items of
     * them, into at most chunk->bytes bytes (RF_CHUNK_BYTES always suffice for
     * one item), and sets the last two to what was encoded. */
    void (*encode)(const struct rf_coder *coder, const void *src,
                   struct rf_chunk *chunk, void *out);
    /* Decodes a chunk, whose items lie inside the stream, into `dst`. NULL, or
     * what is wrong, to follow the word "chunk". */
    const char *(*decode)(const struct rf_coder *coder,
                          const struct rf_chunk *chunk, const void *in,
                          void *dst);
    /* Copies items [first, first + n) between two memories of this process;
     * NULL: by encode and decode. */
    void (*copy)(const struct rf_coder *coder, uint64_t first, uint64_t n,
                 void *dst, const void *src, bool streaming);
};

/* Bytes as they are; casts before and after the wire. */
extern const struct rf_codec rf_codec_raw, rf_codec_cast_at_source,
    rf_codec_cast_at_destination;

/* Sets the coder of an op: with `codec`, or with NULL what its forms need. */
void rf_coder_of(const struct rf_op *op, const struct rf_codec *codec,
                 struct rf_coder *out);

/* Whether a chunk from the wire lies inside the stream and may have its size.
 * */
bool rf_coder_takes(const struct rf_coder *coder, const struct rf_chunk *chunk);

/* The copy of a codec, or encoding and decoding in its place. */
void rf_coder_copy(const struct rf_coder *coder, uint64_t first, uint64_t n,
                   void *dst, const void *src, bool streaming);

#endif
