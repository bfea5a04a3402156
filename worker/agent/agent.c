/*
 * The agent: joining, leases, dispatch, end. See agent.h, agent_internal.h and
 * docs/PROTOCOL.md.
 *
 * Happy path: BOOT on standard input, banner, survey of the node, connection
 * back, HELLO, WELCOME; then messages until SHUTDOWN. An early end always kills
 * the ranks, then exits. Its causes: the end of standard input (except with
 * --connect) or of the control connection, an expired lease, SIGTERM, SIGHUP
 * or, with --connect, SIGINT, an invalid message, a state that lasts too long.
 */
#include "worker/agent/agent_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/folders.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/store.h"
#include "common/text.h"
#include "transport/net/loop.h"
#include "worker/agent/bind.h"
#include "worker/agent/folder_signs.h"
#include "worker/agent/join.h"
#include "worker/agent/ucx_device.h"
#include "worker/helper/inspect.h"
#include "worker/helper/survey.h"
#include "worker/shared/process.h"

#define BOOT_LIMIT_MS 60000
/* Less than the coordinator's limit for a launched agent's HELLO. */
#define SURVEY_LIMIT_MS 30000
#define GREETING_LIMIT_MS 60000
#define END_LIMIT_MS 5000
#define REACH_CONNECT_MS 5000
#define REACH_ANSWER_MS 4000
#define MANUAL_JOIN_MS 60000
#define TICK_MS 100
#define BURST_TICK_MS 20

static const struct rf_sm_state agent_states[AGENT_STATES] = {
    [AGENT_BOOTING] = {"booting",
                       RF_SM_NEXT(AGENT_SURVEYING) | RF_SM_NEXT(AGENT_ENDING),
                       0},
    [AGENT_SURVEYING] = {"surveying",
                         RF_SM_NEXT(AGENT_JOINING) |
                             RF_SM_NEXT(AGENT_GREETING) |
                             RF_SM_NEXT(AGENT_ENDING),
                         0},
    [AGENT_JOINING] = {"joining",
                       RF_SM_NEXT(AGENT_GREETING) | RF_SM_NEXT(AGENT_BOOTING) |
                           RF_SM_NEXT(AGENT_ENDING),
                       0},
    [AGENT_GREETING] = {"greeting",
                        RF_SM_NEXT(AGENT_READY) | RF_SM_NEXT(AGENT_ENDING), 0},
    [AGENT_READY] = {"ready", RF_SM_NEXT(AGENT_ENDING), 0},
    [AGENT_ENDING] = {"ending", 0, 0},
};

static void move(struct agent *agent, enum agent_state state, uint32_t limit_ms)
{
    int64_t now = rf_now_ns();
    rf_sm_move(&agent->sm, state, now);
    agent->state_deadline_ns =
        limit_ms > 0 ? now + limit_ms * RF_NS_PER_MS : INT64_MAX;
}

const char *rf_agent_exported(const struct agent *agent)
{
    const struct rf_msg_shared *shared = agent->boot.message.shared;
    return shared != NULL ? shared->exported : NULL;
}

void rf_agent_send(struct agent *agent, const struct rf_msg *message)
{
    if (agent->control != NULL) {
        rf_conn_send(agent->control, message->type, RF_FRAME_NO_RANK,
                     rf_msg_json(message));
    }
}

void rf_agent_refuse(struct agent *agent, const char *why)
{
    struct rf_msg message;
    char *text = rf_xstrdup(why);
    rf_text_clean(text, strlen(text));
    rf_msg_init(&message, RF_MSG_ERROR);
    message.error.text = text;
    if (agent->control == NULL) {
        agent->control = agent->stdio;
    }
    rf_agent_send(agent, &message);
    rf_agent_end(agent, 1, text);
    rf_msg_free(&message);
}

void rf_agent_end(struct agent *agent, int exit_code, const char *why)
{
    if (agent->sm.state == AGENT_ENDING) {
        return;
    }
    if (exit_code != 0) {
        rf_warn("ending: %s", why);
    }
    move(agent, AGENT_ENDING, END_LIMIT_MS);
    agent->exit_code = exit_code;
    rf_agent_kill_ranks(agent, SIGKILL);
    if (agent->input != NULL) {
        uv_close((uv_handle_t *)agent->input, (uv_close_cb)free);
        agent->input = NULL;
    }
    if (agent->join != NULL) {
        rf_join_cancel(agent->join);
        agent->join = NULL;
    }
    if (agent->survey != NULL) {
        rf_helper_cancel(agent->survey);
        agent->survey = NULL;
    }
    if (agent->inspect != NULL) {
        rf_helper_cancel(agent->inspect);
        agent->inspect = NULL;
    }
    rf_reach_end(agent->reach);
    agent->reach = NULL;
    if (agent->control != NULL) {
        rf_conn_close(agent->control);
    }
    if (agent->stdio != NULL && agent->stdio != agent->control) {
        rf_conn_close(agent->stdio);
    }
    uv_timer_set_repeat(&agent->tick, BURST_TICK_MS);
    uv_timer_again(&agent->tick);
}

/* --- Leases and time ------------------------------------------------------ */

/* Adds the progress of the node's ranks if they read a checkpoint. */
static void add_reading(const struct agent *agent, struct rf_msg_lease *lease)
{
    uint64_t done = 0, of = 0;
    for (size_t i = 0; i < agent->n_ranks; i++) {
        done += agent->ranks[i]->done_bytes;
        of += agent->ranks[i]->of_bytes;
    }
    if (of > 0) {
        lease->done_bytes = RF_MIN(done, (uint64_t)RF_MSG_BYTES_MAX);
        lease->of_bytes = RF_MIN(of, (uint64_t)RF_MSG_BYTES_MAX);
    }
}

static void send_lease(struct agent *agent, int64_t now)
{
    struct rf_msg message;
    rf_msg_init(&message, RF_MSG_LEASE);
    message.lease.t = now;
    if (agent->peer_at_ns != 0) {
        message.lease.echo = agent->peer_t;
        message.lease.echo_at = agent->peer_at_ns;
    }
    add_reading(agent, &message.lease);
    agent->lease_ns = now;
    rf_agent_send(agent, &message);
}

static void on_lease(struct agent *agent, const struct rf_msg_lease *lease)
{
    int64_t now = rf_now_ns();
    agent->peer_t = lease->t;
    agent->peer_at_ns = now;
    if (lease->echo > 0 && lease->echo_at != RF_ABSENT_I64) {
        rf_clock_add(&agent->clock, lease->echo, lease->echo_at, lease->t, now);
    }
}

/* After this process was stopped, or the machine slept, the missed time must
 * not count against others: leases get one more period. */
static void notice_sleep(struct agent *agent, int64_t now)
{
    const struct rf_msg_boot_limits *limits = &agent->boot.limits;
    if (now - agent->tick_ns > limits->lease_dead_ms * RF_NS_PER_MS / 3) {
        agent->lease_grace_ns = now + limits->lease_period_ms * RF_NS_PER_MS;
    }
    agent->tick_ns = now;
}

static void tick_ready(struct agent *agent, int64_t now)
{
    const struct rf_msg_boot_limits *limits = &agent->boot.limits;
    bool due = now - agent->lease_ns >= limits->lease_period_ms * RF_NS_PER_MS;
    notice_sleep(agent, now);
    if (now > agent->lease_grace_ns &&
        now - rf_conn_last_heard_ns(agent->control) >
            limits->lease_dead_ms * RF_NS_PER_MS) {
        rf_agent_end(agent, 1, "the coordinator has been silent too long");
        return;
    }
    if (due || agent->burst > 0) {
        send_lease(agent, now);
    }
    rf_agent_lease_ranks(agent, now, due);
    if (agent->burst > 0 && --agent->burst == 0) {
        uv_timer_set_repeat(
            &agent->tick,
            RF_MIN((uint64_t)TICK_MS, limits->lease_period_ms / 2 + 1));
        uv_timer_again(&agent->tick);
    }
    rf_agent_attempt_tick(agent, now);
}

static void close_handles(struct agent *agent)
{
    uv_close((uv_handle_t *)&agent->tick, NULL);
    uv_close((uv_handle_t *)&agent->term, NULL);
    uv_close((uv_handle_t *)&agent->hangup, NULL);
    uv_close((uv_handle_t *)&agent->interrupt, NULL);
    uv_close((uv_handle_t *)&agent->child, NULL);
}

static void tick_ending(struct agent *agent, int64_t now)
{
    if (rf_agent_ranks_gone(agent)) {
        rf_process_kill_strays(NULL, 0);
        close_handles(agent);
    } else if (now >= agent->state_deadline_ns) {
        rf_warn("some ranks cannot be killed");
        uv_stop(&agent->loop);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    int64_t now = rf_now_ns();
    if (agent->sm.state == AGENT_ENDING) {
        tick_ending(agent, now);
    } else if (agent->sm.state == AGENT_READY) {
        tick_ready(agent, now);
    } else if (now >= agent->state_deadline_ns) {
        char why[80];
        snprintf(why, sizeof(why), "%s took too long",
                 rf_sm_state_name(&agent->sm));
        rf_agent_end(agent, 1, why);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct agent *agent = handle->data;
    if (number == SIGCHLD) {
        rf_agent_reap(agent);
    } else {
        rf_agent_end(agent, 1,
                     number == SIGTERM  ? "SIGTERM"
                     : number == SIGINT ? "SIGINT"
                                        : "SIGHUP");
    }
}

/* --- Joining -------------------------------------------------------------- */

/* The best known address of this node for other nodes, to be freed; NULL:
 * unknown. */
static char *data_address(const struct agent *agent)
{
    char text[256], *server = NULL;
    const char *ssh = getenv("SSH_CONNECTION");
    if (agent->boot.message.data_address != NULL) {
        return rf_xstrdup(agent->boot.message.data_address);
    }
    if (agent->local_address[0] != '\0') {
        return rf_xstrdup(agent->local_address);
    }
    if (ssh != NULL) {
        /* SSH_CONNECTION: "client client-port server server-port" */
        char *save = NULL;
        snprintf(text, sizeof(text), "%s", ssh);
        server = strtok_r(text, " ", &save);
        for (int field = 1; server != NULL && field < 3; field++) {
            server = strtok_r(NULL, " ", &save);
        }
    }
    return rf_xstrdup_or_null(server);
}

/* UCX over TCP may use any interface, even a bridge with the same address on
 * every node: ranks must use that of the data address. */
static void choose_ucx_device(struct agent *agent, struct rf_msg_hello *hello)
{
    char *device = rf_ucx_device(hello);
    if (device != NULL &&
        rf_process_environment_add(&agent->environment, RF_UCX_DEVICE_VARIABLE,
                                   device)) {
        struct rf_text_pairs *env = &hello->env;
        env->list = rf_xrealloc(env->list, env->n + 1, sizeof(*env->list));
        env->list[env->n++] = (struct rf_text_pair){
            rf_xstrdup(RF_UCX_DEVICE_VARIABLE), rf_xstrdup(device)};
    }
    free(device);
}

/* Listens for the other nodes of a check. */
static void await_others(struct agent *agent, struct rf_msg_hello *hello)
{
    static const struct rf_reach_limits limits = {REACH_CONNECT_MS,
                                                  REACH_ANSWER_MS};
    const char *text = agent->boot.message.reach_key;
    uint8_t key[RF_PSK_BYTES];
    if (text != NULL && hello->address != NULL &&
        rf_hex_decode(text, key, sizeof(key))) {
        agent->reach =
            rf_reach_listen(&agent->loop, hello->address, hello->node, key,
                            limits, &hello->reach_port);
    }
    explicit_bzero(key, sizeof(key));
}

/* Sends the survey's facts and this process's own. */
static void send_hello(struct agent *agent)
{
    struct rf_msg message;
    struct rf_msg_hello *hello = &message.hello;
    char owner[RF_DISK_OWNER_SIZE];
    bool tcp = agent->control != agent->stdio;
    int64_t start_ticks = rf_process_start_ticks();
    message.type = RF_MSG_HELLO;
    *hello = agent->facts;
    rf_schema_init(&rf_msg_hello_schema, &agent->facts);
    free(hello->protocol.list);
    hello->protocol.list = rf_xcalloc(2, sizeof(*hello->protocol.list));
    hello->protocol.list[0] = RF_PROTOCOL_MIN;
    hello->protocol.list[1] = RF_PROTOCOL_MAX;
    hello->protocol.n = 2;
    hello->node = agent->boot.message.node;
    free(hello->control);
    hello->control = rf_xstrdup(tcp ? "tcp" : "stdio");
    hello->candidate = rf_xstrdup(agent->candidate);
    hello->address = data_address(agent);
    hello->pid = (uint32_t)getpid();
    hello->start_ticks =
        start_ticks >= 0 ? (uint64_t)start_ticks : RF_ABSENT_U64;
    rf_folder_signs_leave(&agent->boot.message, hello, &agent->export_old);
    if (agent->boot.message.shared != NULL && rf_disk_owner(getpid(), owner)) {
        hello->files = rf_xstrdup(owner);
    }
    choose_ucx_device(agent, hello);
    await_others(agent, hello);
    move(agent, AGENT_GREETING, GREETING_LIMIT_MS);
    rf_agent_send(agent, &message);
    agent->facts.interfaces = hello->interfaces;
    agent->facts.n_interfaces = hello->n_interfaces;
    hello->interfaces = NULL;
    hello->n_interfaces = 0;
    rf_msg_free(&message);
}

static void on_joined(struct rf_conn *conn, const char *candidate,
                      const char *local, const char *why, void *data)
{
    struct agent *agent = data;
    explicit_bzero(agent->boot.psk, sizeof(agent->boot.psk));
    agent->join = NULL;
    if (conn != NULL) {
        agent->control = conn;
        snprintf(agent->candidate, sizeof(agent->candidate), "%s", candidate);
        snprintf(agent->local_address, sizeof(agent->local_address), "%s",
                 local);
    } else if (agent->options->connect) {
        char text[1200];
        snprintf(text, sizeof(text), "cannot reach the coordinator: %s", why);
        rf_agent_end(agent, 1, text);
        return;
    } else {
        rf_info("no connection back (%s), control stays on the channel", why);
        agent->control = agent->stdio;
    }
    if (agent->booted) {
        send_hello(agent);
    } else {
        move(agent, AGENT_BOOTING, BOOT_LIMIT_MS);
    }
}

/* The line after which the coordinator expects our frames. */
static bool print_banner(const char *nonce)
{
    char line[256];
    const int size =
        snprintf(line, sizeof(line), "\n%s %.128s\n", RF_BANNER, nonce);
    return rf_write_all(STDOUT_FILENO, line, (size_t)size) == 0;
}

static const struct rf_conn_ops control_ops;

static void connect_back(struct agent *agent)
{
    move(agent, AGENT_JOINING, 0);
    agent->join =
        rf_join_start(&agent->loop,
                      &(struct rf_join_how){
                          .candidates = agent->boot.message.candidates,
                          .n_candidates = agent->boot.message.n_candidates,
                          .identity = agent->boot.message.identity,
                          .psk = agent->boot.psk,
                          .total_ms = agent->boot.limits.connect_back_ms,
                      },
                      &control_ops, on_joined, agent);
}

/* Finds the processors of each slot; nothing to do without `launch.bind`. */
static enum rf_status bind_slots(struct agent *agent, struct rf_err *err)
{
    cpu_set_t allowed;
    const struct rf_bind_how how = {.root = "",
                                    .allowed = &allowed,
                                    .bind = agent->boot.message.bind,
                                    .where = agent->facts.topology};
    if (how.bind == NULL) {
        return RF_OK;
    }
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return rf_err_errno(err, RF_ERR_UNSUPPORTED, errno,
                            "$.launch.bind: sched_getaffinity");
    }
    return rf_bind_slots(&how, &agent->slot_cpus, err);
}

static void on_surveyed(struct rf_msg *answer, const char *why, void *data)
{
    struct agent *agent = data;
    struct rf_err err = {.text = ""};
    agent->survey = NULL;
    if (answer == NULL) {
        rf_agent_refuse(agent, why);
        return;
    }
    agent->facts = answer->hello;
    rf_schema_init(&rf_msg_hello_schema, &answer->hello);
    if (bind_slots(agent, &err) != RF_OK) {
        rf_agent_refuse(agent, err.text);
        return;
    }
    if (agent->control != NULL) {
        send_hello(agent);
    } else {
        connect_back(agent);
    }
}

static void on_boot(struct agent *agent, struct rf_msg_boot *message)
{
    struct rf_err err = {.text = ""};
    if (rf_boot_read(message, &agent->boot, &err) != RF_OK) {
        rf_agent_end(agent, 1, err.text);
        return;
    }
    agent->booted = true;
    rf_log_init((enum rf_log_level)agent->boot.message.log_level, NULL);
    agent->environment = rf_process_environment(&agent->boot.message.env);
    if (!agent->options->connect && !print_banner(agent->boot.message.nonce)) {
        rf_agent_end(agent, 1, "standard output is closed");
        return;
    }
    if (!agent->options->connect && agent->boot.message.n_candidates == 0) {
        agent->control = agent->stdio;
    }
    move(agent, AGENT_SURVEYING, 0);
    agent->survey = rf_survey_start(
        &agent->loop,
        &(struct rf_survey_how){agent->environment,
                                &agent->boot.message.untried, SURVEY_LIMIT_MS},
        on_surveyed, agent, &err);
    if (agent->survey == NULL) {
        rf_agent_refuse(agent, err.text);
    }
}

/* --- A checkpoint's headers ----------------------------------------------- */

static void on_inspected(struct rf_msg *answer, const char *why, void *data)
{
    struct agent *agent = data;
    struct rf_msg failed;
    agent->inspect = NULL;
    if (answer != NULL) {
        rf_agent_send(agent, answer);
        return;
    }
    rf_inspect_failed(why, &failed);
    rf_agent_send(agent, &failed);
    rf_msg_free(&failed);
}

static void inspect(struct agent *agent, const struct rf_msg_inspect *inspect)
{
    struct rf_err err = {.text = ""};
    if (agent->inspect != NULL) { /* the newest request counts */
        rf_helper_cancel(agent->inspect);
    }
    agent->inspect = rf_inspect_start(&agent->loop, agent->environment, inspect,
                                      on_inspected, agent, &err);
    if (agent->inspect == NULL) {
        on_inspected(NULL, err.text, agent);
    }
}

/* --- Other nodes ---------------------------------------------------------- */

static void on_reached(const struct rf_msg *reached, void *data)
{
    rf_agent_send(data, reached);
}

/* --- Messages ------------------------------------------------------------- */

static void on_message(struct agent *agent, struct rf_msg *message)
{
    switch (message->type) {
    case RF_MSG_WELCOME:
        if (agent->sm.state == AGENT_GREETING) {
            move(agent, AGENT_READY, 0);
            agent->tick_ns = rf_now_ns();
            agent->burst = RF_LEASE_BURST;
            uv_timer_set_repeat(&agent->tick, BURST_TICK_MS);
            uv_timer_again(&agent->tick);
        }
        break;
    case RF_MSG_LEASE:
        on_lease(agent, &message->lease);
        break;
    case RF_MSG_REACH:
        if (agent->reach == NULL ||
            !rf_reach_try(agent->reach, &message->reach, on_reached, agent)) {
            rf_agent_end(agent, 1, "REACH without need");
        }
        break;
    case RF_MSG_INSPECT:
        inspect(agent, &message->inspect);
        break;
    case RF_MSG_STEP:
        rf_agent_step(agent, &message->step);
        break;
    case RF_MSG_ABORT:
        rf_agent_abort(agent, &message->abort);
        break;
    case RF_MSG_SHUTDOWN:
        agent->gone = message->shutdown.gone;
        message->shutdown.gone = (struct rf_texts){NULL, 0};
        rf_agent_end(agent, 0, "shut down");
        break;
    case RF_MSG_ERROR:
        rf_agent_end(agent, 1, message->error.text);
        break;
    default:
        rf_warn("ignored a %s message in state %s",
                rf_msg_name((uint8_t)message->type),
                rf_sm_state_name(&agent->sm));
        break;
    }
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct agent *agent = data;
    struct rf_err err;
    struct rf_msg message;
    if (agent->sm.state == AGENT_ENDING ||
        (conn != agent->control && agent->booted)) {
        return;
    }
    if (frame->type == RF_MSG_START && agent->sm.state == AGENT_READY) {
        rf_agent_start(agent, frame->payload, frame->length);
        return;
    }
    if (frame->type == RF_MSG_EXCHANGED && agent->sm.state == AGENT_READY) {
        rf_agent_relay(agent, frame);
        return;
    }
    if (rf_msg_read(frame, &message, &err) != RF_OK) {
        rf_agent_end(agent, 1, err.text);
        return;
    }
    if (!agent->booted && frame->type == RF_MSG_BOOT) {
        on_boot(agent, &message.boot);
    } else if (!agent->booted) {
        rf_agent_end(agent, 1, "the first message is not BOOT");
    } else {
        on_message(agent, &message);
    }
    rf_msg_free(&message);
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct agent *agent = data;
    char text[1100];
    snprintf(text, sizeof(text), "the coordinator is gone%s%s",
             why->status != RF_OK ? ": " : "",
             why->status != RF_OK ? why->text : "");
    if (conn == agent->stdio) {
        agent->stdio = NULL;
    }
    if (conn == agent->control) {
        agent->control = NULL;
    }
    rf_agent_end(agent, 1, text);
}

static const struct rf_conn_ops control_ops = {NULL, on_frame, on_close};

/* --- Start and end -------------------------------------------------------- */

static uv_stream_t *open_pipe(struct agent *agent, int fd)
{
    uv_pipe_t *pipe = rf_xmalloc(sizeof(*pipe));
    uv_pipe_init(&agent->loop, pipe, 0);
    if (uv_pipe_open(pipe, fd) != 0) {
        uv_close((uv_handle_t *)pipe, (uv_close_cb)free);
        return NULL;
    }
    return (uv_stream_t *)pipe;
}

static bool check_stdio(const struct rf_agent_options *options)
{
    if (options->connect && !options->attended) {
        return true;
    }
    if (!rf_loop_may_open(STDIN_FILENO)) {
        rf_error("standard input must be a pipe or socket");
        return false;
    }
    if (!options->connect && !rf_loop_may_open(STDOUT_FILENO)) {
        rf_error("standard output must be a pipe or socket");
        return false;
    }
    return true;
}

/* Only the end of the input matters. */
static void input_cb(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct agent *agent = stream->data;
    (void)buf;
    if (nread < 0) {
        rf_agent_end(agent, 1,
                     "end of standard input: the coordinator or srun is gone");
    }
}

static void input_alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct agent *agent = handle->data;
    (void)suggested;
    *buf = uv_buf_init(agent->ignored, sizeof(agent->ignored));
}

static bool watch_input(struct agent *agent)
{
    uv_stream_t *in = open_pipe(agent, STDIN_FILENO);
    if (in == NULL) {
        return false;
    }
    in->data = agent;
    agent->input = (uv_pipe_t *)in;
    return uv_read_start(in, input_alloc_cb, input_cb) == 0;
}

static bool open_stdio(struct agent *agent)
{
    uv_stream_t *in = open_pipe(agent, STDIN_FILENO);
    uv_stream_t *out = open_pipe(agent, STDOUT_FILENO);
    if (in == NULL || out == NULL) {
        return false;
    }
    agent->stdio = rf_conn_open_two(in, out, &control_ops, agent);
    return true;
}

static void start_handles(struct agent *agent)
{
    struct sigaction interrupt;
    uv_timer_init(&agent->loop, &agent->tick);
    agent->tick.data = agent;
    uv_timer_start(&agent->tick, on_tick, TICK_MS, TICK_MS);
    uv_signal_init(&agent->loop, &agent->term);
    uv_signal_init(&agent->loop, &agent->hangup);
    uv_signal_init(&agent->loop, &agent->interrupt);
    uv_signal_init(&agent->loop, &agent->child);
    agent->term.data = agent->hangup.data = agent->child.data = agent;
    agent->interrupt.data = agent;
    uv_signal_start(&agent->term, on_signal, SIGTERM);
    uv_signal_start(&agent->hangup, on_signal, SIGHUP);
    uv_signal_start(&agent->child, on_signal, SIGCHLD);
    if (sigaction(SIGINT, NULL, &interrupt) == 0 &&
        interrupt.sa_handler != SIG_IGN) {
        uv_signal_start(&agent->interrupt, on_signal, SIGINT);
    }
}

/* Removes the files of lost agents. Frees the list. */
static void remove_files(const struct agent *agent, struct rf_texts *gone)
{
    const struct rf_msg_shared *shared = agent->boot.message.shared;
    for (size_t i = 0; gone->n > 0 && shared != NULL && i < shared->folders.n;
         i++) {
        rf_disk_sweep(shared->folders.list[i], shared->token, gone->list,
                      gone->n);
    }
    for (size_t i = 0; i < gone->n; i++) {
        free(gone->list[i]);
    }
    free(gone->list);
}

int rf_agent_run(struct rf_agent_options *options)
{
    struct agent agent = {
        .options = options, .exit_code = 1, .export_old = SIZE_MAX};
    struct rf_err err = {.text = ""};
    int64_t now = rf_now_ns();
    rf_process_harden_agent(options->connect && !options->attended);
    if (!check_stdio(options)) {
        return 2;
    }
    if (rf_loop_init(&agent.loop, &err) != RF_OK) {
        rf_error("%s", err.text);
        return 1;
    }
    rf_sm_init(&agent.attempt_sm, "attempt", rf_agent_attempt_states,
               ATTEMPT_STATES, ATTEMPT_NONE, now);
    rf_sm_init(&agent.sm, "agent", agent_states, AGENT_STATES,
               options->connect ? AGENT_JOINING : AGENT_BOOTING, now);
    agent.attempt_deadline_ns = INT64_MAX;
    agent.state_deadline_ns =
        options->connect ? INT64_MAX : now + BOOT_LIMIT_MS * RF_NS_PER_MS;
    rf_boot_limits_init(NULL, &agent.boot.limits);
    rf_schema_init(&rf_msg_hello_schema, &agent.facts);
    rf_schema_init(&rf_msg_network_schema, &agent.counted);
    start_handles(&agent);
    if (options->connect) {
        agent.join = rf_join_start(&agent.loop,
                                   &(struct rf_join_how){
                                       .candidates = options->candidates,
                                       .n_candidates = options->n_candidates,
                                       .identity = options->identity,
                                       .psk = options->psk,
                                       .total_ms = MANUAL_JOIN_MS,
                                       .retry = true,
                                   },
                                   &control_ops, on_joined, &agent);
        explicit_bzero(options->psk, sizeof(options->psk));
        if (options->attended && !watch_input(&agent)) {
            rf_agent_end(&agent, 2, "standard input cannot be watched");
        }
    } else if (!open_stdio(&agent)) {
        rf_agent_end(&agent, 2, "no channel to the coordinator");
    }
    uv_run(&agent.loop, UV_RUN_DEFAULT);
    rf_folder_signs_remove(&agent.boot.message, agent.exit_code == 0);
    remove_files(&agent, &agent.gone);
    rf_agent_free_ranks(&agent);
    if (rf_agent_exported(&agent) != NULL) {
        rf_folders_remove(rf_agent_exported(&agent), agent.export_old);
    }
    rf_process_environment_free(agent.environment);
    free(agent.slot_cpus);
    rf_schema_free(&rf_msg_hello_schema, &agent.facts);
    rf_schema_free(&rf_msg_network_schema, &agent.counted);
    rf_boot_free(&agent.boot);
    rf_agent_forget_waiting(&agent);
    free(agent.unanswered.list);
    uv_loop_close(&agent.loop);
    return agent.exit_code;
}
