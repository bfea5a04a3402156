/*
 * Frames: header coding and the incremental reader.
 *
 * Invariants of the reader: buffer[parsed, used) holds bytes not handed out
 * yet; a frame is handed out only when it is complete and its header passed
 * every check; an announced length never causes an allocation. Ignorable frames
 * of unknown types are skipped here. The first bad header makes the stream
 * unusable: next() keeps failing on it.
 */
#include "transport/control/frame.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"

#define KEEP_BYTES (256u << 10) /* an emptied buffer above this is freed */

void rf_frame_encode_header(const struct rf_frame *frame,
                            uint8_t out[RF_FRAME_HEADER_BYTES])
{
    rf_put_u32(out, frame->length);
    out[4] = frame->version;
    out[5] = frame->type;
    rf_put_u16(out + 6, frame->flags);
    rf_put_u32(out + 8, frame->rank);
    rf_put_u32(out + 12, frame->sequence);
}

static void decode_header(const uint8_t *in, struct rf_frame *out)
{
    out->length = rf_get_u32(in);
    out->version = in[4];
    out->type = in[5];
    out->flags = rf_get_u16(in + 6);
    out->rank = rf_get_u32(in + 8);
    out->sequence = rf_get_u32(in + 12);
    out->payload = in + RF_FRAME_HEADER_BYTES;
}

void rf_frame_reader_init(struct rf_frame_reader *reader,
                          uint32_t (*cap)(uint8_t type))
{
    memset(reader, 0, sizeof(*reader));
    reader->cap = cap;
}

void rf_frame_reader_free(struct rf_frame_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
    reader->used = reader->capacity = reader->parsed = 0;
}

static void drop_parsed(struct rf_frame_reader *reader)
{
    size_t rest = reader->used - reader->parsed;
    if (rest == 0 && reader->capacity > KEEP_BYTES) {
        rf_frame_reader_free(reader);
        return;
    }
    if (reader->parsed > 0 && rest > 0) {
        memmove(reader->buffer, reader->buffer + reader->parsed, rest);
    }
    reader->used = rest;
    reader->parsed = 0;
}

enum rf_status rf_frame_reader_feed(struct rf_frame_reader *reader,
                                    const void *data, size_t size)
{
    drop_parsed(reader);
    if (size > SIZE_MAX / 2 - reader->used) {
        return RF_ERR_NOMEM;
    }
    if (reader->used + size > reader->capacity) {
        size_t capacity = RF_MAX(reader->capacity, (size_t)1024);
        uint8_t *grown;
        while (capacity < reader->used + size) {
            capacity *= 2;
        }
        grown = realloc(reader->buffer, capacity);
        if (grown == NULL) {
            return RF_ERR_NOMEM;
        }
        reader->buffer = grown;
        reader->capacity = capacity;
    }
    if (size > 0) {
        memcpy(reader->buffer + reader->used, data, size);
        reader->used += size;
    }
    return RF_OK;
}

size_t rf_frame_reader_partial(const struct rf_frame_reader *reader)
{
    return reader->used - reader->parsed;
}

static enum rf_status check_header(const struct rf_frame_reader *reader,
                                   const struct rf_frame *frame, bool *known,
                                   struct rf_err *err)
{
    uint32_t cap = reader->cap(frame->type);
    if (frame->version != RF_FRAME_VERSION) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "frame version %u, but this program supports only %u",
                          frame->version, RF_FRAME_VERSION);
    }
    if (frame->sequence != reader->next_sequence) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "frame sequence %u, expected %u", frame->sequence,
                          reader->next_sequence);
    }
    *known = cap > 0;
    if (!*known && (frame->flags & RF_FRAME_CRITICAL) != 0) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "unknown critical frame type %u", frame->type);
    }
    cap = *known ? cap : RF_FRAME_UNKNOWN_CAP;
    if (frame->length > cap) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "frame type %u of %u bytes exceeds the limit of %u",
                          frame->type, frame->length, cap);
    }
    return RF_OK;
}

enum rf_status rf_frame_reader_next(struct rf_frame_reader *reader,
                                    struct rf_frame *out, bool *got,
                                    struct rf_err *err)
{
    *got = false;
    while (reader->used - reader->parsed >= RF_FRAME_HEADER_BYTES) {
        struct rf_frame frame;
        bool known = false;
        decode_header(reader->buffer + reader->parsed, &frame);
        RF_TRY(check_header(reader, &frame, &known, err));
        if (reader->used - reader->parsed - RF_FRAME_HEADER_BYTES <
            frame.length) {
            return RF_OK;
        }
        reader->parsed += RF_FRAME_HEADER_BYTES + frame.length;
        reader->next_sequence++;
        if (known) {
            *out = frame;
            *got = true;
            return RF_OK;
        }
    }
    return RF_OK;
}
