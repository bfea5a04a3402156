/* See launch_sshd.h. */
#include "tests/unit/coordinator/launch/ssh/launch_sshd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"

struct rf_launch_config sshd_how;
struct rf_node_config sshd_node;
struct rf_launch_order sshd_order;
struct seen sshd_seen;

static pid_t adopted[8];
static unsigned n_adopted;

const char *sshd_missing(void)
{
    if (access("/usr/sbin/sshd", X_OK) != 0) {
        return "/usr/sbin/sshd is not installed";
    }
    if (access("/usr/bin/ssh-keygen", X_OK) != 0) {
        return "/usr/bin/ssh-keygen is not installed";
    }
    return NULL;
}

void sshd_adopt(pid_t pid)
{
    ck_assert_uint_lt(n_adopted, 8);
    adopted[n_adopted++] = pid;
}

void sshd_run(const char *program, ...)
{
    char *args[24];
    unsigned n = 0;
    va_list list;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t actions;
    args[n++] = (char *)(uintptr_t)program;
    va_start(list, program);
    do {
        args[n] = va_arg(list, char *);
    } while (args[n++] != NULL);
    va_end(list);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    ck_assert_int_eq(posix_spawn(&pid, program, &actions, NULL, args, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s ended with %d", program, status);
}

int sshd_listen(uint32_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

int sshd_count(const char *name, const char *text)
{
    char line[4096];
    int count = 0;
    FILE *file = fopen(fake_root_path(name), "re");
    if (file == NULL) {
        return -1;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        count += strstr(line, text) != NULL;
    }
    fclose(file);
    return count;
}

void sshd_know(const char *name, const char *key)
{
    fake_root_run("key=$(cut -d' ' -f1,2 %s.pub) && echo \"%s $key\" "
                  ">known_hosts",
                  key, name);
}

static bool accepts(uint32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return yes;
}

/* The server's own program: dies with this process. */
static pid_t spawn_sshd(const char *config, const char *log)
{
    pid_t parent = getpid(), pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        (void)!freopen("/dev/null", "w", stderr);
        execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", config, "-E", log,
              (char *)NULL);
        _exit(1);
    }
    return pid;
}

static bool try_start(const char *more)
{
    char text[4096];
    const char *config;
    int64_t deadline = rf_now_ns() + 10 * RF_NS_PER_S;
    pid_t pid;
    /* sshd cannot choose a port: take one that was free a moment ago. */
    close(sshd_listen(&sshd_node.port));
    snprintf(text, sizeof(text),
             "%sListenAddress 127.0.0.1\nPort %u\nHostKey %s/host_key\n"
             "PidFile %s/sshd.pid\nAuthorizedKeysFile %s/authorized_keys\n"
             "StrictModes no\nPermitRootLogin prohibit-password\n"
             "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
             "UsePAM no\nUseDNS no\nPrintMotd no\n"
             "Subsystem sftp internal-sftp -d %s\nSetEnv HOME=%s\n",
             more, sshd_node.port, fake_root, fake_root, fake_root, fake_root,
             fake_root);
    config = launch_file("sshd_config", text, 0600);
    pid = spawn_sshd(config, fake_root_path("sshd.log"));
    /* Without connecting, which would count as a start-up. */
    while (sshd_count("sshd.pid", "") < 1) {
        if (waitpid(pid, NULL, WNOHANG) == pid) {
            return false;
        }
        ck_assert_msg(rf_now_ns() < deadline, "sshd does not start");
        rf_sleep_until_ns(rf_now_ns() + 5 * RF_NS_PER_MS);
    }
    ck_assert(strstr(more, "MaxStartups") != NULL || accepts(sshd_node.port));
    sshd_adopt(pid);
    return true;
}

void sshd_start(const char *more)
{
    if (getuid() == 0) {
        (void)mkdir("/run/sshd", 0755); /* sshd wants it as root */
    }
    for (int i = 0; i < 5; i++) {
        if (try_start(more)) {
            char name[64];
            snprintf(name, sizeof(name), "[127.0.0.1]:%u", sshd_node.port);
            sshd_know(name, "host_key");
            return;
        }
    }
    ck_abort_msg("sshd does not start");
}

static const char *make_key(const char *name)
{
    const char *path = fake_root_path(name);
    sshd_run("/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C",
             "test", "-f", path, NULL);
    return path;
}

static void setup(void)
{
    launch_setup();
    n_adopted = 0;
    unsetenv("SSH_AUTH_SOCK");
    make_key("host_key");
    /* A worker that repeats what it reads until the end of its input. */
    sshd_how = (struct rf_launch_config){
        .method = "ssh",
        .worker = launch_file("worker",
                              "#!/bin/sh\necho \"args $*\"\nexec cat\n", 0700),
        .known_hosts = fake_root_path("known_hosts"),
        .timeout_s = 15};
    sshd_node = (struct rf_node_config){
        .name = "node-a", .hostname = "127.0.0.1", .identity = make_key("id")};
    fake_root_run("cp id.pub authorized_keys");
    sshd_order =
        (struct rf_launch_order){.node = &sshd_node, .settings = &sshd_how};
}

static void teardown(void)
{
    for (unsigned i = 0; i < n_adopted; i++) {
        kill(adopted[i], SIGKILL);
        waitpid(adopted[i], NULL, 0);
    }
    n_adopted = 0;
    launch_teardown();
}

void sshd_launch(void)
{
    seen_start(&sshd_seen, &sshd_order);
}

void sshd_await_fail(const char *text, unsigned limit_s)
{
    await_end(&sshd_seen, 1, limit_s);
    ck_assert_uint_eq(sshd_seen.fails, 1);
    ck_assert_msg(strstr(sshd_seen.why.text, text) != NULL,
                  "no \"%s\" in \"%s\"", text, sshd_seen.why.text);
}

void sshd_expect_fail(const char *text, unsigned limit_s)
{
    sshd_launch();
    sshd_await_fail(text, limit_s);
}

void sshd_expect_success(void)
{
    sshd_launch();
    await_stream(&sshd_seen, 1, 20);
    seen_write(&sshd_seen, "over\n");
    await_output(&sshd_seen, "over\n", 10);
    seen_close_stream(&sshd_seen);
    await_end(&sshd_seen, 1, 10);
    ck_assert_int_eq(sshd_seen.status, 0);
}

/* A server that says `text` to each client, a byte every `pause_ms`, and then
 * closes or stays. */
void sshd_talker(const char *text, unsigned pause_ms, bool stays)
{
    int fd = sshd_listen(&sshd_node.port);
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            int client = accept(fd, NULL, NULL);
            for (const char *at = text; *at != '\0'; at++) {
                if (send(client, at, 1, MSG_NOSIGNAL) != 1) {
                    break;
                }
                rf_sleep_until_ns(rf_now_ns() + pause_ms * RF_NS_PER_MS);
            }
            if (!stays) {
                close(client);
            }
        }
    }
    sshd_adopt(pid);
    close(fd);
}

bool sshd_tests(TCase *tests, const char *file)
{
    if (sshd_missing() != NULL) {
        fprintf(stderr, "%s: skipped: %s\n", file, sshd_missing());
        return false;
    }
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    return true;
}
