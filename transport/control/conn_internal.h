/*
 * Shared by the two halves of a connection, conn.c (life and reading) and
 * conn_write.c (writing); private to them.
 */
#ifndef RF_TRANSPORT_CONTROL_CONN_INTERNAL_H
#define RF_TRANSPORT_CONTROL_CONN_INTERNAL_H

#include "transport/control/conn.h"
#include "transport/control/shared_payload.h"

#define RF_CONN_PARTING_MS 1000
#define RF_CONN_TLS_CHUNK (16u << 10)

enum rf_conn_state {
    RF_CONN_HANDSHAKE,
    RF_CONN_BANNER,
    RF_CONN_OPEN,
    RF_CONN_FLUSHING,
    RF_CONN_CLOSING,
};

/* A growing run of bytes: noise before a banner. */
struct rf_conn_bytes {
    char *data;
    size_t used, capacity;
};

/* A frame not yet sent in full. */
struct rf_conn_frame {
    struct rf_conn_frame *next;
    struct rf_shared_payload *payload;
    size_t sent; /* of header and payload */
    uint8_t header[RF_FRAME_HEADER_BYTES];
};

struct rf_conn {
    uv_stream_t *in, *out; /* the same stream unless opened as two */
    uv_timer_t timer;      /* readiness, handshake, flush or parting */
    uv_shutdown_t shutdown;
    unsigned open_handles;
    struct rf_tls *tls;
    struct rf_conn_ops ops;
    void *data;
    enum rf_conn_state state;
    bool told_ready, write_failed;
    char *banner; /* "\n<line>\n" while awaited */
    struct rf_conn_bytes noise;
    struct rf_conn_frame *frames, **frames_end; /* in the order of sending */
    size_t frame_bytes;                         /* unsent bytes of `frames` */
    struct rf_frame_reader reader;
    uint32_t next_sequence;
    uint64_t dropped_logs;
    int64_t last_heard_ns;
    struct rf_err why;
};

void rf_conn_bytes_append(struct rf_conn_bytes *bytes, const void *data,
                          size_t size);
void rf_conn_bytes_free(struct rf_conn_bytes *bytes);

/* Closes the handles and keeps the reason (NULL: the one in conn->why). */
void rf_conn_end(struct rf_conn *conn, const struct rf_err *why);
void rf_conn_end_text(struct rf_conn *conn, enum rf_status status,
                      const char *fmt, ...) RF_PRINTF(3, 4);
/* Starts the connection's timer. */
void rf_conn_arm(struct rf_conn *conn, uint64_t ms);

/* Bytes still to be sent. */
size_t rf_conn_queued(const struct rf_conn *conn);
/* Sends TLS's pending ciphertext. */
void rf_conn_put_cipher(struct rf_conn *conn);
/* Sends as much of the frames as the stream takes now; with `all`, queues the
 * rest in the stream. Sends nothing before the handshake. */
void rf_conn_put_frames(struct rf_conn *conn, bool all);
/* Frees the unsent frames. */
void rf_conn_drop_frames(struct rf_conn *conn);

#endif
