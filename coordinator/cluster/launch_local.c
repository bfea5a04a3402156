/*
 * The launcher `local`: the agent is a child process of the coordinator. Its
 * standard input and output are one end of a socketpair, so the caller gets
 * one two-way pipe, just as over SSH, and the end of the coordinator, however
 * it comes, is the end of the agent's standard input.
 *
 * The child leads its own session: a Ctrl-C on the terminal does not reach it,
 * and stop() can signal it with everything in its process group.
 *
 * Happy path: spawn → (timer, 0 ms) on_stream → exit → standard error drained
 * → handles closed → on_exit. Standard error may be held open by somebody else
 * after the exit, so draining is bounded. A program that cannot be executed is
 * an error of start().
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/cluster/launch_internal.h"
#include "coordinator/cluster/program.h"

#define DRAIN_MS 500
/* From SIGTERM to SIGKILL when there is no time: an agent has to kill its ranks
 * and remove their files, which takes a crowded machine more than a second. */
#define FORCE_MS 3000

enum local_state {
    LOCAL_STARTED, /* on_stream is due */
    LOCAL_UP,
    LOCAL_GRACE,  /* asked to end: SIGTERM is next */
    LOCAL_TERM,   /* SIGKILL is next */
    LOCAL_KILLED, /* nothing is left to send */
    LOCAL_EXITED, /* standard error is read to its end */
    LOCAL_CLOSING,
};

struct local {
    struct rf_launch base;
    uv_process_t process;
    uv_pipe_t errors;
    uv_timer_t timer;
    uv_pipe_t *stream; /* until on_stream */
    unsigned open_handles;
    enum local_state state;
    struct rf_lines lines;
    int status, signal;
    char chunk[4096];
};

static void timer_cb(uv_timer_t *timer);

static void free_cb(uv_handle_t *handle)
{
    free(handle);
}

static void close_stream(struct local *local)
{
    if (local->stream != NULL) {
        uv_close((uv_handle_t *)local->stream, free_cb);
        local->stream = NULL;
    }
}

static void closed_cb(uv_handle_t *handle)
{
    struct local *local = handle->data;
    if (--local->open_handles == 0) {
        struct rf_launch *base = &local->base;
        base->callbacks.on_exit(base, local->signal != 0 ? -1 : local->status,
                                local->signal != 0 ? sigabbrev_np(local->signal)
                                                   : NULL,
                                base->data);
    }
}

static void close_all(struct local *local)
{
    if (local->state == LOCAL_CLOSING) {
        return;
    }
    local->state = LOCAL_CLOSING;
    rf_lines_end(&local->lines);
    close_stream(local);
    uv_close((uv_handle_t *)&local->process, closed_cb);
    uv_close((uv_handle_t *)&local->errors, closed_cb);
    uv_close((uv_handle_t *)&local->timer, closed_cb);
}

static void arm(struct local *local, uint64_t ms)
{
    uv_update_time(local->timer.loop);
    uv_timer_start(&local->timer, timer_cb, ms, 0);
}

static void exit_cb(uv_process_t *process, int64_t status, int signal)
{
    struct local *local = process->data;
    local->status = (int)status;
    local->signal = signal;
    if (local->state == LOCAL_STARTED) {
        timer_cb(&local->timer); /* the stream first: it may hold output */
    }
    if (!uv_is_active((uv_handle_t *)&local->errors)) {
        close_all(local);
        return;
    }
    local->state = LOCAL_EXITED;
    arm(local, DRAIN_MS);
}

static void send_signal(struct local *local, int signal)
{
    /* The group, so that helpers in it go too. Not reaped yet: the id is
     * still ours. */
    if (kill(-local->process.pid, signal) != 0) {
        (void)uv_process_kill(&local->process, signal);
    }
}

/* SIGKILL follows when the time is over. */
static void terminate(struct local *local, uint64_t grace_ms)
{
    local->state = LOCAL_TERM;
    send_signal(local, SIGTERM); /* it removes what its ranks leave */
    send_signal(local, SIGCONT); /* a stopped process hears nothing */
    arm(local, grace_ms);
}

static void timer_cb(uv_timer_t *timer)
{
    struct local *local = timer->data;
    uv_pipe_t *stream = local->stream;
    switch (local->state) {
    case LOCAL_STARTED:
        local->state = LOCAL_UP;
        local->stream = NULL;
        local->base.callbacks.on_stream(&local->base, stream, local->base.data);
        break;
    case LOCAL_GRACE:
        terminate(local, RF_LAUNCH_GRACE_MS);
        break;
    case LOCAL_TERM:
        local->state = LOCAL_KILLED;
        send_signal(local, SIGKILL);
        break;
    case LOCAL_EXITED:
        close_all(local);
        break;
    case LOCAL_UP:
    case LOCAL_KILLED:
    case LOCAL_CLOSING:
        break;
    }
}

static void stop(struct rf_launch *launch, bool force)
{
    struct local *local = rf_container_of(launch, struct local, base);
    if (local->state >= LOCAL_KILLED) {
        return;
    }
    if (local->state == LOCAL_STARTED) {
        close_stream(local); /* on_stream never comes */
        local->state = LOCAL_UP;
    }
    if (force && (local->state < LOCAL_TERM ||
                  uv_timer_get_due_in(&local->timer) > FORCE_MS)) {
        terminate(local, FORCE_MS);
    } else if (local->state == LOCAL_UP) {
        local->state = LOCAL_GRACE;
        arm(local, RF_LAUNCH_GRACE_MS);
    }
}

static void take_line(const char *line, void *data)
{
    struct local *local = data;
    local->base.callbacks.on_stderr(&local->base, line, local->base.data);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct local *local = handle->data;
    (void)suggested;
    *buf = uv_buf_init(local->chunk, sizeof(local->chunk));
}

static void errors_cb(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct local *local = stream->data;
    if (nread > 0) {
        rf_lines_feed(&local->lines, buf->base, (size_t)nread);
    } else if (nread < 0) {
        uv_read_stop(stream);
        if (local->state == LOCAL_EXITED) {
            close_all(local);
        }
    }
}

/* Spawns the process on `child`, the agent's end of the socketpair. */
static int spawn(struct local *local, uv_loop_t *loop, const char *program,
                 int child)
{
    char *file = rf_xstrdup(program), option[] = "--stdio";
    char *args[] = {file, option, NULL};
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_INHERIT_FD, .data.fd = child},
        {.flags = UV_INHERIT_FD, .data.fd = child},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&local->errors}};
    uv_process_options_t options = {.file = file,
                                    .args = args,
                                    .exit_cb = exit_cb,
                                    .flags = UV_PROCESS_DETACHED,
                                    .stdio = stdio,
                                    .stdio_count = 3};
    int result = uv_spawn(loop, &local->process, &options);
    free(file);
    return result;
}

static void discard_cb(uv_handle_t *handle)
{
    struct local *local = handle->data;
    if (--local->open_handles == 0) {
        free(local);
    }
}

static struct local *make(uv_loop_t *loop,
                          const struct rf_launch_ops_cb *callbacks, void *data)
{
    struct local *local = rf_xcalloc(1, sizeof(*local));
    local->base.callbacks = *callbacks;
    local->base.data = data;
    local->lines.take = take_line;
    local->lines.data = local;
    local->open_handles = 3;
    uv_pipe_init(loop, &local->errors, 0);
    uv_timer_init(loop, &local->timer);
    local->process.data = local->errors.data = local->timer.data = local;
    return local;
}

static enum rf_status start(uv_loop_t *loop,
                            const struct rf_launch_order *order,
                            const struct rf_launch_ops_cb *callbacks,
                            void *data, struct rf_launch **out,
                            struct rf_err *err)
{
    const char *worker = order->settings->worker;
    const char *program =
        strchr(worker, '/') == NULL && order->local_worker != NULL
            ? order->local_worker
            : worker;
    struct local *local;
    int pair[2], result;
    enum rf_status status = rf_program_check(program, err);
    if (status != RF_OK) {
        return status;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
    }
    local = make(loop, callbacks, data);
    result = spawn(local, loop, program, pair[1]);
    close(pair[1]);
    if (result < 0) {
        close(pair[0]);
        uv_close((uv_handle_t *)&local->process, discard_cb);
        uv_close((uv_handle_t *)&local->errors, discard_cb);
        uv_close((uv_handle_t *)&local->timer, discard_cb);
        return rf_err_set(err, RF_ERR_LAUNCH, "cannot run %s: %s", program,
                          uv_strerror(result));
    }
    local->stream = rf_xcalloc(1, sizeof(*local->stream));
    uv_pipe_init(loop, local->stream, 0);
    uv_pipe_open(local->stream, pair[0]);
    uv_read_start((uv_stream_t *)&local->errors, alloc_cb, errors_cb);
    arm(local, 0);
    *out = &local->base;
    return RF_OK;
}

static const char *head_address(const struct rf_launch *launch)
{
    (void)launch;
    return "127.0.0.1";
}

static void destroy(struct rf_launch *launch)
{
    free(rf_container_of(launch, struct local, base));
}

const struct rf_launcher_ops rf_launcher_local = {
    .name = "local",
    .descriptors = 2,
    .here = true,
    .start = start,
    .head_address = head_address,
    .identify = rf_launch_needs_no_identity,
    .stop = stop,
    .destroy = destroy,
};
