/* The launcher `ssh` against a real, private sshd on the loopback: running and
 * stopping. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/launch/launch_internal.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/coordinator/launch/ssh/launch_sshd.h"
#include "tests/unit/unit.h"

static struct seen many[32];

/* Runs a script in the worker's place to its end. */
static void run_script(const char *script)
{
    sshd_how.worker = launch_file("script", script, 0700);
    sshd_launch();
    await_end(&sshd_seen, 1, 20);
    ck_assert_msg(sshd_seen.exits == 1, "%s", sshd_seen.why.text);
    seen_close_stream(&sshd_seen);
}

/* --- What works ----------------------------------------------------------- */

SSHD_TESTS

TEST(test_ssh_runs_the_worker_and_carries_its_streams)
{
    sshd_start("");
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    ck_assert_str_eq(sshd_seen.ops->head_address(sshd_seen.launch),
                     "127.0.0.1");
    seen_write(&sshd_seen, "hello\n");
    await_output(&sshd_seen, "args --stdio\nhello\n", 10);
    seen_close_stream(&sshd_seen); /* the end of its standard input */
    await_end(&sshd_seen, 1, 10);
    ck_assert_int_eq(sshd_seen.status, 0);
    ck_assert_str_eq(sshd_seen.signal, "");
    ck_assert_str_eq(sshd_seen.errors, "");
}

TEST(test_ssh_carries_more_than_the_window_both_ways)
{
    const size_t size = 6 << 20;
    AUTO_FREE char *text = rf_xmalloc(size + 1);
    memset(text, 'x', size);
    text[size] = '\0';
    sshd_start("");
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    seen_write(&sshd_seen, text);
    while (sshd_seen.output_size <
           size + 13) { /* and the line with its arguments */
        ck_assert_uint_eq(sshd_seen.exits, 0);
        uv_run(&launch_loop, UV_RUN_ONCE);
    }
    seen_close_stream(&sshd_seen);
    await_end(&sshd_seen, 1, 10);
    ck_assert_uint_eq(sshd_seen.output_size, size + 13);
}

LOOP_TEST(test_ssh_tells_status_signal_and_loss_apart, 3)
{
    static const struct {
        const char *script;
        int status;
        const char *signal;
    } cases[] = {
        {"#!/bin/sh\necho out\necho words >&2\nexit 3\n", 3, ""},
        {"#!/bin/sh\necho out\necho words >&2\nkill -SEGV $$\n", -1, "SEGV"},
        {"#!/bin/sh\necho out\necho words >&2\nsleep 0.3\nkill -9 $PPID\n", -1,
         ""},
    };
    sshd_start("");
    run_script(cases[_i].script);
    ck_assert_int_eq(sshd_seen.status, cases[_i].status);
    ck_assert_str_eq(sshd_seen.signal, cases[_i].signal);
    ck_assert_str_eq(sshd_seen.output, "out\n");
    ck_assert_str_eq(sshd_seen.errors, "words\n");
}

TEST(test_ssh_bad_worker_path_shows_the_shell_s_words)
{
    sshd_start("");
    sshd_how.worker = "/nonexistent/refit-worker";
    sshd_launch();
    await_end(&sshd_seen, 1, 20);
    ck_assert_int_eq(sshd_seen.status, 127);
    assert_says(sshd_seen.errors, "/nonexistent/refit-worker");
    seen_close_stream(&sshd_seen);
}

TEST(test_ssh_noisy_shell_comes_before_the_worker_s_words)
{
    sshd_start("");
    launch_file(".bashrc", "echo welcome to the node\necho careful >&2\n",
                0600);
    run_script("#!/bin/sh\necho worker\n");
    assert_says(sshd_seen.output, "worker\n");
    if (strstr(sshd_seen.output, "welcome") !=
        NULL) { /* the user's shell is bash */
        ck_assert_str_eq(sshd_seen.output, "welcome to the node\nworker\n");
        ck_assert_str_eq(sshd_seen.errors, "careful\n");
    }
}

TEST(test_ssh_much_stderr_stalls_nothing)
{
    sshd_start("");
    run_script("#!/bin/sh\ni=0\nwhile [ $i -lt 40 ]; do i=$((i+1))\n"
               "head -c 100000 /dev/zero | tr '\\0' e >&2; echo >&2\ndone\n"
               "echo done\n");
    ck_assert_int_eq(sshd_seen.status, 0);
    ck_assert_str_eq(sshd_seen.output, "done\n");
    ck_assert_uint_ge(sshd_seen.lines, 40 * 100000 / RF_LINE_MAX);
}

TEST(test_ssh_sixteen_at_once_keep_to_the_gate)
{
    const unsigned n = 16;
    struct rf_launch_gate *gate = rf_launch_gate_create(8);
    sshd_start("");
    sshd_order.gate = gate;
    for (unsigned i = 0; i < n; i++) {
        seen_start(&many[i], &sshd_order);
    }
    await_stream(many, n, 30);
    for (unsigned i = 0; i < n; i++) {
        seen_close_stream(&many[i]);
    }
    await_end(many, n, 20);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(many[i].status, 0);
        ck_assert_uint_eq(many[i].notes, 0); /* no retry was needed */
    }
    rf_launch_gate_destroy(gate);
}

/* --- Stopping ------------------------------------------------------------- */

TEST(test_ssh_stop_gives_the_agent_its_end_of_input)
{
    sshd_start("");
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    sshd_seen.ops->stop(sshd_seen.launch, false);
    await_end(&sshd_seen, 1, 5);
    ck_assert_int_eq(sshd_seen.status, 0); /* cat ended by itself */
    seen_close_stream(&sshd_seen);
}

/* Its process is not known: whatever else it ignores, it has a second. */
TEST(test_ssh_forced_stop_leaves_time_to_see_the_end_of_input)
{
    char script[256];
    sshd_start("");
    snprintf(script, sizeof(script),
             "#!/bin/sh\ntrap '' HUP TERM PIPE\necho up\n"
             "while read -r line; do :; done\nsleep 0.3\n"
             "echo ended >%s/ended\nexit 9\n",
             fake_root);
    sshd_how.worker = launch_file("script", script, 0700);
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    await_output(&sshd_seen, "up\n", 10);
    sshd_seen.ops->stop(sshd_seen.launch, false);
    sshd_seen.ops->stop(sshd_seen.launch, true);
    await_end(&sshd_seen, 1, 5);
    ck_assert_str_eq(sshd_seen.signal, "");
    ck_assert_int_eq(sshd_seen.status, 9);
    ck_assert_int_eq(sshd_count("ended", "ended"), 1);
    ck_assert_str_eq(sshd_seen.noted, "");
    seen_close_stream(&sshd_seen);
}

/* --- Agents that do not end ----------------------------------------------- */

/* A launch whose agent heeds nothing: it is stopped, and so is its rank, which
 * leads a process group. It ends at SIGTERM when it is woken, unless
 * `stubborn`.
 */
static void start_stopped(const char *server, bool stubborn, pid_t *agent,
                          pid_t *rank)
{
    char script[256];
    snprintf(script, sizeof(script),
             "#!/bin/sh\n%s\nsetsid sh -c 'kill -STOP $$' "
             "</dev/null >/dev/null 2>&1 &\necho \"pid $$ $!\"\nkill -STOP $$\n"
             "while :; do sleep 1; done\n",
             stubborn ? "trap '' TERM HUP" : "trap 'kill -9 $!; exit 9' TERM");
    sshd_start(server);
    sshd_how.worker = launch_file("script", script, 0700);
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    await_output(&sshd_seen, "\n", 10);
    ck_assert_int_eq(sscanf(sshd_seen.output, "pid %d %d", agent, rank), 2);
}

static uint64_t start_ticks_of(pid_t pid)
{
    char path[64], line[512];
    unsigned long long ticks = 0;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    fclose(file);
    ck_assert_int_eq(sscanf(strrchr(line, ')') + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
                            "%*u %*d %*d %*d %*d %*d %*d %llu",
                            &ticks),
                     1);
    return ticks;
}

/* In order, by SIGKILL, and that at once. */
LOOP_TEST(test_ssh_stop_leaves_no_stopped_agent_behind, 3)
{
    const bool stubborn = _i > 0, force = _i == 2;
    pid_t agent = 0, rank = 0;
    if (stubborn) { /* others are to end in time on a busy machine, too */
        sshd_order.grace_ms = 3500; /* more than killing it may take */
    }
    start_stopped("", stubborn, &agent, &rank);
    sshd_seen.ops->identify(sshd_seen.launch, (uint32_t)agent,
                            start_ticks_of(agent));
    seen_close_stream(&sshd_seen);
    sshd_seen.ops->stop(sshd_seen.launch, false);
    if (force) {
        sshd_seen.ops->stop(sshd_seen.launch, true);
    }
    await_end(&sshd_seen, 1, 12);
    ck_assert_int_eq(sshd_seen.status, stubborn ? -1 : 9);
    ck_assert_str_eq(sshd_seen.signal, stubborn ? "KILL" : "");
    ck_assert_str_eq(sshd_seen.noted, "");
    await_gone(agent);
    await_gone(rank);
}

/* Stopped before HELLO, so that its process is not known: in order, by SIGKILL,
 * and that at once. */
LOOP_TEST(test_ssh_stop_kills_an_agent_that_never_spoke, 3)
{
    const bool stubborn = _i > 0;
    pid_t agent = 0, rank = 0;
    if (stubborn) {
        sshd_order.grace_ms = 3500;
    }
    start_stopped("", stubborn, &agent, &rank);
    seen_close_stream(&sshd_seen);
    sshd_seen.ops->stop(sshd_seen.launch, _i == 2);
    await_end(&sshd_seen, 1, 12);
    ck_assert_int_eq(sshd_seen.status, stubborn ? -1 : 9);
    ck_assert_str_eq(sshd_seen.signal, stubborn ? "KILL" : "");
    ck_assert_str_eq(sshd_seen.noted, "");
    await_gone(agent);
    kill(rank, SIGKILL);
}

/* What starts the commands is no sshd, or one that has started no other. */
LOOP_TEST(test_ssh_agent_that_is_not_found_is_told, 2)
{
    pid_t agent = 0, rank = 0;
    char server[160];
    snprintf(server, sizeof(server), "ForceCommand %s\n",
             launch_file(_i == 0 ? "other" : "sshd-other",
                         "#!/bin/sh\nsh -c \"$SSH_ORIGINAL_COMMAND\"\n"
                         "exit $?\n",
                         0700));
    start_stopped(server, true, &agent, &rank);
    seen_close_stream(&sshd_seen);
    sshd_seen.ops->stop(sshd_seen.launch, true);
    await_end(&sshd_seen, 1, 12);
    assert_says(sshd_seen.noted, "its agent may still be there: the command "
                                 "that kills it ended with status 1");
    ck_assert(is_alive(agent));
    kill(agent, SIGKILL);
    kill(rank, SIGKILL);
}

TEST(test_ssh_stop_does_not_kill_another_process_of_that_id)
{
    pid_t agent = 0, rank = 0;
    start_stopped("", false, &agent, &rank);
    sshd_seen.ops->identify(sshd_seen.launch, (uint32_t)agent,
                            start_ticks_of(agent) + 1);
    seen_close_stream(&sshd_seen);
    sshd_seen.ops->stop(sshd_seen.launch, true);
    await_end(&sshd_seen, 1, 12);
    ck_assert_int_eq(sshd_seen.status, -1);
    ck_assert_str_eq(sshd_seen.signal, "");
    ck_assert(is_alive(agent));
    kill(agent, SIGKILL);
    kill(rank, SIGKILL);
}

TEST(test_ssh_killed_agent_is_not_reported_as_left_behind)
{
    pid_t agent = 0, wrapper = 0;
    sshd_start("");
    sshd_how.worker = launch_file(
        "script",
        "#!/bin/sh\ntrap '' TERM HUP\nsleep 60 </dev/null >/dev/null 2>&1 &\n"
        "echo \"pid $! $$\"\nwhile :; do sleep 1; done\n",
        0700);
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    await_output(&sshd_seen, "\n", 10);
    ck_assert_int_eq(sscanf(sshd_seen.output, "pid %d %d", &agent, &wrapper),
                     2);
    sshd_seen.ops->identify(sshd_seen.launch, (uint32_t)agent,
                            start_ticks_of(agent));
    seen_close_stream(&sshd_seen);
    sshd_seen.ops->stop(sshd_seen.launch, true);
    await_end(&sshd_seen, 1, 12);
    await_gone(agent);
    ck_assert(is_alive(wrapper));
    kill(wrapper, SIGKILL);
    ck_assert_str_eq(sshd_seen.noted, "");
}

TEST(test_ssh_agent_that_cannot_be_killed_is_told)
{
    pid_t agent = 0, rank = 0;
    char expected[64];
    start_stopped("MaxSessions 1\n", false, &agent, &rank);
    sshd_seen.ops->identify(sshd_seen.launch, (uint32_t)agent,
                            start_ticks_of(agent));
    seen_close_stream(&sshd_seen);
    sshd_seen.ops->stop(sshd_seen.launch, true);
    await_end(&sshd_seen, 1, 12);
    snprintf(expected, sizeof(expected),
             "process %d, may still be there: ", (int)agent);
    assert_says(sshd_seen.noted, expected);
    assert_says(sshd_seen.noted, "open failed");
    kill(agent, SIGKILL);
    kill(rank, SIGKILL);
}

TEST(test_ssh_stop_during_the_start_is_a_prompt_failure)
{
    int64_t started;
    sshd_talker("", 0, true);
    sshd_launch();
    for (int i = 0; i < 10; i++) {
        uv_run(&launch_loop, UV_RUN_NOWAIT);
        rf_sleep_until_ns(rf_now_ns() + 10 * RF_NS_PER_MS);
    }
    started = rf_now_ns();
    sshd_seen.ops->stop(sshd_seen.launch, false);
    await_end(&sshd_seen, 1, 5);
    ck_assert_uint_eq(sshd_seen.fails, 1);
    ck_assert_int_eq(sshd_seen.why.status, RF_ERR_ABORTED);
    ck_assert_int_lt(rf_now_ns() - started, RF_NS_PER_S);
}

TEST(test_ssh_stop_at_the_gate_is_a_failure)
{
    struct rf_launch_gate *gate = rf_launch_gate_create(1);
    sshd_talker("", 0, true);
    sshd_order.gate = gate;
    for (unsigned i = 0; i < 3; i++) {
        seen_start(&many[i], &sshd_order);
    }
    for (unsigned i = 0; i < 3; i++) {
        many[i].ops->stop(many[i].launch, true);
        many[i].ops->stop(many[i].launch, true);
    }
    await_end(many, 3, 5);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(many[i].why.status, RF_ERR_ABORTED);
    }
    rf_launch_gate_destroy(gate);
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

TEST(test_ssh_leaves_no_descriptor_open)
{
    unsigned before;
    sshd_start("");
    sshd_expect_success(); /* what is opened once */
    before = count_descriptors();
    sshd_expect_success();
    sshd_node.host_key_sha256 = "SHA256:AAAA";
    sshd_launch();
    await_end(&sshd_seen, 1, 10);
    sshd_node.host_key_sha256 = NULL;
    sshd_node.identity = "/nonexistent";
    sshd_launch();
    await_end(&sshd_seen, 1, 10);
    sshd_talker("SSH-2.0-x\r\n", 0, false); /* ends in the key exchange */
    sshd_how.timeout_s = 1;
    sshd_launch();
    await_end(&sshd_seen, 1, 10);
    sshd_talker("SSH-2.0-x\r\n", 0, true); /* and one that says no more */
    sshd_launch();
    await_end(&sshd_seen, 1, 10);
    ck_assert_uint_eq(count_descriptors(), before);
}
