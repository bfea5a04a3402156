/*
 * Child processes. See child.h.
 *
 * Happy path: spawn → exit → standard error drained → handles closed → on_exit.
 */
#include "coordinator/launch/child.h"

#include <signal.h>
#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/launch/launch_internal.h"

#define DRAIN_MS 500

enum child_state {
    CHILD_UP,
    CHILD_GRACE,  /* asked to end; next: SIGTERM */
    CHILD_TERM,   /* next: SIGKILL */
    CHILD_KILLED, /* nothing left to send */
    CHILD_EXITED, /* reading the rest of standard error */
    CHILD_CLOSING,
};

struct rf_child {
    struct rf_child_ops ops;
    void *data;
    uv_process_t process;
    uv_pipe_t errors;
    uv_timer_t timer;
    unsigned open_handles;
    enum child_state state;
    struct rf_lines lines;
    uint32_t grace_ms;
    int status, signal;
    char chunk[4096];
};

static void timer_cb(uv_timer_t *timer);

static void closed_cb(uv_handle_t *handle)
{
    struct rf_child *child = handle->data;
    if (--child->open_handles == 0) {
        child->ops.on_exit(child->status, child->signal, child->data);
    }
}

static void close_all(struct rf_child *child)
{
    if (child->state == CHILD_CLOSING) {
        return;
    }
    child->state = CHILD_CLOSING;
    rf_lines_end(&child->lines);
    uv_close((uv_handle_t *)&child->process, closed_cb);
    uv_close((uv_handle_t *)&child->errors, closed_cb);
    uv_close((uv_handle_t *)&child->timer, closed_cb);
}

static void arm(struct rf_child *child, uint64_t ms)
{
    uv_update_time(child->timer.loop);
    uv_timer_start(&child->timer, timer_cb, ms, 0);
}

static void exit_cb(uv_process_t *process, int64_t status, int signal)
{
    struct rf_child *child = process->data;
    child->status = (int)status;
    child->signal = signal;
    if (!uv_is_active((uv_handle_t *)&child->errors)) {
        close_all(child);
        return;
    }
    child->state = CHILD_EXITED;
    arm(child, DRAIN_MS);
}

static void send_signal(struct rf_child *child, int signal)
{
    /* The group, to include helpers. Not yet reaped: the id is still ours. */
    if (kill(-child->process.pid, signal) != 0) {
        (void)uv_process_kill(&child->process, signal);
    }
}

/* Sends SIGTERM; SIGKILL follows after the grace: an agent kills its ranks and
 * removes their files, but a rank that flushes a file does not die before the
 * disk has it. */
static void terminate(struct rf_child *child)
{
    child->state = CHILD_TERM;
    send_signal(child, SIGTERM); /* lets it remove its ranks' files */
    send_signal(child, SIGCONT); /* a stopped process handles no signal */
    arm(child, child->grace_ms);
}

static void timer_cb(uv_timer_t *timer)
{
    struct rf_child *child = timer->data;
    switch (child->state) {
    case CHILD_GRACE:
        terminate(child);
        break;
    case CHILD_TERM:
        child->state = CHILD_KILLED;
        send_signal(child, SIGKILL);
        break;
    case CHILD_EXITED:
        close_all(child);
        break;
    case CHILD_UP:
    case CHILD_KILLED:
    case CHILD_CLOSING:
        break;
    }
}

void rf_child_stop(struct rf_child *child, bool force)
{
    if (child->state >= CHILD_KILLED) {
        return;
    }
    if (force && child->state < CHILD_TERM) {
        terminate(child);
    } else if (child->state == CHILD_UP) {
        child->state = CHILD_GRACE;
        arm(child, child->grace_ms);
    }
}

static void take_line(const char *line, void *data)
{
    struct rf_child *child = data;
    child->ops.on_line(line, child->data);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct rf_child *child = handle->data;
    (void)suggested;
    *buf = uv_buf_init(child->chunk, sizeof(child->chunk));
}

static void errors_cb(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct rf_child *child = stream->data;
    if (nread > 0) {
        rf_lines_feed(&child->lines, buf->base, (size_t)nread);
    } else if (nread < 0) {
        uv_read_stop(stream);
        if (child->state == CHILD_EXITED) {
            close_all(child);
        }
    }
}

static int spawn(struct rf_child *child, uv_loop_t *loop,
                 const struct rf_child_order *order)
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_INHERIT_FD, .data.fd = order->input},
        {.flags = order->output >= 0 ? UV_INHERIT_FD : UV_IGNORE,
         .data.fd = order->output},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&child->errors}};
    uv_process_options_t options = {.file = order->file,
                                    .args = order->args,
                                    .env = order->env,
                                    .exit_cb = exit_cb,
                                    .flags = UV_PROCESS_DETACHED,
                                    .stdio = stdio,
                                    .stdio_count = 3};
    return uv_spawn(loop, &child->process, &options);
}

static void discard_cb(uv_handle_t *handle)
{
    struct rf_child *child = handle->data;
    if (--child->open_handles == 0) {
        free(child);
    }
}

struct rf_child *rf_child_start(uv_loop_t *loop,
                                const struct rf_child_order *order,
                                const struct rf_child_ops *ops, void *data,
                                int *error)
{
    struct rf_child *child = rf_xcalloc(1, sizeof(*child));
    child->ops = *ops;
    child->data = data;
    child->grace_ms = rf_launch_grace_ms(order->grace_ms);
    child->lines.take = take_line;
    child->lines.data = child;
    child->open_handles = 3;
    uv_pipe_init(loop, &child->errors, 0);
    uv_timer_init(loop, &child->timer);
    child->process.data = child->errors.data = child->timer.data = child;
    *error = spawn(child, loop, order);
    if (*error < 0) {
        uv_close((uv_handle_t *)&child->process, discard_cb);
        uv_close((uv_handle_t *)&child->errors, discard_cb);
        uv_close((uv_handle_t *)&child->timer, discard_cb);
        return NULL;
    }
    uv_read_start((uv_stream_t *)&child->errors, alloc_cb, errors_cb);
    return child;
}

void rf_child_destroy(struct rf_child *child)
{
    free(child);
}
