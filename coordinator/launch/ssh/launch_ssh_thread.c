/*
 * The thread of one SSH launch: from a new session to the end of the agent, in
 * up to RF_SSH_TRIES attempts. Only an attempt that the server cut off before
 * it had answered as one (sshd sheds connections above MaxStartups) is made
 * again, after a random wait; a refused key never.
 *
 * Order matters: libssh lets the config overwrite options that were set before
 * it is read, so ours come after it, strict host key checking first of all.
 * libssh's idea of who owns a descriptor after a failure varies, so the one
 * that it was given is closed here when it is still the same socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define RETRY_MS 500u /* longest first wait; doubles */

static enum rf_status option(ssh_session session, enum ssh_options_e type,
                             const void *value, struct rf_err *err)
{
    return ssh_options_set(session, type, value) == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH, "ssh option: %s",
                            ssh_get_error(session));
}

static enum rf_status read_config(struct rf_ssh_job *job, ssh_session session,
                                  struct rf_err *err)
{
    static const int no = 0;
    enum rf_status status =
        option(session, SSH_OPTIONS_PROCESS_CONFIG, &no, err);
    if (status != RF_OK || !job->use_ssh_config) {
        return status;
    }
    if (job->ssh_config != NULL && access(job->ssh_config, R_OK) != 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", job->ssh_config);
    }
    if (ssh_options_parse_config(session, job->ssh_config) != 0) {
        return rf_err_set(err, RF_ERR_CONFIG, "ssh config %s: %s",
                          job->ssh_config != NULL ? job->ssh_config
                                                  : "~/.ssh/config",
                          ssh_get_error(session));
    }
    return RF_OK;
}

/* Sets the known_hosts file: the given one alone, else the config's, else the
 * user's. */
static enum rf_status set_known_hosts(struct rf_ssh_job *job,
                                      ssh_session session, struct rf_err *err)
{
    char *path = NULL;
    enum rf_status status = RF_OK;
    if (job->known_hosts != NULL) {
        path = rf_ssh_expand_home(job->known_hosts);
        status =
            option(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null", err);
    } else if (ssh_options_get(session, SSH_OPTIONS_KNOWNHOSTS, &path) ==
               SSH_OK) {
        char *full = rf_ssh_expand_home(path);
        ssh_string_free_char(path);
        path = full;
    } else {
        path = rf_ssh_expand_home("~/.ssh/known_hosts");
    }
    RF_THEN(status, option(session, SSH_OPTIONS_KNOWNHOSTS, path, err));
    free(path);
    return status;
}

/* Host, user and port: from cluster.json, else as we read the ssh config, else
 * as libssh did. */
static enum rf_status set_place(struct rf_ssh_job *job, ssh_session session,
                                const struct rf_ssh_scan *scan,
                                struct rf_err *err)
{
    const char *user = job->user != NULL ? job->user : scan->user;
    unsigned port = job->port != 0 ? job->port : scan->port;
    enum rf_status status = RF_OK;
    if (scan->host_name != NULL) {
        status = option(session, SSH_OPTIONS_HOST, scan->host_name, err);
    }
    if (status == RF_OK && user != NULL) {
        status = option(session, SSH_OPTIONS_USER, user, err);
    }
    if (status == RF_OK && port != 0) {
        status = option(session, SSH_OPTIONS_PORT, &port, err);
    }
    return status;
}

static enum rf_status configure(struct rf_ssh_job *job, ssh_session session,
                                const struct rf_ssh_scan *scan,
                                struct rf_err *err)
{
    static const int yes = 1, quiet = SSH_LOG_NOLOG;
    enum rf_status status = option(session, SSH_OPTIONS_HOST, job->host, err);
    if (status == RF_OK && job->user != NULL) { /* for Match user */
        status = option(session, SSH_OPTIONS_USER, job->user, err);
    }
    RF_THEN(status, read_config(job, session, err));
    RF_THEN(status, option(session, SSH_OPTIONS_STRICTHOSTKEYCHECK, &yes, err));
    RF_THEN(status, option(session, SSH_OPTIONS_LOG_VERBOSITY, &quiet, err));
    RF_THEN(status, option(session, SSH_OPTIONS_NODELAY, &yes, err));
    RF_THEN(status, set_place(job, session, scan, err));
    RF_THEN(status, set_known_hosts(job, session, err));
    return status;
}

/* The proxy command, NULL for none; the caller's. */
static enum rf_status find_proxy(struct rf_ssh_job *job, ssh_session session,
                                 const struct rf_ssh_scan *scan, char **out,
                                 struct rf_err *err)
{
    const char *jump = scan->proxy_jump, *command = scan->proxy_command;
    char *found = NULL;
    *out = NULL;
    if (jump != NULL && strcasecmp(jump, "none") != 0) {
        return rf_ssh_jump_command(job->ssh_config, jump, out, err);
    }
    if (jump == NULL && command == NULL) {
        (void)ssh_options_get(session, SSH_OPTIONS_PROXYCOMMAND, &found);
        command = found;
    }
    if (command != NULL && command[0] != '\0' &&
        strcasecmp(command, "none") != 0) {
        *out = rf_xstrdup(command);
    }
    ssh_string_free_char(found);
    return RF_OK;
}

/* One attempt at a session. */
struct session_attempt {
    struct rf_ssh_job *job;
    const struct rf_ssh_scan *scan;
    ssh_session session;
    struct rf_ssh_server server;
    int fd;     /* -1: not connected */
    bool retry; /* the server cut it off before it had answered as one */
};

static enum rf_status connect_proxy(struct session_attempt *attempt,
                                    const char *command, pid_t *group,
                                    struct rf_err *err)
{
    struct rf_ssh_target target = {
        .host = attempt->server.host, .port = attempt->server.port, .user = ""};
    struct rf_ssh_proxy proxy = {.fd = -1};
    char *user = NULL;
    enum rf_status status;
    if (ssh_options_get(attempt->session, SSH_OPTIONS_USER, &user) == SSH_OK &&
        user != NULL) {
        target.user = user;
    }
    status = rf_ssh_connect_proxy(attempt->job, command, &target, &proxy, err);
    if (status == RF_OK) {
        attempt->fd = proxy.fd;
        attempt->job->proxy_errors = proxy.errors;
        *group = proxy.group;
    }
    ssh_string_free_char(user);
    return status;
}

/* Connects, directly or through a proxy command, and guards the socket. */
static enum rf_status connect_socket(struct session_attempt *attempt,
                                     struct rf_err *err)
{
    struct rf_ssh_server *server = &attempt->server;
    char *command = NULL;
    pid_t group = 0;
    enum rf_status status;
    if (ssh_options_get(attempt->session, SSH_OPTIONS_HOST, &server->host) !=
            SSH_OK ||
        ssh_options_get_port(attempt->session, &server->port) != SSH_OK) {
        return rf_err_set(err, RF_ERR_INTERNAL, "no host in the session");
    }
    RF_TRY(find_proxy(attempt->job, attempt->session, attempt->scan, &command,
                      err));
    status = command != NULL
                 ? connect_proxy(attempt, command, &group, err)
                 : rf_ssh_connect_tcp(attempt->job, server->host, server->port,
                                      &attempt->fd, &attempt->retry, err);
    if (attempt->fd >= 0) {
        rf_ssh_guard(attempt->job, attempt->fd, group);
    }
    free(command);
    return status;
}

/* Whether the peer has closed or reset the guarded socket. */
static bool peer_has_closed(struct rf_ssh_job *job)
{
    char byte;
    ssize_t got = recv(job->guard_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static enum rf_status exchange_keys(struct session_attempt *attempt,
                                    struct rf_err *err)
{
    ssh_session session = attempt->session;
    long seconds = (long)(rf_ssh_left_ms(attempt->job) / 1000 + 1);
    enum rf_status status = option(session, SSH_OPTIONS_FD, &attempt->fd, err);
    if (status == RF_OK) { /* its work is done already */
        status = option(session, SSH_OPTIONS_PROXYCOMMAND, "none", err);
    }
    RF_THEN(status, option(session, SSH_OPTIONS_TIMEOUT, &seconds, err));
    if (status == RF_OK && ssh_connect(session) != SSH_OK) {
        attempt->retry = peer_has_closed(attempt->job);
        status = rf_err_set(err, RF_ERR_LAUNCH, "SSH key exchange failed: %s",
                            attempt->retry ? "the connection was closed"
                                           : ssh_get_error(session));
    }
    return status;
}

/* Frees the session and closes `fd` if libssh has not: it is still ours when
 * it is still the socket of which the guard is the other descriptor. */
static void end_session(struct rf_ssh_job *job, ssh_session session, int fd)
{
    struct stat ours, guard;
    ssh_disconnect(session);
    ssh_free(session);
    if (fd >= 0 && fstat(fd, &ours) == 0 && fstat(job->guard_fd, &guard) == 0 &&
        ours.st_ino == guard.st_ino && ours.st_dev == guard.st_dev) {
        close(fd);
    }
    rf_ssh_unguard(job);
    rf_ssh_drain_proxy(job);
    if (job->proxy_errors >= 0) {
        close(job->proxy_errors);
        job->proxy_errors = -1;
    }
}

static enum rf_status run_worker(struct rf_ssh_job *job, ssh_session session,
                                 struct rf_ssh_outcome *out, struct rf_err *err)
{
    char *path = NULL, *command;
    enum rf_status status = RF_OK;
    if (job->deploy) {
        rf_ssh_set_deadline(job, job->timeout_s + RF_SSH_DEPLOY_S);
        status = rf_ssh_deploy(job, session, &path, err);
        rf_ssh_set_deadline(job, job->timeout_s);
    }
    if (status != RF_OK) {
        return status;
    }
    command = rf_xasprintf("exec %s%s --stdio", job->wrap,
                           path != NULL ? path : job->worker);
    status = rf_ssh_run(job, session, command, out, err);
    free(command);
    free(path);
    return status;
}

/* To the end of the agent if it gets that far. */
static enum rf_status try_once(struct session_attempt *attempt,
                               struct rf_ssh_outcome *out, struct rf_err *err)
{
    struct rf_ssh_job *job = attempt->job;
    ssh_session session = attempt->session = ssh_new();
    enum rf_status status;
    if (session == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no SSH session");
    }
    status = configure(job, session, attempt->scan, err);
    RF_THEN(status, connect_socket(attempt, err));
    RF_THEN(status, rf_ssh_set_alias(session, attempt->server.alias, err));
    RF_THEN(status, exchange_keys(attempt, err));
    RF_THEN(status, rf_ssh_check_host_key(job, session, &attempt->server, err));
    RF_THEN(status, rf_ssh_authenticate(job, session, attempt->scan, err));
    RF_THEN(status, run_worker(job, session, out, err));
    end_session(job, session, attempt->fd);
    ssh_string_free_char(attempt->server.host);
    return status;
}

static bool wait_before_retry(struct rf_ssh_job *job, unsigned try)
{
    uint32_t random = 0;
    int64_t wait;
    (void)!getrandom(&random, sizeof(random), 0);
    wait = RETRY_MS / 4 + random % (RETRY_MS << (try - 1));
    if (wait >= rf_ssh_left_ms(job)) {
        return false;
    }
    rf_ssh_wait(job, -1, 0, wait);
    return atomic_load(&job->stop) == RF_SSH_RUN;
}

/* Gives the real reason why the attempts ended: a stop, or the deadline. */
static void explain(struct rf_ssh_job *job, unsigned tries, struct rf_err *err)
{
    if (atomic_load(&job->stop) != RF_SSH_RUN && rf_ssh_left_ms(job) > 0) {
        rf_err_set(err, RF_ERR_ABORTED, "stopped during the launch");
    } else if (rf_ssh_left_ms(job) == 0 && err->status != RF_ERR_TIMEOUT) {
        rf_err_wrap(err, "no success within %u s (launch.timeout_s)",
                    job->timeout_s);
        err->status = RF_ERR_TIMEOUT;
    } else if (tries > 1) {
        rf_err_wrap(err, "after %u tries", tries);
    }
}

void rf_ssh_thread(void *data)
{
    struct rf_ssh_job *job = data;
    struct rf_ssh_scan scan = {.n_identities = 0};
    struct rf_ssh_outcome outcome = {.status = -1};
    struct rf_err err = {0};
    enum rf_status status;
    unsigned try = 1;
    rf_ssh_set_deadline(job, job->timeout_s);
    if (job->use_ssh_config) {
        rf_ssh_scan_config(job->ssh_config, job->host, job->user, &scan);
        if (scan.ignored[0] != '\0') {
            rf_ssh_note(job,
                        "warning: the ssh config sets %s, which this program "
                        "does not honour",
                        scan.ignored);
        }
    }
    for (;; try++) {
        struct session_attempt attempt = {
            .job = job,
            .scan = &scan,
            .server = {.alias = scan.host_key_alias},
            .fd = -1};
        status = try_once(&attempt, &outcome, &err);
        if (status == RF_OK || !attempt.retry || try == RF_SSH_TRIES) {
            break;
        }
        rf_ssh_note(job, "%s; trying again", err.text);
        if (!wait_before_retry(job, try)) {
            break;
        }
    }
    rf_ssh_scan_free(&scan);
    if (status == RF_OK) {
        rf_ssh_post(job, RF_SSH_EXIT, outcome.status, outcome.signal);
    } else {
        explain(job, try, &err);
        rf_ssh_post_fail(job, &err);
    }
    free(outcome.signal);
    rf_ssh_job_release(job);
}
