/*
 * The launcher `ssh`, loop side: starts the thread of a launch when the gate
 * allows, turns the thread's events into callbacks, and bounds everything.
 *
 *     WAITING ─► STARTING ─► UP ─► ENDED ─► (handles closed) ─► callback
 *        └────────────┴──────┴──────┘
 *
 * The thread keeps its own deadlines. The timer here is the second line of
 * defence: it fires a little after the thread's deadline and cuts the
 * connection under the thread. If even that does not end the thread within
 * ABANDON_MS, it is left behind (it holds its own reference to the job) and the
 * launch is reported as over, so no stuck host can hold up the run.
 */
#include "coordinator/launch/ssh/launch_ssh.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "coordinator/config/nodes/names.h"

#define STACK_BYTES (512u << 10)
#define LATE_MS 500     /* after the thread's own deadline */
#define ABANDON_MS 3000 /* from cutting to leaving the thread behind */

enum ssh_state { SSH_WAITING, SSH_STARTING, SSH_UP, SSH_ENDED };

struct ssh_launch {
    struct rf_launch base;
    struct rf_gate_place place;
    struct rf_launch_gate *gate;
    struct rf_ssh_job *job;
    uv_async_t async;
    uv_timer_t timer;
    uv_pipe_t *stream; /* until on_stream */
    uv_thread_t thread;
    unsigned open_handles;
    enum ssh_state state;
    bool has_thread, was_up, cut;
    int64_t deadline_ns; /* the thread's; 0: none */
    char address[64];    /* of the head; "": unknown */
    struct rf_err why;   /* for on_fail */
    int status;          /* for on_exit */
    char signal[32];
};

static void free_cb(uv_handle_t *handle)
{
    free(handle);
}

/* --- The end -------------------------------------------------------------- */

static void closed_cb(uv_handle_t *handle)
{
    struct ssh_launch *ssh = handle->data;
    struct rf_launch *base = &ssh->base;
    if (--ssh->open_handles > 0) {
        return;
    }
    if (ssh->was_up) {
        base->callbacks.on_exit(base, ssh->status,
                                ssh->signal[0] != '\0' ? ssh->signal : NULL,
                                base->data);
    } else {
        base->callbacks.on_fail(base, &ssh->why, base->data);
    }
}

/* Releases the thread and the job, and closes the handles. */
static void end(struct ssh_launch *ssh, bool thread_is_over)
{
    struct rf_ssh_job *job = ssh->job;
    ssh->state = SSH_ENDED;
    rf_gate_leave(ssh->gate, &ssh->place);
    pthread_mutex_lock(&job->lock);
    job->async = NULL;
    pthread_mutex_unlock(&job->lock);
    if (ssh->has_thread && thread_is_over) {
        uv_thread_join(&ssh->thread);
    } else if (ssh->has_thread) {
        pthread_detach(ssh->thread);
    }
    rf_ssh_job_release(job);
    ssh->job = NULL;
    if (ssh->stream != NULL) {
        uv_close((uv_handle_t *)ssh->stream, free_cb);
        ssh->stream = NULL;
    }
    uv_close((uv_handle_t *)&ssh->async, closed_cb);
    uv_close((uv_handle_t *)&ssh->timer, closed_cb);
}

static void cut_cb(uv_timer_t *timer)
{
    struct ssh_launch *ssh = timer->data;
    if (!ssh->cut) {
        ssh->cut = true;
        atomic_store(&ssh->job->stop, RF_SSH_CUT);
        (void)!write(ssh->job->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
        rf_ssh_cut(ssh->job);
        uv_timer_start(timer, cut_cb, ABANDON_MS, 0);
        return;
    }
    rf_err_set(&ssh->why, RF_ERR_TIMEOUT,
               "the SSH session does not end; abandoned");
    ssh->status = -1;
    end(ssh, false);
}

static void arm(struct ssh_launch *ssh, int64_t ms)
{
    uv_update_time(ssh->timer.loop);
    uv_timer_start(&ssh->timer, cut_cb, (uint64_t)RF_MAX(ms, INT64_C(0)), 0);
}

/* --- Events --------------------------------------------------------------- */

static void take_deadline(struct ssh_launch *ssh, int64_t deadline_ns)
{
    ssh->deadline_ns = deadline_ns;
    if (ssh->cut || atomic_load(&ssh->job->stop) != RF_SSH_RUN) {
        return; /* the timer already bounds the stop */
    }
    if (deadline_ns == 0) {
        uv_timer_stop(&ssh->timer);
    } else {
        arm(ssh, (deadline_ns - rf_now_ns()) / RF_NS_PER_MS + LATE_MS);
    }
}

static void take_stream(struct ssh_launch *ssh, const char *address)
{
    uv_pipe_t *stream = ssh->stream;
    snprintf(ssh->address, sizeof(ssh->address), "%s",
             address != NULL ? address : "");
    ssh->state = SSH_UP;
    ssh->was_up = true;
    ssh->stream = NULL;
    rf_gate_leave(ssh->gate, &ssh->place);
    ssh->base.callbacks.on_stream(&ssh->base, stream, ssh->base.data);
}

static void take_event(struct ssh_launch *ssh, const struct rf_ssh_event *event)
{
    struct rf_launch *base = &ssh->base;
    switch (event->kind) {
    case RF_SSH_NOTE:
        base->callbacks.on_note(base, event->text, base->data);
        break;
    case RF_SSH_STDERR:
        base->callbacks.on_stderr(base, event->text, base->data);
        break;
    case RF_SSH_DEADLINE:
        take_deadline(ssh, event->number);
        break;
    case RF_SSH_STREAM:
        take_stream(ssh, event->text);
        break;
    case RF_SSH_FAIL:
        rf_err_set(&ssh->why, event->why, "%s", event->text);
        end(ssh, true);
        break;
    case RF_SSH_EXIT:
        ssh->status = (int)event->number;
        snprintf(ssh->signal, sizeof(ssh->signal), "%s",
                 event->text != NULL ? event->text : "");
        end(ssh, true);
        break;
    }
}

static void async_cb(uv_async_t *async)
{
    struct ssh_launch *ssh = async->data;
    struct rf_ssh_job *job = ssh->job;
    struct rf_ssh_event *event;
    if (ssh->state == SSH_ENDED) {
        return;
    }
    pthread_mutex_lock(&job->lock);
    event = job->first;
    job->first = NULL;
    job->end = &job->first;
    job->lines_waiting = 0;
    pthread_mutex_unlock(&job->lock);
    while (event != NULL) {
        struct rf_ssh_event *next = event->next;
        if (ssh->state != SSH_ENDED) {
            take_event(ssh, event);
        }
        rf_ssh_event_free(event);
        event = next;
    }
}

/* --- Interface ------------------------------------------------------------ */

/* The gate's turn: starts the thread with all signals blocked, so that the
 * loop's thread gets them. */
static void start_thread(struct rf_gate_place *place)
{
    struct ssh_launch *ssh = rf_container_of(place, struct ssh_launch, place);
    uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                   .stack_size = STACK_BYTES};
    sigset_t all, before;
    int result;
    ssh->state = SSH_STARTING;
    ssh->job->references++; /* for the thread, which does not yet run */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result =
        uv_thread_create_ex(&ssh->thread, &options, rf_ssh_thread, ssh->job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0) {
        ssh->has_thread = true;
    } else {
        struct rf_err why;
        rf_err_set(&why, RF_ERR_LAUNCH, "cannot start a thread%s: %s",
                   rf_spawn_limits(-result), uv_strerror(result));
        ssh->job->references--;
        rf_ssh_post_fail(ssh->job, &why);
    }
}

static enum rf_status make_stream(struct ssh_launch *ssh, uv_loop_t *loop,
                                  struct rf_err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
    }
    ssh->job->stream_fd = pair[1];
    ssh->stream = rf_xcalloc(1, sizeof(*ssh->stream));
    uv_pipe_init(loop, ssh->stream, 0);
    uv_pipe_open(ssh->stream, pair[0]);
    return RF_OK;
}

static enum rf_status start(uv_loop_t *loop,
                            const struct rf_launch_order *order,
                            const struct rf_launch_ops_cb *callbacks,
                            void *data, struct rf_launch **out,
                            struct rf_err *err)
{
    struct ssh_launch *ssh = rf_xcalloc(1, sizeof(*ssh));
    struct rf_ssh_job *job = rf_ssh_job_create(order);
    enum rf_status status = RF_OK;
    ssh->job = job;
    if (!rf_names_valid_host(job->host) ||
        (job->user != NULL && !rf_names_valid_user(job->user)) ||
        !rf_names_valid_worker(job->worker)) {
        status =
            rf_err_set(err, RF_ERR_CONFIG, "bad host, user or worker name");
    } else if (job->deploy && job->local_worker == NULL) {
        status =
            rf_err_set(err, RF_ERR_CONFIG, "no local worker binary to deploy");
    } else if (job->wake_fd < 0) {
        status = rf_err_set(err, RF_ERR_LAUNCH,
                            "no file descriptor left (ulimit -n)");
    } else {
        status = make_stream(ssh, loop, err);
    }
    if (status != RF_OK) {
        rf_ssh_job_release(job);
        free(ssh);
        return status;
    }
    ssh->base.callbacks = *callbacks;
    ssh->base.data = data;
    ssh->gate = order->gate;
    ssh->place.start = start_thread;
    ssh->status = -1;
    ssh->open_handles = 2;
    uv_async_init(loop, &ssh->async, async_cb);
    uv_timer_init(loop, &ssh->timer);
    ssh->async.data = ssh->timer.data = ssh;
    job->async = &ssh->async;
    *out = &ssh->base;
    rf_gate_enter(ssh->gate, &ssh->place);
    return RF_OK;
}

static const char *head_address(const struct rf_launch *launch)
{
    const struct ssh_launch *ssh =
        rf_container_of(launch, const struct ssh_launch, base);
    return ssh->address[0] != '\0' ? ssh->address : NULL;
}

static void identify(struct rf_launch *launch, uint32_t pid,
                     uint64_t start_ticks)
{
    struct ssh_launch *ssh = rf_container_of(launch, struct ssh_launch, base);
    if (ssh->state == SSH_UP) {
        pthread_mutex_lock(&ssh->job->lock);
        ssh->job->agent_pid = pid;
        ssh->job->agent_start_ticks = start_ticks;
        pthread_mutex_unlock(&ssh->job->lock);
    }
}

static void stop(struct rf_launch *launch, bool force)
{
    struct ssh_launch *ssh = rf_container_of(launch, struct ssh_launch, base);
    int wanted = ssh->state != SSH_UP ? RF_SSH_CUT
                 : force              ? RF_SSH_KILL
                                      : RF_SSH_STOP;
    if (ssh->state == SSH_ENDED || atomic_load(&ssh->job->stop) >= wanted) {
        return;
    }
    if (ssh->state == SSH_WAITING) {
        rf_err_set(&ssh->why, RF_ERR_ABORTED, "stopped before it started");
        end(ssh, false);
        return;
    }
    atomic_store(&ssh->job->stop, wanted);
    (void)!write(ssh->job->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    if (wanted == RF_SSH_CUT) {
        ssh->cut = true;
        rf_ssh_cut(ssh->job);
        arm(ssh, ABANDON_MS);
    } else {
        arm(ssh, (wanted == RF_SSH_KILL ? RF_SSH_KILL_MS : ssh->job->grace_ms) +
                     LATE_MS);
    }
}

static void destroy(struct rf_launch *launch)
{
    free(rf_container_of(launch, struct ssh_launch, base));
}

const struct rf_launcher_ops rf_launcher_ssh = {
    .name = "ssh",
    .descriptors = 4,
    .start = start,
    .head_address = head_address,
    .identify = identify,
    .stop = stop,
    .destroy = destroy,
};
