/* Connections over socketpairs and loopback TCP: ends, limits, hostile peers.
 */
#include <check.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "transport/conn.h"

static const uint8_t key[RF_PSK_BYTES] = {9, 8, 7};

/* One end under test and what it has seen. */
struct end {
    struct rf_conn *conn;
    unsigned ready, frames, closes;
    uint64_t bytes;
    uint8_t last_type;
    char last_payload[256];
    char identity[RF_IDENTITY_MAX + 1];
    struct rf_err why;
    void (*react)(struct end *end, const struct rf_frame *frame);
};

static uv_loop_t loop;
static struct end left, right;

static void on_ready(struct rf_conn *conn, void *data)
{
    struct end *end = data;
    ck_assert_ptr_eq(end->conn, conn);
    ck_assert_uint_eq(end->frames + end->closes, 0);
    end->ready++;
    if (rf_conn_identity(conn) != NULL) {
        strcpy(end->identity, rf_conn_identity(conn));
    }
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct end *end = data;
    size_t keep = RF_MIN((size_t)frame->length, sizeof(end->last_payload) - 1);
    ck_assert_ptr_eq(end->conn, conn);
    ck_assert_uint_eq(end->ready, 1);
    ck_assert_uint_eq(end->closes, 0);
    end->frames++;
    end->bytes += frame->length;
    end->last_type = frame->type;
    memcpy(end->last_payload, frame->payload, keep);
    end->last_payload[keep] = '\0';
    if (end->react != NULL) {
        end->react(end, frame);
    }
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct end *end = data;
    ck_assert_ptr_eq(end->conn, conn);
    end->closes++;
    end->why = *why;
    end->conn = NULL;
}

static const struct rf_conn_ops ops = {on_ready, on_frame, on_close};

static uv_stream_t *stream_of(int fd)
{
    uv_pipe_t *pipe = rf_xcalloc(1, sizeof(*pipe));
    ck_assert_int_eq(uv_pipe_init(&loop, pipe, 0), 0);
    ck_assert_int_eq(uv_pipe_open(pipe, fd), 0);
    return (uv_stream_t *)pipe;
}

static void open_end(struct end *end, int fd, struct rf_tls *tls)
{
    end->conn = rf_conn_open(stream_of(fd), tls, &ops, end);
    ck_assert_uint_eq(end->ready, 0); /* callbacks come from the loop only */
}

static void make_pair(int fds[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
}

static void open_both(void)
{
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    open_end(&right, fds[1], NULL);
}

static bool both_closed(void)
{
    return left.closes > 0 && right.closes > 0;
}

static bool left_closed(void)
{
    return left.closes > 0;
}

static bool right_has_a_frame(void)
{
    return right.frames > 0;
}

static void tick_cb(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until `condition`, at most 8 s. */
static void run_until(bool (*condition)(void))
{
    uv_timer_t tick;
    int64_t deadline = rf_now_ns() + 8 * RF_NS_PER_S;
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, tick_cb, 20, 20);
    while (!condition()) {
        ck_assert_msg(rf_now_ns() < deadline, "the condition never came true");
        uv_run(&loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    memset(&left, 0, sizeof(left));
    memset(&right, 0, sizeof(right));
}

static void teardown(void)
{
    struct rf_err why = {.status = RF_ERR_ABORTED};
    if (left.conn != NULL) {
        rf_conn_fail(left.conn, &why);
    }
    if (right.conn != NULL) {
        rf_conn_fail(right.conn, &why);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left */
}

START_TEST(test_conn_carries_frames_and_closes_in_order)
{
    open_both();
    rf_conn_send(left.conn, RF_MSG_STEP, 3, json_pack("{s:i}", "seq", 1));
    rf_conn_send(left.conn, RF_MSG_STEP, 3, json_pack("{s:i}", "seq", 2));
    rf_conn_close(left.conn);
    rf_conn_close(left.conn);                               /* safe to repeat */
    rf_conn_send(left.conn, RF_MSG_STEP, 3, json_object()); /* dropped */
    run_until(both_closed);
    ck_assert_uint_eq(right.frames, 2);
    ck_assert_str_eq(right.last_payload, "{\"seq\":2}");
    ck_assert_int_eq(left.why.status, RF_OK);
    ck_assert_int_eq(right.why.status, RF_OK);
    ck_assert_uint_eq(left.closes, 1);
    ck_assert_uint_eq(right.closes, 1);
}
END_TEST

START_TEST(test_conn_flushes_more_than_the_socket_holds)
{
    const size_t size = 8 << 20;
    char *payload = rf_xmalloc(size);
    memset(payload, 'x', size);
    open_both();
    for (int i = 0; i < 5; i++) {
        rf_conn_send_raw(left.conn, RF_MSG_START, 0, payload, size);
    }
    rf_conn_close(left.conn);
    run_until(both_closed);
    ck_assert_uint_eq(right.frames, 5);
    ck_assert_uint_eq(right.bytes, 5 * size);
    ck_assert_int_eq(left.why.status, RF_OK);
    free(payload);
}
END_TEST

static void answer_and_close(struct end *end, const struct rf_frame *frame)
{
    (void)frame;
    rf_conn_send(end->conn, RF_MSG_ERROR, RF_FRAME_NO_RANK,
                 json_pack("{s:s}", "text", "go away"));
    rf_conn_close(end->conn);
}

START_TEST(test_conn_last_words_arrive_despite_unread_input)
{
    open_both();
    right.react = answer_and_close;
    for (int i = 0; i < 2000; i++) {
        rf_conn_send(left.conn, RF_MSG_LEASE, 0, json_object());
    }
    run_until(both_closed);
    ck_assert_uint_eq(right.frames, 1); /* none after the close */
    ck_assert_uint_eq(left.last_type, RF_MSG_ERROR);
    ck_assert_int_eq(left.why.status, RF_OK);
}
END_TEST

static void fail_inside(struct end *end, const struct rf_frame *frame)
{
    struct rf_err why;
    (void)frame;
    rf_err_set(&why, RF_ERR_PROTOCOL, "no");
    rf_conn_fail(end->conn, &why);
    rf_conn_fail(end->conn, &why);
    rf_conn_close(end->conn);
    rf_conn_send(end->conn, RF_MSG_LEASE, 0, json_object());
}

START_TEST(test_conn_may_be_failed_inside_its_own_callback)
{
    open_both();
    right.react = fail_inside;
    for (int i = 0; i < 100; i++) {
        rf_conn_send(left.conn, RF_MSG_LEASE, 0, json_object());
    }
    run_until(both_closed);
    ck_assert_uint_eq(right.frames, 1);
    ck_assert_int_eq(right.why.status, RF_ERR_PROTOCOL);
    ck_assert_str_eq(right.why.text, "no");
    ck_assert_uint_eq(right.closes, 1);
}
END_TEST

START_TEST(test_conn_failed_right_after_opening_still_closes_once)
{
    struct rf_err why;
    open_both();
    rf_err_set(&why, RF_ERR_TIMEOUT, "late");
    rf_conn_fail(left.conn, &why);
    ck_assert_uint_eq(left.closes, 0); /* from the loop only */
    run_until(both_closed);
    ck_assert_uint_eq(left.ready, 0);
    ck_assert_int_eq(left.why.status, RF_ERR_TIMEOUT);
    ck_assert_int_eq(right.why.status, RF_OK);
}
END_TEST

/* Gives raw bytes to the left end, then closes unless `open`. */
static void give_left(const void *bytes, size_t size, bool open)
{
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    ck_assert_int_eq(write(fds[1], bytes, size), (ssize_t)size);
    if (!open) {
        close(fds[1]);
    }
    run_until(left_closed);
    if (open) {
        close(fds[1]);
    }
}

START_TEST(test_conn_bad_bytes_end_the_connection)
{
    give_left("GET / HTTP/1.1\r\n\r\n", 18, true);
    ck_assert_int_eq(left.why.status, RF_ERR_PROTOCOL);
    ck_assert_uint_eq(left.frames, 0);
}
END_TEST

START_TEST(test_conn_end_inside_a_frame_is_an_error)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES + 2] = {0, 0, 0, 10, 1, RF_MSG_LEASE};
    give_left(bytes, (size_t)_i, false);
    ck_assert_int_eq(left.why.status, _i == 0 ? RF_OK : RF_ERR_PROTOCOL);
}
END_TEST

START_TEST(test_conn_message_above_its_cap_is_not_sent)
{
    char *big = rf_xmalloc(5000);
    memset(big, ' ', 5000);
    open_both();
    rf_conn_send_raw(left.conn, RF_MSG_LEASE, 0, big, 5000);
    run_until(both_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_INTERNAL);
    ck_assert_uint_eq(right.frames, 0);
    free(big);
}
END_TEST

START_TEST(test_conn_drops_log_but_nothing_else_when_the_peer_is_slow)
{
    const size_t size = 16 << 10;
    char *text = rf_xmalloc(size);
    int fds[2];
    uint64_t total;
    memset(text, 'l', size);
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    for (int i = 0; i < 1000; i++) { /* 16 MB nobody reads */
        rf_conn_send_raw(left.conn, RF_MSG_LOG, 1, text, size);
    }
    for (int i = 0; i < 300; i++) {
        rf_conn_send_raw(left.conn, RF_MSG_STEP, 1, text, size);
    }
    open_end(&right, fds[1], NULL);
    rf_conn_send_raw(left.conn, RF_MSG_SHUTDOWN, 0, "{}", 2);
    rf_conn_close(left.conn);
    run_until(both_closed);
    total = right.bytes / size;
    ck_assert_uint_ge(total, 300);
    ck_assert_uint_lt(total, 500);
    ck_assert_uint_eq(right.last_type, RF_MSG_SHUTDOWN);
    ck_assert_int_eq(right.why.status, RF_OK); /* no gap in the sequence */
    free(text);
}
END_TEST

static bool seen_drop_note;

static void look_for_note(struct end *end, const struct rf_frame *frame)
{
    (void)frame;
    if (strstr(end->last_payload, "were dropped") != NULL) {
        seen_drop_note = true;
    }
}

static bool right_saw_the_note(void)
{
    if (left.conn != NULL && !seen_drop_note) {
        rf_conn_send_raw(left.conn, RF_MSG_LOG, 1, "later\n", 6);
    }
    return seen_drop_note;
}

START_TEST(test_conn_says_how_much_log_was_dropped)
{
    const size_t size = 4 << 20; /* far above the cap of a frame: split */
    char *text = rf_xmalloc(size);
    int fds[2];
    memset(text, 'l', size);
    seen_drop_note = false;
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    rf_conn_send_raw(left.conn, RF_MSG_LOG, 1, text, size);
    open_end(&right, fds[1], NULL);
    right.react = look_for_note;
    run_until(right_saw_the_note);
    free(text);
}
END_TEST

START_TEST(test_conn_fails_when_the_peer_never_reads)
{
    const size_t size = 60 << 20;
    char *payload = rf_xmalloc(size);
    int fds[2];
    memset(payload, 'x', size);
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    for (int i = 0; i < 3; i++) {
        rf_conn_send_raw(left.conn, RF_MSG_START, 0, payload, size);
    }
    run_until(left_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(left.why.text, "does not read"));
    free(payload);
    close(fds[1]);
}
END_TEST

START_TEST(test_conn_works_over_two_one_way_streams)
{
    int up[2], down[2];
    ck_assert_int_eq(pipe2(up, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(down, O_CLOEXEC), 0);
    left.conn =
        rf_conn_open_two(stream_of(up[0]), stream_of(down[1]), &ops, &left);
    right.conn =
        rf_conn_open_two(stream_of(down[0]), stream_of(up[1]), &ops, &right);
    rf_conn_send(left.conn, RF_MSG_HELLO, 0, json_object());
    rf_conn_send(right.conn, RF_MSG_BOOT, 0, json_object());
    run_until(right_has_a_frame);
    rf_conn_close(right.conn);
    run_until(both_closed);
    ck_assert_uint_eq(left.frames, 1);
    ck_assert_uint_eq(right.frames, 1);
    ck_assert_int_eq(left.why.status, RF_OK);
}
END_TEST

/* --- Banner --------------------------------------------------------------- */

static void open_with_banner(const char *noise, size_t size, size_t step,
                             bool then_frame)
{
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    rf_conn_expect_banner(left.conn, "REFIT-WORKER/1 abc");
    for (size_t at = 0; at < size; at += step) {
        ck_assert_int_gt(write(fds[1], noise + at, RF_MIN(step, size - at)), 0);
        uv_run(&loop, UV_RUN_NOWAIT);
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
    run_until(left_closed);
}

START_TEST(test_conn_skips_noise_before_the_banner)
{
    static const char *const noise[] = {
        "REFIT-WORKER/1 abc\n",
        "\nREFIT-WORKER/1 abc\n",
        "Welcome to gpu-a!\n\x1b[1mLast login\x1b[0m \nREFIT-WORKER/1 abc\n",
        "REFIT-WORKER/1 abd\n REFIT-WORKER/1 abc\n\nREFIT-WORKER/1 abc\n",
    };
    const char *text = noise[_i / 2];
    open_with_banner(text, strlen(text), _i % 2 ? 1 : 1000, true);
    ck_assert_uint_eq(left.ready, 1);
    ck_assert_uint_eq(left.frames, 1);
    ck_assert_int_eq(left.why.status, RF_OK);
}
END_TEST

START_TEST(test_conn_without_a_banner_shows_what_came)
{
    static const char text[] = "This account is not available.\n\x01";
    open_with_banner(text, sizeof(text) - 1, 1000, false);
    ck_assert_uint_eq(left.ready, 0);
    ck_assert_int_eq(left.why.status, RF_ERR_LAUNCH);
    ck_assert_ptr_nonnull(strstr(left.why.text, "not available.\\n?"));
}
END_TEST

START_TEST(test_conn_with_too_much_noise_gives_up)
{
    const size_t size = 200 << 10;
    char *noise = rf_xmalloc(size);
    int fds[2];
    memset(noise, '#', size);
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    rf_conn_expect_banner(left.conn, "REFIT-WORKER/1 abc");
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], noise, 32 << 10) > 0 && left.closes == 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    run_until(left_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_LAUNCH);
    ck_assert_ptr_nonnull(strstr(left.why.text, "\"####"));
    close(fds[1]);
    free(noise);
}
END_TEST

START_TEST(test_conn_sends_before_the_banner_has_come)
{
    int fds[2];
    char got[64];
    make_pair(fds);
    open_end(&left, fds[0], NULL);
    rf_conn_expect_banner(left.conn, "REFIT-WORKER/1 abc");
    rf_conn_send(left.conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, json_object());
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(read(fds[1], got, sizeof(got)), RF_FRAME_HEADER_BYTES + 2);
    close(fds[1]);
    run_until(left_closed);
}
END_TEST

/* --- TLS ------------------------------------------------------------------ */

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

START_TEST(test_conn_tls_carries_frames_sent_before_the_handshake)
{
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], server_tls(NULL));
    open_end(&right, fds[1], client_tls(key));
    rf_conn_send(left.conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, json_object());
    rf_conn_send(right.conn, RF_MSG_HELLO, RF_FRAME_NO_RANK,
                 json_pack("{s:i}", "node", 0));
    run_until(right_has_a_frame);
    ck_assert_uint_eq(left.frames, 1);
    ck_assert_str_eq(left.identity, "run/0");
    ck_assert_uint_eq(right.frames, 1);
    rf_conn_close(right.conn);
    run_until(both_closed);
    ck_assert_int_eq(left.why.status, RF_OK);
    ck_assert_int_eq(right.why.status, RF_OK);
}
END_TEST

START_TEST(test_conn_tls_carries_large_frames)
{
    const size_t size = 20 << 20;
    char *payload = rf_xmalloc(size);
    int fds[2];
    memset(payload, 'x', size);
    make_pair(fds);
    open_end(&left, fds[0], server_tls(NULL));
    open_end(&right, fds[1], client_tls(key));
    rf_conn_send_raw(left.conn, RF_MSG_START, 0, payload, size);
    run_until(right_has_a_frame);
    ck_assert_uint_eq(right.bytes, size);
    rf_conn_send_raw(left.conn, RF_MSG_START, 0, payload, size);
    rf_conn_close(left.conn);
    run_until(both_closed);
    ck_assert_uint_eq(right.bytes, 2 * size);
    ck_assert_int_eq(right.why.status, RF_OK);
    free(payload);
}
END_TEST

START_TEST(test_conn_tls_wrong_key_fails_both_ends)
{
    static const uint8_t wrong[RF_PSK_BYTES] = {1};
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], server_tls(NULL));
    open_end(&right, fds[1], client_tls(wrong));
    run_until(both_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_AUTH);
    ck_assert_int_eq(right.why.status, RF_ERR_AUTH);
    ck_assert_uint_eq(left.ready + right.ready, 0);
}
END_TEST

START_TEST(test_conn_tls_used_identity_fails)
{
    bool used = true;
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], server_tls(&used));
    open_end(&right, fds[1], client_tls(key));
    run_until(both_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_AUTH);
    ck_assert_uint_eq(left.ready, 0);
}
END_TEST

START_TEST(test_conn_tls_silent_or_dripping_stranger_is_closed_in_time)
{
    static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    int fds[2];
    size_t at = 0;
    int64_t started = rf_now_ns(), next = started;
    uv_timer_t tick;
    make_pair(fds);
    open_end(&left, fds[0], server_tls(NULL));
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, tick_cb, 50, 50);
    while (left.closes == 0 && rf_now_ns() < started + 8 * RF_NS_PER_S) {
        uv_run(&loop, UV_RUN_ONCE);
        if (_i == 1 && left.closes == 0 && rf_now_ns() >= next &&
            at < sizeof(hello) - 1) {
            next += RF_NS_PER_S / 2; /* a byte every half second */
            at += send(fds[1], hello + at, 1, MSG_NOSIGNAL) == 1;
        }
    }
    ck_assert_uint_eq(left.closes, 1);
    ck_assert_int_eq(left.why.status, RF_ERR_TIMEOUT);
    ck_assert_int_lt(rf_now_ns() - started, 6 * RF_NS_PER_S);
    ck_assert_uint_ge(at, _i == 1 ? 8 : 0);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    close(fds[1]);
}
END_TEST

START_TEST(test_conn_tls_plain_text_is_refused)
{
    int fds[2];
    make_pair(fds);
    open_end(&left, fds[0], server_tls(NULL));
    ck_assert_int_eq(write(fds[1], "GET / HTTP/1.0\r\n\r\n", 18), 18);
    run_until(left_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_AUTH);
    close(fds[1]);
}
END_TEST

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
    make_pair(outer_left);
    make_pair(outer_right);
    open_end(&left, outer_left[0], server_tls(NULL));
    open_end(&right, outer_right[0], client_tls(key));
    for (int i = 0; i < 2000 && left.ready + right.ready < 2; i++) {
        relay(outer_left[1], outer_right[1], SIZE_MAX);
        relay(outer_right[1], outer_left[1], SIZE_MAX);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    ck_assert_uint_eq(left.ready + right.ready, 2);
}

START_TEST(test_conn_tls_cut_is_told_from_a_close)
{
    int outer_left[2], outer_right[2];
    open_through_relay(outer_left, outer_right);
    close(outer_left[1]);
    run_until(left_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(left.why.text, "close_notify"));
    close(outer_right[1]);
    run_until(both_closed);
}
END_TEST

START_TEST(test_conn_tls_flipped_bit_ends_the_connection)
{
    int outer_left[2], outer_right[2];
    open_through_relay(outer_left, outer_right);
    rf_conn_send(right.conn, RF_MSG_DONE, 0, json_pack("{s:i}", "seq", 12));
    while (relay(outer_right[1], outer_left[1], 9) == 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    run_until(left_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_PROTOCOL);
    ck_assert_uint_eq(left.frames, 0); /* nothing of it was acted on */
    close(outer_left[1]);
    close(outer_right[1]);
    run_until(both_closed);
}
END_TEST

/* --- TCP ------------------------------------------------------------------ */

START_TEST(test_conn_tcp_reset_is_a_lost_peer)
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
    rf_tcp_tune(fd);
    ck_assert_int_eq(
        getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &value_size), 0);
    ck_assert_int_eq(value, 1);
    ck_assert_int_eq(uv_tcp_init(&loop, tcp), 0);
    ck_assert_int_eq(uv_tcp_open(tcp, fd), 0);
    left.conn = rf_conn_open((uv_stream_t *)tcp, NULL, &ops, &left);
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(peer);
    run_until(left_closed);
    ck_assert_int_eq(left.why.status, RF_ERR_PEER);
    close(listener);
}
END_TEST

static void add_tls_tests(TCase *tests)
{
    tcase_add_test(tests,
                   test_conn_tls_carries_frames_sent_before_the_handshake);
    tcase_add_test(tests, test_conn_tls_carries_large_frames);
    tcase_add_test(tests, test_conn_tls_wrong_key_fails_both_ends);
    tcase_add_test(tests, test_conn_tls_used_identity_fails);
    tcase_add_loop_test(
        tests, test_conn_tls_silent_or_dripping_stranger_is_closed_in_time, 0,
        2);
    tcase_add_test(tests, test_conn_tls_plain_text_is_refused);
    tcase_add_test(tests, test_conn_tls_cut_is_told_from_a_close);
    tcase_add_test(tests, test_conn_tls_flipped_bit_ends_the_connection);
}

Suite *test_conn_suite(void);
Suite *test_conn_suite(void)
{
    Suite *suite = suite_create("conn");
    TCase *tests = tcase_create("conn");
    tcase_set_timeout(tests, 20);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_conn_carries_frames_and_closes_in_order);
    tcase_add_test(tests, test_conn_flushes_more_than_the_socket_holds);
    tcase_add_test(tests, test_conn_last_words_arrive_despite_unread_input);
    tcase_add_test(tests, test_conn_may_be_failed_inside_its_own_callback);
    tcase_add_test(tests,
                   test_conn_failed_right_after_opening_still_closes_once);
    tcase_add_test(tests, test_conn_bad_bytes_end_the_connection);
    tcase_add_loop_test(tests, test_conn_end_inside_a_frame_is_an_error, 0, 18);
    tcase_add_test(tests, test_conn_message_above_its_cap_is_not_sent);
    tcase_add_test(tests,
                   test_conn_drops_log_but_nothing_else_when_the_peer_is_slow);
    tcase_add_test(tests, test_conn_says_how_much_log_was_dropped);
    tcase_add_test(tests, test_conn_fails_when_the_peer_never_reads);
    tcase_add_test(tests, test_conn_works_over_two_one_way_streams);
    tcase_add_loop_test(tests, test_conn_skips_noise_before_the_banner, 0, 8);
    tcase_add_test(tests, test_conn_without_a_banner_shows_what_came);
    tcase_add_test(tests, test_conn_with_too_much_noise_gives_up);
    tcase_add_test(tests, test_conn_sends_before_the_banner_has_come);
    add_tls_tests(tests);
    tcase_add_test(tests, test_conn_tcp_reset_is_a_lost_peer);
    suite_add_tcase(suite, tests);
    return suite;
}
