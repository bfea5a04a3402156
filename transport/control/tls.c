/*
 * TLS 1.3 with an external pre-shared key over memory BIOs.
 *
 * No key, no connection: the server has no certificate, so a handshake without
 * an accepted key cannot finish; the client verifies peers against an empty
 * store and so refuses a server that offers a certificate; and both ends check
 * that the session came from the key before the handshake counts as done. Only
 * (EC)DHE key exchange is allowed, which gives forward secrecy.
 *
 * One SSL_CTX per role serves the whole process: it holds no key and is
 * constant. Bytes that must reach the peer (alerts included) wait in the write
 * BIO until rf_tls_drain().
 */
#include "transport/control/tls.h"

#include <openssl/buffer.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Largest buffer an empty memory BIO keeps: enough for most messages. */
#define KEPT_BYTES 2048

struct rf_tls {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    bool server, done;
    rf_tls_find_psk_fn find;
    void *find_data;
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES]; /* client; wiped after the handshake */
};

static struct {
    pthread_once_t once;
    SSL_CTX *client, *server;
} shared = {.once = PTHREAD_ONCE_INIT};

/* Fills `err` from OpenSSL's error queue and empties the queue. */
static enum rf_status fail(struct rf_err *err, enum rf_status status,
                           const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return rf_err_set(err, status, "TLS %s: %s", what,
                      reason != NULL ? reason : "failed");
}

/* The TLS 1.3 session for an external key. */
static SSL_SESSION *session_of(SSL *ssl, const uint8_t psk[RF_PSK_BYTES])
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_SESSION *session = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    if (session == NULL || cipher == NULL ||
        SSL_SESSION_set1_master_key(session, psk, RF_PSK_BYTES) != 1 ||
        SSL_SESSION_set_cipher(session, cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int find_session_cb(SSL *ssl, const unsigned char *identity,
                           size_t identity_len, SSL_SESSION **session)
{
    struct rf_tls *tls = SSL_get_app_data(ssl);
    uint8_t psk[RF_PSK_BYTES];
    *session = NULL;
    if (identity_len == 0 || identity_len > RF_IDENTITY_MAX ||
        memchr(identity, '\0', identity_len) != NULL) {
        return 1; /* unknown: the handshake then ends without a key */
    }
    memcpy(tls->identity, identity, identity_len);
    tls->identity[identity_len] = '\0';
    if (!tls->find(tls->identity, psk, tls->find_data)) {
        return 1;
    }
    *session = session_of(ssl, psk);
    OPENSSL_cleanse(psk, sizeof(psk));
    return *session != NULL;
}

static int use_session_cb(SSL *ssl, const EVP_MD *digest,
                          const unsigned char **identity, size_t *identity_len,
                          SSL_SESSION **session)
{
    struct rf_tls *tls = SSL_get_app_data(ssl);
    *session = NULL;
    *identity = NULL;
    *identity_len = 0;
    if (digest != NULL && !EVP_MD_is_a(digest, "SHA256")) {
        return 1; /* not a cipher for this key */
    }
    *session = session_of(ssl, tls->psk);
    *identity = (const unsigned char *)tls->identity;
    *identity_len = strlen(tls->identity);
    return *session != NULL;
}

static SSL_CTX *make_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);
    if (context == NULL) {
        return NULL;
    }
    if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context,
                                 "TLS_AES_128_GCM_SHA256:"
                                 "TLS_CHACHA20_POLY1305_SHA256") != 1 ||
        SSL_CTX_set1_groups_list(context, "X25519") != 1 ||
        SSL_CTX_set_num_tickets(context, 0) != 1 ||
        SSL_CTX_set_max_early_data(context, 0) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return context;
}

static void make_contexts(void)
{
    shared.server = make_context(TLS_server_method());
    shared.client = make_context(TLS_client_method());
    if (shared.server != NULL) {
        SSL_CTX_set_psk_find_session_callback(shared.server, find_session_cb);
    }
    if (shared.client != NULL) {
        SSL_CTX_set_psk_use_session_callback(shared.client, use_session_cb);
        SSL_CTX_set_verify(shared.client, SSL_VERIFY_PEER, NULL);
    }
}

static enum rf_status create(bool server, struct rf_tls **out,
                             struct rf_err *err)
{
    struct rf_tls *tls = rf_xcalloc(1, sizeof(*tls));
    SSL_CTX *context;
    pthread_once(&shared.once, make_contexts);
    context = server ? shared.server : shared.client;
    tls->server = server;
    tls->ssl = context != NULL ? SSL_new(context) : NULL;
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (tls->ssl == NULL || tls->in == NULL || tls->out == NULL) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        SSL_free(tls->ssl);
        free(tls);
        return fail(err, RF_ERR_NOMEM, "set-up");
    }
    SSL_set_app_data(tls->ssl, tls);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    if (server) {
        SSL_set_accept_state(tls->ssl);
    } else {
        SSL_set_connect_state(tls->ssl);
    }
    *out = tls;
    return RF_OK;
}

enum rf_status rf_tls_server_create(rf_tls_find_psk_fn find, void *data,
                                    struct rf_tls **out, struct rf_err *err)
{
    enum rf_status status = create(true, out, err);
    if (status == RF_OK) {
        (*out)->find = find;
        (*out)->find_data = data;
    }
    return status;
}

enum rf_status rf_tls_client_create(const char *identity,
                                    const uint8_t psk[RF_PSK_BYTES],
                                    struct rf_tls **out, struct rf_err *err)
{
    enum rf_status status;
    size_t length = strlen(identity);
    if (length == 0 || length > RF_IDENTITY_MAX) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "TLS identity of %zu bytes, must have 1 to %d",
                          length, RF_IDENTITY_MAX);
    }
    status = create(false, out, err);
    if (status == RF_OK) {
        memcpy((*out)->identity, identity, length + 1);
        memcpy((*out)->psk, psk, RF_PSK_BYTES);
    }
    return status;
}

void rf_tls_destroy(struct rf_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    SSL_free(tls->ssl);
    OPENSSL_cleanse(tls->psk, sizeof(tls->psk));
    free(tls);
}

/* A memory BIO keeps the memory of its largest record, and a coordinator has
 * two BIOs per node. */
static void trim(BIO *bio)
{
    BUF_MEM *memory = NULL, *small;
    BIO_get_mem_ptr(bio, &memory);
    if (BIO_ctrl_pending(bio) > 0 || memory == NULL ||
        memory->max <= KEPT_BYTES) {
        return;
    }
    small = BUF_MEM_new();
    if (small != NULL) {
        BIO_set_mem_buf(bio, small, BIO_CLOSE);
    }
}

enum rf_status rf_tls_feed(struct rf_tls *tls, const void *cipher, size_t size,
                           struct rf_err *err)
{
    size_t put = 0;
    if (size > 0 &&
        (BIO_write_ex(tls->in, cipher, size, &put) != 1 || put != size)) {
        return fail(err, RF_ERR_NOMEM, "input");
    }
    return RF_OK;
}

enum rf_status rf_tls_handshake(struct rf_tls *tls, bool *done,
                                struct rf_err *err)
{
    int result;
    *done = tls->done;
    if (tls->done) {
        return RF_OK;
    }
    ERR_clear_error();
    result = SSL_do_handshake(tls->ssl);
    if (result != 1) {
        int why = SSL_get_error(tls->ssl, result);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
            return RF_OK;
        }
        return fail(err, RF_ERR_AUTH, "handshake");
    }
    if (!SSL_session_reused(tls->ssl)) {
        return rf_err_set(err, RF_ERR_AUTH,
                          "TLS handshake: the peer did not prove the key");
    }
    OPENSSL_cleanse(tls->psk, sizeof(tls->psk));
    tls->done = true;
    *done = true;
    return RF_OK;
}

enum rf_status rf_tls_read(struct rf_tls *tls, void *plain, size_t size,
                           size_t *got, bool *closed, struct rf_err *err)
{
    int why;
    *got = 0;
    *closed = false;
    ERR_clear_error();
    if (SSL_read_ex(tls->ssl, plain, size, got) == 1) {
        trim(tls->in);
        return RF_OK;
    }
    *got = 0;
    why = SSL_get_error(tls->ssl, 0);
    trim(tls->in);
    if (why == SSL_ERROR_ZERO_RETURN) {
        *closed = true;
        return RF_OK;
    }
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        return RF_OK;
    }
    return fail(err, RF_ERR_PROTOCOL, "record");
}

bool rf_tls_has_more(const struct rf_tls *tls)
{
    return BIO_ctrl_pending(tls->in) > 0 || SSL_has_pending(tls->ssl) == 1;
}

enum rf_status rf_tls_write(struct rf_tls *tls, const void *plain, size_t size,
                            struct rf_err *err)
{
    size_t put = 0;
    ERR_clear_error();
    if (size > 0 &&
        (SSL_write_ex(tls->ssl, plain, size, &put) != 1 || put != size)) {
        return fail(err, RF_ERR_INTERNAL, "output");
    }
    return RF_OK;
}

size_t rf_tls_drain(struct rf_tls *tls, void *out, size_t size)
{
    size_t got = 0;
    if (BIO_ctrl_pending(tls->out) == 0 ||
        BIO_read_ex(tls->out, out, size, &got) != 1) {
        return 0;
    }
    trim(tls->out);
    return got;
}

void rf_tls_shutdown(struct rf_tls *tls)
{
    if (tls->done) {
        ERR_clear_error();
        (void)SSL_shutdown(tls->ssl); /* 0: the peer's close_notify is
                                         pending */
        ERR_clear_error();
    }
}

bool rf_tls_has_proof(const struct rf_tls *tls)
{
    return SSL_session_reused(tls->ssl) == 1;
}

const char *rf_tls_identity(const struct rf_tls *tls)
{
    return tls->server && tls->done ? tls->identity : NULL;
}
