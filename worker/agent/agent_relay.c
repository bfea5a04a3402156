/*
 * Relays messages between the coordinator and this node's ranks: steps and
 * exchanges go to all ranks, answers are gathered into one message. See
 * agent_internal.h and docs/PROTOCOL.md.
 *
 * Only times change on the way: ranks use this node's clock, the coordinator
 * its own.
 */
#include "worker/agent/agent_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "worker/helper/counters.h"

void rf_agent_gather_clear(struct rank_answers *gather)
{
    if (gather->open) {
        rf_msg_free(&gather->message);
        gather->open = false;
    }
}

/* Starts gathering, with room for the answers of all ranks. */
static void open_gather(struct agent *agent, struct rank_answers *gather,
                        enum rf_msg_type type, uint64_t seq)
{
    struct rf_msg *message = &gather->message;
    rf_agent_gather_clear(gather);
    gather->open = true;
    gather->n_answers = 0;
    rf_msg_init(message, type);
    if (type == RF_MSG_DONE) {
        message->done.attempt = agent->attempt;
        message->done.seq = seq;
        message->done.ranks =
            rf_xcalloc(agent->n_ranks, sizeof(*message->done.ranks));
    } else {
        message->exchange.attempt = agent->attempt;
        message->exchange.seq = seq;
        message->exchange.parts =
            rf_xcalloc(agent->n_ranks, sizeof(*message->exchange.parts));
    }
}

static void shift_time(int64_t *time_ns, int64_t by_ns)
{
    if (*time_ns != RF_ABSENT_I64) {
        *time_ns += by_ns;
    }
}

/* What crosses the node's network in a refit is counted from when its ranks are
 * ready: no node's ranks are told to run before this agent says so. */
static void begin_count(struct agent *agent)
{
    const struct rf_msg_hello *facts = &agent->facts;
    rf_schema_free(&rf_msg_network_schema, &agent->counted);
    rf_counters_read("", facts->interfaces, facts->n_interfaces,
                     &agent->counted);
}

/* Until all nodes' ranks have run, which the step after shows. Only then has
 * everything arrived that they have sent. */
static void end_count(struct agent *agent)
{
    const struct rf_msg_hello *facts = &agent->facts;
    struct rf_msg_network *now = rf_schema_new(&rf_msg_network_schema);
    rf_counters_read("", facts->interfaces, facts->n_interfaces, now);
    rf_counters_since(&agent->counted, now);
    agent->step.message.done.network = now;
}

void rf_agent_step(struct agent *agent, struct rf_msg_step *step)
{
    if (agent->waiting_start != NULL) {
        if (agent->waiting_step == NULL) {
            agent->waiting_step = rf_schema_new(&rf_msg_step_schema);
        }
        rf_schema_free(&rf_msg_step_schema, agent->waiting_step);
        *agent->waiting_step = *step;
        rf_schema_init(&rf_msg_step_schema, step);
        return;
    }
    if (agent->attempt_sm.state != ATTEMPT_RUNNING ||
        step->attempt != agent->attempt) {
        rf_debug("ignored a step of another attempt");
        return;
    }
    snprintf(agent->phase, sizeof(agent->phase), "%s", step->step);
    shift_time(&step->start_at_ns, -rf_clock_best(&agent->clock).offset_ns);
    agent->step_seq = step->seq;
    open_gather(agent, &agent->step, RF_MSG_DONE, step->seq);
    if (strcmp(step->step, "verify") == 0) {
        end_count(agent);
    }
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        rank->answered_step = false;
        if (rank->conn != NULL) {
            rf_conn_send(rank->conn, RF_MSG_STEP, rank->rank,
                         rf_schema_encode(&rf_msg_step_schema, step));
        }
    }
}

void rf_agent_relay(struct agent *agent, const struct rf_frame *frame)
{
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        if (rank->conn != NULL) {
            rf_conn_send_raw(rank->conn, (enum rf_msg_type)frame->type,
                             rank->rank, frame->payload, frame->length);
        }
    }
}

static void send_gathered(struct agent *agent, struct rank_answers *gather)
{
    rf_agent_send(agent, &gather->message);
    rf_agent_gather_clear(gather);
}

/* Moves the answer into DONE. A plain one is only counted: DONE implies it. */
static void add_answer(struct rank_answers *gather,
                       struct rf_msg_answer *answer)
{
    struct rf_msg_done *done = &gather->message.done;
    gather->n_answers++;
    if (!rf_msg_answer_is_plain(answer)) {
        done->ranks[done->n_ranks++] = *answer;
        rf_schema_init(&rf_msg_answer_schema, answer);
    }
}

static void on_done(struct agent_rank *rank, struct rf_msg_answer *answer,
                    uint64_t seq)
{
    struct agent *agent = rank->agent;
    const int64_t offset = rf_clock_best(&agent->clock).offset_ns;
    const bool ok = answer->ok;
    if (seq != agent->step_seq || rank->answered_step) {
        return;
    }
    if (!agent->step.open) { /* another rank has failed already */
        if (ok || agent->attempt_sm.state != ATTEMPT_RUNNING) {
            return;
        }
        open_gather(agent, &agent->step, RF_MSG_DONE, seq);
    }
    rank->answered_step = true;
    if (ok && strcmp(agent->phase, "close") == 0) {
        rank->closed = true;
    }
    if (answer->ran != NULL) {
        shift_time(&answer->ran->start_ns, offset);
        shift_time(&answer->ran->end_ns, offset);
    }
    add_answer(&agent->step, answer);
    if (ok && agent->step.n_answers < agent->n_ranks) {
        return;
    }
    agent->step.message.done.ok =
        ok && agent->step.message.done.n_ranks < agent->n_ranks;
    if (strcmp(agent->phase, "fill") == 0) {
        begin_count(agent);
    }
    send_gathered(agent, &agent->step);
    if (ok && strcmp(agent->phase, "close") == 0) {
        rf_agent_leave(agent);
    }
}

/* Moves the part into EXCHANGE, which is sent once all ranks have answered. */
static void on_exchange(struct agent_rank *rank, struct rf_msg_share *part,
                        uint64_t seq)
{
    struct agent *agent = rank->agent;
    struct rank_answers *gather = &agent->exchange;
    struct rf_msg_exchange *exchange = &gather->message.exchange;
    if (gather->open && seq != exchange->seq) {
        rf_warn("rank %" PRIu32 " is in exchange %" PRIu64
                ", others in %" PRIu64,
                rank->rank, seq, exchange->seq);
        return;
    }
    if (!gather->open) {
        open_gather(agent, gather, RF_MSG_EXCHANGE, seq);
        for (size_t i = 0; i < agent->n_ranks; i++) {
            agent->ranks[i]->answered_exchange = false;
        }
    }
    if (rank->answered_exchange) {
        return;
    }
    rank->answered_exchange = true;
    exchange->parts[exchange->n_parts++] = *part;
    rf_schema_init(&rf_msg_share_schema, part);
    if (exchange->n_parts == agent->n_ranks) {
        send_gathered(agent, gather);
    }
}

static enum rf_status on_message(struct agent_rank *rank,
                                 struct rf_msg *message, struct rf_err *err)
{
    const struct rf_msg_done *done = &message->done;
    const struct rf_msg_exchange *exchange = &message->exchange;
    if (message->type == RF_MSG_DONE) {
        if (done->ok || done->n_ranks != 1 ||
            done->ranks[0].rank != rank->rank) {
            goto of_others;
        }
        on_done(rank, &done->ranks[0], done->seq);
    } else if (message->type == RF_MSG_EXCHANGE) {
        if (exchange->n_parts != 1 || exchange->parts[0].rank != rank->rank) {
            goto of_others;
        }
        on_exchange(rank, &exchange->parts[0], exchange->seq);
    } else if (message->type == RF_MSG_LEASE &&
               message->lease.of_bytes != RF_ABSENT_U64) {
        rank->of_bytes = message->lease.of_bytes;
        rank->done_bytes = message->lease.done_bytes != RF_ABSENT_U64
                               ? message->lease.done_bytes
                               : 0;
    }
    return RF_OK;
of_others:
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "%s: rank %" PRIu32 " answered for another rank",
                      rf_msg_name((uint8_t)message->type), rank->rank);
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct rf_err err;
    struct rf_msg message;
    if (rf_msg_read(frame, &message, &err) != RF_OK) {
        rf_conn_fail(conn, &err);
        return;
    }
    if (on_message(data, &message, &err) != RF_OK) {
        rf_conn_fail(conn, &err);
    }
    rf_msg_free(&message);
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct agent_rank *rank = data;
    (void)conn;
    if (why->status != RF_OK && !rank->exited) {
        rf_debug("rank %" PRIu32 ": %s", rank->rank, why->text);
    }
    rank->conn = NULL;
    rank->unheard_ns = rf_now_ns();
    rf_agent_rank_released(rank);
}

const struct rf_conn_ops rf_agent_rank_ops = {NULL, on_frame, on_close};
