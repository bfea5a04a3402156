/* See agents.h. Failures end the run: nothing is tried twice. */
#include "tests/bench/swarm/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/mem.h"
#include "planner/schedule/schedule.h"
#include "planner/strategy/schedule_build.h"
#include "transport/net/tcp_options.h"

#define LEASE_TICK_MS 20
#define LEASE_NS ((int64_t)RF_LEASE_PERIOD_MS * RF_NS_PER_MS)

static void fail(const struct swarm *swarm, const struct swarm_agent *agent,
                 const char *what, const char *why)
{
    char *text = rf_xasprintf("agent %u: %s: %s",
                              agent != NULL ? agent->node : 0, what, why);
    swarm->ops.on_failure(text, swarm->data);
    free(text);
}

/* One more agent has come to this point; the mark is made by the first of
 * them. */
static void mark_first(struct swarm *swarm, enum swarm_mark mark)
{
    if (swarm->count[mark]++ == 0) {
        swarm->ops.on_mark(mark, swarm->data);
    }
}

/* The same, made by the last of them. */
static void mark_last(struct swarm *swarm, enum swarm_mark mark)
{
    if (++swarm->count[mark] == swarm->n_agents) {
        swarm->ops.on_mark(mark, swarm->data);
    }
}

static void send_text(struct swarm_agent *agent, enum rf_msg_type type,
                      char *text)
{
    rf_conn_send_raw(agent->conn, type, RF_FRAME_NO_RANK, text, strlen(text));
    free(text);
}

/* --- Leases --------------------------------------------------------------- */

static void send_lease(struct swarm_agent *agent, int64_t now)
{
    struct rf_msg lease;
    rf_msg_init(&lease, RF_MSG_LEASE);
    lease.lease.t = now;
    if (agent->heard_at_ns != 0) {
        lease.lease.echo = agent->heard_t;
        lease.lease.echo_at = agent->heard_at_ns;
    }
    rf_conn_send(agent->conn, RF_MSG_LEASE, RF_FRAME_NO_RANK,
                 rf_msg_json(&lease));
    agent->lease_ns =
        now + (agent->burst > 0 ? LEASE_TICK_MS * RF_NS_PER_MS : LEASE_NS);
    agent->burst -= agent->burst > 0;
}

static void leases_cb(uv_timer_t *timer)
{
    struct swarm *swarm = timer->data;
    const int64_t now = rf_now_ns();
    for (uint32_t i = 0; i < swarm->n_agents; i++) {
        struct swarm_agent *agent = &swarm->agents[i];
        if (agent->conn != NULL && agent->lease_ns != 0 &&
            now >= agent->lease_ns) {
            send_lease(agent, now);
        }
    }
}

static void take_lease(struct swarm_agent *agent, const struct rf_frame *frame)
{
    struct rf_msg message;
    struct rf_err err = {0};
    if (rf_msg_read(frame, &message, &err) != RF_OK) {
        fail(agent->swarm, agent, "LEASE", err.text);
        return;
    }
    agent->heard_t = message.lease.t;
    agent->heard_at_ns = rf_now_ns();
    rf_msg_free(&message);
}

/* --- Messages that are the same for all ----------------------------------- */

static bool is_seen(const struct swarm_seen *seen, const struct rf_frame *frame)
{
    return seen->text != NULL && seen->size == frame->length &&
           memcmp(seen->text, frame->payload, frame->length) == 0;
}

static void forget(struct swarm_seen *seen)
{
    if (seen->text != NULL) {
        rf_msg_free(&seen->message);
        free(seen->text);
        seen->text = NULL;
    }
}

/* Reads it unless it was read before; *news says which. */
static bool see(struct swarm_agent *agent, struct swarm_seen *seen,
                const struct rf_frame *frame, bool *news)
{
    struct rf_err err = {0};
    *news = !is_seen(seen, frame);
    if (!*news) {
        return true;
    }
    forget(seen);
    if (rf_msg_read(frame, &seen->message, &err) != RF_OK) {
        fail(agent->swarm, agent, rf_msg_name(frame->type), err.text);
        return false;
    }
    seen->size = frame->length;
    seen->text = rf_xmalloc(frame->length + 1);
    memcpy(seen->text, frame->payload, frame->length);
    return true;
}

/* --- The plan ------------------------------------------------------------- */

static enum rf_status digest(struct swarm *swarm, struct rf_err *err)
{
    struct rf_plan *plan = NULL;
    struct rf_schedule *schedule = NULL;
    const struct rf_start_task *task = swarm->task;
    enum rf_status status =
        rf_plan_build(task->model, task->world, task->spec, &plan, err);
    if (status == RF_OK) {
        status = rf_schedule_build(plan, 0, &schedule, err);
    }
    if (status == RF_OK) {
        rf_hash_text(&plan->digest, swarm->plan_digest);
        rf_hash_text(&schedule->digest, swarm->schedule_digest);
    }
    rf_schedule_destroy(schedule);
    rf_plan_destroy(plan);
    return status;
}

/* Which ranks are whose; those of a node follow each other. */
static void share_ranks(struct swarm *swarm)
{
    const struct rf_world *world = swarm->task->world;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        struct swarm_agent *agent = &swarm->agents[world->ranks[r].node];
        agent->first_rank = agent->n_ranks == 0 ? r : agent->first_rank;
        if (agent->first_rank + agent->n_ranks++ != r) {
            fail(swarm, agent, "START", "its ranks have gaps");
            return;
        }
    }
    swarm->receives = rf_xcalloc(world->n_ranks, sizeof(*swarm->receives));
}

/* Once for all agents, as every rank would do. */
static void make_plan(struct swarm *swarm)
{
    struct rf_err err = {0};
    if (swarm->task != NULL) {
        return;
    }
    if (rf_start_task_load(&swarm->start.message.start, &swarm->task, &err) !=
            RF_OK ||
        digest(swarm, &err) != RF_OK) {
        fail(swarm, NULL, "START", err.text);
        return;
    }
    share_ranks(swarm);
}

/* --- Steps ---------------------------------------------------------------- */

static void note_links(struct swarm *swarm)
{
    const struct rf_msg_step *step = &swarm->step.message.step;
    memset(swarm->receives, 0,
           swarm->task->world->n_ranks * sizeof(*swarm->receives));
    for (size_t i = 0; i < step->n_links; i++) {
        swarm->receives[step->links[i].to] = true;
    }
}

/* The first agent hears of the next step. */
static void begin_round(struct swarm *swarm)
{
    const char *step = swarm->step.message.step.step;
    struct swarm_round *round = &swarm->rounds[swarm->n_rounds];
    if (swarm->n_rounds == SWARM_ROUNDS_MAX) {
        fail(swarm, NULL, "STEP", "more steps than there is room for");
        return;
    }
    swarm->n_rounds++;
    snprintf(round->step, sizeof(round->step), "%s", step);
    round->begin_ns = rf_now_ns();
    round->cpu_ns = swarm->ops.cpu_ns(swarm->data);
    if (strcmp(step, "fill") == 0) {
        mark_first(swarm, SWARM_FILL);
    } else if (strcmp(step, "close") == 0) {
        mark_first(swarm, SWARM_CLOSE);
    }
    make_plan(swarm);
}

static void take_step(struct swarm_agent *agent, const struct rf_frame *frame)
{
    struct swarm *swarm = agent->swarm;
    bool news = false;
    if (!see(agent, &swarm->step, frame, &news)) {
        return;
    }
    if (swarm->step.message.step.seq != swarm->seq) {
        swarm->seq = swarm->step.message.step.seq;
        begin_round(swarm);
    }
    if (news) {
        note_links(swarm);
    }
    if (strcmp(swarm->step.message.step.step, "prepare") == 0) {
        mark_first(swarm, SWARM_EXCHANGE);
        send_text(agent, RF_MSG_EXCHANGE, swarm_exchange(swarm, agent));
    } else {
        send_text(agent, RF_MSG_DONE, swarm_done(swarm, agent));
    }
}

static void take_start(struct swarm_agent *agent, const struct rf_frame *frame)
{
    struct swarm *swarm = agent->swarm;
    bool news = false;
    swarm->start_bytes = frame->length;
    mark_first(swarm, SWARM_START);
    mark_last(swarm, SWARM_STARTED);
    (void)see(agent, &swarm->start, frame, &news);
}

static void welcome(struct swarm_agent *agent)
{
    agent->burst = RF_LEASE_BURST;
    agent->lease_ns = rf_now_ns();
    mark_last(agent->swarm, SWARM_JOINED);
}

static void frame_cb(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct swarm_agent *agent = data;
    struct swarm *swarm = agent->swarm;
    switch (frame->type) {
    case RF_MSG_BOOT:
        rf_conn_send(conn, RF_MSG_HELLO, RF_FRAME_NO_RANK, swarm_hello(agent));
        break;
    case RF_MSG_WELCOME:
        welcome(agent);
        break;
    case RF_MSG_LEASE:
        take_lease(agent, frame);
        break;
    case RF_MSG_START:
        take_start(agent, frame);
        break;
    case RF_MSG_STEP:
        take_step(agent, frame);
        break;
    case RF_MSG_EXCHANGED:
        swarm->exchanged_bytes = frame->length;
        mark_last(swarm, SWARM_EXCHANGED);
        send_text(agent, RF_MSG_DONE, swarm_done(swarm, agent));
        break;
    case RF_MSG_SHUTDOWN:
        mark_first(swarm, SWARM_SHUTDOWN);
        rf_conn_close(conn);
        break;
    default:
        fail(swarm, agent, "an unexpected message", rf_msg_name(frame->type));
        break;
    }
}

static void ready_cb(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data;
}

static void close_cb(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct swarm_agent *agent = data;
    (void)conn;
    agent->conn = NULL;
    if (agent->swarm->count[SWARM_SHUTDOWN] == 0) {
        fail(agent->swarm, agent, "its connection ended",
             why->text[0] != '\0' ? why->text : "in order");
    }
    if (++agent->swarm->n_closed == agent->swarm->n_agents) {
        uv_close((uv_handle_t *)&agent->swarm->leases, NULL);
    }
}

static const struct rf_conn_ops conn_ops = {ready_cb, frame_cb, close_cb};

/* --- Life ----------------------------------------------------------------- */

static void connected_cb(uv_connect_t *request, int status)
{
    struct swarm_agent *agent = request->data;
    struct rf_tls *tls = NULL;
    struct rf_err err = {0};
    uv_os_fd_t fd;
    if (status < 0) {
        fail(agent->swarm, agent, "connect", uv_strerror(status));
        return;
    }
    if (rf_tls_client_create(agent->identity, agent->psk, &tls, &err) !=
        RF_OK) {
        fail(agent->swarm, agent, "TLS", err.text);
        return;
    }
    if (uv_fileno((uv_handle_t *)request->handle, &fd) == 0) {
        rf_tcp_tune_control(fd);
    }
    agent->conn = rf_conn_open(request->handle, tls, &conn_ops, agent);
}

void swarm_init(struct swarm *swarm, uv_loop_t *loop, uint32_t n_agents,
                uint32_t slots)
{
    swarm->loop = loop;
    swarm->n_agents = n_agents;
    swarm->slots = slots;
    swarm->agents = rf_xcalloc(n_agents, sizeof(*swarm->agents));
    uv_timer_init(loop, &swarm->leases);
    swarm->leases.data = swarm;
    uv_timer_start(&swarm->leases, leases_cb, LEASE_TICK_MS, LEASE_TICK_MS);
}

/* ADDRESS:PORT with an IPv4 address. */
static bool parse_address(const char *text, struct sockaddr_in *out)
{
    char address[64];
    int port;
    return sscanf(text, "%63[0-9.]:%d", address, &port) == 2 &&
           uv_ip4_addr(address, port, out) == 0;
}

void swarm_connect(struct swarm *swarm, uint32_t node, const char *to,
                   const char *identity, const char *key)
{
    struct swarm_agent *agent = &swarm->agents[node];
    uv_tcp_t *tcp = rf_xcalloc(1, sizeof(*tcp));
    struct sockaddr_in address;
    agent->swarm = swarm;
    agent->node = node;
    snprintf(agent->identity, sizeof(agent->identity), "%s", identity);
    agent->request.data = agent;
    uv_tcp_init(swarm->loop, tcp);
    mark_first(swarm, SWARM_CONNECT);
    if (!rf_hex_decode(key, agent->psk, RF_PSK_BYTES) ||
        !parse_address(to, &address)) {
        fail(swarm, agent, "no address or key in its command", to);
    } else if (uv_tcp_connect(&agent->request, tcp,
                              (const struct sockaddr *)&address,
                              connected_cb) != 0) {
        fail(swarm, agent, "connect", to);
    }
}

void swarm_free(struct swarm *swarm)
{
    forget(&swarm->step);
    rf_start_task_destroy(swarm->task);
    forget(&swarm->start);
    free(swarm->receives);
    free(swarm->agents);
}
