/*
 * The known keys of a server: the lines about it in several known_hosts files
 * and in a command's output, gathered in one unnamed file.
 *
 * libssh reads one such file, and looks up its own name of the server, which
 * must be a valid DNS name: "node_a" is not. We connect without libssh, so
 * nothing else needs that name: libssh calls every server STAND_IN, and so do
 * the gathered lines. A server with a HostKeyAlias is listed only under that
 * name, without a port.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define STAND_IN "server"
#define NO_FILE "/dev/null"

const char *rf_ssh_known_file(const struct rf_ssh_known *known, size_t index)
{
    const struct rf_ssh_texts *own = &known->settings->known_hosts;
    const struct rf_ssh_texts *global = &known->settings->global_known_hosts;
    return index < own->n               ? own->list[index]
           : index < own->n + global->n ? global->list[index - own->n]
                                        : NULL;
}

/* Takes the lines about the server, and all with a marker, which libssh
 * skips. */
static void take_lines(const struct rf_ssh_known *known, FILE *from)
{
    char *line = NULL;
    size_t size = 0;
    while (from != NULL && getline(&line, &size, from) >= 0) {
        const char *text = line + strspn(line, " \t");
        struct ssh_knownhosts_entry *entry = NULL;
        line[strcspn(line, "\r\n")] = '\0';
        if (text[0] == '@') {
            dprintf(known->fd, "%s\n", text);
        } else if (ssh_known_hosts_parse_line(known->name, text, &entry) ==
                   SSH_OK) {
            dprintf(known->fd, STAND_IN "%s\n", text + strcspn(text, " "));
            ssh_knownhosts_entry_free(entry);
        }
    }
    free(line);
    if (from != NULL) {
        fclose(from);
    }
}

static void take_file(const struct rf_ssh_known *known, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        take_lines(known, fdopen(fd, "r"));
    }
}

/* As ssh asks it: once before there is a key ("NONE"), and once for a key. */
enum rf_status rf_ssh_known_ask(struct rf_ssh_job *job,
                                const struct rf_ssh_known *known,
                                const char *type, const char *fingerprint,
                                const char *base64, struct rf_err *err)
{
    const struct rf_ssh_settings *settings = known->settings;
    const struct rf_ssh_token tokens[] = {
        {'I', type != NULL ? "HOSTNAME" : "ORDER"},
        {'H', known->name},
        {'t', type != NULL ? type : "NONE"},
        {'f', type != NULL ? fingerprint : "NONE"},
        {'K', type != NULL ? base64 : "NONE"},
        {'\0', NULL}};
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    char *expanded, *line, *lines = NULL;
    enum rf_status status;
    if (settings->known_hosts_command == NULL) {
        return RF_OK;
    }
    RF_TRY(rf_ssh_expand(settings, "KnownHostsCommand",
                         settings->known_hosts_command, false, tokens,
                         &expanded, err));
    argv[2] = line = rf_xasprintf("exec %s", expanded);
    status = rf_ssh_capture(job, "KnownHostsCommand", argv, &lines, err);
    if (status == RF_OK && lines[0] != '\0') {
        take_lines(known, fmemopen(lines, strlen(lines), "r"));
    }
    free(lines);
    free(line);
    free(expanded);
    return status;
}

void rf_ssh_known_add(const struct rf_ssh_known *known, const char *type,
                      const char *base64)
{
    dprintf(known->fd, STAND_IN " %s %s\n", type, base64);
}

void rf_ssh_known_only(const struct rf_ssh_known *known, const char *path)
{
    (void)!ftruncate(known->fd, 0);
    (void)lseek(known->fd, 0, SEEK_SET);
    take_file(known, path);
}

/* Sets the server's name in known_hosts files. */
static void set_name(struct rf_ssh_known *known)
{
    const struct rf_ssh_settings *settings = known->settings;
    const bool plain = settings->host_key_alias != NULL || settings->port == 22;
    snprintf(known->name, sizeof(known->name), plain ? "%s" : "[%s]:%u",
             rf_ssh_known_name(settings), settings->port);
    for (char *at = known->name; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
}

enum rf_status rf_ssh_gather_known(struct rf_ssh_job *job,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_ssh_known *out, struct rf_err *err)
{
    const char *file, *alias = settings->host_key_alias;
    if (alias != NULL && !rf_names_valid_host(alias)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "HostKeyAlias of the ssh config is not a host name");
    }
    out->settings = settings;
    set_name(out);
    if (settings->known_hosts.n > 0 &&
        strcmp(settings->known_hosts.list[0], NO_FILE) != 0) {
        out->first = settings->known_hosts.list[0];
    }
    out->fd = memfd_create("known_hosts", MFD_CLOEXEC);
    if (out->fd < 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "known_hosts");
    }
    snprintf(out->path, sizeof(out->path), "/proc/self/fd/%d", out->fd);
    for (size_t i = 0; (file = rf_ssh_known_file(out, i)) != NULL; i++) {
        take_file(out, file);
    }
    return rf_ssh_known_ask(job, out, NULL, NULL, NULL, err);
}

enum rf_status rf_ssh_use_known(const struct rf_ssh_known *known,
                                ssh_session session, struct rf_err *err)
{
    return ssh_options_set(session, SSH_OPTIONS_HOST, STAND_IN) == 0 &&
                   ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS,
                                   known->path) == 0 &&
                   ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS,
                                   NO_FILE) == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH, "known_hosts: %s",
                            rf_ssh_reason(session));
}

void rf_ssh_known_close(struct rf_ssh_known *known)
{
    rf_fd_close(&known->fd);
}
