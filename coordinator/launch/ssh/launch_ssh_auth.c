/*
 * Proving who the user is: public keys only, in an order that does not use up
 * the server's patience (sshd closes after six tries): the node's identity, or
 * else those of the ssh config, or else the usual files; then the key agent.
 * Never libssh's automatic way, which offers every key of the agent first and
 * writes .pub files. Nothing is ever asked on the terminal: an encrypted key
 * works through an agent only.
 *
 * The agent is asked for its number of keys by us, with a time limit, before
 * libssh talks to it without one.
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
#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define AGENT_MS 2000
#define FILES_MAX 5 /* of sshd's six tries; one is left for the agent */

/* What was tried, for the error text. */
struct trials {
    char text[512];
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

/* One key file; `key` is what names it in cluster.json, with ", " behind it, or
 * "". SSH_AUTH_SUCCESS, _DENIED (go on), _PARTIAL or _ERROR. */
static int try_file(ssh_session session, const char *path, const char *key_name,
                    struct trials *trials)
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
    if (ssh_pki_import_privkey_file(path, NULL, NULL, NULL, &key) != SSH_OK) {
        tried(trials, "%s (%snot a private key)", path, key_name);
        return SSH_AUTH_DENIED;
    }
    result = ssh_userauth_publickey(session, NULL, key);
    ssh_key_free(key);
    if (result != SSH_AUTH_SUCCESS) {
        tried(trials, "%s (%srefused)", path, key_name);
    }
    return result;
}

static int try_default_files(ssh_session session, struct trials *trials)
{
    static const char *const names[] = {"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa",
                                        "~/.ssh/id_rsa"};
    int result = SSH_AUTH_DENIED;
    for (size_t i = 0; i < RF_ARRAY_SIZE(names) && result == SSH_AUTH_DENIED;
         i++) {
        char *path = rf_ssh_expand_home(names[i]);
        result = try_file(session, path, "", trials);
        free(path);
    }
    return result;
}

static int try_files(struct rf_ssh_job *job, ssh_session session,
                     const struct rf_ssh_settings *settings,
                     struct trials *trials)
{
    int result = SSH_AUTH_DENIED;
    if (job->identity != NULL) {
        char *path = rf_ssh_expand_home(job->identity);
        char *key_name = rf_xasprintf("%s.identity, ", job->place);
        result = try_file(session, path, key_name, trials);
        if (result == SSH_AUTH_DENIED && access(path, F_OK) != 0) {
            tried(trials, "%s (%s%s)", path, key_name, strerror(ENOENT));
        }
        free(key_name);
        free(path);
        return result;
    }
    if (settings->identities.n == 0) {
        return try_default_files(session, trials);
    }
    for (size_t i = 0, tried = 0;
         i < settings->identities.n && tried < FILES_MAX &&
         result == SSH_AUTH_DENIED;
         i++) {
        const char *path = settings->identities.list[i];
        result = try_file(session, path, "", trials);
        tried += access(path, F_OK) == 0;
    }
    return result;
}

/* --- Agent ---------------------------------------------------------------- */

/* Reads exactly `size` bytes within AGENT_MS each time. */
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

/* How many keys the agent has; -1: no agent, -2: it does not answer. */
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
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

static int try_agent(struct rf_ssh_job *job, ssh_session session,
                     const struct rf_ssh_settings *settings,
                     struct trials *trials)
{
    const char *path = settings->identity_agent;
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
    result = ssh_userauth_agent(session, NULL);
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
        "the server does not take public keys (it offers%s%s%s), and nothing "
        "else is tried; PubkeyAuthentication of its sshd_config allows them",
        (methods & SSH_AUTH_METHOD_PASSWORD) != 0 ? " password" : "",
        (methods & SSH_AUTH_METHOD_INTERACTIVE) != 0 ? " keyboard-interactive"
                                                     : "",
        (methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0 ? " gssapi" : "");
}

/* Nodes that lack the same key have the same text, so that they are told
 * together: only what a node names itself is told by its own place. */
static enum rf_status refused(ssh_session session, bool partial,
                              const struct trials *trials, struct rf_err *err)
{
    char *user = NULL;
    if (ssh_options_get(session, SSH_OPTIONS_USER, &user) != SSH_OK) {
        user = NULL;
    }
    rf_err_set(err, RF_ERR_LAUNCH,
               partial ? "the server wants more than a key from user %s; "
                         "tried %s"
                       : "no key is accepted for user %s; tried %s. Give "
                         "the right ones as nodes.*.user and "
                         "nodes.*.identity, in the file or with --set, or "
                         "load the key into an agent (ssh-add); ssh -v shows "
                         "what the server takes",
               user != NULL ? user : "(the caller's)", trials->text);
    ssh_string_free_char(user);
    return RF_ERR_LAUNCH;
}

enum rf_status rf_ssh_authenticate(struct rf_ssh_job *job, ssh_session session,
                                   const struct rf_ssh_settings *settings,
                                   struct rf_err *err)
{
    struct trials trials = {0};
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
    result = try_files(job, session, settings, &trials);
    RF_TRY(rf_ssh_check(job, "authentication", err));
    if (result == SSH_AUTH_DENIED) {
        result = try_agent(job, session, settings, &trials);
    }
    if (result == SSH_AUTH_SUCCESS) {
        return RF_OK;
    }
    return refused(session, result == SSH_AUTH_PARTIAL, &trials, err);
}
