/*
 * Starts an attempt: finds this node's ranks in the world and starts a process
 * for each. See agent_internal.h.
 *
 * A rank that fails to start is reported like one that ended. If ranks cannot
 * be placed, one report covers all of them. The coordinator then aborts the
 * attempt.
 */
#include "worker/agent/agent_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "worker/agent/folder_signs.h"
#include "worker/shared/process.h"
#include "worker/shared/start_task.h"

/* Streams between agent and rank: ours are [0], the rank's [1]. */
struct streams {
    int control[2], output[2];
};

static enum rf_status make_streams(struct streams *streams, struct rf_err *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams->control) !=
        0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
    }
    if (pipe2(streams->output, O_CLOEXEC) != 0) {
        rf_err_errno(err, RF_ERR_LAUNCH, errno, "pipe");
        close(streams->control[0]);
        close(streams->control[1]);
        return RF_ERR_LAUNCH;
    }
    fcntl(streams->output[0], F_SETFL, O_NONBLOCK);
    return RF_OK;
}

static enum rf_status spawn(struct agent_rank *rank,
                            const struct streams *streams, struct rf_err *err)
{
    struct agent *agent = rank->agent;
    const struct rf_msg_boot_limits *limits = &agent->boot.limits;
    char text[6][16];
    const char *argv[] = {
        "refit-worker", "--rank",     text[0], "--parent",
        text[1],        "--lease-ms", text[2], "--lease-period-ms",
        text[3],        "--abort-ms", text[4], "--log-level",
        text[5],        NULL};
    struct rf_spawn how = {.program = "/proc/self/exe",
                           .argv = argv,
                           .environment = agent->environment,
                           .control_fd = streams->control[1],
                           .output_fd = streams->output[1],
                           .cpus = rank->cpus};
    snprintf(text[0], sizeof(text[0]), "%" PRIu32, rank->rank);
    snprintf(text[1], sizeof(text[1]), "%d", (int)getpid());
    snprintf(text[2], sizeof(text[2]), "%" PRIu32, limits->lease_dead_ms);
    snprintf(text[3], sizeof(text[3]), "%" PRIu32, limits->lease_period_ms);
    snprintf(text[4], sizeof(text[4]), "%" PRIu32, limits->abort_grace_ms);
    snprintf(text[5], sizeof(text[5]), "%d", (int)rf_log_level());
    return rf_process_spawn(&how, &rank->pid, err);
}

/* Starts the rank's process, with our ends of its streams on the loop. */
static enum rf_status launch_rank(struct agent_rank *rank, struct rf_err *err)
{
    struct streams streams;
    uv_pipe_t *pipe;
    enum rf_status status;
    RF_TRY(make_streams(&streams, err));
    status = rf_agent_output_open(rank, streams.output[0], err);
    if (status != RF_OK) {
        close(streams.control[0]);
        goto close_theirs;
    }
    status = spawn(rank, &streams, err);
    if (status != RF_OK) {
        rf_agent_output_close(rank);
        close(streams.control[0]);
        goto close_theirs;
    }
    rf_debug("rank %" PRIu32 " is process %d", rank->rank, (int)rank->pid);
    pipe = rf_xmalloc(sizeof(*pipe));
    uv_pipe_init(&rank->agent->loop, pipe, 0);
    uv_pipe_open(pipe, streams.control[0]); /* a socket just made */
    rank->conn =
        rf_conn_open((uv_stream_t *)pipe, NULL, &rf_agent_rank_ops, rank);
    rank->handles++;
close_theirs:
    close(streams.control[1]);
    close(streams.output[1]);
    return status;
}

static void start_rank(struct agent_rank *rank, const void *start, size_t size)
{
    struct rf_err err;
    rank->output.fd = -1;
    if (launch_rank(rank, &err) != RF_OK) {
        rank->exited = true;
        rank->output.tail_used =
            RF_MIN(strlen(err.text), sizeof(rank->output.tail));
        memcpy(rank->output.tail, err.text, rank->output.tail_used);
        rf_agent_report_exit(rank, 0);
        return;
    }
    rf_conn_send_raw(rank->conn, RF_MSG_START, rank->rank, start, size);
}

/* Makes the entries of this node's ranks. */
static void list_ranks(struct agent *agent, const struct rf_world *world)
{
    size_t capacity = 0;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const uint32_t slot = world->ranks[r].slot;
        struct agent_rank *rank;
        if (world->ranks[r].node != agent->boot.message.node) {
            continue;
        }
        rank = rf_xcalloc(1, sizeof(*rank));
        rank->agent = agent;
        rank->rank = r;
        rank->output.fd = -1;
        if (agent->slot_cpus != NULL &&
            slot < agent->boot.message.bind->slots) {
            rank->cpus = &agent->slot_cpus[slot];
        }
        RF_PUSH(agent->ranks, agent->n_ranks, capacity, rank);
    }
}

/* Records folder and labels of the files that killed ranks leave behind. */
static void note_files(struct agent *agent, const struct rf_spec *spec,
                       const char *data_key)
{
    uint8_t key[RF_DATA_KEY_BYTES];
    free(agent->disk_folder);
    agent->disk_folder = NULL;
    if (spec->disk_folder != NULL &&
        rf_hex_decode(data_key, key, sizeof(key)) &&
        rf_disk_label(key, getpid(), agent->disk_label)) {
        rf_method_yardstick_key(key);
        if (rf_disk_label(key, getpid(), agent->yardstick_label)) {
            agent->disk_folder = rf_xstrdup(spec->disk_folder);
        }
    }
    explicit_bzero(key, sizeof(key));
}

static void start_ranks(struct agent *agent, const void *payload, size_t size)
{
    rf_agent_move_attempt(agent, ATTEMPT_RUNNING, 0);
    for (size_t i = 0; i < agent->n_ranks; i++) {
        start_rank(agent->ranks[i], payload, size);
    }
    rf_debug("attempt %" PRIu32 ": %zu ranks started", agent->attempt,
             agent->n_ranks);
}

/* One report for all ranks of the node, whose numbers are unknown. */
static void report_unplaced(struct agent *agent, const struct rf_err *why)
{
    struct rf_msg message;
    struct rf_msg_rank_exit *out = &message.rank_exit;
    rf_msg_init(&message, RF_MSG_RANK_EXIT);
    out->attempt = agent->attempt;
    out->cause = rf_xstrdup(why->text);
    rf_text_clean(out->cause, strlen(out->cause));
    out->phase = rf_xstrdup(agent->phase);
    rf_agent_send(agent, &message);
    rf_msg_free(&message);
}

/* Makes the entries of the attempt's ranks; none is an error. */
static enum rf_status
place(struct agent *agent, const struct rf_msg_start *start, struct rf_err *err)
{
    struct rf_start_task *task;
    RF_TRY(rf_start_task_place(start, &task, err));
    note_files(agent, task->spec, start->data_key);
    list_ranks(agent, task->world);
    rf_start_task_destroy(task);
    return agent->n_ranks > 0 ? RF_OK
                              : rf_err_set(err, RF_ERR_PROTOCOL,
                                           "START has no rank of node %" PRIu32,
                                           agent->boot.message.node);
}

static void start_now(struct agent *agent, const void *payload, size_t size)
{
    const struct rf_frame frame = {
        .type = RF_MSG_START, .length = (uint32_t)size, .payload = payload};
    struct rf_err err = {.text = ""};
    struct rf_msg message;
    if (rf_msg_read(&frame, &message, &err) != RF_OK) {
        rf_agent_refuse(agent, err.text);
        return;
    }
    rf_folder_signs_remove(&agent->boot.message, false);
    agent->attempt = message.start.attempt;
    agent->abort_wanted = false;
    snprintf(agent->phase, sizeof(agent->phase), "start");
    if (place(agent, &message.start, &err) == RF_OK) {
        start_ranks(agent, payload, size);
    } else {
        report_unplaced(agent, &err);
    }
    rf_msg_free(&message);
}

void rf_agent_start(struct agent *agent, const void *payload, size_t size)
{
    if (agent->attempt_sm.state == ATTEMPT_NONE) {
        start_now(agent, payload, size);
        return;
    }
    if (agent->attempt_sm.state == ATTEMPT_RUNNING ||
        agent->waiting_start != NULL) {
        rf_agent_end(agent, 1, "START while an attempt is running");
        return;
    }
    agent->waiting_start = rf_xmalloc(size);
    agent->waiting_start_bytes = size;
    memcpy(agent->waiting_start, payload, size);
}

void rf_agent_start_waiting(struct agent *agent)
{
    uint8_t *payload = agent->waiting_start;
    struct rf_msg_step *step = agent->waiting_step;
    agent->waiting_start = NULL;
    agent->waiting_step = NULL;
    start_now(agent, payload, agent->waiting_start_bytes);
    free(payload);
    if (step != NULL) {
        rf_agent_step(agent, step);
        rf_schema_free(&rf_msg_step_schema, step);
        free(step);
    }
}

void rf_agent_forget_waiting(struct agent *agent)
{
    free(agent->waiting_start);
    agent->waiting_start = NULL;
    if (agent->waiting_step != NULL) {
        rf_schema_free(&rf_msg_step_schema, agent->waiting_step);
        free(agent->waiting_step);
        agent->waiting_step = NULL;
    }
}
