/*
 * Frames: the same bytes over every stream (SSH channel, TLS over TCP,
 * socketpair). Pure: works on the caller's buffers.
 *
 * A 16-byte big-endian header, then `length` payload bytes:
 *     u32 length | u8 version | u8 type | u16 flags | u32 rank | u32 sequence
 * `sequence` counts the frames of one direction from 0. `rank` is a world rank
 * or RF_FRAME_NO_RANK. Lengths are checked against the type's cap before
 * anything is allocated.
 */
#ifndef RF_TRANSPORT_CONTROL_FRAME_H
#define RF_TRANSPORT_CONTROL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define RF_FRAME_HEADER_BYTES 16
#define RF_FRAME_VERSION 1
#define RF_FRAME_NO_RANK UINT32_MAX
#define RF_FRAME_CRITICAL 1 /* flag: an unknown type must not be ignored */
#define RF_FRAME_UNKNOWN_CAP (64u << 10) /* longest ignored payload */

struct rf_frame {
    uint32_t length;
    uint8_t version;
    uint8_t type; /* enum rf_msg_type */
    uint16_t flags;
    uint32_t rank;
    uint32_t sequence;
    const uint8_t *payload; /* borrowed from the reader's buffer */
};

/* Writes the header of `frame` (payload not included). */
void rf_frame_encode_header(const struct rf_frame *frame,
                            uint8_t out[RF_FRAME_HEADER_BYTES]);

/* An incremental reader. Its buffer grows with bytes received, never with an
 * announced length. */
struct rf_frame_reader {
    uint8_t *buffer;
    size_t used, capacity;
    size_t parsed; /* bytes handed out; the next feed drops them */
    uint32_t next_sequence;
    /* Longest payload of a type; 0: unknown, ignored unless critical. */
    uint32_t (*cap)(uint8_t type);
};

void rf_frame_reader_init(struct rf_frame_reader *reader,
                          uint32_t (*cap)(uint8_t type));
void rf_frame_reader_free(struct rf_frame_reader *reader);

/* Appends received bytes. RF_ERR_NOMEM only. */
enum rf_status rf_frame_reader_feed(struct rf_frame_reader *reader,
                                    const void *data,
                                    size_t size) RF_MUST_CHECK;

/* Bytes of an incomplete frame; nonzero at the end of the stream: it was
 * cut. */
size_t rf_frame_reader_partial(const struct rf_frame_reader *reader);

/* The next complete frame: *got is true and `out` is valid until the next feed;
 * *got is false if there is none. RF_ERR_PROTOCOL for a bad version, length or
 * sequence or an unknown critical type; the stream is then unusable. */
enum rf_status rf_frame_reader_next(struct rf_frame_reader *reader,
                                    struct rf_frame *out, bool *got,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
