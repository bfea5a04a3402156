/* ProxyCommand and ProxyJump (turned into a ProxyCommand, as in ssh), run here
 * instead of by libssh, so that error output becomes notes and is not lost. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/spawn.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/launch/ssh/launch_ssh.h"

/* `text` in single quotes, and safe from rf_ssh_expand(); owned by the
 * caller. */
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

/* Whether these are ProxyJump hosts without anything that a shell or ssh would
 * interpret otherwise. */
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

enum rf_status rf_ssh_connect_proxy(const struct rf_ssh_settings *settings,
                                    const char *command,
                                    struct rf_ssh_proxy *out,
                                    struct rf_err *err)
{
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    char *expanded, *line;
    int io[2], complaints[2], result;
    enum rf_status status;
    if (!rf_names_valid_host(settings->host_name)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "HostName of the ssh config is not a host name");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
    }
    if (pipe2(complaints, O_CLOEXEC | O_NONBLOCK) != 0) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "pipe");
        goto no_pipe;
    }
    status = rf_ssh_expand(settings, "ProxyCommand", command, false, NULL,
                           &expanded, err);
    if (status != RF_OK) {
        goto no_command;
    }
    argv[2] = line = rf_xasprintf("exec %s", expanded);
    free(expanded);
    result = rf_ssh_spawn(argv, io[1], io[1], complaints[1], &out->group);
    free(line);
    if (result != 0) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, result, "ProxyCommand%s",
                              rf_spawn_limits(result));
        goto no_command;
    }
    close(io[1]);
    close(complaints[1]);
    out->fd = io[0];
    out->errors = complaints[0];
    return RF_OK;
no_command:
    close(complaints[0]);
    close(complaints[1]);
no_pipe:
    close(io[0]);
    close(io[1]);
    return status;
}
