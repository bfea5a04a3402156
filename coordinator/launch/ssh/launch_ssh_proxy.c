/*
 * ProxyCommand and ProxyJump (which becomes a ProxyCommand, as in ssh), run by
 * us instead of libssh: in a session of its own, so that it cannot ask for
 * passwords on the terminal and can be killed with its children; without our
 * other descriptors; with its complaints shown as notes instead of lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/launch/ssh/launch_ssh.h"

/* Appends `text` to *command, which has room for *left more. */
static bool add(char *command, size_t size, const char *text)
{
    size_t used = strlen(command), length = strlen(text);
    if (used + length >= size) {
        return false;
    }
    memcpy(command + used, text, length + 1);
    return true;
}

/* `text` in single quotes, and safe from expand(); owned by the caller. */
static char *quote(const char *text)
{
    char *out = rf_xmalloc(4 * strlen(text) + 3), *at = out;
    *at++ = '\'';
    for (; *text != '\0'; text++) {
        const char one[2] = {*text, '\0'};
        at = stpcpy(at, *text == '\'' ? "'\\''" : *text == '%' ? "%%" : one);
    }
    *at++ = '\'';
    *at = '\0';
    return out;
}

/* Hosts as ProxyJump has them: nothing that a shell or ssh would take for
 * something else. */
static bool valid_jumps(const char *jumps)
{
    const char *at = jumps;
    for (;;) {
        size_t length = strcspn(at, ",");
        if (length == 0 || at[0] == '-') {
            return false;
        }
        if (at[length] == '\0') {
            break;
        }
        at += length + 1;
    }
    return strspn(jumps, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._-@:[]/,") == strlen(jumps);
}

enum rf_status rf_ssh_jump_command(const char *config, const char *jumps,
                                   char **out, struct rf_err *err)
{
    const char *comma = strrchr(jumps, ',');
    const char *last = comma != NULL ? comma + 1 : jumps;
    char *file;
    if (!valid_jumps(jumps)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "ProxyJump of the ssh config: \"%.200s\" is not "
                          "[user@]host[:port], several separated by commas",
                          jumps);
    }
    file = config != NULL ? quote(config) : NULL;
    *out = rf_xasprintf("ssh%s%s%s%.*s%s -W '[%%h]:%%p' '%s%s'",
                        file != NULL ? " -F " : "", file != NULL ? file : "",
                        comma != NULL ? " -J '" : "",
                        comma != NULL ? (int)(comma - jumps) : 0, jumps,
                        comma != NULL ? "'" : "",
                        strncmp(last, "ssh://", 6) == 0 ? "" : "ssh://", last);
    free(file);
    return RF_OK;
}

/* `name` is the host as cluster.json has it. */
static enum rf_status expand(const char *pattern, const char *name,
                             const struct rf_ssh_target *target, char *out,
                             size_t size, struct rf_err *err)
{
    char number[16];
    bool fits;
    snprintf(number, sizeof(number), "%u", target->port);
    out[0] = '\0';
    fits = add(out, size, "exec ");
    for (; *pattern != '\0' && fits; pattern++) {
        char one[2] = {*pattern, '\0'};
        const char *value = one;
        if (*pattern == '%') {
            pattern++;
            value = *pattern == 'h'   ? target->host
                    : *pattern == 'n' ? name
                    : *pattern == 'p' ? number
                    : *pattern == 'r' ? target->user
                    : *pattern == '%' ? "%"
                                      : NULL;
            if (value == NULL) {
                return rf_err_set(err, RF_ERR_CONFIG,
                                  "ProxyCommand: %%%c is not supported",
                                  *pattern);
            }
        }
        fits = add(out, size, value);
    }
    return fits ? RF_OK
                : rf_err_set(err, RF_ERR_CONFIG, "ProxyCommand is too long");
}

/* The environment, with prompts of any kind switched off. */
static char **quiet_environment(void)
{
    static char never[] = "SSH_ASKPASS_REQUIRE=never";
    size_t n = 0, kept = 0;
    char **copy;
    while (environ[n] != NULL) {
        n++;
    }
    copy = rf_xcalloc(n + 2, sizeof(*copy));
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], "SSH_ASKPASS", 11) != 0) {
            copy[kept++] = environ[i];
        }
    }
    copy[kept] = never;
    return copy;
}

static int spawn_shell(char *command, int io, int errors, pid_t *pid)
{
    char shell[] = "sh", option[] = "-c";
    char *args[] = {shell, option, command, NULL};
    char **environment = quiet_environment();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int result;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, io, 0);
    posix_spawn_file_actions_adddup2(&actions, io, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
                                              POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    result =
        posix_spawn(pid, "/bin/sh", &actions, &attributes, args, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return result;
}

enum rf_status rf_ssh_connect_proxy(const struct rf_ssh_job *job,
                                    const char *command,
                                    const struct rf_ssh_target *target,
                                    struct rf_ssh_proxy *out,
                                    struct rf_err *err)
{
    char expanded[2048];
    int io[2], complaints[2], result;
    if (!rf_names_valid_host(target->host)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "HostName of the ssh config is not a host name");
    }
    RF_TRY(expand(command, job->host, target, expanded, sizeof(expanded), err));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
    }
    if (pipe2(complaints, O_CLOEXEC | O_NONBLOCK) != 0) {
        close(io[0]);
        close(io[1]);
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "pipe");
    }
    result = spawn_shell(expanded, io[1], complaints[1], &out->group);
    close(io[1]);
    close(complaints[1]);
    if (result != 0) {
        close(io[0]);
        close(complaints[0]);
        return rf_err_errno(err, RF_ERR_LAUNCH, result, "ProxyCommand");
    }
    out->fd = io[0];
    out->errors = complaints[0];
    return RF_OK;
}
