/* The command line, run as a process. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* Output and exit status of `refit-worker` with these arguments. */
static struct {
    char text[65536]; /* both streams */
    int status;
} ran;

static void run(const char *const *argv)
{
    int output[2], status;
    size_t used = 0;
    ssize_t n;
    pid_t pid;
    ck_assert_int_eq(pipe(output), 0);
    pid = fork();
    if (pid == 0) {
        dup2(output[1], 1);
        dup2(output[1], 2);
        close(output[0]);
        close(output[1]);
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(output[1]);
    while (used < sizeof(ran.text) - 1 &&
           (n = read(output[0], ran.text + used, sizeof(ran.text) - 1 - used)) >
               0) {
        used += (size_t)n;
    }
    ran.text[used] = '\0';
    close(output[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ran.status = WEXITSTATUS(status);
}

#define RUN(...) run((const char *const[]){"refit-worker", __VA_ARGS__, NULL})

LIMIT(20)

TEST(test_probe_prints_what_the_node_can_do)
{
    json_t *facts, *why;
    const char *name;
    RUN("--probe");
    ck_assert_int_eq(ran.status, 0);
    facts = json_loads(ran.text, 0, NULL);
    ck_assert_ptr_nonnull(facts);
    ck_assert(json_is_null(json_at(facts, "methods.host")));
    /* Why not, without the name: who shows it puts that before it. */
    json_object_foreach (json_object_get(facts, "methods"), name, why) {
        ck_assert(json_is_null(why) || json_string_length(why) > 0);
        ck_assert_msg(json_is_null(why) ||
                          strstr(json_string_value(why), "method ") == NULL,
                      "%s: %s", name, json_string_value(why));
    }
    ck_assert(json_is_array(json_object_get(facts, "gpus")));
    ck_assert(json_is_array(json_object_get(facts, "nics")));
    ck_assert_int_gt(json_integer_at(facts, "cpus"), 0);
    json_decref(facts);
}

TEST(test_help_and_version_go_to_standard_output)
{
    RUN("--help");
    ck_assert_int_eq(ran.status, 0);
    assert_says(ran.text, "--connect");
    RUN("--version");
    ck_assert_int_eq(ran.status, 0);
    ck_assert_ptr_nonnull(strstr(ran.text, "protocol 9"));
}

LOOP_TEST(test_wrong_usage_exits_with_2, 10)
{
    static const char *const cases[][8] = {
        {"refit-worker", NULL},
        {"refit-worker", "--dance", NULL},
        {"refit-worker", "--stdio", "extra", NULL},
        {"refit-worker", "--rank", "x", NULL},
        {"refit-worker", "--connect", NULL},
        {"refit-worker", "--connect", "h:1", NULL},
        {"refit-worker", "--connect", "h:1", "--identity", "i", NULL},
        {"refit-worker", "--connect", "h", "--identity", "i", "--key-file",
         "/dev/null", NULL},
        {"refit-worker", "--connect", "::1:5", "--identity", "i", "--key-file",
         "/dev/null", NULL},
        {"refit-worker", "--connect", "h:1", "--identity", "i", "--key-file",
         "/nonexistent", NULL},
    };
    run(cases[_i]);
    ck_assert_int_eq(ran.status, 2);
    assert_says(ran.text, "refit-worker");
}

static void write_key(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_int_ge(fd, 0);
    fchmod(fd, mode);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

TEST(test_a_key_that_others_may_read_is_refused)
{
    char path[64], key[66];
    memset(key, 'c', 64);
    strcpy(key + 64, "\n");
    snprintf(path, sizeof(path), "/tmp/refit-key-%d", (int)getpid());
    write_key(path, key, 0644);
    RUN("--connect", "127.0.0.1:1", "--identity", "i", "--key-file", path);
    ck_assert_int_eq(ran.status, 2);
    assert_says(ran.text, "0600");
    write_key(path, "short\n", 0600);
    chmod(path, 0600);
    RUN("--connect", "127.0.0.1:1", "--identity", "i", "--key-file", path);
    ck_assert_int_eq(ran.status, 2);
    assert_says(ran.text, "64 hexadecimal digits");
    unlink(path);
}

TEST(test_a_rank_without_its_parent_ends_at_once)
{
    RUN("--rank", "0", "--parent", "1");
    ck_assert_int_eq(ran.status, 1);
}
