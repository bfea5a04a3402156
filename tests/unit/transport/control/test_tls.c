/* TLS with an external key, both ends in memory. */
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/unit.h"
#include "transport/control/tls.h"

static const uint8_t key_a[RF_PSK_BYTES] = {1, 2, 3, 4};
static const uint8_t key_b[RF_PSK_BYTES] = {4, 3, 2, 1};

struct book {
    bool used;
    unsigned asked;
};

/* Knows "run/0" with key_a and "run/1" with key_b. */
static bool find(const char *identity, uint8_t psk[RF_PSK_BYTES], void *data)
{
    struct book *book = data;
    book->asked++;
    if (book->used || strncmp(identity, "run/", 4) != 0) {
        return false;
    }
    memcpy(psk, identity[4] == '0' ? key_a : key_b, RF_PSK_BYTES);
    return identity[4] == '0' || identity[4] == '1';
}

/* Moves what `from` has to send to `to`, flipping a bit of byte `flip` (counted
 * over the call; SIZE_MAX: none). */
static enum rf_status carry(struct rf_tls *from, struct rf_tls *to, size_t flip,
                            struct rf_err *err)
{
    uint8_t bytes[1000];
    size_t got, at = 0;
    enum rf_status status = RF_OK;
    while ((got = rf_tls_drain(from, bytes, sizeof(bytes))) > 0) {
        if (flip >= at && flip < at + got) {
            bytes[flip - at] ^= 0x10;
        }
        at += got;
        if (status == RF_OK) {
            status = rf_tls_feed(to, bytes, got, err);
        }
    }
    return status;
}

/* Handshakes; returns the first failure of either end. */
static enum rf_status shake(struct rf_tls *client, struct rf_tls *server,
                            struct rf_err *err)
{
    bool client_done = false, server_done = false;
    for (int i = 0; i < 10 && !(client_done && server_done); i++) {
        enum rf_status status = rf_tls_handshake(client, &client_done, err);
        if (status != RF_OK || carry(client, server, SIZE_MAX, err) != RF_OK) {
            return status;
        }
        status = rf_tls_handshake(server, &server_done, err);
        if (status != RF_OK) {
            return status;
        }
        ck_assert_int_eq(carry(server, client, SIZE_MAX, err), RF_OK);
    }
    return client_done && server_done ? RF_OK : RF_ERR_TIMEOUT;
}

static struct book book;
static struct rf_tls *client, *server;

static void make(const char *identity, const uint8_t *key)
{
    ck_assert_int_eq(rf_tls_client_create(identity, key, &client, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_server_create(find, &book, &server, NULL), RF_OK);
}

static void setup(void)
{
    memset(&book, 0, sizeof(book));
    client = server = NULL;
}

static void teardown(void)
{
    rf_tls_destroy(client);
    rf_tls_destroy(server);
}

static void make_joined(void)
{
    struct rf_err err = {0};
    make("run/0", key_a);
    assert_ok(shake(client, server, &err), err);
}

FIXTURE(setup, teardown)

TEST(test_tls_right_key_joins_and_proves_the_identity)
{
    char plain[64];
    size_t got = 0;
    bool closed = false;
    make("run/0", key_a);
    ck_assert_ptr_null(rf_tls_identity(server));
    ck_assert(!rf_tls_has_proof(server));
    ck_assert_int_eq(shake(client, server, NULL), RF_OK);
    ck_assert_str_eq(rf_tls_identity(server), "run/0");
    ck_assert_ptr_null(rf_tls_identity(client));
    ck_assert_int_eq(rf_tls_write(client, "hello", 5, NULL), RF_OK);
    ck_assert(!rf_tls_has_more(server));
    ck_assert_int_eq(carry(client, server, SIZE_MAX, NULL), RF_OK);
    ck_assert(rf_tls_has_more(server));
    ck_assert_int_eq(
        rf_tls_read(server, plain, sizeof(plain), &got, &closed, NULL), RF_OK);
    ck_assert_uint_eq(got, 5);
    ck_assert(!rf_tls_has_more(server));
    ck_assert_mem_eq(plain, "hello", 5);
    ck_assert(!closed);
}

TEST(test_tls_carries_much_data_both_ways)
{
    const size_t size = 3 << 20;
    AUTO_FREE uint8_t *sent = rf_xmalloc(size), *received = rf_xmalloc(size);
    size_t have = 0, got = 0;
    bool closed = false;
    for (size_t i = 0; i < size; i++) {
        sent[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    make_joined();
    ck_assert_int_eq(rf_tls_write(server, sent, size, NULL), RF_OK);
    ck_assert_int_eq(carry(server, client, SIZE_MAX, NULL), RF_OK);
    do {
        ck_assert_int_eq(rf_tls_read(client, received + have, size - have, &got,
                                     &closed, NULL),
                         RF_OK);
        have += got;
    } while (got > 0 && have < size);
    ck_assert_uint_eq(have, size);
    ck_assert(memcmp(sent, received, size) == 0);
}

LOOP_TEST(test_tls_refuses_all_but_the_right_key, 5)
{
    static const struct {
        const char *identity;
        const uint8_t *key;
    } bad[] = {
        {"run/0", key_b}, /* wrong key */
        {"run/1", key_a}, /* another node's key */
        {"run/2", key_a}, /* no such node */
        {"old/0", key_a}, /* another run */
        {"r", key_a},
    };
    struct rf_err err = {0};
    make(bad[_i].identity, bad[_i].key);
    assert_fails(shake(client, server, &err), RF_ERR_AUTH, err,
                 "TLS handshake");
    ck_assert_ptr_null(rf_tls_identity(server));
    ck_assert_uint_ge(book.asked, 1);
}

TEST(test_tls_identity_is_good_for_one_connection)
{
    make_joined();
    book.used = true;
    teardown();
    make("run/0", key_a);
    ck_assert_int_eq(shake(client, server, NULL), RF_ERR_AUTH);
}

TEST(test_tls_client_forgets_the_key_after_the_handshake)
{
    size_t size;
    make("run/0", key_a);
    size = malloc_usable_size(client);
    ck_assert_ptr_nonnull(memmem(client, size, key_a, RF_PSK_BYTES));
    ck_assert_int_eq(shake(client, server, NULL), RF_OK);
    ck_assert_ptr_null(memmem(client, size, key_a, RF_PSK_BYTES));
}

TEST(test_tls_recorded_handshake_is_of_no_use)
{
    uint8_t recorded[4096], answer[4096];
    struct rf_tls *victim = NULL;
    size_t size;
    bool done = false;
    make("run/0", key_a);
    ck_assert_int_eq(rf_tls_handshake(client, &done, NULL), RF_OK);
    size = rf_tls_drain(client, recorded, sizeof(recorded));
    ck_assert_int_eq(rf_tls_server_create(find, &book, &victim, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_feed(victim, recorded, size, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_handshake(victim, &done, NULL), RF_OK);
    ck_assert(!done); /* the attacker has no Finished to give */
    ck_assert(rf_tls_has_proof(victim)); /* as far as can be told yet */
    ck_assert_uint_gt(rf_tls_drain(victim, answer, sizeof(answer)), 0);
    ck_assert_int_eq(rf_tls_feed(victim, recorded, size, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_handshake(victim, &done, NULL), RF_ERR_AUTH);
    rf_tls_destroy(victim);
}

/* A peer made of OpenSSL itself, for what rf_tls would never send. */
static SSL *foreign(SSL_CTX *context, bool accept)
{
    SSL *ssl = SSL_new(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (accept) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
    }
    return ssl;
}

static enum rf_status shake_foreign(SSL *ssl, struct rf_tls *tls)
{
    enum rf_status status = RF_OK;
    bool done = false;
    for (int i = 0; i < 10 && status == RF_OK && !done; i++) {
        uint8_t bytes[8192];
        size_t got;
        int count;
        (void)SSL_do_handshake(ssl);
        while ((count = BIO_read(SSL_get_wbio(ssl), bytes, sizeof(bytes))) >
               0) {
            ck_assert_int_eq(rf_tls_feed(tls, bytes, (size_t)count, NULL),
                             RF_OK);
        }
        status = rf_tls_handshake(tls, &done, NULL);
        while ((got = rf_tls_drain(tls, bytes, sizeof(bytes))) > 0) {
            BIO_write(SSL_get_rbio(ssl), bytes, (int)got);
        }
    }
    ck_assert(!done);
    return status;
}

TEST(test_tls_version_1_2_is_refused)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl;
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    ssl = foreign(context, false);
    ck_assert_int_eq(rf_tls_server_create(find, &book, &server, NULL), RF_OK);
    ck_assert_int_eq(shake_foreign(ssl, server), RF_ERR_AUTH);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

TEST(test_tls_without_a_key_is_refused)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = foreign(context, false);
    ck_assert_int_eq(rf_tls_server_create(find, &book, &server, NULL), RF_OK);
    ck_assert_int_eq(shake_foreign(ssl, server), RF_ERR_AUTH);
    ck_assert_uint_eq(book.asked, 0);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

/* What a string ends before: the right identity and a little more. */
static int use_long_identity_cb(SSL *ssl, const EVP_MD *digest,
                                const unsigned char **identity, size_t *size,
                                SSL_SESSION **session)
{
    static const unsigned char name[] = "run/0\0x";
    (void)digest;
    *session = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(*session, key_a, RF_PSK_BYTES);
    SSL_SESSION_set_cipher(
        *session, SSL_CIPHER_find(ssl, (const unsigned char *)"\x13\x01"));
    SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
    *identity = name;
    *size = sizeof(name) - 1;
    return 1;
}

TEST(test_tls_nul_inside_an_identity_is_refused)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl;
    SSL_CTX_set_psk_use_session_callback(context, use_long_identity_cb);
    ssl = foreign(context, false);
    ck_assert_int_eq(rf_tls_server_create(find, &book, &server, NULL), RF_OK);
    ck_assert_int_eq(shake_foreign(ssl, server), RF_ERR_AUTH);
    ck_assert_uint_eq(book.asked, 0);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

TEST(test_tls_server_with_a_certificate_instead_is_refused)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    SSL *ssl;
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN",
                               MBSTRING_ASC, (const unsigned char *)"head", -1,
                               -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    ck_assert_int_eq(SSL_CTX_use_certificate(context, certificate), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(context, key), 1);
    ssl = foreign(context, true);
    ck_assert_int_eq(rf_tls_client_create("run/0", key_a, &client, NULL),
                     RF_OK);
    ck_assert_int_eq(shake_foreign(ssl, client), RF_ERR_AUTH);
    SSL_free(ssl);
    SSL_CTX_free(context);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

LOOP_TEST(test_tls_plain_text_is_refused, 3)
{
    static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: head\r\n\r\n",
                                        "SSH-2.0-OpenSSH_9.2p1\r\n",
                                        "\n\nREFIT-WORKER/1 0123456789\n"};
    bool done = false;
    ck_assert_int_eq(rf_tls_server_create(find, &book, &server, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_feed(server, texts[_i], strlen(texts[_i]), NULL),
                     RF_OK);
    ck_assert_int_eq(rf_tls_handshake(server, &done, NULL), RF_ERR_AUTH);
}

LOOP_TEST(test_tls_flipped_bit_of_the_hello_is_refused, 12)
{
    bool done = false;
    enum rf_status status;
    make("run/0", key_a);
    ck_assert_int_eq(rf_tls_handshake(client, &done, NULL), RF_OK);
    /* past the record header, wherever the hello's parts lie */
    ck_assert_int_eq(carry(client, server, 5 + (size_t)_i * 11, NULL), RF_OK);
    status = rf_tls_handshake(server, &done, NULL);
    if (status == RF_OK) {
        /* the bit is under the transcript hash: the client notices */
        ck_assert(!done);
        ck_assert_int_eq(carry(server, client, SIZE_MAX, NULL), RF_OK);
        status = rf_tls_handshake(client, &done, NULL);
        ck_assert(!done);
    }
    ck_assert(status == RF_ERR_AUTH || !done);
    ck_assert_ptr_null(rf_tls_identity(server));
}

LOOP_TEST(test_tls_flipped_bit_of_a_record_is_refused, 32)
{
    char plain[64];
    size_t got = 0;
    bool closed = false;
    make_joined();
    ck_assert_int_eq(rf_tls_write(client, "0123456789", 10, NULL), RF_OK);
    ck_assert_int_eq(carry(client, server, (size_t)_i, NULL), RF_OK);
    /* a longer length in the header only waits for more */
    if (rf_tls_read(server, plain, sizeof(plain), &got, &closed, NULL) ==
        RF_OK) {
        ck_assert(_i == 3 || _i == 4);
    }
    ck_assert_uint_eq(got, 0);
    ck_assert(!closed);
}

TEST(test_tls_reordered_records_are_refused)
{
    uint8_t first[256], second[256];
    char plain[64];
    size_t first_size, second_size, got = 0;
    bool closed = false;
    make_joined();
    ck_assert_int_eq(rf_tls_write(client, "one", 3, NULL), RF_OK);
    first_size = rf_tls_drain(client, first, sizeof(first));
    ck_assert_int_eq(rf_tls_write(client, "two", 3, NULL), RF_OK);
    second_size = rf_tls_drain(client, second, sizeof(second));
    ck_assert_int_eq(rf_tls_feed(server, second, second_size, NULL), RF_OK);
    ck_assert_int_eq(rf_tls_feed(server, first, first_size, NULL), RF_OK);
    ck_assert_int_eq(
        rf_tls_read(server, plain, sizeof(plain), &got, &closed, NULL),
        RF_ERR_PROTOCOL);
    ck_assert_uint_eq(got, 0);
}

/* A record of the largest size, and what comes of it read. */
static void pass_large_record(void)
{
    static char plain[16 << 10];
    size_t got = 0, all = 0;
    bool closed = false;
    ck_assert_int_eq(rf_tls_write(client, plain, sizeof(plain), NULL), RF_OK);
    ck_assert_int_eq(carry(client, server, SIZE_MAX, NULL), RF_OK);
    do {
        ck_assert_int_eq(
            rf_tls_read(server, plain, sizeof(plain), &got, &closed, NULL),
            RF_OK);
        all += got;
    } while (got > 0);
    ck_assert_uint_eq(all, sizeof(plain));
}

/* Under a sanitizer's allocator there are no figures: 0 each time. */
TEST(test_tls_large_records_leave_no_memory_behind)
{
    size_t before;
    make_joined();
    before = mallinfo2().uordblks;
    pass_large_record();
    ck_assert_uint_le(mallinfo2().uordblks, before + 4096);
}

TEST(test_tls_close_is_told_from_a_cut)
{
    char plain[16];
    size_t got = 0;
    bool closed = false;
    make_joined();
    ck_assert_int_eq(
        rf_tls_read(server, plain, sizeof(plain), &got, &closed, NULL), RF_OK);
    ck_assert(!closed && got == 0);
    rf_tls_shutdown(client);
    ck_assert_int_eq(carry(client, server, SIZE_MAX, NULL), RF_OK);
    ck_assert_int_eq(
        rf_tls_read(server, plain, sizeof(plain), &got, &closed, NULL), RF_OK);
    ck_assert(closed && got == 0);
}

TEST(test_tls_bad_identity_lengths_are_refused)
{
    char identity[RF_IDENTITY_MAX + 2];
    memset(identity, 'x', sizeof(identity));
    identity[sizeof(identity) - 1] = '\0';
    ck_assert_int_eq(rf_tls_client_create(identity, key_a, &client, NULL),
                     RF_ERR_INTERNAL);
    ck_assert_int_eq(rf_tls_client_create("", key_a, &client, NULL),
                     RF_ERR_INTERNAL);
    ck_assert_ptr_null(client);
}
