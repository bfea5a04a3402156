/*
 * Is this the right machine? Our own verdict, never the one that libssh draws
 * from the user's config (with "StrictHostKeyChecking no" it calls a changed
 * key fine). In this order: a pinned fingerprint, if the node has one, decides
 * alone; a key marked @revoked is refused; otherwise the key must be the one in
 * known_hosts. `accept_new` adds a key for a host that has none, under a lock
 * on the file, and never replaces one. A server with a HostKeyAlias is listed
 * there under that name alone, without a port.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/launch/ssh/launch_ssh.h"

/* The server's key in the forms that are needed. */
struct server_key {
    const struct rf_ssh_server *server; /* whose it is */
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

/* Looks for markers that libssh skips. */
static void scan_markers(const char *path, const char *base64, bool *revoked,
                         bool *authority)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    while (file != NULL && getline(&line, &size, file) >= 0) {
        char *text = line + strspn(line, " \t");
        if (strncmp(text, "@revoked", 8) == 0 && strstr(text, base64) != NULL) {
            *revoked = true;
        }
        if (strncmp(text, "@cert-authority", 15) == 0) {
            *authority = true;
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

/* Adds the key while holding a lock on the file, after another look: another
 * node's thread may have been faster. */
static enum rf_status add_key(struct rf_ssh_job *job, ssh_session session,
                              const char *path, const struct server_key *shown,
                              struct rf_err *err)
{
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

enum rf_status rf_ssh_set_alias(ssh_session session, const char *alias,
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

/* The name that the known_hosts file lists the server under. */
static void known_name(const struct rf_ssh_server *server, char *out,
                       size_t size)
{
    if (server->alias != NULL) {
        snprintf(out, size, "%s", server->alias);
    } else {
        snprintf(out, size, server->port == 22 ? "%s" : "[%s]:%u", server->host,
                 server->port);
    }
}

/* The command that adds the server's keys to the file. */
static void scan_command(const struct rf_ssh_server *server, const char *path,
                         char *out, size_t size)
{
    char rename[300] = "";
    if (server->alias != NULL) {
        snprintf(rename, sizeof(rename), " | sed 's/^[^ ]*/%s/'",
                 server->alias);
    }
    snprintf(out, size, "ssh-keyscan -p %u %s%s >> %s", server->port,
             server->host, rename, path);
}

static enum rf_status refuse(const struct rf_ssh_job *job, ssh_session session,
                             enum ssh_known_hosts_e verdict, const char *path,
                             bool authority, const struct server_key *shown,
                             struct rf_err *err)
{
    const char *key = job->known_hosts != NULL ? " (launch.known_hosts)" : "";
    char name[300], command[1024];
    known_name(shown->server, name, sizeof(name));
    scan_command(shown->server, path, command, sizeof(command));
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

static enum rf_status judge(struct rf_ssh_job *job, ssh_session session,
                            const char *path, const struct server_key *shown,
                            struct rf_err *err)
{
    bool revoked = false, authority = false;
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
    scan_markers(path, shown->base64, &revoked, &authority);
    if (revoked) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "the host key %s %s is marked @revoked in %s",
                          shown->type, shown->fingerprint, path);
    }
    verdict = ssh_session_is_known_server(session);
    if (verdict == SSH_KNOWN_HOSTS_OK) {
        return RF_OK;
    }
    if (job->accept_new && (verdict == SSH_KNOWN_HOSTS_UNKNOWN ||
                            verdict == SSH_KNOWN_HOSTS_NOT_FOUND)) {
        return add_key(job, session, path, shown, err);
    }
    return refuse(job, session, verdict, path, authority, shown, err);
}

enum rf_status rf_ssh_check_host_key(struct rf_ssh_job *job,
                                     ssh_session session,
                                     const struct rf_ssh_server *server,
                                     struct rf_err *err)
{
    struct server_key shown;
    char *path = NULL;
    enum rf_status status;
    RF_TRY(read_key(session, &shown, err));
    shown.server = server;
    if (ssh_options_get(session, SSH_OPTIONS_KNOWNHOSTS, &path) != SSH_OK) {
        path = NULL;
    }
    status =
        judge(job, session, path != NULL ? path : "known_hosts", &shown, err);
    ssh_string_free_char(path);
    free_key(&shown);
    return status;
}
