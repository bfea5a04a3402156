/*
 * The writing half of a connection: frames are tried on the socket at once, and
 * only what the kernel does not take is copied and queued.
 *
 * A failed write does not end the connection at once: the peer's last frames
 * (why it closed) may still be unread, so reading continues for
 * RF_CONN_PARTING_MS.
 */
#include "transport/conn_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/messages.h"

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
    }
}

/* Sends the bytes of both parts at once as far as the kernel takes them and
 * queues a copy of the rest. */
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

/* Sends the ciphertext that TLS has ready. */
void rf_conn_put_cipher(struct rf_conn *conn)
{
    char cipher[RF_CONN_TLS_CHUNK + 1024];
    size_t got;
    while ((got = rf_tls_drain(conn->tls, cipher, sizeof(cipher))) > 0) {
        put(conn, cipher, got, "", 0);
    }
}

static void put_tls(struct rf_conn *conn, const char *data, size_t size)
{
    struct rf_err err = {0};
    while (size > 0) {
        size_t chunk = RF_MIN(size, (size_t)RF_CONN_TLS_CHUNK);
        if (rf_tls_write(conn->tls, data, chunk, &err) != RF_OK) {
            rf_conn_end(conn, &err);
            return;
        }
        rf_conn_put_cipher(conn);
        data += chunk;
        size -= chunk;
    }
}

size_t rf_conn_queued(const struct rf_conn *conn)
{
    return uv_stream_get_write_queue_size(conn->out) + conn->early.used;
}

static void send_frame(struct rf_conn *conn, enum rf_msg_type type,
                       uint32_t rank, const void *payload, size_t size)
{
    uint8_t header[RF_FRAME_HEADER_BYTES];
    struct rf_frame frame = {.length = (uint32_t)size,
                             .version = RF_FRAME_VERSION,
                             .type = (uint8_t)type,
                             .flags = type == RF_MSG_LOG || type == RF_MSG_LEASE
                                          ? 0
                                          : RF_FRAME_CRITICAL,
                             .rank = rank,
                             .sequence = conn->next_sequence};
    if (size > rf_msg_cap((uint8_t)type)) {
        rf_conn_end_text(
            conn, RF_ERR_INTERNAL, "%s of %zu bytes exceeds the limit of %u",
            rf_msg_name((uint8_t)type), size, rf_msg_cap((uint8_t)type));
        return;
    }
    if (rf_conn_queued(conn) + size > RF_CONN_QUEUE_MAX) {
        rf_conn_end_text(conn, RF_ERR_PEER,
                         "the peer does not read: %zu bytes are queued",
                         rf_conn_queued(conn));
        return;
    }
    conn->next_sequence++;
    rf_frame_encode_header(&frame, header);
    if (conn->state == RF_CONN_HANDSHAKE && conn->tls != NULL) {
        rf_conn_bytes_append(&conn->early, header, sizeof(header));
        rf_conn_bytes_append(&conn->early, payload, size);
    } else if (conn->tls != NULL) {
        put_tls(conn, (const char *)header, sizeof(header));
        put_tls(conn, payload, size);
    } else {
        put(conn, header, sizeof(header), payload, size);
    }
}

static bool may_send(const struct rf_conn *conn)
{
    return conn->state < RF_CONN_FLUSHING && !conn->write_failed;
}

/* LOG: split at the cap, dropped while too much is queued. */
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
                send_frame(conn, RF_MSG_LOG, RF_FRAME_NO_RANK, note,
                           (size_t)length);
            }
            send_frame(conn, RF_MSG_LOG, rank, text, part);
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
        send_frame(conn, type, rank, size > 0 ? payload : "", size);
    }
}

/* The text may hold secrets: it is written in one piece, of which no part stays
 * behind as of json_dumps()'s that grow. */
static void send_json(struct rf_conn *conn, enum rf_msg_type type,
                      uint32_t rank, const json_t *payload)
{
    const size_t size = json_dumpb(payload, NULL, 0, JSON_COMPACT);
    char *text;
    if (size == 0) {
        rf_conn_end_text(conn, RF_ERR_INTERNAL, "cannot encode %s",
                         rf_msg_name((uint8_t)type));
        return;
    }
    text = rf_xmalloc(size);
    (void)json_dumpb(payload, text, size, JSON_COMPACT);
    send_frame(conn, type, rank, text, size);
    explicit_bzero(text, size);
    free(text);
}

void rf_conn_send(struct rf_conn *conn, enum rf_msg_type type, uint32_t rank,
                  json_t *payload)
{
    const struct rf_schema *schema = rf_msg_schema((uint8_t)type);
    if (may_send(conn)) {
        send_json(conn, type, rank, payload);
    }
    if (schema != NULL) {
        rf_schema_wipe(schema, payload);
    }
    json_decref(payload);
}

void rf_conn_put_early(struct rf_conn *conn)
{
    put_tls(conn, conn->early.data, conn->early.used);
    rf_conn_bytes_free(&conn->early);
}
