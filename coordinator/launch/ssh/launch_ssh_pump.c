/*
 * One command on one channel: carries its standard input and output from and to
 * the caller's stream, splits its standard error into lines, and takes its end:
 * an exit status, a signal, or a connection lost without either.
 *
 * Everything here is non-blocking except the wait in poll(). It reads from the
 * stream only what fits into the channel's window, and from the channel's
 * output only what the stream takes, so both ends feel each other's
 * back-pressure; standard error is always read, or it would use up the window.
 * No pty, no environment, no agent forwarding.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "coordinator/launch/ssh/launch_ssh.h"

#define PUMP_BYTES (64u << 10)
#define LINGER_MS 2000 /* for the remaining output once the status is known */

/* Bytes in transit: buffer[at, used). */
struct half {
    char *buffer;
    size_t at, used;
};

struct pump {
    struct rf_ssh_job *job;
    ssh_session session;
    ssh_channel channel;
    ssh_event event;      /* reading alone stops at the end of file; the
                             status and the close come after it */
    struct half up, down; /* to the node, from the node */
    struct rf_lines lines;
    bool input_ended; /* the caller's; the node has been told */
    bool output_ended, stream_gone, lost;
    bool stopping, forced;
    struct rf_ssh_exit end;
    int64_t over_ns; /* when to stop waiting for more; 0: not set */
    int64_t kill_ns; /* when to kill the agent; 0: never */
    struct rf_ssh_kill kill;
};

static void take_line(const char *line, void *data)
{
    rf_ssh_post(data, RF_SSH_STDERR, 0, line);
}

static void take_proxy_line(const char *line, void *data)
{
    struct rf_ssh_job *job = data;
    if (line[0] != '\0') {
        rf_ssh_note(job, "proxy: %s", line);
    }
}

void rf_ssh_drain_proxy(struct rf_ssh_job *job)
{
    struct rf_lines lines = {.take = take_proxy_line, .data = job};
    char bytes[1024];
    ssize_t got = -1;
    while (job->proxy_errors >= 0 &&
           (got = read(job->proxy_errors, bytes, sizeof(bytes))) > 0) {
        rf_lines_feed(&lines, bytes, (size_t)got);
    }
    rf_lines_end(&lines);
    if (got == 0) { /* the proxy has ended */
        rf_fd_close(&job->proxy_errors);
    }
}

/* Each step returns whether it moved anything. */

static bool pump_errors(struct pump *pump)
{
    char bytes[4096];
    int got =
        ssh_channel_read_nonblocking(pump->channel, bytes, sizeof(bytes), 1);
    if (got > 0) {
        rf_lines_feed(&pump->lines, bytes, (size_t)got);
    }
    pump->lost = pump->lost || got == SSH_ERROR;
    return got > 0;
}

static bool pump_down(struct pump *pump)
{
    struct half *down = &pump->down;
    bool moved = false;
    if (down->at == down->used && !pump->output_ended) {
        int got = ssh_channel_read_nonblocking(pump->channel, down->buffer,
                                               PUMP_BYTES, 0);
        down->at = 0;
        down->used = got > 0 ? (size_t)got : 0;
        moved = got > 0;
        pump->lost = pump->lost || got == SSH_ERROR;
        pump->output_ended = got == SSH_EOF;
    }
    if (down->at < down->used && !pump->stream_gone) {
        ssize_t put = send(pump->job->stream_fd, down->buffer + down->at,
                           down->used - down->at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put > 0) {
            down->at += (size_t)put;
            moved = true;
        } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
            pump->stream_gone = true;
        }
    }
    if (pump->stream_gone) {
        down->at = down->used = 0;
    }
    return moved;
}

static void end_input(struct pump *pump)
{
    if (!pump->input_ended) {
        pump->input_ended = true;
        (void)ssh_channel_send_eof(pump->channel);
    }
}

static bool pump_up(struct pump *pump)
{
    struct half *up = &pump->up;
    bool moved = false;
    int put;
    if (up->at == up->used && !pump->input_ended) {
        size_t window = ssh_channel_window_size(pump->channel);
        ssize_t got = window == 0 ? -1
                                  : recv(pump->job->stream_fd, up->buffer,
                                         RF_MIN(window, (size_t)PUMP_BYTES),
                                         MSG_DONTWAIT);
        up->at = 0;
        up->used = got > 0 ? (size_t)got : 0;
        moved = got > 0;
        if (got == 0 ||
            (got < 0 && window > 0 && errno != EAGAIN && errno != EINTR)) {
            end_input(pump);
        }
    }
    if (up->at < up->used) {
        put = ssh_channel_write(pump->channel, up->buffer + up->at,
                                (uint32_t)(up->used - up->at));
        if (put > 0) {
            up->at += (size_t)put;
            moved = true;
        } else if (put < 0 && put != SSH_AGAIN) {
            up->at = up->used; /* the channel's end tells the rest */
        }
    }
    return moved;
}

static void look_at_stop(struct pump *pump)
{
    uint64_t count;
    (void)!read(pump->job->wake_fd, &count, sizeof(count));
    switch (atomic_load(&pump->job->stop)) {
    case RF_SSH_CUT:
        pump->lost = true;
        break;
    case RF_SSH_KILL:
        if (!pump->forced) {
            pump->forced = pump->stopping = true;
            end_input(pump);
            pump->kill_ns = rf_now_ns();
            pump->over_ns = pump->kill_ns + RF_SSH_KILL_MS * RF_NS_PER_MS;
        }
        break;
    case RF_SSH_STOP:
        if (!pump->stopping) {
            pump->stopping = true;
            end_input(pump);
            pump->over_ns = rf_now_ns() + pump->job->grace_ms * RF_NS_PER_MS;
            pump->kill_ns = pump->over_ns - RF_SSH_KILL_MS * RF_NS_PER_MS;
        }
        break;
    default:
        break;
    }
}

static void kill_when_due(struct pump *pump)
{
    if (pump->kill.state != RF_SSH_KILL_IDLE) {
        rf_ssh_kill_go_on(&pump->kill, pump->session);
    } else if (pump->kill_ns != 0 && rf_now_ns() >= pump->kill_ns) {
        pump->kill_ns = 0;
        if (!pump->end.known) {
            rf_ssh_kill_begin(&pump->kill, pump->job, pump->session);
        }
    }
}

/* Waits for bytes, a change of `stop`, or the next deadline. */
static void wait_for_work(struct pump *pump)
{
    struct pollfd fds[4] = {{.fd = ssh_get_fd(pump->session), .events = POLLIN},
                            {.fd = pump->job->stream_fd},
                            {.fd = pump->job->wake_fd, .events = POLLIN},
                            {.fd = pump->job->proxy_errors, .events = POLLIN}};
    int timeout = -1;
    if ((ssh_get_poll_flags(pump->session) & SSH_WRITE_PENDING) != 0 ||
        pump->up.at < pump->up.used) {
        fds[0].events |= POLLOUT;
    }
    if (!pump->input_ended && pump->up.at == pump->up.used &&
        ssh_channel_window_size(pump->channel) > 0) {
        fds[1].events |= POLLIN;
    }
    if (pump->down.at < pump->down.used) {
        fds[1].events |= POLLOUT;
    }
    if (fds[1].events == 0) {
        fds[1].fd = -1; /* its hang-up would wake us forever */
    }
    if (pump->over_ns != 0) {
        int64_t next = pump->kill_ns != 0 ? RF_MIN(pump->kill_ns, pump->over_ns)
                                          : pump->over_ns;
        int64_t left = (next - rf_now_ns()) / RF_NS_PER_MS + 1;
        timeout = (int)RF_MAX(left, INT64_C(0));
    }
    (void)poll(fds, 4, timeout);
    rf_ssh_drain_proxy(pump->job);
}

static bool is_over(struct pump *pump)
{
    bool closed = ssh_channel_is_closed(pump->channel) ||
                  !ssh_is_connected(pump->session);
    bool drained = pump->down.at == pump->down.used;
    if ((pump->end.known || closed) && pump->over_ns == 0) {
        pump->over_ns = rf_now_ns() + LINGER_MS * RF_NS_PER_MS;
    }
    return pump->lost || (closed && drained) ||
           (pump->over_ns != 0 && rf_now_ns() >= pump->over_ns);
}

static void carry(struct pump *pump)
{
    ssh_set_blocking(pump->session, 0);
    for (;;) {
        bool moved;
        (void)ssh_event_dopoll(pump->event, 0);
        moved = pump_errors(pump);
        moved = pump_down(pump) || moved;
        moved = (!pump->lost && pump_up(pump)) || moved;
        look_at_stop(pump);
        kill_when_due(pump);
        if (moved && !pump->lost) {
            continue;
        }
        if (is_over(pump)) {
            break;
        }
        wait_for_work(pump);
    }
    rf_lines_end(&pump->lines);
    if (!pump->end.known && rf_ssh_kill_failure(&pump->kill) != NULL) {
        char process[32] = "";
        if (pump->kill.pid != 0) {
            snprintf(process, sizeof(process), ", process %" PRIu32 ",",
                     pump->kill.pid);
        }
        rf_ssh_note(pump->job, "its agent%s may still be there: %s", process,
                    rf_ssh_kill_failure(&pump->kill));
    }
    rf_ssh_kill_free(&pump->kill);
    ssh_set_blocking(pump->session, 1);
}

/* The head's address towards this node; NULL through a proxy. */
static const char *local_address(ssh_session session, char *out, size_t size)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(address);
    if (getsockname(ssh_get_fd(session), (struct sockaddr *)&address,
                    &length) != 0 ||
        (address.ss_family != AF_INET && address.ss_family != AF_INET6) ||
        getnameinfo((struct sockaddr *)&address, length, out, (socklen_t)size,
                    NULL, 0, NI_NUMERICHOST) != 0) {
        return NULL;
    }
    return out;
}

static enum rf_status execute(struct pump *pump, const char *command,
                              struct rf_err *err)
{
    pump->event = ssh_event_new();
    if (pump->event == NULL ||
        ssh_event_add_session(pump->event, pump->session) != SSH_OK) {
        return rf_err_set(err, RF_ERR_NOMEM, "no SSH event");
    }
    RF_TRY(rf_ssh_check(pump->job, "starting the worker", err));
    RF_TRY(rf_ssh_open_channel(pump->session, &pump->channel, err));
    rf_ssh_exit_watch(&pump->end, pump->channel);
    rf_ssh_forget(pump->session);
    if (ssh_channel_request_exec(pump->channel, command) != SSH_OK) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "the server does not run \"%s\": %s", command,
                          rf_ssh_reason(pump->session));
    }
    return RF_OK;
}

enum rf_status rf_ssh_run(struct rf_ssh_job *job, ssh_session session,
                          const char *command, struct rf_ssh_outcome *out,
                          struct rf_err *err)
{
    struct pump pump = {.job = job, .session = session, .end = {.status = -1}};
    char address[64];
    enum rf_status status = execute(&pump, command, err);
    if (status == RF_OK) {
        pump.lines.take = take_line;
        pump.lines.data = job;
        pump.up.buffer = rf_xmalloc(PUMP_BYTES);
        pump.down.buffer = rf_xmalloc(PUMP_BYTES);
        rf_ssh_set_deadline(job, 0);
        rf_ssh_post(job, RF_SSH_STREAM, 0,
                    local_address(session, address, sizeof(address)));
        carry(&pump);
        free(pump.up.buffer);
        free(pump.down.buffer);
        /* Ends the stream before the exit is reported. */
        rf_fd_close(&job->stream_fd);
    }
    if (pump.channel != NULL) {
        rf_ssh_exit_unwatch(&pump.end, pump.channel);
    }
    if (pump.event != NULL) {
        (void)ssh_event_remove_session(pump.event, session);
        ssh_event_free(pump.event);
    }
    if (pump.channel != NULL) {
        ssh_channel_free(pump.channel);
    }
    out->status = pump.end.status;
    out->signal = pump.end.signal;
    return status;
}
