/* Starting processes and ending what they leave behind. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/unit.h"
#include "worker/shared/process.h"

static const char *value_in(char **environment, const char *name)
{
    size_t length = strlen(name);
    const char *found = NULL;
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 &&
            (*environment)[length] == '=') {
            ck_assert_ptr_null(found); /* once */
            found = *environment + length + 1;
        }
    }
    return found;
}

LIMIT(20)

TEST(test_environment_is_an_allow_list_and_boots_additions)
{
    char texts[][16] = {"PATH", "/only", "NEW", "1", "NCCL_COMM_ID",
                        "x",    "NONE",  "A=B", "c"};
    struct rf_text_pair list[] = {{texts[0], texts[1]},
                                  {texts[2], texts[3]},
                                  {texts[4], texts[5]},
                                  {texts[6], NULL},
                                  {texts[7], texts[8]}};
    const struct rf_text_pairs extra = {list, RF_ARRAY_SIZE(list)};
    char **environment;
    setenv("NCCL_COMM_ID", "leak", 1);
    setenv("NCCL_ALGO", "Ring", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "leak", 1);
    environment = rf_process_environment(&extra);
    ck_assert_str_eq(value_in(environment, "PATH"), "/only");
    ck_assert_str_eq(value_in(environment, "NEW"), "1");
    ck_assert_str_eq(value_in(environment, "NCCL_ALGO"), "Ring");
    ck_assert_ptr_null(value_in(environment, "NCCL_COMM_ID"));
    ck_assert_ptr_null(value_in(environment, "AWS_SECRET_ACCESS_KEY"));
    ck_assert_ptr_null(value_in(environment, "NONE"));
    ck_assert_ptr_null(value_in(environment, "A"));
    rf_process_environment_free(environment);
    environment = rf_process_environment(NULL);
    ck_assert_ptr_nonnull(value_in(environment, "PATH"));
    rf_process_environment_free(environment);
}

/* Whatever the process is called. */
TEST(test_start_ticks_are_those_of_this_process)
{
    const int64_t parent = rf_process_start_ticks();
    int status;
    pid_t child;
    ck_assert_int_gt(parent, 0);
    child = fork();
    if (child == 0) {
        int64_t own = rf_process_start_ticks();
        prctl(PR_SET_NAME, "a) b 1 2 (3");
        _exit(own >= parent && rf_process_start_ticks() == own ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

TEST(test_a_program_that_is_missing_is_an_error)
{
    const char *argv[] = {"nothing", NULL};
    char *environment[] = {NULL};
    struct rf_spawn how = {.program = "/nonexistent/program",
                           .argv = argv,
                           .environment = environment,
                           .control_fd = 0,
                           .output_fd = 1};
    struct rf_err err;
    pid_t pid = 77;
    ck_assert_int_eq(rf_process_spawn(&how, &pid, &err), RF_ERR_LAUNCH);
    ck_assert_int_eq(pid, 77);
    assert_says(err.text, "/nonexistent/program");
}

/* The last processor that a set has room for: no machine of today has it. */
TEST(test_processors_that_cannot_be_used_are_an_error)
{
    const char *argv[] = {"true", NULL};
    char *environment[] = {NULL};
    cpu_set_t cpus, own, after;
    struct rf_spawn how = {.program = "/bin/true",
                           .argv = argv,
                           .environment = environment,
                           .control_fd = 0,
                           .output_fd = 1,
                           .cpus = &cpus};
    struct rf_err err;
    pid_t pid = 77;
    CPU_ZERO(&cpus);
    CPU_SET(CPU_SETSIZE - 1, &cpus);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    ck_assert_int_eq(rf_process_spawn(&how, &pid, &err), RF_ERR_LAUNCH);
    ck_assert_int_eq(pid, 77);
    assert_says(err.text, "$.launch.bind");
    ck_assert_int_eq(sched_getaffinity(0, sizeof(after), &after), 0);
    ck_assert(CPU_EQUAL(&own, &after));
}

/* The descriptors of a process below 32, as a sum of 2^n. */
static unsigned open_descriptors(pid_t pid)
{
    unsigned open_ones = 0;
    char path[64], target[8];
    for (unsigned fd = 0; fd < 32; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
        if (readlink(path, target, sizeof(target)) > 0) {
            open_ones |= 1u << fd;
        }
    }
    return open_ones;
}

TEST(test_a_child_leads_its_session_and_has_only_its_descriptors)
{
    const char *argv[] = {"sh", "-c", "exec cat <&3", NULL};
    char path[] = "PATH=/usr/bin:/bin";
    char *environment[] = {path, NULL};
    int control[2], output[2], status;
    int leak = open("/dev/null", O_RDONLY);
    char text[32] = "";
    struct rf_err err;
    pid_t pid;
    struct rf_spawn how = {
        .program = "/bin/sh", .argv = argv, .environment = environment};
    ck_assert_int_ge(leak, 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, control), 0);
    ck_assert_int_eq(pipe(output), 0);
    how.control_fd = control[1];
    how.output_fd = output[1];
    assert_ok(rf_process_spawn(&how, &pid, &err), err);
    close(control[1]);
    close(output[1]);
    ck_assert_int_eq(write(control[0], "hello\n", 6), 6);
    ck_assert_int_gt(read(output[0], text, sizeof(text) - 1), 0);
    ck_assert_str_eq(text, "hello\n");
    /* It is cat now: the shell has a descriptor more while it redirects. */
    ck_assert_uint_eq(open_descriptors(pid), 0xF);
    ck_assert_int_eq(getsid(pid), pid);
    close(control[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(leak);
    close(output[0]);
}

TEST(test_strays_that_left_their_session_are_killed)
{
    int ready[2];
    pid_t child, stray = 0;
    int status;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1L), 0);
    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            setsid();
            grandchild = getpid();
            if (write(ready[1], &grandchild, sizeof(grandchild)) < 0) {
                _exit(1);
            }
            for (;;) {
                pause();
            }
        }
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &stray, sizeof(stray)), sizeof(stray));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(kill(stray, 0), 0);
    rf_process_kill_strays(&stray, 1); /* kept */
    ck_assert_int_eq(waitpid(stray, &status, WNOHANG), 0);
    rf_process_kill_strays(NULL, 0);
    ck_assert_int_eq(waitpid(stray, &status, 0), stray);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ready[0]);
    close(ready[1]);
}

TEST(test_a_child_dies_with_its_parent)
{
    int ready[2];
    pid_t parent, child = 0;
    int status;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1L), 0);
    ck_assert_int_eq(pipe(ready), 0);
    parent = fork();
    if (parent == 0) {
        pid_t me = getpid();
        if (fork() == 0) {
            pid_t self = getpid();
            if (!rf_process_bind_to_parent(me) ||
                write(ready[1], &self, sizeof(self)) < 0) {
                _exit(1);
            }
            for (;;) {
                pause();
            }
        }
        for (;;) {
            pause();
        }
    }
    ck_assert_int_eq(read(ready[0], &child, sizeof(child)), sizeof(child));
    ck_assert_int_eq(kill(parent, SIGKILL), 0);
    ck_assert_int_eq(waitpid(parent, &status, 0), parent);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ready[0]);
    close(ready[1]);
}

TEST(test_a_parent_that_is_gone_is_noticed)
{
    ck_assert(!rf_process_bind_to_parent(getppid() + 1));
}

TEST(test_a_rank_is_called_by_its_number)
{
    char name[16] = "";
    rf_process_name_rank(3);
    ck_assert_int_eq(prctl(PR_GET_NAME, name), 0);
    ck_assert_str_eq(name, "refit-rank 3");
    rf_process_name_rank(123456);
    ck_assert_int_eq(prctl(PR_GET_NAME, name), 0);
    ck_assert_str_eq(name, "rank 123456");
}
