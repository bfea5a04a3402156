/*
 * The writing half of a connection. Frames go out in the order of sending, a
 * chunk at a time, the next once the kernel has taken the last. So a connection
 * queues payloads, which it shares with others, and until it closes copies at
 * most one chunk.
 *
 * A failed write does not end the connection at once: the peer's last frames
 * (its reason for closing) may still be unread, so reading continues for
 * RF_CONN_PARTING_MS.
 */
#include "transport/control/conn_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define PLAIN_CHUNK (256u << 10)

/* Part of a chunk that the kernel did not take. */
struct write_rest {
    uv_write_t request;
    struct rf_conn *conn;
    char bytes[];
};

void rf_conn_bytes_append(struct rf_conn_bytes *bytes, const void *data,
                          size_t size)
{
    if (bytes->used + size > bytes->capacity) {
        bytes->capacity = (bytes->used + size) * 2;
        bytes->data = rf_xrealloc(bytes->data, bytes->capacity, 1);
    }
    memcpy(bytes->data + bytes->used, data, size);
    bytes->used += size;
}

void rf_conn_bytes_free(struct rf_conn_bytes *bytes)
{
    if (bytes->data != NULL) {
        explicit_bzero(bytes->data, bytes->used);
    }
    free(bytes->data);
    *bytes = (struct rf_conn_bytes){0};
}

static void write_broken(struct rf_conn *conn, int error)
{
    if (conn->write_failed || conn->state == RF_CONN_CLOSING) {
        return;
    }
    conn->write_failed = true;
    conn->why.status = RF_ERR_PEER;
    snprintf(conn->why.text, sizeof(conn->why.text), "cannot send: %s",
             uv_strerror(error));
    if (conn->state == RF_CONN_FLUSHING) {
        rf_conn_end(conn, NULL);
    } else {
        rf_conn_arm(conn, RF_CONN_PARTING_MS);
    }
}

static void write_cb(uv_write_t *request, int status)
{
    struct write_rest *rest =
        rf_container_of(request, struct write_rest, request);
    struct rf_conn *conn = rest->conn;
    free(rest);
    if (status < 0 && status != UV_ECANCELED) {
        write_broken(conn, status);
    } else if (status == 0) {
        rf_conn_put_frames(conn, false);
    }
}

/* Sends as much of both parts as the kernel takes now and queues a copy of the
 * rest. */
static void put(struct rf_conn *conn, const void *first, size_t first_size,
                const void *second, size_t second_size)
{
    uv_buf_t parts[2] = {
        uv_buf_init((char *)(uintptr_t)first, (unsigned)first_size),
        uv_buf_init((char *)(uintptr_t)second, (unsigned)second_size)};
    size_t total = first_size + second_size, sent = 0;
    struct write_rest *rest;
    uv_buf_t buf;
    int result;
    if (conn->write_failed || total == 0) {
        return;
    }
    if (uv_stream_get_write_queue_size(conn->out) == 0) {
        result = uv_try_write(conn->out, parts, second_size > 0 ? 2 : 1);
        if (result < 0 && result != UV_EAGAIN) {
            write_broken(conn, result);
            return;
        }
        sent = result > 0 ? (size_t)result : 0;
    }
    if (sent == total) {
        return;
    }
    rest = rf_xmalloc(sizeof(*rest) + total - sent);
    rest->conn = conn;
    if (sent < first_size) {
        memcpy(rest->bytes, (const char *)first + sent, first_size - sent);
        memcpy(rest->bytes + first_size - sent, second, second_size);
    } else {
        memcpy(rest->bytes, (const char *)second + (sent - first_size),
               total - sent);
    }
    buf = uv_buf_init(rest->bytes, (unsigned)(total - sent));
    result = uv_write(&rest->request, conn->out, &buf, 1, write_cb);
    if (result < 0) {
        free(rest);
        write_broken(conn, result);
    }
}

void rf_conn_put_cipher(struct rf_conn *conn)
{
    char cipher[RF_CONN_TLS_CHUNK + 1024];
    size_t got;
    while ((got = rf_tls_drain(conn->tls, cipher, sizeof(cipher))) > 0) {
        put(conn, cipher, got, "", 0);
    }
}

/* --- Frames --------------------------------------------------------------- */

static void drop_first(struct rf_conn *conn)
{
    struct rf_conn_frame *frame = conn->frames;
    conn->frames = frame->next;
    if (conn->frames == NULL) {
        conn->frames_end = &conn->frames;
    }
    rf_shared_payload_drop(frame->payload);
    free(frame);
}

void rf_conn_drop_frames(struct rf_conn *conn)
{
    while (conn->frames != NULL) {
        drop_first(conn);
    }
    conn->frame_bytes = 0;
}

/* Uses one record if the bytes fit, so that a small frame is one packet. */
static void put_record(struct rf_conn *conn, const void *first,
                       size_t first_size, const void *second,
                       size_t second_size)
{
    char plain[RF_CONN_TLS_CHUNK];
    struct rf_err err = {0};
    enum rf_status status;
    memcpy(plain, first, first_size);
    memcpy(plain + first_size, second, second_size);
    status = rf_tls_write(conn->tls, plain, first_size + second_size, &err);
    explicit_bzero(plain, first_size + second_size);
    if (status != RF_OK) {
        rf_conn_end(conn, &err);
        return;
    }
    rf_conn_put_cipher(conn);
}

/* Sends the next chunk of the first frame. */
static void put_chunk(struct rf_conn *conn)
{
    struct rf_conn_frame *frame = conn->frames;
    const struct rf_shared_payload *payload = frame->payload;
    const size_t most = conn->tls != NULL ? RF_CONN_TLS_CHUNK : PLAIN_CHUNK;
    const size_t head = frame->sent == 0 ? sizeof(frame->header) : 0;
    const size_t from = frame->sent + head - sizeof(frame->header);
    const size_t size = RF_MIN(payload->size - from, most - head);
    const char *bytes = payload->bytes + from;
    frame->sent += head + size;
    conn->frame_bytes -= head + size;
    if (conn->tls != NULL) {
        put_record(conn, frame->header, head, bytes, size);
    } else if (head > 0) {
        put(conn, frame->header, head, bytes, size);
    } else {
        put(conn, bytes, size, "", 0);
    }
    if (frame->sent == sizeof(frame->header) + payload->size) {
        drop_first(conn);
    }
}

void rf_conn_put_frames(struct rf_conn *conn, bool all)
{
    if (conn->state == RF_CONN_HANDSHAKE && conn->tls != NULL) {
        return;
    }
    while (conn->frames != NULL && conn->state != RF_CONN_CLOSING &&
           (all || uv_stream_get_write_queue_size(conn->out) == 0)) {
        put_chunk(conn);
    }
}

size_t rf_conn_queued(const struct rf_conn *conn)
{
    return uv_stream_get_write_queue_size(conn->out) + conn->frame_bytes;
}

static void push(struct rf_conn *conn, uint32_t rank,
                 struct rf_shared_payload *payload)
{
    struct rf_conn_frame *frame = rf_xcalloc(1, sizeof(*frame));
    const uint8_t type = (uint8_t)payload->type;
    const struct rf_frame header = {
        .length = (uint32_t)payload->size,
        .version = RF_FRAME_VERSION,
        .type = type,
        .flags =
            type == RF_MSG_LOG || type == RF_MSG_LEASE ? 0 : RF_FRAME_CRITICAL,
        .rank = rank,
        .sequence = conn->next_sequence++};
    rf_frame_encode_header(&header, frame->header);
    frame->payload = rf_shared_payload_keep(payload);
    *conn->frames_end = frame;
    conn->frames_end = &frame->next;
    conn->frame_bytes += sizeof(frame->header) + payload->size;
}

static void send_frame(struct rf_conn *conn, uint32_t rank,
                       struct rf_shared_payload *payload)
{
    const uint8_t type = (uint8_t)payload->type;
    if (payload->size > rf_msg_cap(type)) {
        rf_conn_end_text(conn, RF_ERR_INTERNAL,
                         "%s of %zu bytes exceeds the limit of %u",
                         rf_msg_name(type), payload->size, rf_msg_cap(type));
        return;
    }
    if (rf_conn_queued(conn) + payload->size > RF_CONN_QUEUE_MAX) {
        rf_conn_end_text(conn, RF_ERR_PEER,
                         "the peer does not read: %zu bytes are queued",
                         rf_conn_queued(conn));
        return;
    }
    push(conn, rank, payload);
    rf_conn_put_frames(conn, false);
}

/* Sends a copy of `bytes` as one frame. */
static void send_bytes(struct rf_conn *conn, enum rf_msg_type type,
                       uint32_t rank, const void *bytes, size_t size)
{
    struct rf_shared_payload *payload =
        rf_shared_payload_of_bytes(type, bytes, size);
    send_frame(conn, rank, payload);
    rf_shared_payload_drop(payload);
}

static bool may_send(const struct rf_conn *conn)
{
    return conn->state < RF_CONN_FLUSHING && !conn->write_failed;
}

/* LOG: splits text at the cap; drops it while too much is queued. */
static void send_log(struct rf_conn *conn, uint32_t rank, const char *text,
                     size_t size)
{
    while (size > 0 && may_send(conn)) {
        size_t part = RF_MIN(size, (size_t)rf_msg_cap(RF_MSG_LOG));
        if (rf_conn_queued(conn) + part > RF_CONN_LOG_QUEUE_MAX) {
            conn->dropped_logs++;
        } else {
            if (conn->dropped_logs > 0) {
                char note[64];
                int length = snprintf(note, sizeof(note),
                                      "[%llu pieces of the log were dropped]\n",
                                      (unsigned long long)conn->dropped_logs);
                conn->dropped_logs = 0;
                send_bytes(conn, RF_MSG_LOG, RF_FRAME_NO_RANK, note,
                           (size_t)length);
            }
            send_bytes(conn, RF_MSG_LOG, rank, text, part);
        }
        text += part;
        size -= part;
    }
}

void rf_conn_send_raw(struct rf_conn *conn, enum rf_msg_type type,
                      uint32_t rank, const void *payload, size_t size)
{
    if (!may_send(conn)) {
        return;
    }
    if (type == RF_MSG_LOG) {
        send_log(conn, rank, payload, size);
    } else {
        send_bytes(conn, type, rank, payload, size);
    }
}

void rf_conn_send_payload(struct rf_conn *conn, uint32_t rank,
                          struct rf_shared_payload *payload)
{
    if (may_send(conn)) {
        send_frame(conn, rank, payload);
    }
}

void rf_conn_send(struct rf_conn *conn, enum rf_msg_type type, uint32_t rank,
                  json_t *payload)
{
    struct rf_shared_payload *encoded =
        rf_shared_payload_of_json(type, payload);
    if (encoded != NULL) {
        rf_conn_send_payload(conn, rank, encoded);
    } else if (may_send(conn)) {
        rf_conn_end_text(conn, RF_ERR_INTERNAL, "cannot encode %s",
                         rf_msg_name((uint8_t)type));
    }
    rf_shared_payload_drop(encoded);
}
