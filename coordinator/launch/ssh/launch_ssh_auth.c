/*
 * Proves the user's identity, by public keys only, in an order that stays
 * within the server's limit (sshd closes after six tries): the node's identity,
 * or else those of the ssh config, or else the default files; then the key
 * agent. A key with a certificate is tried with it and then alone. Never
 * libssh's automatic way, which offers every key of the agent first and writes
 * .pub files. Nothing is ever asked on the terminal: an encrypted key works
 * only through an agent.
 *
 * The agent is first asked here for its number of keys, with a time limit;
 * libssh then talks to it without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/store.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define AGENT_MS 2000
#define OFFERS_MAX 5 /* of sshd's six tries; one left for the agent */

struct trials {
    ssh_session session;
    const struct rf_ssh_settings *settings;
    unsigned offered; /* keys, with or without certificates */
    bool certificate_denied;
    char text[768]; /* what was tried, for the error */
};

static void RF_PRINTF(2, 3) tried(struct trials *trials, const char *fmt, ...)
{
    size_t used = strlen(trials->text);
    va_list args;
    if (used > 0 && used + 2 < sizeof(trials->text)) {
        memcpy(trials->text + used, ", ", 3);
        used += 2;
    }
    va_start(args, fmt);
    vsnprintf(trials->text + used, sizeof(trials->text) - used, fmt, args);
    va_end(args);
}

/* Whether the file holds a private key that needs a passphrase. */
static bool is_encrypted(const char *path)
{
    /* base64 of OpenSSH's header up to the cipher's name "none" */
    static const char open_key[] = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU";
    char text[4096];
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return strstr(text, "ENCRYPTED") != NULL ||
           (strstr(text, "BEGIN OPENSSH PRIVATE KEY") != NULL &&
            strstr(text, open_key) == NULL);
}

/* --- Files ---------------------------------------------------------------- */

/* These return SSH_AUTH_SUCCESS, _DENIED (go on), _PARTIAL or _ERROR.
 * `key_name` is the name of the key in cluster.json followed by ", ", or "". */

static int offer(struct trials *trials, ssh_key key, const char *path,
                 const char *key_name, bool certified)
{
    int result;
    if (trials->offered == OFFERS_MAX) {
        tried(trials, "%s (%snot offered after %d others)", path, key_name,
              OFFERS_MAX);
        return SSH_AUTH_DENIED;
    }
    trials->offered++;
    result = ssh_userauth_publickey(trials->session, NULL, key);
    if (result != SSH_AUTH_SUCCESS) {
        tried(trials, "%s (%srefused)", path, key_name);
    }
    if (certified && result == SSH_AUTH_DENIED) {
        trials->certificate_denied = true;
    }
    return result;
}

/* Whether a certificate may belong to a key; only the server knows for sure:
 * ssh_key_cmp() does not compare them. */
static bool suits(ssh_key certificate, ssh_key key)
{
    const char *type = ssh_key_type_to_char(ssh_key_type(key));
    const char *certified = ssh_key_type_to_char(ssh_key_type(certificate));
    return type != NULL && certified != NULL &&
           strncmp(certified, type, strlen(type)) == 0;
}

/* Tries `key` with the certificate in that file. One that the config names may
 * belong to another key. */
static int try_certificate(struct trials *trials, ssh_key key, const char *path,
                           const char *key_name)
{
    const bool named = trials->settings->certificates.n > 0;
    ssh_key certificate = NULL, both = NULL;
    int result = SSH_AUTH_DENIED;
    if (access(path, R_OK) != 0) {
        if (named || errno != ENOENT) {
            tried(trials, "%s (%s%s)", path, key_name, strerror(errno));
        }
        return SSH_AUTH_DENIED;
    }
    /* libssh would block on a FIFO without a writer. */
    if (!rf_is_file(path) ||
        ssh_pki_import_cert_file(path, &certificate) != SSH_OK) {
        tried(trials, "%s (%snot a certificate)", path, key_name);
        return SSH_AUTH_DENIED;
    }
    both = ssh_key_dup(key);
    if (suits(certificate, key) && both != NULL &&
        ssh_pki_copy_cert_to_privkey(certificate, both) == SSH_OK) {
        result = offer(trials, both, path, key_name, true);
    } else if (!named) {
        tried(trials, "%s (%scertificate of another key)", path, key_name);
    }
    ssh_key_free(both);
    ssh_key_free(certificate);
    return result;
}

/* Tries the certificates of the ssh config, or else the one beside the key. */
static int try_certificates(struct trials *trials, ssh_key key,
                            const char *path, const char *key_name)
{
    const struct rf_ssh_texts *named = &trials->settings->certificates;
    int result = SSH_AUTH_DENIED;
    if (named->n == 0) {
        char *beside = rf_xasprintf("%s-cert.pub", path);
        result = try_certificate(trials, key, beside, key_name);
        free(beside);
    }
    for (size_t i = 0; i < named->n && result == SSH_AUTH_DENIED; i++) {
        result = try_certificate(trials, key, named->list[i], "");
    }
    return result;
}

static int try_file(struct trials *trials, const char *path,
                    const char *key_name)
{
    ssh_key key = NULL;
    int result;
    if (access(path, R_OK) != 0) {
        if (errno != ENOENT) {
            tried(trials, "%s (%s%s)", path, key_name, strerror(errno));
        }
        return SSH_AUTH_DENIED;
    }
    if (is_encrypted(path)) {
        tried(trials, "%s (%sencrypted: needs a key agent, ssh-add %s)", path,
              key_name, path);
        return SSH_AUTH_DENIED;
    }
    if (!rf_is_file(path) ||
        ssh_pki_import_privkey_file(path, NULL, NULL, NULL, &key) != SSH_OK) {
        tried(trials, "%s (%snot a private key)", path, key_name);
        return SSH_AUTH_DENIED;
    }
    result = try_certificates(trials, key, path, key_name);
    if (result == SSH_AUTH_DENIED) {
        result = offer(trials, key, path, key_name, false);
    }
    ssh_key_free(key);
    return result;
}

static int try_default_files(struct trials *trials)
{
    static const char *const names[] = {"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa",
                                        "~/.ssh/id_rsa"};
    int result = SSH_AUTH_DENIED;
    for (size_t i = 0; i < RF_ARRAY_SIZE(names) && result == SSH_AUTH_DENIED;
         i++) {
        char *path = rf_ssh_expand_home(names[i]);
        result = try_file(trials, path, "");
        free(path);
    }
    return result;
}

static int try_files(struct rf_ssh_job *job, struct trials *trials)
{
    const struct rf_ssh_texts *identities = &trials->settings->identities;
    int result = SSH_AUTH_DENIED;
    if (job->identity != NULL) {
        char *path = rf_ssh_expand_home(job->identity);
        char *key_name = rf_xasprintf("%s.identity, ", job->place);
        result = try_file(trials, path, key_name);
        if (result == SSH_AUTH_DENIED && access(path, F_OK) != 0) {
            tried(trials, "%s (%s%s)", path, key_name, strerror(ENOENT));
        }
        free(key_name);
        free(path);
        return result;
    }
    if (identities->n == 0) {
        return try_default_files(trials);
    }
    for (size_t i = 0; i < identities->n && result == SSH_AUTH_DENIED; i++) {
        result = try_file(trials, identities->list[i], "");
    }
    return result;
}

/* --- Agent ---------------------------------------------------------------- */

/* Reads exactly `size` bytes, waiting up to AGENT_MS each time. */
static bool read_answer(struct rf_ssh_job *job, int fd, uint8_t *out,
                        size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got;
        if (!rf_ssh_wait(job, fd, POLLIN,
                         RF_MIN(rf_ssh_left_ms(job), (int64_t)AGENT_MS))) {
            return false;
        }
        got = recv(fd, out + have, size - have, MSG_DONTWAIT);
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
    }
    return true;
}

/* The number of keys in the agent; -1: no agent, -2: it does not answer. */
static int count_agent_keys(struct rf_ssh_job *job, const char *path)
{
    static const uint8_t request[] = {0, 0, 0, 1, 11}; /* list identities */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint8_t answer[9]; /* length, type 12, number of keys */
    int fd, result = -1;
    if (path == NULL || strlen(path) >= sizeof(address.sun_path)) {
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        send(fd, request, sizeof(request), MSG_NOSIGNAL) ==
            (ssize_t)sizeof(request)) {
        result = read_answer(job, fd, answer, sizeof(answer)) && answer[4] == 12
                     ? (int)RF_MIN(rf_get_u32(answer + 5), 10000u)
                     : -2;
    }
    rf_fd_close(&fd);
    return result;
}

static int try_agent(struct rf_ssh_job *job, struct trials *trials)
{
    const char *path = trials->settings->identity_agent;
    int keys, result;
    if (path == NULL || strcmp(path, "SSH_AUTH_SOCK") == 0) {
        path = getenv("SSH_AUTH_SOCK");
    }
    keys = count_agent_keys(job, path);
    if (keys <= 0) {
        tried(trials, "%s",
              keys == 0    ? "key agent (has no keys)"
              : keys == -1 ? "key agent (none)"
                           : "key agent (does not answer)");
        return SSH_AUTH_DENIED;
    }
    result = ssh_userauth_agent(trials->session, NULL);
    if (result != SSH_AUTH_SUCCESS) {
        tried(trials, "key agent (%d key%s, %s)", keys, keys == 1 ? "" : "s",
              result == SSH_AUTH_ERROR ? "connection closed: too many tries?"
                                       : "refused");
    }
    return result;
}

/* --- All ------------------------------------------------------------------ */

static enum rf_status no_public_key(unsigned methods, struct rf_err *err)
{
    return rf_err_set(
        err, RF_ERR_LAUNCH,
        "the server does not accept public keys (it offers%s%s%s), the only "
        "method supported; set PubkeyAuthentication yes in its sshd_config",
        (methods & SSH_AUTH_METHOD_PASSWORD) != 0 ? " password" : "",
        (methods & SSH_AUTH_METHOD_INTERACTIVE) != 0 ? " keyboard-interactive"
                                                     : "",
        (methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0 ? " gssapi" : "");
}

/* Nodes that lack the same key get the same text, so that they are reported
 * together; only a setting of the node itself is named by its place. */
static enum rf_status refused(const struct trials *trials, bool partial,
                              struct rf_err *err)
{
    char *option = NULL;
    const char *user = "(the caller's)";
    if (ssh_options_get(trials->session, SSH_OPTIONS_USER, &option) == SSH_OK) {
        user = option;
    }
    if (partial) {
        rf_err_set(err, RF_ERR_LAUNCH,
                   "the server requires more than a key from user %s; tried %s",
                   user, trials->text);
    } else {
        rf_err_set(
            err, RF_ERR_LAUNCH,
            "no key accepted for user %s; tried %s. Set nodes.*.user and "
            "nodes.*.identity, in the file or with --set, or load the key "
            "into an agent (ssh-add); ssh -v shows what the server accepts%s",
            user, trials->text,
            trials->certificate_denied
                ? ", ssh-keygen -Lf a certificate's authority, principals and "
                  "dates"
                : "");
    }
    ssh_string_free_char(option);
    return RF_ERR_LAUNCH;
}

enum rf_status rf_ssh_authenticate(struct rf_ssh_job *job, ssh_session session,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_err *err)
{
    struct trials trials = {.session = session, .settings = settings};
    unsigned methods;
    int result;
    rf_ssh_forget(session);
    result = ssh_userauth_none(session, NULL);
    if (result == SSH_AUTH_SUCCESS) {
        return RF_OK;
    }
    if (result == SSH_AUTH_ERROR) {
        return rf_err_set(err, RF_ERR_LAUNCH, "authentication: %s",
                          rf_ssh_reason(session));
    }
    methods = (unsigned)ssh_userauth_list(session, NULL);
    if ((methods & SSH_AUTH_METHOD_PUBLICKEY) == 0) {
        return no_public_key(methods, err);
    }
    result = try_files(job, &trials);
    RF_TRY(rf_ssh_check(job, "authentication", err));
    if (result == SSH_AUTH_DENIED) {
        result = try_agent(job, &trials);
    }
    if (result == SSH_AUTH_SUCCESS) {
        return RF_OK;
    }
    return refused(&trials, result == SSH_AUTH_PARTIAL, err);
}
