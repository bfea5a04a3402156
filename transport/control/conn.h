/*
 * One control connection: frames over a libuv stream, with or without TLS.
 * Used by the coordinator (accepted TCP, or a pipe to an SSH thread), by the
 * agent (TCP, stdio, a socketpair to each rank) and by the rank.
 *
 * Contract: every opened connection ends with exactly one on_close call, the
 * last callback; the connection frees itself when on_close returns, its user
 * frees `data` in or after it. Callbacks come only from the loop, never from
 * inside a call below, so every call is allowed in every callback. on_ready
 * comes before the first on_frame. Control frames are queued up to
 * RF_CONN_QUEUE_MAX, beyond which the connection fails; LOG frames are dropped
 * above RF_CONN_LOG_QUEUE_MAX, and once there is room again a LOG line gives
 * their number. The process must ignore SIGPIPE.
 */
#ifndef RF_TRANSPORT_CONTROL_CONN_H
#define RF_TRANSPORT_CONTROL_CONN_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "transport/control/frame.h"
#include "transport/control/message_types.h"
#include "transport/control/tls.h"

#define RF_CONN_QUEUE_MAX (128u << 20)
#define RF_CONN_LOG_QUEUE_MAX (1u << 20)
#define RF_CONN_NOISE_MAX (64u << 10)
#define RF_CONN_HANDSHAKE_MS 5000 /* in total, however slowly bytes arrive */
#define RF_CONN_FLUSH_MS 5000     /* limit of the flush in rf_conn_close */

struct rf_conn;
struct rf_shared_payload;

struct rf_conn_ops {
    /* The handshake is done or the banner has arrived; without either, called
     * soon. Frames sent earlier wait for the handshake. May be NULL. */
    void (*on_ready)(struct rf_conn *conn, void *data);
    /* A whole frame, valid during the call. */
    void (*on_frame)(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data);
    /* The end. `why` has RF_OK status for an orderly close by the peer or by
     * rf_conn_close(), RF_ERR_AUTH for a failed handshake, RF_ERR_TIMEOUT for
     * one longer than RF_CONN_HANDSHAKE_MS, RF_ERR_LAUNCH for a missing banner,
     * RF_ERR_PROTOCOL for bad frames, RF_ERR_PEER for a broken, cut or stuck
     * connection. */
    void (*on_close)(struct rf_conn *conn, const struct rf_err *why,
                     void *data);
};

/* Takes over an initialised, connected stream handle (uv_tcp_t or uv_pipe_t in
 * memory from malloc; freed after closing) and starts reading. Also takes `tls`
 * (may be NULL). */
struct rf_conn *rf_conn_open(uv_stream_t *stream, struct rf_tls *tls,
                             const struct rf_conn_ops *ops, void *data);

/* The same over two one-way streams (standard input and output). */
struct rf_conn *rf_conn_open_two(uv_stream_t *in, uv_stream_t *out,
                                 const struct rf_conn_ops *ops, void *data);

/* Call right after opening, without TLS: skips up to RF_CONN_NOISE_MAX bytes
 * from the peer until `line` (with a newline before and after it) arrives; then
 * on_ready. A stream that ends earlier or sends more fails with an
 * RF_ERR_LAUNCH that quotes the start of its output. */
void rf_conn_expect_banner(struct rf_conn *conn, const char *line);

/* Queues one frame. Takes `payload` (decref) and wipes its secrets, also on
 * failure. After the connection has failed or closed, drops the frame. */
void rf_conn_send(struct rf_conn *conn, enum rf_msg_type type, uint32_t rank,
                  json_t *payload);
void rf_conn_send_raw(struct rf_conn *conn, enum rf_msg_type type,
                      uint32_t rank, const void *payload, size_t size);
/* The same for a payload shared with other connections; keeps a reference until
 * it is sent. */
void rf_conn_send_payload(struct rf_conn *conn, uint32_t rank,
                          struct rf_shared_payload *payload);

/* Flushes the queue, then closes; on_close follows. Safe to repeat. */
void rf_conn_close(struct rf_conn *conn);
/* Closes at once with `why`; on_close follows. */
void rf_conn_fail(struct rf_conn *conn, const struct rf_err *why);

/* For leases: arrival of the last byte (rf_now_ns). */
int64_t rf_conn_last_heard_ns(const struct rf_conn *conn);
const char *rf_conn_identity(const struct rf_conn *conn); /* TLS server side */
/* TLS server side: whether the peer has proved a key; it does so before the
 * handshake is done. */
bool rf_conn_has_proof(const struct rf_conn *conn);

#endif
