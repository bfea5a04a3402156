/* Loops where descriptors run out. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd_limit.h"
#include "tests/unit/unit.h"
#include "transport/net/loop.h"

#define DESCRIPTORS 30

/* Has `n` to spare, no more. */
static void leave_descriptors(int n)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = DESCRIPTORS;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (dup(STDERR_FILENO) >= 0) {
    }
    for (int fd = DESCRIPTORS - n; fd < DESCRIPTORS; fd++) {
        close(fd);
    }
}

static void tick_cb(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, NULL);
}

static void signal_cb(uv_signal_t *handle, int number)
{
    (void)number;
    uv_close((uv_handle_t *)handle, NULL);
}

/* Every handle that it promises. */
static void use(uv_loop_t *loop)
{
    static uv_timer_t timer;
    static uv_signal_t signal;
    static uv_async_t async;
    static uv_tcp_t tcp;
    ck_assert_int_eq(uv_timer_init(loop, &timer), 0);
    ck_assert_int_eq(uv_signal_init(loop, &signal), 0);
    ck_assert_int_eq(uv_async_init(loop, &async, NULL), 0);
    ck_assert_int_eq(uv_tcp_init(loop, &tcp), 0);
    ck_assert_int_eq(uv_timer_start(&timer, tick_cb, 1, 0), 0);
    ck_assert_int_eq(uv_signal_start(&signal, signal_cb, SIGUSR1), 0);
    ck_assert_int_eq(raise(SIGUSR1), 0);
    uv_close((uv_handle_t *)&async, NULL);
    uv_close((uv_handle_t *)&tcp, NULL);
    ck_assert_int_eq(uv_run(loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(loop), 0);
}

LOOP_TEST(test_loop_works_or_is_refused_however_few_descriptors_are_left,
          RF_LOOP_DESCRIPTORS + 3)
{
    struct rf_err err = {0};
    uv_loop_t loop;
    leave_descriptors(_i);
    if (rf_loop_init(&loop, &err) == RF_OK) {
        use(&loop);
    } else {
        ck_assert_int_lt(_i, RF_LOOP_DESCRIPTORS);
        ck_assert_int_eq(err.status, RF_ERR_LAUNCH);
        assert_says(err.text, "ulimit -n");
    }
    rf_fd_limit_raise(); /* for what a sanitizer does at the end */
}

TEST(test_loop_may_open_pipes_and_sockets_only)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(rf_loop_may_open(ends[0]));
    ck_assert(rf_loop_may_open(ends[1]));
    close(ends[0]);
    ck_assert(!rf_loop_may_open(ends[0]));
    close(ends[1]);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert(rf_loop_may_open(ends[0]));
    close(ends[0]);
    close(ends[1]);
    ends[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert(!rf_loop_may_open(ends[0]));
    close(ends[0]);
    ends[0] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ck_assert(!rf_loop_may_open(ends[0]));
    close(ends[0]);
}
