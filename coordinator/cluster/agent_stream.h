/*
 * A node's agent as its launcher gives it: something that is started and ended,
 * and perhaps a stream to it. Callbacks come from the loop, never from inside a
 * call.
 */
#ifndef RF_COORDINATOR_CLUSTER_AGENT_STREAM_H
#define RF_COORDINATOR_CLUSTER_AGENT_STREAM_H

#include "coordinator/cluster/log_lines.h"
#include "coordinator/launch/launch.h"
#include "transport/control/conn.h"

struct rf_agent_stream;

struct rf_agent_stream_end {
    const struct rf_err *failed; /* it could not be started; otherwise NULL: */
    int status;                  /* as in on_exit of a launcher */
    const char *signal;
};

struct rf_agent_stream_ops {
    /* The stream is open, to send BOOT on. Its frames follow, then its end. */
    void (*on_stream)(struct rf_conn *conn, void *data);
    void (*on_frame)(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data);
    void (*on_stream_end)(struct rf_conn *conn, const struct rf_err *why,
                          void *data);
    /* A line of its standard error. */
    rf_log_line_fn on_line;
    /* As that of a launcher. */
    void (*on_trouble)(const char *what, bool explains, void *data);
    /* The launch is over. */
    void (*on_end)(const struct rf_agent_stream_end *end, void *data);
    /* After either end: perhaps all is closed now. */
    void (*on_close)(void *data);
};

struct rf_agent_stream *
rf_agent_stream_create(const struct rf_launcher_ops *launcher,
                       const struct rf_agent_stream_ops *ops, void *data);

/* Starts it, once. After an error no callback comes. */
enum rf_status rf_agent_stream_start(struct rf_agent_stream *agent,
                                     uv_loop_t *loop,
                                     const struct rf_launch_order *order,
                                     struct rf_err *err) RF_MUST_CHECK;
/* Closes the stream and ends the launch; again with force to hurry. A stream
 * that comes later closes at once. */
void rf_agent_stream_stop(struct rf_agent_stream *agent, bool force);

/* Which of the node's processes it is. */
void rf_agent_stream_identify(struct rf_agent_stream *agent, uint32_t pid,
                              uint64_t start_ticks);
/* Where this machine is as the agent sees it; NULL: not known. */
const char *rf_agent_stream_head_address(const struct rf_agent_stream *agent);

bool rf_agent_stream_is_launched(
    const struct rf_agent_stream *agent); /* and not over */
bool rf_agent_stream_has_stream(const struct rf_agent_stream *agent);
/* Whether the worker's banner has come on the stream. */
bool rf_agent_stream_has_answered(const struct rf_agent_stream *agent);
/* Whether launch and stream are over. */
bool rf_agent_stream_is_closed(const struct rf_agent_stream *agent);

void rf_agent_stream_destroy(
    struct rf_agent_stream *agent); /* only once closed */

#endif
