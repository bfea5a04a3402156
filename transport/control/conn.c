/*
 * One control connection: a small state machine between a libuv stream and
 * frames.
 *
 *     HANDSHAKE ──► OPEN ──► FLUSHING ──► CLOSING ──► on_close, freed
 *     BANNER ──────┘  └───────────────────┘
 *
 * HANDSHAKE waits for TLS, BANNER for the agent's line; both go to OPEN in
 * become_ready(). FLUSHING follows rf_conn_close(): the queue goes out, then
 * the stream is shut down and the connection waits briefly for the peer's end,
 * so that its last acknowledgement does not become a reset that loses our last
 * frame; data received meanwhile is dropped. CLOSING: the handles are being
 * closed; only rf_conn_end() leads there, and it keeps the reason. The last
 * handle's close callback calls on_close and frees the connection.
 *
 * A failed write does not end the connection at once: the peer's last frames
 * (its reason for closing) may still be unread, so reading continues for
 * RF_CONN_PARTING_MS.
 */
#include "transport/control/conn_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/mem.h"

/* Two records. Small enough that free() does not consolidate the heap each
 * time. */
#define READ_BYTES (32u << 10)
#define NOISE_QUOTED 200

/* --- Ending --------------------------------------------------------------- */

static void finish(struct rf_conn *conn)
{
    conn->ops.on_close(conn, &conn->why, conn->data);
    rf_tls_destroy(conn->tls);
    rf_frame_reader_free(&conn->reader);
    rf_conn_drop_frames(conn);
    rf_conn_bytes_free(&conn->noise);
    free(conn->banner);
    free(conn);
}

static void stream_closed_cb(uv_handle_t *handle)
{
    struct rf_conn *conn = handle->data;
    free(handle);
    if (--conn->open_handles == 0) {
        finish(conn);
    }
}

static void timer_closed_cb(uv_handle_t *handle)
{
    struct rf_conn *conn = handle->data;
    if (--conn->open_handles == 0) {
        finish(conn);
    }
}

/* Closes the handles; `why` NULL: the reason is already in conn->why (RF_OK: an
 * orderly end). Later calls do not change it. */
void rf_conn_end(struct rf_conn *conn, const struct rf_err *why)
{
    if (conn->state == RF_CONN_CLOSING) {
        return;
    }
    conn->state = RF_CONN_CLOSING;
    if (why != NULL) {
        conn->why = *why;
    }
    uv_read_stop(conn->in);
    uv_close((uv_handle_t *)conn->in, stream_closed_cb);
    if (conn->out != conn->in) {
        uv_close((uv_handle_t *)conn->out, stream_closed_cb);
    }
    uv_close((uv_handle_t *)&conn->timer, timer_closed_cb);
}

void rf_conn_end_text(struct rf_conn *conn, enum rf_status status,
                      const char *fmt, ...)
{
    struct rf_err why = {.status = status};
    va_list args;
    va_start(args, fmt);
    vsnprintf(why.text, sizeof(why.text), fmt, args);
    va_end(args);
    rf_conn_end(conn, &why);
}

static void timer_cb(uv_timer_t *timer);

void rf_conn_arm(struct rf_conn *conn, uint64_t ms)
{
    uv_update_time(conn->timer.loop);
    uv_timer_start(&conn->timer, timer_cb, ms, 0);
}

/* --- Reading -------------------------------------------------------------- */

static void become_ready(struct rf_conn *conn)
{
    if (conn->told_ready) {
        return;
    }
    conn->told_ready = true;
    conn->state = RF_CONN_OPEN;
    if (!conn->write_failed) {
        uv_timer_stop(&conn->timer);
    }
    rf_conn_put_frames(conn, false);
    if (conn->state == RF_CONN_OPEN && conn->ops.on_ready != NULL) {
        conn->ops.on_ready(conn, conn->data);
    }
}

static void take_frames(struct rf_conn *conn, const void *data, size_t size)
{
    struct rf_err err = {0};
    struct rf_frame frame;
    bool got = true;
    if (rf_frame_reader_feed(&conn->reader, data, size) != RF_OK) {
        rf_conn_end_text(conn, RF_ERR_NOMEM, "no memory for %zu received bytes",
                         size);
        return;
    }
    while (conn->state == RF_CONN_OPEN) {
        if (rf_frame_reader_next(&conn->reader, &frame, &got, &err) != RF_OK) {
            rf_conn_end(conn, &err);
            return;
        }
        if (!got) {
            return;
        }
        conn->ops.on_frame(conn, &frame, conn->data);
    }
}

/* Copies the start of the noise to `out`, made printable. */
static void quote_noise(const struct rf_conn *conn, char out[NOISE_QUOTED * 4])
{
    size_t used = 0;
    /* The first byte is the newline that marks the start of the stream. */
    for (size_t i = 1; i < conn->noise.used && i <= NOISE_QUOTED; i++) {
        unsigned char c = (unsigned char)conn->noise.data[i];
        if (c == '\n') {
            used += (size_t)sprintf(out + used, "\\n");
        } else if (c < 32 || c > 126) {
            used += (size_t)sprintf(out + used, "?");
        } else {
            out[used++] = (char)c;
        }
    }
    out[used] = '\0';
}

static void take_noise(struct rf_conn *conn, const char *data, size_t size)
{
    size_t length = strlen(conn->banner);
    size_t from =
        conn->noise.used > length ? conn->noise.used - length : (size_t)0;
    const char *found;
    rf_conn_bytes_append(&conn->noise, data, size);
    found = memmem(conn->noise.data + from, conn->noise.used - from,
                   conn->banner, length);
    if (found != NULL) {
        struct rf_conn_bytes noise = conn->noise;
        const char *rest = found + length;
        conn->noise = (struct rf_conn_bytes){0};
        become_ready(conn);
        if (conn->state == RF_CONN_OPEN) {
            take_frames(conn, rest, noise.used - (size_t)(rest - noise.data));
        }
        rf_conn_bytes_free(&noise);
    } else if (conn->noise.used > RF_CONN_NOISE_MAX) {
        char quoted[NOISE_QUOTED * 4];
        quote_noise(conn, quoted);
        rf_conn_end_text(conn, RF_ERR_LAUNCH,
                         "no answer from a worker in the first %u bytes, which "
                         "begin with \"%s\" (is launch.worker a refit-worker?)",
                         RF_CONN_NOISE_MAX, quoted);
    }
}

static void peer_closed(struct rf_conn *conn)
{
    struct rf_err why = {0};
    size_t partial = rf_frame_reader_partial(&conn->reader);
    if (partial > 0) {
        rf_err_set(&why, RF_ERR_PROTOCOL,
                   "the stream ended after %zu bytes of a frame", partial);
    }
    if (conn->tls != NULL) {
        rf_tls_shutdown(conn->tls);
        rf_conn_put_cipher(conn);
    }
    conn->why = why; /* replaces the reason of a failed write */
    rf_conn_end(conn, NULL);
}

static void take_cipher(struct rf_conn *conn, const char *data, size_t size)
{
    struct rf_err err = {0};
    char plain[RF_CONN_TLS_CHUNK];
    bool done = false, closed = false;
    size_t got = 0;
    enum rf_status status = rf_tls_feed(conn->tls, data, size, &err);
    if (status == RF_OK && conn->state == RF_CONN_HANDSHAKE) {
        status = rf_tls_handshake(conn->tls, &done, &err);
        rf_conn_put_cipher(conn); /* may be an alert */
        if (status == RF_OK && done) {
            become_ready(conn);
        }
    }
    while (status == RF_OK && conn->state == RF_CONN_OPEN &&
           rf_tls_has_more(conn->tls)) {
        status =
            rf_tls_read(conn->tls, plain, sizeof(plain), &got, &closed, &err);
        if (status == RF_OK && got > 0) {
            take_frames(conn, plain, got);
        } else if (status == RF_OK && closed) {
            peer_closed(conn);
        } else {
            break;
        }
    }
    if (conn->state == RF_CONN_OPEN) {
        rf_conn_put_cipher(conn);
    }
    if (status != RF_OK) {
        rf_conn_end(conn, &err);
    }
}

static void stream_ended(struct rf_conn *conn)
{
    switch (conn->state) {
    case RF_CONN_HANDSHAKE:
        if (conn->tls != NULL) {
            rf_conn_end_text(conn, RF_ERR_PEER,
                             "the peer closed during the handshake");
            return;
        }
        break;
    case RF_CONN_BANNER: {
        char quoted[NOISE_QUOTED * 4];
        quote_noise(conn, quoted);
        rf_conn_end_text(
            conn, RF_ERR_LAUNCH,
            quoted[0] != '\0'
                ? "the stream ended without an answer from a worker (is "
                  "launch.worker a refit-worker?); it sent \"%s\""
                : "the stream ended without an answer from a worker (is "
                  "launch.worker a refit-worker?)%s",
            quoted);
        return;
    }
    case RF_CONN_OPEN:
        if (conn->tls != NULL) {
            rf_conn_end_text(conn, RF_ERR_PEER,
                             "the connection was cut (no close_notify)");
            return;
        }
        break;
    case RF_CONN_FLUSHING:
    case RF_CONN_CLOSING:
        rf_conn_end(conn, NULL);
        return;
    }
    peer_closed(conn);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    buf->base = malloc(READ_BYTES);
    buf->len = buf->base != NULL ? READ_BYTES : 0;
}

static void read_cb(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct rf_conn *conn = stream->data;
    if (nread > 0) {
        conn->last_heard_ns = rf_now_ns();
        if (conn->state == RF_CONN_HANDSHAKE && conn->tls == NULL) {
            become_ready(conn);
        }
        if (conn->state == RF_CONN_BANNER) {
            take_noise(conn, buf->base, (size_t)nread);
        } else if (conn->state < RF_CONN_FLUSHING && conn->tls != NULL) {
            take_cipher(conn, buf->base, (size_t)nread);
        } else if (conn->state < RF_CONN_FLUSHING) {
            take_frames(conn, buf->base, (size_t)nread);
        } /* data received while flushing is dropped */
    } else if (nread == UV_EOF ||
               (nread < 0 && conn->state == RF_CONN_BANNER)) {
        stream_ended(conn);
    } else if (nread < 0 && conn->state == RF_CONN_FLUSHING) {
        rf_conn_end(conn, NULL);
    } else if (nread < 0) {
        rf_conn_end_text(conn, RF_ERR_PEER, "connection lost: %s",
                         uv_strerror((int)nread));
    }
    free(buf->base);
}

/* --- Life ----------------------------------------------------------------- */

static void timer_cb(uv_timer_t *timer)
{
    struct rf_conn *conn = timer->data;
    if (conn->write_failed) {
        rf_conn_end(conn, NULL); /* the reason is set */
    } else if (conn->state == RF_CONN_HANDSHAKE && conn->tls == NULL) {
        become_ready(conn);
    } else if (conn->state == RF_CONN_HANDSHAKE) {
        rf_conn_end_text(conn, RF_ERR_TIMEOUT, "no TLS handshake within %d ms",
                         RF_CONN_HANDSHAKE_MS);
    } else if (conn->state == RF_CONN_FLUSHING) {
        if (rf_conn_queued(conn) > 0) {
            rf_conn_end_text(conn, RF_ERR_PEER,
                             "the peer does not read: %zu bytes were not sent",
                             rf_conn_queued(conn));
        } else {
            rf_conn_end(conn, NULL);
        }
    }
}

static struct rf_conn *open_streams(uv_stream_t *in, uv_stream_t *out,
                                    struct rf_tls *tls,
                                    const struct rf_conn_ops *ops, void *data)
{
    struct rf_conn *conn = rf_xcalloc(1, sizeof(*conn));
    struct rf_err err = {0};
    bool done;
    int result;
    conn->in = in;
    conn->out = out;
    in->data = out->data = conn;
    conn->tls = tls;
    conn->ops = *ops;
    conn->data = data;
    conn->last_heard_ns = rf_now_ns();
    conn->frames_end = &conn->frames;
    rf_frame_reader_init(&conn->reader, rf_msg_cap);
    conn->open_handles = in == out ? 2 : 3;
    uv_timer_init(in->loop, &conn->timer);
    conn->timer.data = conn;
    rf_conn_arm(conn, tls != NULL ? RF_CONN_HANDSHAKE_MS : 0);
    result = uv_read_start(in, alloc_cb, read_cb);
    if (result < 0) {
        rf_conn_end_text(conn, RF_ERR_PEER, "cannot read: %s",
                         uv_strerror(result));
    } else if (tls != NULL) {
        if (rf_tls_handshake(tls, &done, &err) != RF_OK) {
            rf_conn_end(conn, &err);
        } else {
            rf_conn_put_cipher(conn);
        }
    }
    return conn;
}

struct rf_conn *rf_conn_open(uv_stream_t *stream, struct rf_tls *tls,
                             const struct rf_conn_ops *ops, void *data)
{
    return open_streams(stream, stream, tls, ops, data);
}

struct rf_conn *rf_conn_open_two(uv_stream_t *in, uv_stream_t *out,
                                 const struct rf_conn_ops *ops, void *data)
{
    return open_streams(in, out, NULL, ops, data);
}

void rf_conn_expect_banner(struct rf_conn *conn, const char *line)
{
    if (conn->state != RF_CONN_HANDSHAKE || conn->tls != NULL) {
        return;
    }
    conn->state = RF_CONN_BANNER;
    conn->banner = rf_xasprintf("\n%s\n", line);
    rf_conn_bytes_append(&conn->noise, "\n", 1); /* the line may come first */
    uv_timer_stop(&conn->timer);
}

static void shutdown_cb(uv_shutdown_t *request, int status)
{
    struct rf_conn *conn = rf_container_of(request, struct rf_conn, shutdown);
    if (conn->state == RF_CONN_CLOSING) {
        return;
    }
    if (status < 0 || conn->in != conn->out) {
        rf_conn_end(conn, NULL);
    } else {
        rf_conn_arm(conn, RF_CONN_PARTING_MS);
    }
}

void rf_conn_close(struct rf_conn *conn)
{
    if (conn->state >= RF_CONN_FLUSHING) {
        return;
    }
    if (conn->write_failed ||
        (conn->state == RF_CONN_HANDSHAKE && conn->tls != NULL)) {
        rf_conn_end(conn, NULL);
        return;
    }
    rf_conn_put_frames(conn, true);
    if (conn->state == RF_CONN_CLOSING) {
        return; /* they could not be encrypted */
    }
    if (conn->tls != NULL) {
        rf_tls_shutdown(conn->tls);
        rf_conn_put_cipher(conn);
    }
    conn->state = RF_CONN_FLUSHING;
    rf_conn_arm(conn, RF_CONN_FLUSH_MS);
    if (uv_shutdown(&conn->shutdown, conn->out, shutdown_cb) < 0) {
        rf_conn_end(conn, NULL);
    }
}

void rf_conn_fail(struct rf_conn *conn, const struct rf_err *why)
{
    rf_conn_end(conn, why);
}

int64_t rf_conn_last_heard_ns(const struct rf_conn *conn)
{
    return conn->last_heard_ns;
}

const char *rf_conn_identity(const struct rf_conn *conn)
{
    return conn->tls != NULL ? rf_tls_identity(conn->tls) : NULL;
}

bool rf_conn_has_proof(const struct rf_conn *conn)
{
    return conn->tls != NULL && rf_tls_has_proof(conn->tls);
}
