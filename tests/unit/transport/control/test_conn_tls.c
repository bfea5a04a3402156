/* Connections under TLS: keys, identities, strangers, cuts and flipped bits. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "tests/lib/conn_ends.h"
#include "tests/unit/unit.h"

static const uint8_t key[RF_PSK_BYTES] = {9, 8, 7};

static bool find(const char *identity, uint8_t psk[RF_PSK_BYTES], void *data)
{
    bool *used = data;
    memcpy(psk, key, RF_PSK_BYTES);
    return strcmp(identity, "run/0") == 0 && (used == NULL || !*used);
}

static struct rf_tls *server_tls(void *used)
{
    struct rf_tls *tls = NULL;
    ck_assert_int_eq(rf_tls_server_create(find, used, &tls, NULL), RF_OK);
    return tls;
}

static struct rf_tls *client_tls(const uint8_t *psk)
{
    struct rf_tls *tls = NULL;
    ck_assert_int_eq(rf_tls_client_create("run/0", psk, &tls, NULL), RF_OK);
    return tls;
}

LIMIT(60)
FIXTURE(ends_setup, ends_teardown)

TEST(test_conn_tls_carries_frames_sent_before_the_handshake)
{
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], server_tls(NULL));
    ends_open(&ends_right, fds[1], client_tls(key));
    rf_conn_send(ends_left.conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, json_object());
    rf_conn_send(ends_right.conn, RF_MSG_HELLO, RF_FRAME_NO_RANK,
                 json_pack("{s:i}", "node", 0));
    ends_run_until(ends_right_has_a_frame);
    ck_assert_uint_eq(ends_left.frames, 1);
    ck_assert_str_eq(ends_left.identity, "run/0");
    ck_assert_uint_eq(ends_right.frames, 1);
    rf_conn_close(ends_right.conn);
    ends_run_until(ends_both_closed);
    ck_assert_int_eq(ends_left.why.status, RF_OK);
    ck_assert_int_eq(ends_right.why.status, RF_OK);
}

TEST(test_conn_tls_carries_large_frames)
{
    const size_t size = 20 << 20;
    AUTO_FREE char *payload = rf_xmalloc(size);
    int fds[2];
    memset(payload, 'x', size);
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], server_tls(NULL));
    ends_open(&ends_right, fds[1], client_tls(key));
    rf_conn_send_raw(ends_left.conn, RF_MSG_START, 0, payload, size);
    ends_run_until(ends_right_has_a_frame);
    ck_assert_uint_eq(ends_right.bytes, size);
    rf_conn_send_raw(ends_left.conn, RF_MSG_START, 0, payload, size);
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_right.bytes, 2 * size);
    ck_assert_int_eq(ends_right.why.status, RF_OK);
}

TEST(test_conn_tls_wrong_key_fails_both_ends)
{
    static const uint8_t wrong[RF_PSK_BYTES] = {1};
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], server_tls(NULL));
    ends_open(&ends_right, fds[1], client_tls(wrong));
    ends_run_until(ends_both_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_AUTH);
    ck_assert_int_eq(ends_right.why.status, RF_ERR_AUTH);
    ck_assert_uint_eq(ends_left.ready + ends_right.ready, 0);
}

TEST(test_conn_tls_used_identity_fails)
{
    bool used = true;
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], server_tls(&used));
    ends_open(&ends_right, fds[1], client_tls(key));
    ends_run_until(ends_both_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_AUTH);
    ck_assert_uint_eq(ends_left.ready, 0);
}

static void tick_cb(uv_timer_t *timer)
{
    (void)timer; /* ends a turn of the loop, no more */
}

LOOP_TEST(test_conn_tls_silent_or_dripping_stranger_is_closed_in_time, 2)
{
    /* Enough for 30 s, were each byte to win another five. */
    static const char hello[60] =
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    int fds[2];
    size_t at = 0;
    int64_t started = rf_now_ns(), next = started;
    uv_timer_t tick;
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], server_tls(NULL));
    uv_timer_init(&ends_loop, &tick);
    uv_timer_start(&tick, tick_cb, 50, 50);
    while (ends_left.closes == 0 && rf_now_ns() < started + 20 * RF_NS_PER_S) {
        uv_run(&ends_loop, UV_RUN_ONCE);
        if (_i == 1 && ends_left.closes == 0 && rf_now_ns() >= next &&
            at < sizeof(hello)) {
            next += RF_NS_PER_S / 2; /* a byte every half second */
            at += send(fds[1], hello + at, 1, MSG_NOSIGNAL) == 1;
        }
    }
    ck_assert_uint_eq(ends_left.closes, 1);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_TIMEOUT);
    ck_assert_uint_ge(at, _i == 1 ? 8 : 0);
    ck_assert_uint_lt(at, sizeof(hello)); /* not when it had run out of them */
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    close(fds[1]);
}

TEST(test_conn_tls_plain_text_is_refused)
{
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], server_tls(NULL));
    ck_assert_int_eq(write(fds[1], "GET / HTTP/1.0\r\n\r\n", 18), 18);
    ends_run_until(ends_left_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_AUTH);
    close(fds[1]);
}

/* Copies what arrived on `from` to `to`, flipping a bit of byte `flip`. */
static size_t relay(int from, int to, size_t flip)
{
    char bytes[4096];
    ssize_t got = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) {
        return 0;
    }
    if (flip < (size_t)got) {
        bytes[flip] ^= 1;
    }
    ck_assert_int_eq(send(to, bytes, (size_t)got, MSG_NOSIGNAL), got);
    return (size_t)got;
}

/* Puts a relay between the two ends and lets the handshake through it. */
static void open_through_relay(int outer_left[2], int outer_right[2])
{
    ends_socketpair(outer_left);
    ends_socketpair(outer_right);
    ends_open(&ends_left, outer_left[0], server_tls(NULL));
    ends_open(&ends_right, outer_right[0], client_tls(key));
    for (int i = 0; i < 2000 && ends_left.ready + ends_right.ready < 2; i++) {
        relay(outer_left[1], outer_right[1], SIZE_MAX);
        relay(outer_right[1], outer_left[1], SIZE_MAX);
        uv_run(&ends_loop, UV_RUN_NOWAIT);
    }
    ck_assert_uint_eq(ends_left.ready + ends_right.ready, 2);
}

TEST(test_conn_tls_cut_is_told_from_a_close)
{
    int outer_left[2], outer_right[2];
    open_through_relay(outer_left, outer_right);
    close(outer_left[1]);
    ends_run_until(ends_left_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_PEER);
    assert_says(ends_left.why.text, "close_notify");
    close(outer_right[1]);
    ends_run_until(ends_both_closed);
}

TEST(test_conn_tls_flipped_bit_ends_the_connection)
{
    int outer_left[2], outer_right[2];
    open_through_relay(outer_left, outer_right);
    rf_conn_send(ends_right.conn, RF_MSG_DONE, 0,
                 json_pack("{s:i}", "seq", 12));
    while (relay(outer_right[1], outer_left[1], 9) == 0) {
        uv_run(&ends_loop, UV_RUN_NOWAIT);
    }
    ends_run_until(ends_left_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_PROTOCOL);
    ck_assert_uint_eq(ends_left.frames, 0); /* nothing of it was acted on */
    close(outer_left[1]);
    close(outer_right[1]);
    ends_run_until(ends_both_closed);
}
