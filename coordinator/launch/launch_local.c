/*
 * The launcher `local`: the agent is a child process of the coordinator. Its
 * standard input and output are one end of a socketpair, so the caller gets one
 * two-way pipe, as over SSH. When the coordinator ends, for whatever reason,
 * the agent's standard input ends.
 *
 * Happy path: child started → (timer, 0 ms) on_stream → child ended → timer
 * closed → on_exit. start() fails for a program that cannot be executed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/spawn.h"
#include "coordinator/launch/child.h"
#include "coordinator/launch/launch_internal.h"
#include "coordinator/launch/program.h"

struct local {
    struct rf_launch base;
    struct rf_child *child;
    uv_timer_t timer;  /* on_stream is due */
    uv_pipe_t *stream; /* until on_stream */
    int status, signal;
};

static void free_cb(uv_handle_t *handle)
{
    free(handle);
}

static void stream_cb(uv_timer_t *timer)
{
    struct local *local = timer->data;
    uv_pipe_t *stream = local->stream;
    if (stream != NULL) {
        local->stream = NULL;
        local->base.callbacks.on_stream(&local->base, stream, local->base.data);
    }
}

static void closed_cb(uv_handle_t *handle)
{
    struct local *local = handle->data;
    struct rf_launch *base = &local->base;
    base->callbacks.on_exit(
        base, local->signal != 0 ? -1 : local->status,
        local->signal != 0 ? sigabbrev_np(local->signal) : NULL, base->data);
}

static void line_cb(const char *line, void *data)
{
    struct local *local = data;
    local->base.callbacks.on_stderr(&local->base, line, local->base.data);
}

static void exit_cb(int status, int signal, void *data)
{
    struct local *local = data;
    local->status = status;
    local->signal = signal;
    stream_cb(&local->timer); /* stream first: it may hold output */
    uv_close((uv_handle_t *)&local->timer, closed_cb);
}

static const struct rf_child_ops child_ops = {line_cb, exit_cb};

static void stop(struct rf_launch *launch, bool force)
{
    struct local *local = rf_container_of(launch, struct local, base);
    if (local->stream != NULL) { /* on_stream never comes */
        uv_close((uv_handle_t *)local->stream, free_cb);
        local->stream = NULL;
    }
    rf_child_stop(local->child, force);
}

static struct rf_child *start_child(struct local *local, uv_loop_t *loop,
                                    const struct rf_launch_order *of,
                                    char **words, int end, int *error)
{
    const struct rf_child_order order = {.file = words[0],
                                         .args = words,
                                         .input = end,
                                         .output = end,
                                         .grace_ms = of->grace_ms};
    return rf_child_start(loop, &order, &child_ops, local, error);
}

/* The words to execute. Refuses a worker that this machine cannot execute; only
 * the wrap knows where its worker is. */
static enum rf_status find_words(const struct rf_launch_order *order,
                                 char ***out, struct rf_err *err)
{
    const struct rf_launch_config *how = order->settings;
    const char *program = rf_launch_program(order);
    enum rf_status status =
        how->n_wrap > 0 ? RF_OK : rf_program_check(program, err);
    if (status == RF_OK) {
        *out = rf_wrap_words(how, order->node->name, program, "--stdio");
    }
    return status;
}

static enum rf_status start(uv_loop_t *loop,
                            const struct rf_launch_order *order,
                            const struct rf_launch_ops_cb *callbacks,
                            void *data, struct rf_launch **out,
                            struct rf_err *err)
{
    struct local *local;
    char **words = NULL;
    int pair[2], error;
    enum rf_status status;
    RF_TRY(find_words(order, &words, err));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        rf_wrap_free(words);
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
    }
    local = rf_xcalloc(1, sizeof(*local));
    local->child = start_child(local, loop, order, words, pair[1], &error);
    close(pair[1]);
    if (local->child == NULL) {
        status = rf_err_set(err, RF_ERR_LAUNCH, "cannot run %s%s: %s", words[0],
                            rf_spawn_limits(-error), uv_strerror(error));
        close(pair[0]);
        free(local);
        rf_wrap_free(words);
        return status;
    }
    rf_wrap_free(words);
    local->base.callbacks = *callbacks;
    local->base.data = data;
    local->stream = rf_xcalloc(1, sizeof(*local->stream));
    uv_pipe_init(loop, local->stream, 0);
    uv_pipe_open(local->stream, pair[0]);
    uv_timer_init(loop, &local->timer);
    local->timer.data = local;
    uv_update_time(loop);
    uv_timer_start(&local->timer, stream_cb, 0, 0);
    *out = &local->base;
    return RF_OK;
}

static void destroy(struct rf_launch *launch)
{
    struct local *local = rf_container_of(launch, struct local, base);
    rf_child_destroy(local->child);
    free(local);
}

const struct rf_launcher_ops rf_launcher_local = {
    .name = "local",
    .descriptors = 2,
    .here = true,
    .start = start,
    .stop = stop,
    .destroy = destroy,
};
