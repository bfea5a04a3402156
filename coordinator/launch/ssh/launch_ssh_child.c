/*
 * Programs that the ssh config names, and ssh(1): each in its own session, so
 * that it cannot ask for passwords on the terminal and can be killed with its
 * children; without our other descriptors.
 *
 * A program with captured output gets the launch's time and limited space;
 * beyond these, or when the launch is stopped, it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define OUTPUT_MAX ((size_t)1 << 20)

int rf_ssh_spawn(const char *const argv[], int in, int out, int errors,
                 pid_t *pid)
{
    static const char *const prompts[] = {"SSH_ASKPASS", NULL};
    static char no_prompt[] = "SSH_ASKPASS_REQUIRE=never";
    char **environment = rf_launch_environment(prompts, no_prompt);
    posix_spawn_file_actions_t actions;
    int result;
    posix_spawn_file_actions_init(&actions);
    if (in >= 0) {
        posix_spawn_file_actions_adddup2(&actions, in, 0);
    } else {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    result = rf_spawn_session(pid, argv[0], &actions, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return result;
}

/* Reads `fd` to its end and closes it. The caller frees *out, also after an
 * error. */
static enum rf_status read_output(struct rf_ssh_job *job, const char *what,
                                  int fd, char **out, struct rf_err *err)
{
    char *text = rf_xmalloc(OUTPUT_MAX + 1);
    size_t used = 0;
    ssize_t got = 1;
    enum rf_status status = RF_OK;
    while (status == RF_OK && got != 0 && used < OUTPUT_MAX) {
        got = read(fd, text + used, OUTPUT_MAX - used);
        used += got > 0 ? (size_t)got : 0;
        if (got < 0) {
            status = rf_ssh_check(job, what, err);
            rf_ssh_wait(job, fd, POLLIN, rf_ssh_left_ms(job));
        }
    }
    if (status == RF_OK && got != 0) {
        status = rf_err_set(err, RF_ERR_LAUNCH, "%s: more than %zu bytes", what,
                            OUTPUT_MAX);
    }
    text[used] = '\0';
    close(fd);
    *out = text;
    return status;
}

/* Waits for the program's end, or kills it and its children. */
static enum rf_status reap(struct rf_ssh_job *job, const char *what, pid_t pid,
                           enum rf_status status, int *ended,
                           struct rf_err *err)
{
    while (status == RF_OK && waitpid(pid, ended, WNOHANG) == 0) {
        status = rf_ssh_check(job, what, err);
        rf_ssh_wait(job, -1, 0, 1);
    }
    if (status != RF_OK) {
        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, ended, 0);
    }
    return status;
}

/* The end of the program's error output on one line, after ": ". */
static void read_complaint(int fd, char *out, size_t size)
{
    const off_t end = lseek(fd, 0, SEEK_END);
    ssize_t got =
        pread(fd, out + 2, size - 3, RF_MAX(end - (off_t)(size - 3), (off_t)0));
    while (got > 0 && strchr("\r\n", out[1 + got]) != NULL) {
        got--;
    }
    memcpy(out, ": ", 2);
    out[got > 0 ? got + 2 : 0] = '\0';
    for (; *out != '\0'; out++) {
        *out = *out >= 32 && *out <= 126 ? *out : ' ';
    }
}

enum rf_status rf_ssh_capture(struct rf_ssh_job *job, const char *what,
                              const char *const argv[], char **out,
                              struct rf_err *err)
{
    int output[2], ended = -1, result;
    int errors = memfd_create("errors", MFD_CLOEXEC);
    char complaint[1024], *text = NULL;
    enum rf_status status = RF_OK;
    pid_t pid;
    if (errors < 0 || pipe2(output, O_CLOEXEC | O_NONBLOCK) != 0) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", what);
        goto out;
    }
    result = rf_ssh_spawn(argv, -1, output[1], errors, &pid);
    close(output[1]);
    if (result != 0) {
        close(output[0]);
        status = rf_err_errno(
            err, result == ENOENT ? RF_ERR_UNSUPPORTED : RF_ERR_LAUNCH, result,
            "%s: %s%s", what, argv[0], rf_spawn_limits(result));
        goto out;
    }
    status = read_output(job, what, output[0], &text, err);
    status = reap(job, what, pid, status, &ended, err);
    if (status == RF_OK && ended != 0) {
        read_complaint(errors, complaint, sizeof(complaint));
        status = rf_err_set(err, RF_ERR_CONFIG, "%s failed%s", what, complaint);
    }
out:
    rf_fd_close(&errors);
    if (status == RF_OK) {
        *out = text;
    } else {
        free(text);
    }
    return status;
}
