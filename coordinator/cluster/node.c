/*
 * The life of a node. See node.h.
 *
 *     AWAITED ─► JOINED ─► STOPPING
 *        └─────────┴─► LOST
 *
 * In STOPPING, only the agent's standard error as read by the launcher still
 * goes upward; frames are dropped, LOG included. In LOST, nothing does. Unless
 * the agent was stopped, the node is lost when its launch ends, with the
 * reasons known by then.
 */
#include "coordinator/cluster/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/cluster/boot.h"
#include "coordinator/cluster/cause.h"
#include "coordinator/cluster/log_lines.h"
#include "planner/scenario/world.h"

#define LOOPBACK "127.0.0.1" /* for agents on this machine */
#define HELLO_S 10           /* allowed after launch.timeout_s */

/* How long to wait for a better reason. After joining it must be less than the
 * time of SETTLING (run/states.c): the run must know of the node's end before
 * it decides whether a rank that lost its peer is the cause or was the first to
 * notice. */
#define VERDICT_NS (2 * RF_NS_PER_S)
#define JOINED_VERDICT_NS (RF_NS_PER_S / 4)

enum node_state { NODE_AWAITED, NODE_JOINED, NODE_STOPPING, NODE_LOST };

struct rf_node {
    struct rf_node_options with;
    struct rf_node_ops ops;
    void *data;
    const struct rf_node_config *config;
    enum node_state state;
    struct rf_launch *launch; /* its agent's; NULL: not started, or over */
    struct rf_conn *stream;   /* the launcher's stream to the agent */
    struct rf_conn *tcp;      /* has proved the key; its owner frees it */
    struct rf_conn *control;  /* stream or tcp, after HELLO */
    uint8_t psk[RF_PSK_BYTES];
    char identity[RF_IDENTITY_MAX + 1];
    bool answered; /* the worker's banner came on the stream */
    bool over_tcp;
    int64_t launched_ns;
    struct rf_node_start start;
    int64_t hello_by_ns;   /* INT64_MAX: not waiting */
    int64_t verdict_by_ns; /* INT64_MAX: no trouble */
    struct rf_cause cause;
    struct rf_lease lease;
};

static int64_t now_of(const struct rf_node *node)
{
    return node->with.now();
}

static const struct rf_launch_config *launching(const struct rf_node *node)
{
    return &node->with.config->launch;
}

static bool is_over(const struct rf_node *node)
{
    return node->state == NODE_STOPPING || node->state == NODE_LOST;
}

/* --- Losing --------------------------------------------------------------- */

static void end_agent(struct rf_node *node, bool force)
{
    if (node->tcp != NULL) {
        rf_conn_close(node->tcp);
    }
    if (node->stream != NULL) {
        rf_conn_close(node->stream);
    }
    if (node->launch != NULL) {
        node->with.launcher->stop(node->launch, force);
    }
}

static void cut_off(struct rf_node *node, bool force)
{
    node->state = NODE_LOST;
    node->control = NULL;
    end_agent(node, force);
    node->ops.on_settled(node->with.index, node->data);
}

/* Reports the node lost, once. */
static void lose(struct rf_node *node, const char *text)
{
    bool joined = node->state == NODE_JOINED;
    struct rf_err why = {.status = joined ? RF_ERR_PEER : RF_ERR_LAUNCH};
    if (is_over(node)) {
        return;
    }
    snprintf(why.text, sizeof(why.text), "%s", text);
    if (!joined) {
        rf_cause_add_lines(&node->cause, why.text, sizeof(why.text));
    }
    cut_off(node, false);
    node->with.events->lost(node->with.index, &why, node->with.events_data);
}

/* Reports it lost with all notes. */
static void judge(struct rf_node *node)
{
    char text[sizeof(((struct rf_err *)NULL)->text)];
    rf_cause_text(&node->cause, text, sizeof(text));
    lose(node, text);
}

/* Delays the verdict a little after a note, so that related notes are reported
 * together. */
static void await_verdict(struct rf_node *node)
{
    if (node->verdict_by_ns == INT64_MAX) {
        node->verdict_by_ns =
            now_of(node) +
            (node->state == NODE_JOINED ? JOINED_VERDICT_NS : VERDICT_NS);
    }
}

static void note(struct rf_node *node, const char *text, const char *more)
{
    if (!is_over(node)) {
        rf_cause_note(&node->cause, "%s%s", text, more);
        await_verdict(node);
    }
}

/* Rejects invalid input on `conn`. Before HELLO this ends a TCP connection,
 * whose end decides the node's fate. */
static void reject(struct rf_node *node, struct rf_conn *conn, const char *text)
{
    struct rf_err why = {.status = RF_ERR_PROTOCOL};
    if (conn != node->tcp || node->control != NULL) {
        lose(node, text);
        return;
    }
    snprintf(why.text, sizeof(why.text), "%s", text);
    rf_conn_fail(conn, &why);
}

/* --- What the agent says -------------------------------------------------- */

/* Enables the launcher to end the agent, even a hung one. Not with a wrap: in a
 * container the process ID may be the container's own. */
static void identify_agent(const struct rf_node *node,
                           const struct rf_msg_hello *hello)
{
    if (node->launch != NULL && node->with.launcher->identify != NULL &&
        launching(node)->n_wrap == 0 && hello->pid != RF_ABSENT_U32 &&
        hello->pid > 1 && hello->start_ticks != RF_ABSENT_U64) {
        node->with.launcher->identify(node->launch, hello->pid,
                                      hello->start_ticks);
    }
}

static void tell_joined(const struct rf_node *node)
{
    rf_debug("%s joined over %s in %.0f ms", node->config->name,
             node->over_tcp ? "TCP" : "the launcher's stream",
             (double)node->start.hello_ns / 1e6);
    if (!node->over_tcp && node->launch != NULL &&
        strcmp(node->with.config->control.address, "stdio") != 0) {
        rf_debug("%s: could not connect back; control stays on the launcher's "
                 "stream",
                 node->config->name);
    }
}

static void take_hello(struct rf_node *node, struct rf_conn *conn,
                       struct rf_msg_hello *hello)
{
    if (node->control != NULL || hello->node != node->with.index) {
        reject(node, conn, "a second HELLO, or one of another node");
        return;
    }
    node->control = conn;
    node->hello_by_ns = INT64_MAX;
    node->over_tcp = conn == node->tcp;
    node->start.hello_ns = now_of(node) - node->launched_ns;
    explicit_bzero(node->psk, sizeof(node->psk));
    node->ops.on_settled(node->with.index, node->data);
    identify_agent(node, hello);
    if (!node->with.events->hello(node->with.index, hello,
                                  node->with.events_data) ||
        node->state != NODE_AWAITED) { /* stopped or lost in the callee */
        return;
    }
    node->state = NODE_JOINED;
    rf_lease_begin(&node->lease, now_of(node));
    tell_joined(node);
}

static void take_message(struct rf_node *node, struct rf_conn *conn,
                         struct rf_msg *message)
{
    rf_trace("%s: %s", node->config->name, rf_msg_name((uint8_t)message->type));
    if (message->type == RF_MSG_HELLO) {
        take_hello(node, conn, &message->hello);
    } else if (message->type == RF_MSG_ERROR && node->state != NODE_JOINED) {
        reject(node, conn, message->error.text);
    } else if (message->type == RF_MSG_LEASE) {
        rf_lease_take(&node->lease, &message->lease, now_of(node));
        if (message->lease.of_bytes != RF_ABSENT_U64 &&
            node->with.events->reading != NULL) {
            node->with.events->reading(node->with.index, &message->lease,
                                       node->with.events_data);
        }
    } else {
        node->with.events->message(node->with.index, message,
                                   node->with.events_data);
    }
}

static void take_line(uint32_t rank, const char *line, void *data)
{
    struct rf_node *node = data;
    if (rank == RF_NONE) {
        rf_cause_line(&node->cause, line);
    }
    if (node->state != NODE_LOST) {
        node->with.events->log(node->with.index, rank, line,
                               node->with.events_data);
    }
}

static bool may_say(const struct rf_node *node, const struct rf_conn *conn,
                    uint8_t type)
{
    return conn == node->control || type == RF_MSG_HELLO ||
           (type == RF_MSG_ERROR && node->state != NODE_JOINED);
}

/* A JSON object that breaks the schema of its message. */
static void take_bad(struct rf_node *node, struct rf_conn *conn,
                     const struct rf_msg_bad *bad)
{
    if (node->state == NODE_JOINED && conn == node->control) {
        node->with.events->bad_message(node->with.index, bad,
                                       node->with.events_data);
    } else {
        reject(node, conn, bad->why->text);
    }
}

/* Decodes a payload and acts on it, or on what is wrong with it. */
static void take_payload(struct rf_node *node, struct rf_conn *conn,
                         const struct rf_frame *frame)
{
    struct rf_msg message;
    struct rf_err err = {0};
    json_t *payload = NULL;
    if (rf_msg_parse(frame, &payload, &err) != RF_OK) {
        reject(node, conn, err.text);
        return;
    }
    if (!may_say(node, conn, frame->type)) {
        reject(node, conn, "message before HELLO");
    } else if (rf_msg_decode((enum rf_msg_type)frame->type, payload, &message,
                             &err) != RF_OK) {
        const struct rf_msg_bad bad =
            rf_msg_bad((enum rf_msg_type)frame->type, payload, &err);
        take_bad(node, conn, &bad);
    } else {
        take_message(node, conn, &message);
        rf_msg_free(&message);
    }
    json_decref(payload);
}

void rf_node_take_frame(struct rf_node *node, struct rf_conn *conn,
                        const struct rf_frame *frame)
{
    struct rf_msg message;
    if (is_over(node)) {
        return;
    }
    if (frame->type == RF_MSG_LOG) {
        rf_log_lines_of(frame, take_line, node);
    } else if (may_say(node, conn, frame->type) &&
               rf_msg_read_plain(frame, &message)) {
        take_message(node, conn, &message);
        rf_msg_free(&message);
    } else {
        take_payload(node, conn, frame);
    }
}

/* --- Booting -------------------------------------------------------------- */

/* The address that the agent connects back to; NULL: it stays on the stream. */
static const char *connect_back(struct rf_node *node, uint32_t *port)
{
    const char *address = node->with.config->control.address;
    if (strcmp(address, "stdio") == 0) {
        return NULL;
    }
    if (strcmp(address, "auto") == 0) {
        address = node->with.launcher->here
                      ? LOOPBACK
                      : node->with.launcher->head_address(node->launch);
    }
    *port = address != NULL ? node->ops.open_port(address, node->data) : 0;
    return *port != 0 ? address : NULL;
}

/* An agent that connects by itself already has the key and a connection; BOOT
 * tells any other where to connect and with which key. */
static void send_boot(struct rf_node *node, struct rf_conn *conn)
{
    const struct rf_launcher_ops *launcher = node->with.launcher;
    struct rf_boot_content boot = {.config = node->with.config,
                                   .node = node->with.index,
                                   .run_id = node->with.run_id,
                                   .identity = node->identity,
                                   .data_address = node->config->address,
                                   .shared = node->with.shared,
                                   .reach_key = node->with.reach_key};
    if (boot.data_address == NULL && launcher->here) {
        boot.data_address = LOOPBACK; /* its name may be made up */
    }
    if (!launcher->connects) {
        boot.psk = node->psk;
        boot.connect_back = connect_back(node, &boot.port);
    }
    rf_boot_content_send(&boot, conn);
    node->hello_by_ns =
        now_of(node) +
        (int64_t)(launching(node)->timeout_s + HELLO_S) * RF_NS_PER_S;
}

/* --- The agent's stream --------------------------------------------------- */

static void ready_cb(struct rf_conn *conn, void *data)
{
    struct rf_node *node = data;
    (void)conn;
    node->answered = true; /* HELLO follows, here or over TCP */
    node->start.answer_ns = now_of(node) - node->launched_ns;
}

static void frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    rf_node_take_frame(data, conn, frame);
}

static void close_cb(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct rf_node *node = data;
    node->stream = NULL;
    if (node->control == conn) {
        node->control = NULL;
    }
    note(node, why->status != RF_OK ? why->text : "its agent closed the stream",
         "");
    if (node->cause.ended[0] != '\0') {
        judge(node); /* nothing else can follow */
    }
    node->ops.on_close(node->data);
}

static const struct rf_conn_ops stream_ops = {ready_cb, frame_cb, close_cb};

/* --- Its launch ----------------------------------------------------------- */

static void stream_cb(struct rf_launch *launch, uv_pipe_t *pipe, void *data)
{
    struct rf_node *node = data;
    (void)launch;
    node->stream = rf_conn_open((uv_stream_t *)pipe, NULL, &stream_ops, node);
    node->start.stream_ns = now_of(node) - node->launched_ns;
    if (is_over(node)) {
        rf_conn_close(node->stream);
    } else {
        send_boot(node, node->stream);
    }
}

static void stderr_cb(struct rf_launch *launch, const char *line, void *data)
{
    (void)launch;
    rf_log_lines_one(line, take_line, data);
}

static void note_cb(struct rf_launch *launch, const char *line, void *data)
{
    const struct rf_node *node = data;
    (void)launch;
    rf_info("%s: %s", node->config->name, line);
}

static void trouble_cb(struct rf_launch *launch, const char *what,
                       bool explains, void *data)
{
    struct rf_node *node = data;
    (void)launch;
    if (explains) {
        rf_cause_explain(&node->cause, what);
    }
    note(node, what, "");
}

/* The launch has ended. If the node has not joined, the cause is not known and
 * the stream is still open, the verdict waits for the stream's last lines. */
static void end_launch(struct rf_node *node)
{
    struct rf_launch *launch = node->launch;
    node->launch = NULL; /* nothing is left to stop */
    if (node->state == NODE_JOINED || node->stream == NULL ||
        node->cause.cause_known) {
        judge(node);
    }
    node->with.launcher->destroy(launch);
    node->ops.on_close(node->data);
}

static void fail_cb(struct rf_launch *launch, const struct rf_err *why,
                    void *data)
{
    struct rf_node *node = data;
    (void)launch;
    note(node, why->text, "");
    end_launch(node);
}

static void exit_cb(struct rf_launch *launch, int status, const char *signal,
                    void *data)
{
    struct rf_node *node = data;
    (void)launch;
    if (!is_over(node)) {
        rf_cause_exit(&node->cause, launching(node), node->with.local_worker,
                      status, signal);
        if (launching(node)->n_wrap > 0 && node->state != NODE_JOINED) {
            rf_cause_note(&node->cause, "launch.wrap must pass on standard "
                                        "input and output (docker exec: -i)");
        }
        await_verdict(node);
    }
    end_launch(node);
}

static const struct rf_launch_ops_cb launch_ops = {
    stream_cb, stderr_cb, fail_cb, exit_cb, note_cb, trouble_cb};

void rf_node_launch(struct rf_node *node, const char *join_address)
{
    char key[2 * RF_PSK_BYTES + 1];
    struct rf_launch_join join = {join_address, node->identity, key};
    struct rf_launch_order order = {.node = node->config,
                                    .index = node->with.index,
                                    .settings = launching(node),
                                    .local_worker = node->with.local_worker,
                                    .gate = node->with.gate,
                                    .step = node->with.step,
                                    .join = &join};
    struct rf_err err = {0};
    rf_hex_encode(node->psk, RF_PSK_BYTES, key);
    node->launched_ns = now_of(node);
    if (node->with.launcher->start(node->with.loop, &order, &launch_ops, node,
                                   &node->launch, &err) != RF_OK) {
        rf_cause_note(&node->cause, "%s", err.text);
        node->verdict_by_ns = node->launched_ns; /* reported at the next tick */
    }
    explicit_bzero(key, sizeof(key));
}

/* --- Its connection ------------------------------------------------------- */

void rf_node_take_conn(struct rf_node *node, struct rf_conn *conn)
{
    node->tcp = conn;
    if (node->with.launcher->connects) {
        send_boot(node, conn);
    }
}

/* The connection ended before HELLO. If there is a launcher's stream, an
 * orderly end means nothing: the agent may have chosen the stream, and if the
 * agent has ended, the stream tells more. */
static void ended_before_hello(struct rf_node *node, const struct rf_err *why)
{
    const char *text =
        why->status != RF_OK ? why->text : "its agent closed the connection";
    if (is_over(node) || node->control != NULL) {
        return;
    }
    if (node->with.launcher->by_hand) {
        node->hello_by_ns = INT64_MAX;
        rf_warn("%s: lost before it joined: %s; start its worker again",
                node->config->name, text);
    } else if (why->status == RF_ERR_PROTOCOL) {
        lose(node, text);
    } else if (why->status != RF_OK || node->with.launcher->connects) {
        note(node, "lost before it joined: ", text);
    }
}

void rf_node_end_conn(struct rf_node *node, const struct rf_conn *conn,
                      const struct rf_err *why)
{
    node->tcp = NULL;
    if (node->control != conn) {
        ended_before_hello(node, why);
        return;
    }
    node->control = NULL;
    note(node,
         why->status != RF_OK ? "its control connection ended: "
                              : "its control connection ended",
         why->text);
}

/* --- Time ----------------------------------------------------------------- */

static void hello_overdue(struct rf_node *node)
{
    struct rf_err why = {0};
    rf_err_set(&why, RF_ERR_TIMEOUT,
               "its agent was started but did not answer within %u s "
               "(launch.timeout_s and %d)%s",
               launching(node)->timeout_s + HELLO_S, HELLO_S,
               rf_node_waits_for(node));
    node->hello_by_ns = INT64_MAX;
    if (node->tcp != NULL && node->with.launcher->by_hand) {
        rf_conn_fail(node->tcp, &why);
    } else {
        lose(node, why.text);
    }
}

static void keep_alive(struct rf_node *node, int64_t now,
                       const struct rf_pauses *pauses)
{
    struct rf_msg lease;
    int64_t silent;
    if (rf_lease_due(&node->lease, now, &lease)) {
        rf_node_send(node, &lease);
    }
    silent =
        rf_lease_silence_ns(rf_conn_last_heard_ns(node->control), now, pauses);
    if (silent > 0) {
        char text[96];
        snprintf(text, sizeof(text), "silent for %.1f s", (double)silent / 1e9);
        lose(node, text);
    }
}

void rf_node_tick(struct rf_node *node, const struct rf_pauses *pauses)
{
    int64_t now = now_of(node);
    if (is_over(node)) {
        return;
    }
    if (now >= node->verdict_by_ns) {
        judge(node);
    } else if (now >= node->hello_by_ns) {
        hello_overdue(node);
    } else if (node->state == NODE_JOINED && node->control != NULL) {
        keep_alive(node, now, pauses);
    }
}

/* --- The object ----------------------------------------------------------- */

struct rf_node *rf_node_create(const struct rf_node_options *options,
                               const struct rf_node_ops *ops, void *data)
{
    struct rf_node *node = rf_xcalloc(1, sizeof(*node));
    node->with = *options;
    node->ops = *ops;
    node->data = data;
    node->config = &options->config->nodes[options->index];
    node->hello_by_ns = node->verdict_by_ns = INT64_MAX;
    memcpy(node->psk, options->psk, RF_PSK_BYTES);
    snprintf(node->identity, sizeof(node->identity), "%s", options->identity);
    node->with.psk = NULL;
    node->with.identity = NULL;
    return node;
}

void rf_node_send(struct rf_node *node, const struct rf_msg *message)
{
    if (node->control != NULL) {
        rf_conn_send(node->control, message->type, RF_FRAME_NO_RANK,
                     rf_msg_json(message));
    }
}

void rf_node_send_payload(struct rf_node *node,
                          struct rf_shared_payload *payload)
{
    if (node->control != NULL) {
        rf_conn_send_payload(node->control, RF_FRAME_NO_RANK, payload);
    }
}

void rf_node_drop(struct rf_node *node)
{
    cut_off(node, true);
}

void rf_node_stop(struct rf_node *node, bool force)
{
    if (node->state != NODE_LOST) {
        node->state = NODE_STOPPING;
    }
    end_agent(node, force);
}

bool rf_node_is_closed(const struct rf_node *node)
{
    return node->launch == NULL && node->stream == NULL;
}

const char *rf_node_waits_for(const struct rf_node *node)
{
    return strcmp(node->with.launcher->name, "ssh") == 0 &&
                   node->stream != NULL && !node->answered
               ? ": SSH login succeeded but the worker did not answer; slow "
                 "start-up files of the login shell (~/.bashrc, ~/.cshrc)? If "
                 "so, raise launch.timeout_s"
               : "";
}

struct rf_clock_sample rf_node_clock(const struct rf_node *node)
{
    return rf_clock_best(&node->lease.exchanges);
}

struct rf_node_start rf_node_start(const struct rf_node *node)
{
    return node->start;
}

bool rf_node_over_tcp(const struct rf_node *node)
{
    return node->over_tcp;
}

void rf_node_destroy(struct rf_node *node)
{
    explicit_bzero(node->psk, sizeof(node->psk));
    rf_cause_free(&node->cause);
    free(node);
}
