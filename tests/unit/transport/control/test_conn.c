/* Connections over socketpairs and loopback TCP: ends, limits, hostile peers.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "tests/lib/conn_ends.h"
#include "tests/unit/unit.h"
#include "transport/control/conn_internal.h"
#include "transport/net/tcp_options.h"

LIMIT(20)
FIXTURE(ends_setup, ends_teardown)

TEST(test_conn_carries_frames_and_closes_in_order)
{
    ends_open_both();
    rf_conn_send(ends_left.conn, RF_MSG_STEP, 3, json_pack("{s:i}", "seq", 1));
    rf_conn_send(ends_left.conn, RF_MSG_STEP, 3, json_pack("{s:i}", "seq", 2));
    rf_conn_close(ends_left.conn);
    rf_conn_close(ends_left.conn); /* safe to repeat */
    rf_conn_send(ends_left.conn, RF_MSG_STEP, 3, json_object()); /* dropped */
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_right.frames, 2);
    ck_assert_str_eq(ends_right.last_payload, "{\"seq\":2}");
    ck_assert_int_eq(ends_left.why.status, RF_OK);
    ck_assert_int_eq(ends_right.why.status, RF_OK);
    ck_assert_uint_eq(ends_left.closes, 1);
    ck_assert_uint_eq(ends_right.closes, 1);
}

TEST(test_conn_flushes_more_than_the_socket_holds)
{
    const size_t size = 8 << 20;
    AUTO_FREE char *payload = rf_xmalloc(size);
    memset(payload, 'x', size);
    ends_open_both();
    for (int i = 0; i < 5; i++) {
        rf_conn_send_raw(ends_left.conn, RF_MSG_START, 0, payload, size);
    }
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_right.frames, 5);
    ck_assert_uint_eq(ends_right.bytes, 5 * size);
    ck_assert_int_eq(ends_left.why.status, RF_OK);
}

static void answer_and_close(struct conn_end *end, const struct rf_frame *frame)
{
    (void)frame;
    rf_conn_send(end->conn, RF_MSG_ERROR, RF_FRAME_NO_RANK,
                 json_pack("{s:s}", "text", "go away"));
    rf_conn_close(end->conn);
}

TEST(test_conn_last_words_arrive_despite_unread_input)
{
    ends_open_both();
    ends_right.react = answer_and_close;
    for (int i = 0; i < 2000; i++) {
        rf_conn_send(ends_left.conn, RF_MSG_LEASE, 0, json_object());
    }
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_right.frames, 1); /* none after the close */
    ck_assert_uint_eq(ends_left.last_type, RF_MSG_ERROR);
    ck_assert_int_eq(ends_left.why.status, RF_OK);
}

static bool right_has_two_frames(void)
{
    return ends_right.frames == 2;
}

/* What does not fit into the socket waits in the payload itself, and what comes
 * later waits behind it. */
TEST(test_conn_keeps_a_shared_payload_until_it_is_sent)
{
    const size_t size = 8 << 20;
    AUTO_FREE char *bytes = rf_xmalloc(size);
    struct rf_shared_payload *payload;
    memset(bytes, 'x', size);
    payload = rf_shared_payload_of_bytes(RF_MSG_START, bytes, size);
    ends_open_both();
    rf_conn_send_payload(ends_left.conn, 0, payload);
    rf_conn_send(ends_left.conn, RF_MSG_STEP, 0, json_object());
    ck_assert_uint_eq(payload->references, 2);
    ck_assert_uint_lt(uv_stream_get_write_queue_size(ends_left.conn->out),
                      size / 8);
    ends_run_until(right_has_two_frames);
    ck_assert_uint_eq(payload->references, 1);
    ck_assert_uint_eq(ends_right.last_type, RF_MSG_STEP);
    ck_assert_uint_eq(ends_right.bytes, size + strlen("{}"));
    rf_shared_payload_drop(payload);
}

TEST(test_conn_that_fails_lets_go_of_a_shared_payload)
{
    const size_t size = 8 << 20;
    AUTO_FREE char *bytes = rf_xcalloc(size, 1);
    struct rf_shared_payload *payload =
        rf_shared_payload_of_bytes(RF_MSG_START, bytes, size);
    const struct rf_err why = {.status = RF_ERR_ABORTED};
    ends_open_both();
    rf_conn_send_payload(ends_left.conn, 0, payload);
    rf_conn_fail(ends_left.conn, &why);
    rf_conn_send_payload(ends_left.conn, 0, payload); /* dropped */
    ends_run_until(ends_left_closed);
    ck_assert_uint_eq(payload->references, 1);
    rf_shared_payload_drop(payload);
}

LOOP_TEST(test_conn_wipes_the_secrets_of_what_it_sent, 2)
{
    json_t *key = json_string("5ec7e7"), *shared = json_string("5ec7e7");
    ends_open_both();
    rf_conn_send(ends_left.conn, RF_MSG_EXCHANGED, RF_FRAME_NO_RANK,
                 json_pack("{s:[O]}", "data", shared));
    if (_i == 1) {
        rf_conn_close(ends_left.conn); /* and of what it did not */
    }
    rf_conn_send(ends_left.conn, RF_MSG_BOOT, RF_FRAME_NO_RANK,
                 json_pack("{s:O}", "psk", key));
    ck_assert_str_eq(json_string_value(key), "");
    ck_assert_str_eq(json_string_value(shared), "");
    json_decref(key);
    json_decref(shared);
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_right.frames, _i == 1 ? 1 : 2);
}

static void fail_inside(struct conn_end *end, const struct rf_frame *frame)
{
    struct rf_err why;
    (void)frame;
    rf_err_set(&why, RF_ERR_PROTOCOL, "no");
    rf_conn_fail(end->conn, &why);
    rf_conn_fail(end->conn, &why);
    rf_conn_close(end->conn);
    rf_conn_send(end->conn, RF_MSG_LEASE, 0, json_object());
}

TEST(test_conn_may_be_failed_inside_its_own_callback)
{
    ends_open_both();
    ends_right.react = fail_inside;
    for (int i = 0; i < 100; i++) {
        rf_conn_send(ends_left.conn, RF_MSG_LEASE, 0, json_object());
    }
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_right.frames, 1);
    ck_assert_int_eq(ends_right.why.status, RF_ERR_PROTOCOL);
    ck_assert_str_eq(ends_right.why.text, "no");
    ck_assert_uint_eq(ends_right.closes, 1);
}

TEST(test_conn_failed_right_after_opening_still_closes_once)
{
    struct rf_err why;
    ends_open_both();
    rf_err_set(&why, RF_ERR_TIMEOUT, "late");
    rf_conn_fail(ends_left.conn, &why);
    ck_assert_uint_eq(ends_left.closes, 0); /* from the loop only */
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_left.ready, 0);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_TIMEOUT);
    ck_assert_int_eq(ends_right.why.status, RF_OK);
}

/* Gives raw bytes to the left end, then closes unless `open`. */
static void give_left(const void *bytes, size_t size, bool open)
{
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    ck_assert_int_eq(write(fds[1], bytes, size), (ssize_t)size);
    if (!open) {
        close(fds[1]);
    }
    ends_run_until(ends_left_closed);
    if (open) {
        close(fds[1]);
    }
}

TEST(test_conn_bad_bytes_end_the_connection)
{
    give_left("GET / HTTP/1.1\r\n\r\n", 18, true);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_PROTOCOL);
    ck_assert_uint_eq(ends_left.frames, 0);
}

LOOP_TEST(test_conn_end_inside_a_frame_is_an_error, 18)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES + 2] = {0, 0, 0, 10, 1, RF_MSG_LEASE};
    give_left(bytes, (size_t)_i, false);
    ck_assert_int_eq(ends_left.why.status, _i == 0 ? RF_OK : RF_ERR_PROTOCOL);
}

TEST(test_conn_message_above_its_cap_is_not_sent)
{
    AUTO_FREE char *big = rf_xmalloc(5000);
    memset(big, ' ', 5000);
    ends_open_both();
    rf_conn_send_raw(ends_left.conn, RF_MSG_LEASE, 0, big, 5000);
    ends_run_until(ends_both_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_INTERNAL);
    ck_assert_uint_eq(ends_right.frames, 0);
}

TEST(test_conn_drops_log_but_nothing_else_when_the_peer_is_slow)
{
    const size_t size = 16 << 10;
    AUTO_FREE char *text = rf_xmalloc(size);
    int fds[2];
    uint64_t total;
    memset(text, 'l', size);
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    for (int i = 0; i < 1000; i++) { /* 16 MB nobody reads */
        rf_conn_send_raw(ends_left.conn, RF_MSG_LOG, 1, text, size);
    }
    for (int i = 0; i < 300; i++) {
        rf_conn_send_raw(ends_left.conn, RF_MSG_STEP, 1, text, size);
    }
    ends_open(&ends_right, fds[1], NULL);
    rf_conn_send_raw(ends_left.conn, RF_MSG_SHUTDOWN, 0, "{}", 2);
    rf_conn_close(ends_left.conn);
    ends_run_until(ends_both_closed);
    total = ends_right.bytes / size;
    ck_assert_uint_ge(total, 300);
    ck_assert_uint_lt(total, 500);
    ck_assert_uint_eq(ends_right.last_type, RF_MSG_SHUTDOWN);
    ck_assert_int_eq(ends_right.why.status, RF_OK); /* no gap in the sequence */
}

static bool seen_drop_note;

static void look_for_note(struct conn_end *end, const struct rf_frame *frame)
{
    (void)frame;
    if (strstr(end->last_payload, "were dropped") != NULL) {
        seen_drop_note = true;
    }
}

static bool right_saw_the_note(void)
{
    if (ends_left.conn != NULL && !seen_drop_note) {
        rf_conn_send_raw(ends_left.conn, RF_MSG_LOG, 1, "later\n", 6);
    }
    return seen_drop_note;
}

TEST(test_conn_says_how_much_log_was_dropped)
{
    const size_t size = 4 << 20; /* far above the cap of a frame: split */
    AUTO_FREE char *text = rf_xmalloc(size);
    int fds[2];
    memset(text, 'l', size);
    seen_drop_note = false;
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    rf_conn_send_raw(ends_left.conn, RF_MSG_LOG, 1, text, size);
    ends_open(&ends_right, fds[1], NULL);
    ends_right.react = look_for_note;
    ends_run_until(right_saw_the_note);
}

TEST(test_conn_fails_when_the_peer_never_reads)
{
    const size_t size = 60 << 20;
    AUTO_FREE char *payload = rf_xmalloc(size);
    int fds[2];
    memset(payload, 'x', size);
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    for (int i = 0; i < 3; i++) {
        rf_conn_send_raw(ends_left.conn, RF_MSG_START, 0, payload, size);
    }
    ends_run_until(ends_left_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_PEER);
    assert_says(ends_left.why.text, "does not read");
    close(fds[1]);
}

TEST(test_conn_works_over_two_one_way_streams)
{
    int up[2], down[2];
    ck_assert_int_eq(pipe2(up, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(down, O_CLOEXEC), 0);
    ends_left.conn = rf_conn_open_two(ends_stream(up[0]), ends_stream(down[1]),
                                      &ends_ops, &ends_left);
    ends_right.conn = rf_conn_open_two(ends_stream(down[0]), ends_stream(up[1]),
                                       &ends_ops, &ends_right);
    rf_conn_send(ends_left.conn, RF_MSG_HELLO, 0, json_object());
    rf_conn_send(ends_right.conn, RF_MSG_BOOT, 0, json_object());
    ends_run_until(ends_right_has_a_frame);
    rf_conn_close(ends_right.conn);
    ends_run_until(ends_both_closed);
    ck_assert_uint_eq(ends_left.frames, 1);
    ck_assert_uint_eq(ends_right.frames, 1);
    ck_assert_int_eq(ends_left.why.status, RF_OK);
}

/* --- Banner --------------------------------------------------------------- */

static void open_with_banner(const char *noise, size_t size, size_t step,
                             bool then_frame)
{
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    rf_conn_expect_banner(ends_left.conn, "REFIT-WORKER/1 abc");
    for (size_t at = 0; at < size; at += step) {
        ck_assert_int_gt(write(fds[1], noise + at, RF_MIN(step, size - at)), 0);
        uv_run(&ends_loop, UV_RUN_NOWAIT);
    }
    if (then_frame) {
        uint8_t header[RF_FRAME_HEADER_BYTES];
        struct rf_frame frame = {
            .version = RF_FRAME_VERSION, .type = RF_MSG_HELLO, .length = 2};
        rf_frame_encode_header(&frame, header);
        ck_assert_int_eq(write(fds[1], header, sizeof(header)), 16);
        ck_assert_int_eq(write(fds[1], "{}", 2), 2);
    }
    close(fds[1]);
    ends_run_until(ends_left_closed);
}

LOOP_TEST(test_conn_skips_noise_before_the_banner, 8)
{
    static const char *const noise[] = {
        "REFIT-WORKER/1 abc\n",
        "\nREFIT-WORKER/1 abc\n",
        "Welcome to gpu-a!\n\x1b[1mLast login\x1b[0m \nREFIT-WORKER/1 abc\n",
        "REFIT-WORKER/1 abd\n REFIT-WORKER/1 abc\n\nREFIT-WORKER/1 abc\n",
    };
    const char *text = noise[_i / 2];
    open_with_banner(text, strlen(text), _i % 2 ? 1 : 1000, true);
    ck_assert_uint_eq(ends_left.ready, 1);
    ck_assert_uint_eq(ends_left.frames, 1);
    ck_assert_int_eq(ends_left.why.status, RF_OK);
}

TEST(test_conn_without_a_banner_shows_what_came)
{
    static const char text[] = "This account is not available.\n\x01";
    open_with_banner(text, sizeof(text) - 1, 1000, false);
    ck_assert_uint_eq(ends_left.ready, 0);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_LAUNCH);
    assert_says(ends_left.why.text, "not available.\\n?");
}

TEST(test_conn_with_too_much_noise_gives_up)
{
    const size_t size = 200 << 10;
    AUTO_FREE char *noise = rf_xmalloc(size);
    int fds[2];
    memset(noise, '#', size);
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    rf_conn_expect_banner(ends_left.conn, "REFIT-WORKER/1 abc");
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], noise, 32 << 10) > 0 && ends_left.closes == 0) {
        uv_run(&ends_loop, UV_RUN_NOWAIT);
    }
    ends_run_until(ends_left_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_LAUNCH);
    assert_says(ends_left.why.text, "\"####");
    close(fds[1]);
}

TEST(test_conn_sends_before_the_banner_has_come)
{
    int fds[2];
    char got[64];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    rf_conn_expect_banner(ends_left.conn, "REFIT-WORKER/1 abc");
    rf_conn_send(ends_left.conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, json_object());
    uv_run(&ends_loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(read(fds[1], got, sizeof(got)), RF_FRAME_HEADER_BYTES + 2);
    close(fds[1]);
    ends_run_until(ends_left_closed);
}

/* --- TCP ------------------------------------------------------------------ */

TEST(test_conn_tcp_reset_is_a_lost_peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct linger hard = {1, 0};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;
    uv_tcp_t *tcp = rf_xcalloc(1, sizeof(*tcp));
    int value = 0;
    socklen_t value_size = sizeof(value);
    ck_assert_int_eq(
        bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)),
                     0);
    peer = accept(listener, NULL, NULL);
    rf_tcp_tune_control(fd);
    ck_assert_int_eq(
        getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &value_size), 0);
    ck_assert_int_eq(value, 1);
    ck_assert_int_eq(uv_tcp_init(&ends_loop, tcp), 0);
    ck_assert_int_eq(uv_tcp_open(tcp, fd), 0);
    ends_left.conn =
        rf_conn_open((uv_stream_t *)tcp, NULL, &ends_ops, &ends_left);
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(peer);
    ends_run_until(ends_left_closed);
    ck_assert_int_eq(ends_left.why.status, RF_ERR_PEER);
    close(listener);
}
