/*
 * Launch and stream. See agent_stream.h.
 *
 * The launcher's last call (on_fail or on_exit) destroys the launch. The stream
 * may end before or after that.
 */
#include "coordinator/cluster/agent_stream.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"

struct rf_agent_stream {
    const struct rf_launcher_ops *launcher;
    struct rf_agent_stream_ops ops;
    void *data;
    const char *name;         /* the node's */
    struct rf_launch *launch; /* NULL: not started, or over */
    struct rf_conn *stream;
    bool answered, stopping;
};

/* --- The stream ----------------------------------------------------------- */

static void ready_cb(struct rf_conn *conn, void *data)
{
    struct rf_agent_stream *agent = data;
    (void)conn;
    agent->answered = true; /* HELLO follows, here or over TCP */
}

static void frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    const struct rf_agent_stream *agent = data;
    agent->ops.on_frame(conn, frame, agent->data);
}

static void close_cb(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct rf_agent_stream *agent = data;
    agent->stream = NULL;
    agent->ops.on_stream_end(conn, why, agent->data);
    agent->ops.on_close(agent->data);
}

static const struct rf_conn_ops stream_ops = {ready_cb, frame_cb, close_cb};

/* --- The launch ----------------------------------------------------------- */

static void stream_cb(struct rf_launch *launch, uv_pipe_t *pipe, void *data)
{
    struct rf_agent_stream *agent = data;
    (void)launch;
    agent->stream = rf_conn_open((uv_stream_t *)pipe, NULL, &stream_ops, agent);
    if (agent->stopping) {
        rf_conn_close(agent->stream);
    } else {
        agent->ops.on_stream(agent->stream, agent->data);
    }
}

static void stderr_cb(struct rf_launch *launch, const char *line, void *data)
{
    const struct rf_agent_stream *agent = data;
    (void)launch;
    rf_log_lines_one(line, agent->ops.on_line, agent->data);
}

static void note_cb(struct rf_launch *launch, const char *line, void *data)
{
    const struct rf_agent_stream *agent = data;
    (void)launch;
    rf_info("%s: %s", agent->name, line);
}

static void trouble_cb(struct rf_launch *launch, const char *what,
                       bool explains, void *data)
{
    const struct rf_agent_stream *agent = data;
    (void)launch;
    agent->ops.on_trouble(what, explains, agent->data);
}

static void launch_over(struct rf_agent_stream *agent, struct rf_launch *launch,
                        const struct rf_agent_stream_end *end)
{
    agent->launch = NULL; /* nothing is left to stop */
    agent->ops.on_end(end, agent->data);
    agent->launcher->destroy(launch);
    agent->ops.on_close(agent->data);
}

static void fail_cb(struct rf_launch *launch, const struct rf_err *why,
                    void *data)
{
    launch_over(data, launch, &(struct rf_agent_stream_end){.failed = why});
}

static void exit_cb(struct rf_launch *launch, int status, const char *signal,
                    void *data)
{
    launch_over(
        data, launch,
        &(struct rf_agent_stream_end){.status = status, .signal = signal});
}

static const struct rf_launch_ops_cb launch_ops = {
    stream_cb, stderr_cb, fail_cb, exit_cb, note_cb, trouble_cb};

/* --- The object ----------------------------------------------------------- */

struct rf_agent_stream *
rf_agent_stream_create(const struct rf_launcher_ops *launcher,
                       const struct rf_agent_stream_ops *ops, void *data)
{
    struct rf_agent_stream *agent = rf_xcalloc(1, sizeof(*agent));
    agent->launcher = launcher;
    agent->ops = *ops;
    agent->data = data;
    return agent;
}

enum rf_status rf_agent_stream_start(struct rf_agent_stream *agent,
                                     uv_loop_t *loop,
                                     const struct rf_launch_order *order,
                                     struct rf_err *err)
{
    struct rf_launch *launch = NULL;
    enum rf_status status;
    agent->name = order->node->name;
    status =
        agent->launcher->start(loop, order, &launch_ops, agent, &launch, err);
    if (status == RF_OK) {
        agent->launch = launch;
    }
    return status;
}

void rf_agent_stream_stop(struct rf_agent_stream *agent, bool force)
{
    agent->stopping = true;
    if (agent->stream != NULL) {
        rf_conn_close(agent->stream);
    }
    if (agent->launch != NULL) {
        agent->launcher->stop(agent->launch, force);
    }
}

void rf_agent_stream_identify(struct rf_agent_stream *agent, uint32_t pid,
                              uint64_t start_ticks)
{
    if (agent->launch != NULL) {
        agent->launcher->identify(agent->launch, pid, start_ticks);
    }
}

const char *rf_agent_stream_head_address(const struct rf_agent_stream *agent)
{
    return agent->launcher->head_address(agent->launch);
}

bool rf_agent_stream_is_launched(const struct rf_agent_stream *agent)
{
    return agent->launch != NULL;
}

bool rf_agent_stream_has_stream(const struct rf_agent_stream *agent)
{
    return agent->stream != NULL;
}

bool rf_agent_stream_has_answered(const struct rf_agent_stream *agent)
{
    return agent->answered;
}

bool rf_agent_stream_is_closed(const struct rf_agent_stream *agent)
{
    return agent->launch == NULL && agent->stream == NULL;
}

void rf_agent_stream_destroy(struct rf_agent_stream *agent)
{
    free(agent);
}
