/*
 * TLS 1.3 with an external pre-shared key over memory, without sockets. One
 * random 32-byte key per node, one connection per identity; X25519; no
 * certificates, tickets or early data.
 */
#ifndef RF_TRANSPORT_CONTROL_TLS_H
#define RF_TRANSPORT_CONTROL_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define RF_PSK_BYTES 32
#define RF_IDENTITY_MAX 128

struct rf_tls;

/* The server's look-up: writes the key of `identity`; false if unknown or
 * already used. The identity is not proven yet: mark it as used only when the
 * handshake is done (rf_conn_identity() in on_ready), and close a connection
 * whose identity was used meanwhile. May be called more than once in a
 * handshake. */
typedef bool (*rf_tls_find_psk_fn)(const char *identity,
                                   uint8_t psk[RF_PSK_BYTES], void *data);

enum rf_status rf_tls_server_create(rf_tls_find_psk_fn find, void *data,
                                    struct rf_tls **out,
                                    struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_tls_client_create(const char *identity,
                                    const uint8_t psk[RF_PSK_BYTES],
                                    struct rf_tls **out,
                                    struct rf_err *err) RF_MUST_CHECK;
void rf_tls_destroy(struct rf_tls *tls);

/* Feeds bytes from the peer. */
enum rf_status rf_tls_feed(struct rf_tls *tls, const void *cipher, size_t size,
                           struct rf_err *err) RF_MUST_CHECK;
/* Advances the handshake; *done when application data may flow. */
enum rf_status rf_tls_handshake(struct rf_tls *tls, bool *done,
                                struct rf_err *err) RF_MUST_CHECK;
/* Decrypted bytes into `plain`; *got 0 when there are none yet; *closed after
 * an orderly close_notify. The caller must treat an end of stream without it as
 * truncation. */
enum rf_status rf_tls_read(struct rf_tls *tls, void *plain, size_t size,
                           size_t *got, bool *closed,
                           struct rf_err *err) RF_MUST_CHECK;
/* Whether rf_tls_read() may return more from the bytes fed. */
bool rf_tls_has_more(const struct rf_tls *tls);
enum rf_status rf_tls_write(struct rf_tls *tls, const void *plain, size_t size,
                            struct rf_err *err) RF_MUST_CHECK;
/* Moves pending ciphertext to `out`; returns its bytes, 0: none. */
size_t rf_tls_drain(struct rf_tls *tls, void *out, size_t size);
/* Queues a close_notify. */
void rf_tls_shutdown(struct rf_tls *tls);
/* Server side: whether the client has sent the proof of a key. It comes with
 * its first message, which may be a copy of another client's; only the end of
 * the handshake shows that it has the key. */
bool rf_tls_has_proof(const struct rf_tls *tls);
/* The authenticated identity (server side), NULL before the handshake. */
const char *rf_tls_identity(const struct rf_tls *tls);

#endif
