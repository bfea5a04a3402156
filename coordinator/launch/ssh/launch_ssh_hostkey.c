/*
 * Is this the right machine? Our own verdict, never the one that libssh draws
 * from the user's config (with "StrictHostKeyChecking no" it calls a changed
 * key fine). In this order: a pinned fingerprint, if the node has one, decides
 * alone; a key marked @revoked is refused; otherwise the key must be the one in
 * known_hosts. `accept_new` adds a key for a host that has none, under a lock
 * on the first of the user's files, and never replaces one. A server with a
 * HostKeyAlias is listed there under that name alone, without a port.
 *
 * There may be several known_hosts files, and a command that tells more lines;
 * libssh knows one of the user's. So it is given one that has them all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/store.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define NO_FILE "/dev/null"

/* The server's key in the forms that are needed. */
struct server_key {
    const struct rf_ssh_known *known;
    ssh_key key;
    char *fingerprint; /* "SHA256:…" */
    char *base64;      /* as in known_hosts */
    const char *type;  /* "ssh-ed25519" */
};

static void free_key(struct server_key *shown)
{
    ssh_key_free(shown->key);
    ssh_string_free_char(shown->fingerprint);
    ssh_string_free_char(shown->base64);
}

static enum rf_status read_key(ssh_session session, struct server_key *out,
                               struct rf_err *err)
{
    unsigned char *hash = NULL;
    size_t length = 0;
    memset(out, 0, sizeof(*out));
    if (ssh_get_server_publickey(session, &out->key) != SSH_OK ||
        ssh_get_publickey_hash(out->key, SSH_PUBLICKEY_HASH_SHA256, &hash,
                               &length) != 0) {
        free_key(out);
        return rf_err_set(err, RF_ERR_LAUNCH, "no host key: %s",
                          ssh_get_error(session));
    }
    out->fingerprint =
        ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length);
    ssh_clean_pubkey_hash(&hash);
    out->type = ssh_key_type_to_char(ssh_key_type(out->key));
    if (out->fingerprint == NULL ||
        ssh_pki_export_pubkey_base64(out->key, &out->base64) != SSH_OK) {
        free_key(out);
        return rf_err_set(err, RF_ERR_LAUNCH, "host key without fingerprint");
    }
    return RF_OK;
}

/* Compares "SHA256:abc", with or without the prefix and padding. */
static bool same_fingerprint(const char *a, const char *b)
{
    size_t n, m;
    a += strncmp(a, "SHA256:", 7) == 0 ? 7 : 0;
    b += strncmp(b, "SHA256:", 7) == 0 ? 7 : 0;
    n = strcspn(a, "=");
    m = strcspn(b, "=");
    return n == m && n > 0 && memcmp(a, b, n) == 0;
}

/* The name that a known_hosts file lists the server under. */
static void known_name(const struct rf_ssh_settings *settings, char *out,
                       size_t size)
{
    const bool plain = settings->host_key_alias != NULL || settings->port == 22;
    snprintf(out, size, plain ? "%s" : "[%s]:%u", rf_ssh_known_name(settings),
             settings->port);
}

/* --- What is known -------------------------------------------------------- */

/* The files in the order that ssh has; NULL: no more. */
static const char *known_file(const struct rf_ssh_known *known, size_t index)
{
    const struct rf_ssh_texts *own = &known->settings->known_hosts;
    const struct rf_ssh_texts *global = &known->settings->global_known_hosts;
    return index < own->n               ? own->list[index]
           : index < own->n + global->n ? global->list[index - own->n]
                                        : NULL;
}

/* Appends a file, if it is there, and ends its last line. */
static void append_file(int to, const char *path)
{
    char block[16384];
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    while ((got = read(fd, block, sizeof(block))) > 0) {
        (void)rf_write_all(to, block, (size_t)got);
    }
    (void)rf_write_all(to, "\n", 1);
    close(fd);
}

/* Appends what KnownHostsCommand says, as ssh asks it: before there is a key,
 * which is "NONE" then, and for one. */
static enum rf_status append_command(struct rf_ssh_job *job,
                                     const struct rf_ssh_known *known,
                                     const struct server_key *shown,
                                     struct rf_err *err)
{
    const struct rf_ssh_settings *settings = known->settings;
    char name[300], *expanded, *line, *lines = NULL;
    const struct rf_ssh_token tokens[] = {
        {'I', shown != NULL ? "HOSTNAME" : "ORDER"},
        {'H', name},
        {'t', shown != NULL ? shown->type : "NONE"},
        {'f', shown != NULL ? shown->fingerprint : "NONE"},
        {'K', shown != NULL ? shown->base64 : "NONE"},
        {'\0', NULL}};
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    enum rf_status status;
    if (settings->known_hosts_command == NULL) {
        return RF_OK;
    }
    known_name(settings, name, sizeof(name));
    RF_TRY(rf_ssh_expand(settings, "KnownHostsCommand",
                         settings->known_hosts_command, tokens, &expanded,
                         err));
    argv[2] = line = rf_xasprintf("exec %s", expanded);
    status = rf_ssh_capture(job, "KnownHostsCommand", argv, &lines, err);
    if (status == RF_OK) {
        (void)rf_write_all(known->fd, lines, strlen(lines));
        (void)rf_write_all(known->fd, "\n", 1);
    }
    free(lines);
    free(line);
    free(expanded);
    return status;
}

static enum rf_status set_file(ssh_session session, const char *path,
                               struct rf_err *err)
{
    return ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, path) == 0 &&
                   ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS,
                                   NO_FILE) == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH, "known_hosts: %s",
                            ssh_get_error(session));
}

static enum rf_status set_alias(ssh_session session, const char *alias,
                                struct rf_err *err)
{
    static const unsigned no_port = 22; /* entries leave it out */
    if (alias == NULL) {
        return RF_OK;
    }
    if (!rf_names_valid_host(alias)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "HostKeyAlias of the ssh config is not a host name");
    }
    if (ssh_options_set(session, SSH_OPTIONS_HOST, alias) != 0 ||
        ssh_options_set(session, SSH_OPTIONS_PORT, &no_port) != 0) {
        return rf_err_set(err, RF_ERR_LAUNCH, "HostKeyAlias: %s",
                          ssh_get_error(session));
    }
    return RF_OK;
}

enum rf_status rf_ssh_gather_known(struct rf_ssh_job *job, ssh_session session,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_ssh_known *out, struct rf_err *err)
{
    const char *file;
    out->settings = settings;
    out->first =
        settings->known_hosts.n > 0 ? settings->known_hosts.list[0] : NO_FILE;
    out->fd = memfd_create("known_hosts", MFD_CLOEXEC);
    if (out->fd < 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "known_hosts");
    }
    snprintf(out->path, sizeof(out->path), "/proc/self/fd/%d", out->fd);
    for (size_t i = 0; (file = known_file(out, i)) != NULL; i++) {
        append_file(out->fd, file);
    }
    RF_TRY(append_command(job, out, NULL, err));
    RF_TRY(set_file(session, out->path, err));
    return set_alias(session, settings->host_key_alias, err);
}

void rf_ssh_known_close(struct rf_ssh_known *known)
{
    if (known->fd >= 0) {
        close(known->fd);
        known->fd = -1;
    }
}

/* The file that a verdict comes from: what is wrong is put right there. */
static const char *find_file(ssh_session session,
                             const struct rf_ssh_known *known,
                             enum ssh_known_hosts_e verdict)
{
    const char *file;
    for (size_t i = 0; (file = known_file(known, i)) != NULL; i++) {
        if (set_file(session, file, NULL) == RF_OK &&
            ssh_session_is_known_server(session) == verdict) {
            return file;
        }
    }
    return known->first;
}

/* Looks for markers that libssh skips; whether one revokes the key. */
static bool scan_markers(const char *path, const char *base64, bool *authority)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool revoked = false;
    while (file != NULL && getline(&line, &size, file) >= 0) {
        char *text = line + strspn(line, " \t");
        if (strncmp(text, "@revoked", 8) == 0 && strstr(text, base64) != NULL) {
            revoked = true;
        }
        if (strncmp(text, "@cert-authority", 15) == 0) {
            *authority = true;
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return revoked;
}

static enum rf_status refuse_revoked(const struct server_key *shown,
                                     struct rf_err *err)
{
    bool authority;
    const char *file;
    size_t i = 0;
    while ((file = known_file(shown->known, i)) != NULL &&
           !scan_markers(file, shown->base64, &authority)) {
        i++;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "the host key %s %s is marked @revoked in %s",
                      shown->type, shown->fingerprint,
                      file != NULL ? file : "what KnownHostsCommand says");
}

/* --- The verdict ---------------------------------------------------------- */

/* The command that adds the server's keys to the file. */
static void scan_command(const struct rf_ssh_settings *settings,
                         const char *path, char *out, size_t size)
{
    char rename[300] = "";
    if (settings->host_key_alias != NULL) {
        snprintf(rename, sizeof(rename), " | sed 's/^[^ ]*/%s/'",
                 settings->host_key_alias);
    }
    snprintf(out, size, "ssh-keyscan -p %u %s%s >> %s", settings->port,
             settings->host_name, rename, path);
}

static enum rf_status refuse(const struct rf_ssh_job *job, ssh_session session,
                             enum ssh_known_hosts_e verdict, bool authority,
                             const struct server_key *shown, struct rf_err *err)
{
    const char *key = job->known_hosts != NULL ? " (launch.known_hosts)" : "";
    const char *path =
        verdict == SSH_KNOWN_HOSTS_CHANGED || verdict == SSH_KNOWN_HOSTS_OTHER
            ? find_file(session, shown->known, verdict)
            : shown->known->first;
    char name[300], command[1024];
    known_name(shown->known->settings, name, sizeof(name));
    scan_command(shown->known->settings, path, command, sizeof(command));
    switch (verdict) {
    case SSH_KNOWN_HOSTS_CHANGED:
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "the host key of %s has changed: it now shows %s %s, "
                          "%s%s has another. Somebody may be listening in; if "
                          "the machine was set up anew: ssh-keygen -R '%s' "
                          "-f %s",
                          name, shown->type, shown->fingerprint, path, key,
                          name, path);
    case SSH_KNOWN_HOSTS_OTHER:
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "%s shows a host key of another type (%s %s) than "
                          "those in %s%s; if that is right: %s",
                          name, shown->type, shown->fingerprint, path, key,
                          command);
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "the host key of %s is unknown: it shows %s %s, "
                          "which is not in %s%s%s. If it is right: %s",
                          name, shown->type, shown->fingerprint, path, key,
                          authority ? " (its @cert-authority lines are not "
                                      "supported here)"
                                    : "",
                          command);
    case SSH_KNOWN_HOSTS_OK:
    case SSH_KNOWN_HOSTS_ERROR:
    default:
        return rf_err_set(err, RF_ERR_LAUNCH, "cannot check the host key: %s",
                          ssh_get_error(session));
    }
}

/* Adds the key while holding a lock on the file, after another look: another
 * node's thread may have been faster. */
static enum rf_status add_key(struct rf_ssh_job *job, ssh_session session,
                              const struct server_key *shown,
                              struct rf_err *err)
{
    const char *path = shown->known->first;
    enum ssh_known_hosts_e verdict;
    enum rf_status status = RF_OK;
    int fd;
    char *slash, *folder = rf_xstrdup(path);
    slash = strrchr(folder, '/');
    if (slash != NULL && slash != folder) {
        *slash = '\0';
        (void)mkdir(folder, 0700);
    }
    free(folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", path);
        goto out;
    }
    status = set_file(session, path, err);
    if (status != RF_OK) {
        goto out;
    }
    verdict = ssh_session_is_known_server(session);
    if (verdict == SSH_KNOWN_HOSTS_OK) {
        goto out;
    }
    if ((verdict != SSH_KNOWN_HOSTS_UNKNOWN &&
         verdict != SSH_KNOWN_HOSTS_NOT_FOUND) ||
        ssh_session_update_known_hosts(session) != SSH_OK) {
        status =
            rf_err_set(err, RF_ERR_LAUNCH, "cannot add the host key to %s: %s",
                       path, ssh_get_error(session));
        goto out;
    }
    rf_ssh_note(job, "new host key %s %s added to %s", shown->type,
                shown->fingerprint, path);
out:
    if (fd >= 0) {
        close(fd); /* and unlocks */
    }
    return status;
}

static bool is_new(enum ssh_known_hosts_e verdict)
{
    return verdict == SSH_KNOWN_HOSTS_UNKNOWN ||
           verdict == SSH_KNOWN_HOSTS_NOT_FOUND;
}

static enum rf_status judge(struct rf_ssh_job *job, ssh_session session,
                            const struct server_key *shown, struct rf_err *err)
{
    const struct rf_ssh_known *known = shown->known;
    bool authority = false;
    enum ssh_known_hosts_e verdict;
    if (job->pin != NULL) {
        return same_fingerprint(job->pin, shown->fingerprint)
                   ? RF_OK
                   : rf_err_set(err, RF_ERR_LAUNCH,
                                "the host key is %s %s, not the one given as "
                                "%s.host_key_sha256 (%s)",
                                shown->type, shown->fingerprint, job->place,
                                job->pin);
    }
    verdict = ssh_session_is_known_server(session);
    if (is_new(verdict)) {
        RF_TRY(append_command(job, known, shown, err));
        verdict = ssh_session_is_known_server(session);
    }
    if (scan_markers(known->path, shown->base64, &authority)) {
        return refuse_revoked(shown, err);
    }
    if (verdict == SSH_KNOWN_HOSTS_OK) {
        return RF_OK;
    }
    return job->accept_new && is_new(verdict)
               ? add_key(job, session, shown, err)
               : refuse(job, session, verdict, authority, shown, err);
}

enum rf_status rf_ssh_check_host_key(struct rf_ssh_job *job,
                                     ssh_session session,
                                     const struct rf_ssh_known *known,
                                     struct rf_err *err)
{
    struct server_key shown;
    enum rf_status status;
    RF_TRY(read_key(session, &shown, err));
    shown.known = known;
    status = judge(job, session, &shown, err);
    free_key(&shown);
    return status;
}
