/*
 * Output of ranks. See agent_internal.h.
 *
 * Output is always read, so that a rank never blocks on it, but forwarded only
 * within the rank's credit: a flood costs the run nothing but the flood's own
 * lines. The last bytes are always kept for RANK_EXIT. Lines that fit the
 * buffer are forwarded whole.
 */
#include "worker/agent/agent_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

static void keep_tail(struct agent_output *output, const char *bytes,
                      size_t size)
{
    size_t room;
    if (size >= RF_AGENT_TAIL_BYTES) {
        memcpy(output->tail, bytes + (size - RF_AGENT_TAIL_BYTES),
               RF_AGENT_TAIL_BYTES);
        output->tail_used = RF_AGENT_TAIL_BYTES;
        return;
    }
    room = RF_AGENT_TAIL_BYTES - output->tail_used;
    if (size > room) {
        memmove(output->tail, output->tail + (size - room),
                output->tail_used - (size - room));
        output->tail_used -= size - room;
    }
    memcpy(output->tail + output->tail_used, bytes, size);
    output->tail_used += size;
}

static void send_log(struct agent_rank *rank, const char *bytes, size_t size)
{
    if (rank->agent->control != NULL) {
        rf_conn_send_raw(rank->agent->control, RF_MSG_LOG, rank->rank, bytes,
                         size);
    }
}

/* Forwards `size` bytes if there is credit for them, and for a note of those
 * that there was none for. */
static void pass_on(struct agent_rank *rank, const char *bytes, size_t size)
{
    struct agent_output *output = &rank->output;
    int64_t now = rf_now_ns();
    char note[80];
    size_t length = 0;
    output->credit +=
        (double)(now - output->credit_ns) / 1e9 * RF_AGENT_OUTPUT_RATE;
    output->credit = RF_MIN(output->credit, RF_AGENT_OUTPUT_BURST);
    output->credit_ns = now;
    if (output->dropped > 0) {
        length = (size_t)snprintf(note, sizeof(note),
                                  "(%llu bytes of output left out)\n",
                                  (unsigned long long)output->dropped);
    }
    if (output->credit < (double)(size + length)) {
        output->dropped += size;
        return;
    }
    output->credit -= (double)(size + length);
    if (length > 0) {
        send_log(rank, note, length);
        output->dropped = 0;
    }
    send_log(rank, bytes, size);
}

/* Forwards whole lines; with `all`, or if the buffer is full, also the rest. */
static void pass_lines(struct agent_rank *rank, bool all)
{
    struct agent_output *output = &rank->output;
    size_t size = output->line_used;
    if (!all && size < sizeof(output->line)) {
        const char *last = memrchr(output->line, '\n', size);
        size = last != NULL ? (size_t)(last - output->line) + 1 : 0;
    }
    if (size > 0) {
        rf_text_redact(output->line, size);
        keep_tail(output, output->line, size);
        pass_on(rank, output->line, size);
        output->line_used -= size;
        memmove(output->line, output->line + size, output->line_used);
    }
}

void rf_agent_output_read(struct agent_rank *rank, bool all)
{
    struct agent_output *output = &rank->output;
    /* Bounded, so that one rank's flood does not hold up the loop. */
    for (int turns = 0; output->fd >= 0 && turns < 64; turns++) {
        char *to = output->line + output->line_used;
        ssize_t got =
            read(output->fd, to, sizeof(output->line) - output->line_used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            break;
        }
        if (got <= 0) {
            rf_agent_output_close(rank);
            break;
        }
        output->line_used += (size_t)got;
        pass_lines(rank, false);
    }
    pass_lines(rank, all);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct agent_rank *rank = poll->data;
    (void)status; /* read() reports errors */
    (void)events;
    rf_agent_output_read(rank, false);
}

enum rf_status rf_agent_output_open(struct agent_rank *rank, int fd,
                                    struct rf_err *err)
{
    struct agent_output *output = &rank->output;
    int result = uv_poll_init(&rank->agent->loop, &output->poll, fd);
    if (result != 0) {
        close(fd);
        return rf_err_set(err, RF_ERR_LAUNCH, "cannot watch its output: %s",
                          uv_strerror(result));
    }
    output->fd = fd;
    output->credit = RF_AGENT_OUTPUT_BURST;
    output->credit_ns = rf_now_ns();
    output->poll.data = rank;
    uv_poll_start(&output->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    rank->handles++;
    return RF_OK;
}

static void on_poll_closed(uv_handle_t *handle)
{
    rf_agent_rank_released(handle->data);
}

void rf_agent_output_close(struct agent_rank *rank)
{
    struct agent_output *output = &rank->output;
    if (output->fd < 0) {
        return;
    }
    uv_close((uv_handle_t *)&output->poll, on_poll_closed);
    close(output->fd);
    output->fd = -1;
}
