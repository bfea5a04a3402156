/*
 * The state that the loop and the thread of one SSH launch share: events one
 * way, stop requests the other, and the guard, a second descriptor of the
 * connection's socket. The guard bounds teardown: the loop can shut the
 * connection down whatever libssh does with its own descriptor, and the guard's
 * number cannot be reused meanwhile.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "coordinator/launch/launch_internal.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define LINES_WAITING_MAX 4096 /* stderr lines not yet taken by the loop */
#define PROXY_GRACE_MS 1000

struct rf_ssh_job *rf_ssh_job_create(const struct rf_launch_order *order)
{
    const struct rf_launch_config *how = order->settings;
    const struct rf_node_config *node = order->node;
    struct rf_ssh_job *job = rf_xcalloc(1, sizeof(*job));
    job->host =
        rf_xstrdup(node->hostname != NULL ? node->hostname : node->name);
    job->place = rf_xasprintf("nodes[%u]", (unsigned)order->index);
    job->host_key = rf_xasprintf("%s.%s", job->place,
                                 node->hostname != NULL ? "hostname" : "host");
    job->user = rf_xstrdup_or_null(node->user);
    job->identity = rf_xstrdup_or_null(node->identity);
    job->pin = rf_xstrdup_or_null(node->host_key_sha256);
    job->worker = rf_xstrdup(how->worker);
    job->wrap = rf_wrap_prefix(how, node->name);
    job->known_hosts = rf_xstrdup_or_null(how->known_hosts);
    job->ssh_config = rf_xstrdup_or_null(how->ssh_config);
    job->local_worker = rf_xstrdup_or_null(order->local_worker);
    job->grace_ms = rf_launch_grace_ms(order->grace_ms);
    job->port = node->port;
    job->timeout_s = how->timeout_s > 0 ? how->timeout_s : 30;
    job->use_ssh_config = how->use_ssh_config;
    job->accept_new = how->accept_new;
    job->deploy = how->deploy;
    job->stream_fd = -1;
    job->guard_fd = -1;
    job->proxy_errors = -1;
    job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&job->lock, NULL);
    job->end = &job->first;
    job->references = 1;
    return job;
}

void rf_ssh_event_free(struct rf_ssh_event *event)
{
    free(event->text);
    free(event);
}

void rf_ssh_job_release(struct rf_ssh_job *job)
{
    bool last;
    pthread_mutex_lock(&job->lock);
    last = --job->references == 0;
    pthread_mutex_unlock(&job->lock);
    if (!last) {
        return;
    }
    while (job->first != NULL) {
        struct rf_ssh_event *event = job->first;
        job->first = event->next;
        rf_ssh_event_free(event);
    }
    rf_fd_close(&job->stream_fd);
    rf_fd_close(&job->wake_fd);
    pthread_mutex_destroy(&job->lock);
    free(job->host);
    free(job->place);
    free(job->host_key);
    free(job->user);
    free(job->identity);
    free(job->pin);
    free(job->worker);
    free(job->wrap);
    free(job->known_hosts);
    free(job->ssh_config);
    free(job->local_worker);
    free(job);
}

/* --- Events --------------------------------------------------------------- */

static void append(struct rf_ssh_job *job, struct rf_ssh_event *event)
{
    *job->end = event;
    job->end = &event->next;
    if (job->async != NULL) {
        uv_async_send(job->async);
    }
}

static struct rf_ssh_event *make_event(enum rf_ssh_event_kind kind,
                                       int64_t number, const char *text)
{
    struct rf_ssh_event *event = rf_xcalloc(1, sizeof(*event));
    event->kind = kind;
    event->number = number;
    event->text = rf_xstrdup_or_null(text);
    return event;
}

void rf_ssh_post(struct rf_ssh_job *job, enum rf_ssh_event_kind kind,
                 int64_t number, const char *text)
{
    pthread_mutex_lock(&job->lock);
    if (kind == RF_SSH_STDERR && job->lines_waiting >= LINES_WAITING_MAX) {
        job->lines_dropped++;
    } else {
        if (kind == RF_SSH_STDERR) {
            job->lines_waiting++;
        }
        if (kind == RF_SSH_STDERR && job->lines_dropped > 0) {
            char note[64];
            snprintf(note, sizeof(note), "[%u lines were dropped]",
                     job->lines_dropped);
            job->lines_dropped = 0;
            append(job, make_event(RF_SSH_STDERR, 0, note));
        }
        append(job, make_event(kind, number, text));
    }
    pthread_mutex_unlock(&job->lock);
}

void rf_ssh_post_fail(struct rf_ssh_job *job, const struct rf_err *why)
{
    struct rf_ssh_event *event = make_event(RF_SSH_FAIL, 0, why->text);
    event->why = why->status;
    pthread_mutex_lock(&job->lock);
    append(job, event);
    pthread_mutex_unlock(&job->lock);
}

void rf_ssh_note(struct rf_ssh_job *job, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    rf_ssh_post(job, RF_SSH_NOTE, 0, text);
}

/* --- Time and stopping ---------------------------------------------------- */

void rf_ssh_set_deadline(struct rf_ssh_job *job, uint32_t seconds)
{
    job->limit_s = seconds;
    job->deadline_ns =
        seconds == 0 ? 0 : rf_now_ns() + (int64_t)seconds * RF_NS_PER_S;
    rf_ssh_post(job, RF_SSH_DEADLINE, job->deadline_ns, NULL);
}

int64_t rf_ssh_left_ms(const struct rf_ssh_job *job)
{
    int64_t left = job->deadline_ns - rf_now_ns();
    if (job->deadline_ns == 0) {
        return INT32_MAX;
    }
    return left > 0 ? (left + RF_NS_PER_MS - 1) / RF_NS_PER_MS : 0;
}

enum rf_status rf_ssh_check(const struct rf_ssh_job *job, const char *what,
                            struct rf_err *err)
{
    if (atomic_load(&job->stop) != RF_SSH_RUN) {
        return rf_err_set(err, RF_ERR_ABORTED, "%s: stopped", what);
    }
    if (rf_ssh_left_ms(job) == 0) {
        return rf_err_set(err, RF_ERR_TIMEOUT,
                          "%s: not done within %u s (launch.timeout_s)", what,
                          job->limit_s);
    }
    return RF_OK;
}

bool rf_ssh_wait(struct rf_ssh_job *job, int fd, short events, int64_t ms)
{
    struct pollfd fds[2] = {{.fd = job->wake_fd, .events = POLLIN},
                            {.fd = fd, .events = events}};
    int64_t limit = RF_MIN(ms, (int64_t)INT32_MAX);
    if (atomic_load(&job->stop) != RF_SSH_RUN) {
        return false;
    }
    return poll(fds, 2, (int)limit) > 0 && fds[1].revents != 0;
}

/* --- The guard ------------------------------------------------------------ */

void rf_ssh_guard(struct rf_ssh_job *job, int fd, pid_t proxy)
{
    int twin = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    pthread_mutex_lock(&job->lock);
    job->guard_fd = twin;
    job->proxy = proxy;
    /* Stopped before there was a connection to cut. */
    if (atomic_load(&job->stop) == RF_SSH_CUT && twin >= 0) {
        shutdown(twin, SHUT_RDWR);
    }
    pthread_mutex_unlock(&job->lock);
}

static void reap_proxy(pid_t proxy)
{
    int64_t deadline = rf_now_ns() + PROXY_GRACE_MS * RF_NS_PER_MS;
    (void)kill(-proxy, SIGTERM);
    while (waitpid(proxy, NULL, WNOHANG) == 0) {
        if (rf_now_ns() > deadline) {
            (void)kill(-proxy, SIGKILL);
            (void)waitpid(proxy, NULL, 0);
            return;
        }
        rf_sleep_until_ns(rf_now_ns() + 5 * RF_NS_PER_MS);
    }
}

void rf_ssh_unguard(struct rf_ssh_job *job)
{
    int twin;
    pid_t proxy;
    pthread_mutex_lock(&job->lock);
    twin = job->guard_fd;
    proxy = job->proxy;
    job->guard_fd = -1;
    job->proxy = 0;
    pthread_mutex_unlock(&job->lock);
    rf_fd_close(&twin);
    if (proxy > 0) {
        reap_proxy(proxy);
    }
}

void rf_ssh_cut(struct rf_ssh_job *job)
{
    pthread_mutex_lock(&job->lock);
    if (job->guard_fd >= 0) {
        shutdown(job->guard_fd, SHUT_RDWR);
    }
    if (job->proxy > 0) {
        (void)kill(-job->proxy, SIGKILL);
    }
    pthread_mutex_unlock(&job->lock);
}
