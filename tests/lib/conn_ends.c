/* Two ends of a connection under test. See conn_ends.h. */
#include "tests/lib/conn_ends.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/mem.h"

uv_loop_t ends_loop;
struct conn_end ends_left, ends_right;

static void on_ready(struct rf_conn *conn, void *data)
{
    struct conn_end *end = data;
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
    struct conn_end *end = data;
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
    struct conn_end *end = data;
    ck_assert_ptr_eq(end->conn, conn);
    end->closes++;
    end->why = *why;
    end->conn = NULL;
}

const struct rf_conn_ops ends_ops = {on_ready, on_frame, on_close};

uv_stream_t *ends_stream(int fd)
{
    uv_pipe_t *pipe = rf_xcalloc(1, sizeof(*pipe));
    ck_assert_int_eq(uv_pipe_init(&ends_loop, pipe, 0), 0);
    ck_assert_int_eq(uv_pipe_open(pipe, fd), 0);
    return (uv_stream_t *)pipe;
}

void ends_open(struct conn_end *end, int fd, struct rf_tls *tls)
{
    end->conn = rf_conn_open(ends_stream(fd), tls, &ends_ops, end);
    ck_assert_uint_eq(end->ready, 0); /* callbacks come from the loop only */
}

void ends_socketpair(int fds[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
}

void ends_open_both(void)
{
    int fds[2];
    ends_socketpair(fds);
    ends_open(&ends_left, fds[0], NULL);
    ends_open(&ends_right, fds[1], NULL);
}

bool ends_both_closed(void)
{
    return ends_left.closes > 0 && ends_right.closes > 0;
}

bool ends_left_closed(void)
{
    return ends_left.closes > 0;
}

bool ends_right_has_a_frame(void)
{
    return ends_right.frames > 0;
}

static void tick_cb(uv_timer_t *timer)
{
    (void)timer;
}

void ends_run_until(bool (*condition)(void))
{
    uv_timer_t tick;
    int64_t deadline = rf_now_ns() + 8 * RF_NS_PER_S;
    uv_timer_init(&ends_loop, &tick);
    uv_timer_start(&tick, tick_cb, 20, 20);
    while (!condition()) {
        ck_assert_msg(rf_now_ns() < deadline, "the condition never came true");
        uv_run(&ends_loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&ends_loop, UV_RUN_NOWAIT);
}

void ends_setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&ends_loop), 0);
    memset(&ends_left, 0, sizeof(ends_left));
    memset(&ends_right, 0, sizeof(ends_right));
}

void ends_teardown(void)
{
    struct rf_err why = {.status = RF_ERR_ABORTED};
    if (ends_left.conn != NULL) {
        rf_conn_fail(ends_left.conn, &why);
    }
    if (ends_right.conn != NULL) {
        rf_conn_fail(ends_right.conn, &why);
    }
    uv_run(&ends_loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&ends_loop), 0); /* no handle is left */
}
