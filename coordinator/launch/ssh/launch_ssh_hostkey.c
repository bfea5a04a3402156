/*
 * Verifies the server's host key. Our own verdict, never the one that libssh
 * derives from the user's config (with "StrictHostKeyChecking no" it accepts a
 * changed key). In this order: a pinned fingerprint, if the node has one,
 * decides alone; a key marked @revoked is refused; otherwise the key must be a
 * known one. `accept_new` adds a key for a host without one, under a lock on
 * the first of the user's files, and never replaces one; without such a file,
 * the key holds for this launch only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

/* The server's key in all required forms. */
struct server_key {
    struct rf_ssh_known *known;
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
    rf_ssh_forget(session);
    if (ssh_get_server_publickey(session, &out->key) != SSH_OK ||
        ssh_get_publickey_hash(out->key, SSH_PUBLICKEY_HASH_SHA256, &hash,
                               &length) != 0) {
        free_key(out);
        return rf_err_set(err, RF_ERR_LAUNCH, "no host key: %s",
                          rf_ssh_reason(session));
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

/* The file that a verdict comes from, where the user can fix it; NULL: it comes
 * from KnownHostsCommand. */
static const char *find_file(ssh_session session, struct rf_ssh_known *known,
                             enum ssh_known_hosts_e verdict)
{
    const char *file;
    for (size_t i = 0; (file = rf_ssh_known_file(known, i)) != NULL; i++) {
        rf_ssh_known_only(known, file);
        if (ssh_session_is_known_server(session) == verdict) {
            return file;
        }
    }
    return NULL;
}

/* Looks for markers, which libssh skips: true if one revokes the key. Sets
 * *authority if one names a certificate authority. */
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
    while ((file = rf_ssh_known_file(shown->known, i)) != NULL &&
           !scan_markers(file, shown->base64, &authority)) {
        i++;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "the host key %s %s is marked @revoked in %s",
                      shown->type, shown->fingerprint,
                      file != NULL ? file : "what KnownHostsCommand says");
}

/* --- The verdict ---------------------------------------------------------- */

/* The command for the user to add the server's keys to the file. */
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

static enum rf_status refuse_unknown(const struct rf_ssh_job *job,
                                     bool authority,
                                     const struct server_key *shown,
                                     struct rf_err *err)
{
    const struct rf_ssh_known *known = shown->known;
    char command[1024];
    if (known->first == NULL) {
        return rf_err_set(
            err, RF_ERR_LAUNCH,
            "the host key of %s is unknown: it offers %s %s, and no "
            "known_hosts file is set (UserKnownHostsFile of the ssh config, "
            "launch.known_hosts). If that is its key, set launch.known_hosts, "
            "%s.host_key_sha256 or launch.accept_new",
            known->name, shown->type, shown->fingerprint, job->place);
    }
    scan_command(known->settings, known->first, command, sizeof(command));
    return rf_err_set(
        err, RF_ERR_LAUNCH,
        "the host key of %s is unknown: it offers %s %s, which is not in "
        "%s%s%s. If that is its key: %s",
        known->name, shown->type, shown->fingerprint, known->first,
        job->known_hosts != NULL ? " (launch.known_hosts)" : "",
        authority ? " (whose @cert-authority lines are not supported)" : "",
        command);
}

/* Refuses a key when the server is known by another one. */
static enum rf_status refuse_other(const struct rf_ssh_job *job,
                                   ssh_session session,
                                   enum ssh_known_hosts_e verdict,
                                   const struct server_key *shown,
                                   struct rf_err *err)
{
    const char *key = job->known_hosts != NULL ? " (launch.known_hosts)" : "";
    const char *name = shown->known->name;
    const char *path = find_file(session, shown->known, verdict);
    char command[1024];
    if (path == NULL) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "%s shows a host key (%s %s) other than that of "
                          "KnownHostsCommand in the ssh config",
                          name, shown->type, shown->fingerprint);
    }
    if (verdict == SSH_KNOWN_HOSTS_CHANGED) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "the host key of %s has changed: it now shows %s %s, "
                          "%s%s has another. This may be an attack; if the "
                          "machine was reinstalled: ssh-keygen -R '%s' -f %s",
                          name, shown->type, shown->fingerprint, path, key,
                          name, path);
    }
    scan_command(shown->known->settings, path, command, sizeof(command));
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "%s shows a host key of another type (%s %s) than those "
                      "in %s%s; if it is right: %s",
                      name, shown->type, shown->fingerprint, path, key,
                      command);
}

static bool is_new(enum ssh_known_hosts_e verdict)
{
    return verdict == SSH_KNOWN_HOSTS_UNKNOWN ||
           verdict == SSH_KNOWN_HOSTS_NOT_FOUND;
}

static enum rf_status refuse(const struct rf_ssh_job *job, ssh_session session,
                             enum ssh_known_hosts_e verdict, bool authority,
                             const struct server_key *shown, struct rf_err *err)
{
    if (is_new(verdict)) {
        return refuse_unknown(job, authority, shown, err);
    }
    return verdict == SSH_KNOWN_HOSTS_ERROR
               ? rf_err_set(err, RF_ERR_LAUNCH, "cannot check the host key: %s",
                            rf_ssh_reason(session))
               : refuse_other(job, session, verdict, shown, err);
}

/* Opens and locks the file. */
static enum rf_status open_locked(const char *path, int *out,
                                  struct rf_err *err)
{
    char *folder = rf_xstrdup(path), *slash = strrchr(folder, '/');
    enum rf_status status = RF_OK;
    if (slash != NULL && slash != folder) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
            status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", folder);
        }
    }
    free(folder);
    RF_TRY(status);
    *out = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return *out >= 0 && flock(*out, LOCK_EX) == 0
               ? RF_OK
               : rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", path);
}

/* Appends a line for the key, after completing the last one. */
static bool append_key(int fd, const struct server_key *shown)
{
    struct stat info;
    char last = '\n';
    (void)!(fstat(fd, &info) == 0 && info.st_size > 0 &&
            pread(fd, &last, 1, info.st_size - 1));
    return dprintf(fd, "%s%s %s %s\n", last == '\n' ? "" : "\n",
                   shown->known->name, shown->type, shown->base64) > 0;
}

/* Adds the key under a lock on the file, after another check: another node's
 * thread may have added it. */
static enum rf_status add_key(struct rf_ssh_job *job, ssh_session session,
                              const struct server_key *shown,
                              struct rf_err *err)
{
    const char *path = shown->known->first;
    enum ssh_known_hosts_e verdict;
    enum rf_status status;
    int fd = -1;
    if (path == NULL) {
        rf_ssh_known_add(shown->known, shown->type, shown->base64);
        rf_ssh_note(job,
                    "new host key %s %s accepted, but not saved: no "
                    "known_hosts file is set (UserKnownHostsFile, "
                    "launch.known_hosts)",
                    shown->type, shown->fingerprint);
        return RF_OK;
    }
    status = open_locked(path, &fd, err);
    if (status != RF_OK) {
        goto out;
    }
    rf_ssh_known_only(shown->known, path);
    verdict = ssh_session_is_known_server(session);
    if (verdict == SSH_KNOWN_HOSTS_OK) {
        goto out;
    }
    if (!is_new(verdict)) {
        status = refuse(job, session, verdict, false, shown, err);
    } else if (!append_key(fd, shown)) {
        status = rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", path);
    } else {
        rf_ssh_known_add(shown->known, shown->type, shown->base64);
        rf_ssh_note(job, "new host key %s %s added to %s", shown->type,
                    shown->fingerprint, path);
    }
out:
    rf_fd_close(&fd); /* and unlocks */
    return status;
}

static enum rf_status judge(struct rf_ssh_job *job, ssh_session session,
                            const struct server_key *shown, struct rf_err *err)
{
    struct rf_ssh_known *known = shown->known;
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
    rf_ssh_forget(session);
    verdict = ssh_session_is_known_server(session);
    if (is_new(verdict)) {
        RF_TRY(rf_ssh_known_ask(job, known, shown->type, shown->fingerprint,
                                shown->base64, err));
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
                                     struct rf_ssh_known *known,
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
