/*
 * Messages between the coordinator and the ranks of this node: steps and
 * exchanges go out to all ranks, answers come together into one message. See
 * agent_internal.h and docs/PROTOCOL.md.
 *
 * The only things changed on the way are times: ranks live on this node's
 * clock, the coordinator on its own.
 */
#include "worker/agent_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

void rf_agent_gather_clear(struct gather *gather)
{
    json_decref(gather->parts);
    gather->parts = NULL;
}

static void shift_time(json_t *object, const char *key, int64_t by_ns)
{
    json_t *value = json_object_get(object, key);
    if (json_is_integer(value)) {
        json_integer_set(value, json_integer_value(value) + by_ns);
    }
}

void rf_agent_step(struct agent *agent, json_t *step)
{
    const char *name = json_string_value(json_object_get(step, "step"));
    if (agent->waiting_start != NULL) {
        json_decref(agent->waiting_step);
        agent->waiting_step = json_incref(step);
        return;
    }
    if (agent->attempt_sm.state != ATTEMPT_RUNNING ||
        json_integer_value(json_object_get(step, "attempt")) !=
            agent->attempt) {
        rf_debug("a step of another attempt is ignored");
        return;
    }
    snprintf(agent->phase, sizeof(agent->phase), "%s",
             name != NULL ? name : "");
    shift_time(step, "start_at_ns", -rf_clock_best(&agent->clock).offset_ns);
    rf_agent_gather_clear(&agent->step);
    agent->step.parts = json_array();
    agent->step.seq = json_integer_value(json_object_get(step, "seq"));
    for (size_t i = 0; i < agent->n_ranks; i++) {
        struct agent_rank *rank = agent->ranks[i];
        rank->answered_step = false;
        if (rank->conn != NULL) {
            rf_conn_send(rank->conn, RF_MSG_STEP, rank->rank,
                         json_incref(step));
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

static void send_gathered(struct agent *agent, struct gather *gather,
                          enum rf_msg_type type, const char *key)
{
    json_t *message = json_pack("{s:I, s:I, s:o}", "attempt", agent->attempt,
                                "seq", gather->seq, key, gather->parts);
    gather->parts = NULL;
    rf_agent_send(agent, type, message);
}

static void on_done(struct agent_rank *rank, json_t *answer)
{
    struct agent *agent = rank->agent;
    json_int_t seq = json_integer_value(json_object_get(answer, "seq"));
    bool ok = json_is_true(json_object_get(answer, "ok"));
    int64_t offset = rf_clock_best(&agent->clock).offset_ns;
    if (agent->step.parts == NULL || seq != agent->step.seq ||
        rank->answered_step) {
        return; /* late, after another rank has failed */
    }
    rank->answered_step = true;
    if (ok && strcmp(agent->phase, "close") == 0) {
        rank->closed = true;
    }
    json_object_del(answer, "attempt");
    json_object_del(answer, "seq");
    json_object_set_new(answer, "rank", json_integer(rank->rank));
    shift_time(answer, "start_ns", offset);
    shift_time(answer, "end_ns", offset);
    json_array_append(agent->step.parts, answer);
    if (ok && json_array_size(agent->step.parts) < agent->n_ranks) {
        return;
    }
    send_gathered(agent, &agent->step, RF_MSG_DONE, "ranks");
    if (ok && strcmp(agent->phase, "close") == 0) {
        rf_agent_leave(agent);
    }
}

static void on_exchange(struct agent_rank *rank, const json_t *message)
{
    struct agent *agent = rank->agent;
    struct gather *gather = &agent->exchange;
    json_int_t seq = json_integer_value(json_object_get(message, "seq"));
    if (gather->parts != NULL && seq != gather->seq) {
        rf_warn("rank %" PRIu32 " is in exchange %lld, others in %lld",
                rank->rank, (long long)seq, (long long)gather->seq);
        return;
    }
    if (gather->parts == NULL) {
        gather->parts = json_array();
        gather->seq = seq;
        for (size_t i = 0; i < agent->n_ranks; i++) {
            agent->ranks[i]->answered_exchange = false;
        }
    }
    if (rank->answered_exchange) {
        return;
    }
    rank->answered_exchange = true;
    json_array_extend(gather->parts, json_object_get(message, "parts"));
    if (json_array_size(gather->parts) == agent->n_ranks) {
        send_gathered(agent, gather, RF_MSG_EXCHANGE, "parts");
    }
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct agent_rank *rank = data;
    struct rf_err err;
    json_t *message = NULL;
    if (frame->type == RF_MSG_LEASE) {
        return; /* the connection has noted when it came */
    }
    if (rf_msg_parse(frame, &message, &err) != RF_OK) {
        rf_conn_fail(conn, &err);
        return;
    }
    if (frame->type == RF_MSG_DONE) {
        on_done(rank, message);
    } else if (frame->type == RF_MSG_EXCHANGE) {
        on_exchange(rank, message);
    }
    json_decref(message);
}

static void on_ready(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data;
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

const struct rf_conn_ops rf_agent_rank_ops = {on_ready, on_frame, on_close};
