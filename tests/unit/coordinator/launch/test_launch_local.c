/* The launcher `local` with shell scripts in the worker's place. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/unit.h"

static struct rf_launch_config how = {.method = "local"};
static const struct rf_node_config node = {.name = "here"};
static struct rf_launch_order order = {.node = &node, .settings = &how};

static void start_script(struct seen *seen, const char *script)
{
    how.worker = launch_file("worker", script, 0700);
    order.local_worker = NULL;
    seen_start(seen, &order);
}

LIMIT(30)
FIXTURE(launch_setup, launch_teardown)

TEST(test_launch_local_talks_on_one_stream)
{
    struct seen seen;
    start_script(&seen, "#!/bin/sh\necho \"args $*\"\n"
                        "while read -r line; do echo \"got $line\"; done\n"
                        "echo over >&2\nexit 0\n");
    await_stream(&seen, 1, 5);
    seen_write(&seen, "hello\n");
    await_output(&seen, "got hello\n", 5);
    ck_assert_int_eq(strncmp(seen.output, "args --stdio\n", 13), 0);
    seen_close_stream(&seen);
    await_end(&seen, 1, 5);
    ck_assert_int_eq(seen.status, 0);
    ck_assert_str_eq(seen.signal, "");
    ck_assert_str_eq(seen.errors, "over\n");
}

LOOP_TEST(test_launch_local_reports_status_signal_and_last_words, 2)
{
    struct seen seen;
    if (_i == 0) {
        start_script(&seen, "#!/bin/sh\necho bye\nprintf 'no newline' >&2\n"
                            "exit 3\n");
    } else {
        start_script(&seen, "#!/bin/sh\necho bye\nprintf 'no newline' >&2\n"
                            "kill -SEGV $$\n");
    }
    await_end(&seen, 1, 5);
    ck_assert_uint_eq(seen.streams, 1);
    ck_assert_int_eq(seen.status, _i == 0 ? 3 : -1);
    ck_assert_str_eq(seen.signal, _i == 0 ? "" : "SEGV");
    ck_assert_str_eq(seen.errors, "no newline\n");
    await_output(&seen, "bye\n", 5); /* still in the stream */
    seen_close_stream(&seen);
}

TEST(test_launch_local_missing_program_is_an_error_of_start)
{
    static const struct rf_launch_ops_cb none;
    struct rf_launch *launch = NULL;
    struct rf_err err = {0};
    how.worker = "/nonexistent/refit-worker";
    ck_assert_int_eq(rf_launcher_local.start(&launch_loop, &order, &none, NULL,
                                             &launch, &err),
                     RF_ERR_LAUNCH);
    ck_assert_ptr_null(launch);
    assert_says(err.text, "/nonexistent/refit-worker");
    assert_says(err.text, "no such file");
}

/* execvp() would have a shell run it. */
TEST(test_launch_local_runs_no_text_as_a_program)
{
    static const struct rf_launch_ops_cb none;
    struct rf_launch *launch = NULL;
    struct rf_err err = {0};
    how.worker = launch_file("worker", "sleep 60\n", 0700);
    order.local_worker = NULL;
    ck_assert_int_eq(rf_launcher_local.start(&launch_loop, &order, &none, NULL,
                                             &launch, &err),
                     RF_ERR_LAUNCH);
    ck_assert_ptr_null(launch);
    assert_says(err.text, "/worker is not a program");
}

TEST(test_launch_local_prefers_the_worker_beside_the_coordinator)
{
    struct seen seen;
    order.local_worker =
        launch_file("refit-worker", "#!/bin/sh\nexit 7\n", 0700);
    how.worker = "refit-worker";
    seen_start(&seen, &order);
    await_end(&seen, 1, 5);
    ck_assert_int_eq(seen.status, 7);
    seen_close_stream(&seen);
}

TEST(test_launch_local_force_kills_the_whole_group)
{
    struct seen seen;
    pid_t helper;
    order.grace_ms = 500;
    start_script(&seen, "#!/bin/sh\ntrap '' TERM\nsleep 300 &\n"
                        "echo \"helper $!\"\nwait\n");
    await_stream(&seen, 1, 5);
    await_output(&seen, "\n", 5);
    ck_assert_int_eq(sscanf(seen.output, "helper %d", &helper), 1);
    ck_assert(is_alive(helper));
    seen.ops->stop(seen.launch, true);
    seen.ops->stop(seen.launch, true);
    await_end(&seen, 1, 5);
    ck_assert_str_eq(seen.signal, "KILL");
    await_gone(helper);
    seen_close_stream(&seen);
}

TEST(test_launch_local_stopped_before_its_stream_still_ends)
{
    struct seen seen;
    start_script(&seen, "#!/bin/sh\ncat\nexit 5\n");
    seen.ops->stop(seen.launch, false); /* its standard input ends */
    await_end(&seen, 1, 5);
    ck_assert_uint_eq(seen.streams, 0);
    ck_assert_int_eq(seen.status, 5);
}

LOOP_TEST(test_launch_local_asks_before_it_kills, 2)
{
    struct seen seen;
    int64_t started;
    pid_t agent = 0;
    order.grace_ms = 2500;
    start_script(&seen, "#!/bin/sh\ntrap 'echo asked >&2; exit 9' TERM\n"
                        "echo up $$\nwhile :; do sleep 0.1; done\n");
    await_stream(&seen, 1, 5);
    await_output(&seen, "\n", 5);
    ck_assert_int_eq(sscanf(seen.output, "up %d", &agent), 1);
    if (_i == 1) { /* it hears nothing until it is woken */
        kill(agent, SIGSTOP);
    }
    seen_close_stream(&seen);
    started = rf_now_ns();
    seen.ops->stop(seen.launch, false);
    await_end(&seen, 1, RF_LAUNCH_GRACE_MS / 1000 - 1); /* which it is not */
    ck_assert_int_eq(seen.status, 9);
    assert_says(seen.errors, "asked\n");
    ck_assert_int_ge(rf_now_ns() - started, 2400 * RF_NS_PER_MS);
}

TEST(test_launch_local_end_is_not_delayed_by_a_held_stderr)
{
    struct seen seen;
    pid_t helper;
    start_script(&seen, "#!/bin/sh\nsetsid sleep 300 </dev/null >/dev/null &\n"
                        "echo \"helper $!\"\nexit 0\n");
    await_end(&seen, 1, 5);
    ck_assert_int_eq(seen.status, 0);
    await_output(&seen, "\n", 5);
    ck_assert_int_eq(sscanf(seen.output, "helper %d", &helper), 1);
    kill(helper, SIGKILL);
    seen_close_stream(&seen);
}

TEST(test_launch_local_agent_sees_the_end_of_its_coordinator)
{
    struct seen seen;
    int report[2];
    pid_t coordinator, agent = 0;
    char text[32] = "";
    ck_assert_int_eq(pipe(report), 0);
    coordinator = fork();
    if (coordinator == 0) { /* a coordinator that is killed */
        uv_loop_fork(&launch_loop);
        start_script(&seen, "#!/bin/sh\necho \"agent $$\"\ncat\n");
        await_output(&seen, "\n", 5);
        if (write(report[1], seen.output + 6, strlen(seen.output + 6)) > 0) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    ck_assert_int_gt(read(report[0], text, sizeof(text) - 1), 0);
    agent = (pid_t)atoi(text);
    ck_assert_int_gt(agent, 1);
    ck_assert_int_eq(waitpid(coordinator, NULL, 0), coordinator);
    await_gone(agent);
    close(report[0]);
    close(report[1]);
}

/* Descriptors from 3 that a child of this process gets (the test runner's). */
static int count_inheritable(void)
{
    int count = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    return count;
}

TEST(test_launch_local_agent_inherits_no_other_descriptor)
{
    struct seen first, second;
    char expected[32];
    /* 0, 1, 2, and the script and the folder that sh itself has open */
    snprintf(expected, sizeof(expected), "has %d\n", count_inheritable() + 5);
    start_script(&first, "#!/bin/sh\ncat\n");
    await_stream(&first, 1, 5);
    start_script(&second, "#!/bin/sh\nset -- /proc/$$/fd/*\necho has $#\n");
    await_end(&second, 1, 5);
    await_output(&second, "\n", 5);
    ck_assert_str_eq(second.output, expected);
    seen_close_stream(&first);
    seen_close_stream(&second);
    await_end(&first, 1, 5);
}
