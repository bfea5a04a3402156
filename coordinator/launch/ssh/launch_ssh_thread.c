/*
 * The thread of one SSH launch: from a new session to the end of the agent, in
 * up to RF_SSH_TRIES attempts for each of its sessions. Only an attempt that
 * the server cut off before the end of the key exchange (sshd drops connections
 * above MaxStartups) is repeated, after a random wait; a refused key never.
 *
 * libssh never reads the ssh config, of which it knows only a part; strict host
 * key checking does not depend on it. After a failure, libssh may or may not
 * own its descriptor, so it is closed here if it is still the same socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/random.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define RETRY_MS 500u /* random part of the first wait; doubles */

static enum rf_status option(ssh_session session, enum ssh_options_e type,
                             const void *value, struct rf_err *err)
{
    return ssh_options_set(session, type, value) == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH, "ssh option %d: %s", (int)type,
                            rf_ssh_reason(session));
}

static enum rf_status configure(ssh_session session,
                                const struct rf_ssh_settings *settings,
                                struct rf_err *err)
{
    static const int yes = 1, no = 0, quiet = SSH_LOG_NOLOG;
    const struct {
        enum ssh_options_e type;
        const void *value;
    } all[] = {{SSH_OPTIONS_PROCESS_CONFIG, &no},
               {SSH_OPTIONS_STRICTHOSTKEYCHECK, &yes},
               {SSH_OPTIONS_LOG_VERBOSITY, &quiet},
               {SSH_OPTIONS_NODELAY, &yes},
               {SSH_OPTIONS_USER, settings->user}};
    enum rf_status status = RF_OK;
    rf_ssh_forget(session);
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(all); i++) {
        status = option(session, all[i].type, all[i].value, err);
    }
    RF_THEN(status, rf_ssh_set_options(settings, session, err));
    return status;
}

/* The proxy command, NULL for none; owned by the caller. */
static enum rf_status find_proxy(const struct rf_ssh_job *job,
                                 const struct rf_ssh_settings *settings,
                                 char **out, struct rf_err *err)
{
    if (settings->proxy_jump != NULL) {
        return rf_ssh_jump_command(job->ssh_config, settings->proxy_jump, out,
                                   err);
    }
    *out = rf_xstrdup_or_null(settings->proxy_command);
    return RF_OK;
}

/* A thread's state across its sessions. */
struct ssh_work {
    struct rf_ssh_job *job;
    struct rf_ssh_settings settings;
    struct rf_ssh_known known;
    char *deployed; /* program to execute; NULL: job->worker */
    struct rf_ssh_outcome outcome;
    unsigned tries;
};

/* One attempt at a session. */
struct session_attempt {
    struct ssh_work *work;
    ssh_session session;
    int fd;     /* -1: not connected */
    bool retry; /* cut off before the end of the key exchange */
};

/* Connects, directly or through a proxy command, and guards the socket. */
static enum rf_status connect_socket(struct session_attempt *attempt,
                                     struct rf_err *err)
{
    const struct rf_ssh_settings *settings = &attempt->work->settings;
    struct rf_ssh_job *job = attempt->work->job;
    struct rf_ssh_proxy proxy = {.fd = -1};
    char *command = NULL;
    enum rf_status status;
    RF_TRY(find_proxy(job, settings, &command, err));
    if (command != NULL) {
        status = rf_ssh_connect_proxy(settings, command, &proxy, err);
        if (status == RF_OK) {
            attempt->fd = proxy.fd;
            job->proxy_errors = proxy.errors;
        }
    } else {
        status = rf_ssh_connect_tcp(job, settings->host_name, settings->port,
                                    &attempt->fd, &attempt->retry, err);
    }
    if (attempt->fd >= 0) {
        rf_ssh_guard(job, attempt->fd, proxy.group);
    }
    if (command != NULL) {
        RF_THEN(status,
                rf_ssh_await_banner(job, attempt->fd,
                                    settings->proxy_jump != NULL
                                        ? "ProxyJump of the ssh config"
                                        : "ProxyCommand of the ssh config",
                                    &attempt->retry, err));
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
    struct rf_ssh_job *job = attempt->work->job;
    long seconds = (long)(rf_ssh_left_ms(job) / 1000 + 1);
    enum rf_status status;
    rf_ssh_forget(session);
    status = option(session, SSH_OPTIONS_FD, &attempt->fd, err);
    if (status == RF_OK) { /* already connected through it */
        status = option(session, SSH_OPTIONS_PROXYCOMMAND, "none", err);
    }
    RF_THEN(status, option(session, SSH_OPTIONS_TIMEOUT, &seconds, err));
    if (status == RF_OK && ssh_connect(session) != SSH_OK) {
        attempt->retry = peer_has_closed(job);
        status = rf_err_set(err, RF_ERR_LAUNCH, "SSH key exchange failed: %s",
                            attempt->retry ? "the connection was closed"
                                           : rf_ssh_reason(session));
    }
    return status;
}

/* Frees the session and closes `fd` if libssh has not: `fd` is still ours if it
 * is the same socket as the guard. */
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
    rf_fd_close(&job->proxy_errors);
}

/* The work of a session. */
typedef enum rf_status (*purpose_fn)(struct ssh_work *work, ssh_session session,
                                     struct rf_err *err);

static enum rf_status deploy_worker(struct ssh_work *work, ssh_session session,
                                    struct rf_err *err)
{
    struct rf_ssh_job *job = work->job;
    enum rf_status status;
    rf_ssh_set_deadline(job, job->timeout_s + RF_SSH_DEPLOY_S);
    status = rf_ssh_deploy(job, session, &work->deployed, err);
    rf_ssh_set_deadline(job, job->timeout_s);
    return status;
}

/* Runs until the end of the agent, if it gets that far. */
static enum rf_status run_worker(struct ssh_work *work, ssh_session session,
                                 struct rf_err *err)
{
    const struct rf_ssh_job *job = work->job;
    char *command =
        rf_xasprintf("exec %s%s --stdio", job->wrap,
                     work->deployed != NULL ? work->deployed : job->worker);
    enum rf_status status =
        rf_ssh_run(work->job, session, command, &work->outcome, err);
    free(command);
    return status;
}

static enum rf_status try_once(struct session_attempt *attempt,
                               purpose_fn purpose, struct rf_err *err)
{
    struct ssh_work *work = attempt->work;
    struct rf_ssh_job *job = work->job;
    ssh_session session = attempt->session = ssh_new();
    enum rf_status status;
    if (session == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "no SSH session");
    }
    status = configure(session, &work->settings, err);
    RF_THEN(status, rf_ssh_use_known(&work->known, session, err));
    RF_THEN(status, connect_socket(attempt, err));
    RF_THEN(status, exchange_keys(attempt, err));
    RF_THEN(status, rf_ssh_check_host_key(job, session, &work->known, err));
    RF_THEN(status, rf_ssh_authenticate(job, session, &work->settings, err));
    RF_THEN(status, purpose(work, session, err));
    end_session(job, session, attempt->fd);
    return status;
}

static bool wait_before_retry(struct rf_ssh_job *job, unsigned try)
{
    uint32_t random;
    int64_t wait;
    rf_random_fill(&random, sizeof(random));
    wait = RETRY_MS / 4 + random % (RETRY_MS << (try - 1));
    if (wait >= rf_ssh_left_ms(job)) {
        return false;
    }
    rf_ssh_wait(job, -1, 0, wait);
    return atomic_load(&job->stop) == RF_SSH_RUN;
}

/* Completes the reason of the failure: a stop, the deadline, or the number of
 * tries. */
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

/* Does the work in a session, in as many attempts as needed. */
static enum rf_status in_session(struct ssh_work *work, purpose_fn purpose,
                                 struct rf_err *err)
{
    for (work->tries = 1;; work->tries++) {
        struct session_attempt attempt = {.work = work, .fd = -1};
        enum rf_status status = try_once(&attempt, purpose, err);
        if (status == RF_OK || !attempt.retry || work->tries == RF_SSH_TRIES) {
            return status;
        }
        rf_ssh_note(work->job, "%s; trying again", err->text);
        if (!wait_before_retry(work->job, work->tries)) {
            return status;
        }
    }
}

/* The worker gets its own session: some servers end a session with its last
 * channel; others allow only one channel at a time and notice its close
 * late. */
void rf_ssh_thread(void *data)
{
    struct rf_ssh_job *job = data;
    struct ssh_work work = {
        .job = job, .known = {.fd = -1}, .outcome = {.status = -1}};
    struct rf_err err = {0};
    enum rf_status status;
    rf_ssh_set_deadline(job, job->timeout_s);
    status = rf_ssh_read_config(job, &work.settings, &err);
    RF_THEN(status,
            rf_ssh_gather_known(job, &work.settings, &work.known, &err));
    if (job->deploy) {
        RF_THEN(status, in_session(&work, deploy_worker, &err));
    }
    RF_THEN(status, in_session(&work, run_worker, &err));
    if (status == RF_OK) {
        rf_ssh_post(job, RF_SSH_EXIT, work.outcome.status, work.outcome.signal);
    } else {
        explain(job, work.tries, &err);
        rf_ssh_post_fail(job, &err);
    }
    rf_ssh_known_close(&work.known);
    rf_ssh_settings_free(&work.settings);
    free(work.deployed);
    free(work.outcome.signal);
    rf_ssh_job_release(job);
}
