/*
 * The receiving end of endpoints. See carrier.h.
 *
 * Every message is checked: it must be due in this iteration and come only
 * once, its op must be between the two ranks, and its data no more than the
 * op's. Verification finds data that arrives twice in place of other data. An
 * iteration begins only when all ranks have finished the previous one, so no
 * message comes before its iteration. Short messages include their data; UCX
 * fetches the data of long ones once told where to put it.
 */
#include <inttypes.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "ucx/carrier.h"

/* A message with its decoded header. */
struct message {
    uint32_t kind, id, generation, rank, codec;
    uint32_t op; /* index of the op, or RF_NONE */
    struct rf_ucx_peer *peer;
    void *data; /* or UCX's descriptor to fetch it by */
    struct rf_chunk chunk;
    bool fetched;
};

void rf_ucx_received(struct rf_ucx_carrier *carrier, uint32_t action,
                     const struct rf_chunk *chunk)
{
    struct rf_engine *engine = carrier->engine;
    struct rf_ucx_op *of = &carrier->ops[action];
    of->landed += chunk->items;
    rf_engine_received(engine, carrier->peers[of->peer].rank, chunk->bytes);
    if (of->landed < of->coder.shape.total_items) {
        return;
    }
    if (engine->flow->noted || of->offered) {
        rf_ucx_note(&carrier->peers[of->peer], RF_UCX_TAKEN,
                    engine->flow->actions[action].op);
    }
    rf_engine_complete(engine, action);
}

void rf_ucx_unpack(struct rf_ucx_carrier *carrier, uint32_t action,
                   const struct rf_chunk *chunk, const void *data)
{
    const struct rf_op *op = rf_ucx_op_of(carrier, action);
    const struct rf_coder *coder = &carrier->ops[action].coder;
    const int64_t before = rf_now_ns();
    const char *wrong = coder->codec->decode(
        coder, chunk, data, rf_ucx_address(carrier, action, 0, RF_COPY_DST));
    if (wrong != NULL && carrier->broken.status == RF_OK) {
        (void)rf_err_set(&carrier->broken, RF_ERR_PROTOCOL,
                         "rank %" PRIu32 " sent a chunk of op %" PRIu32 " %s",
                         op->src, op->id, wrong);
    }
    rf_engine_spent(carrier->engine, RF_TRACE_UNPACK, before,
                    carrier->engine->flow->actions[action].op, chunk->bytes);
    rf_ucx_received(carrier, action, chunk);
}

/* --- fetching ------------------------------------------------------------- */

static void on_fetched(void *handle, ucs_status_t status, size_t length,
                       void *request)
{
    (void)length;
    rf_ucx_request_done(request, status);
    ucp_request_free(handle);
}

/* Fetches into the arena if the data lies within one run, else into a stage. */
static void fetch(struct rf_ucx_carrier *carrier, uint32_t action,
                  const struct message *message, bool lands)
{
    struct rf_ucx_request *request = rf_ucx_request_new(
        carrier, message->peer, lands ? RF_UCX_LANDING : RF_UCX_STAGING);
    ucp_request_param_t param = rf_ucx_params(request);
    void *to = lands ? rf_ucx_address(carrier, action, message->chunk.first,
                                      RF_COPY_DST)
                     : rf_ucx_stage(request);
    request->action = action;
    request->chunk = message->chunk;
    /* UCX answers the sender: this must leave before a BYE. */
    carrier->dirty = true;
    param.cb.recv_am = on_fetched;
    rf_ucx_settle(request,
                  ucp_am_recv_data_nbx(carrier->worker, message->data, to,
                                       message->chunk.bytes, &param));
}

/* --- messages ------------------------------------------------------------- */

/* Counts items that a message brings or announces for an op. False: not due,
 * because the op has fewer left in this iteration. */
static bool expect(struct rf_ucx_carrier *carrier, uint32_t action,
                   const struct rf_chunk *chunk)
{
    struct rf_ucx_op *of = &carrier->ops[action];
    const uint32_t generation = carrier->engine->flow->generation;
    if (of->generation != generation) {
        of->generation = generation;
        of->moved = of->landed = of->asked = 0;
        of->offered = false;
    }
    if (!rf_coder_takes(&of->coder, chunk) ||
        chunk->items > of->coder.shape.total_items - of->moved) {
        return false;
    }
    of->moved += chunk->items;
    return true;
}

/* All of an op whose bytes are those in memory. */
static struct rf_chunk whole(const struct rf_ucx_carrier *carrier,
                             uint32_t action)
{
    const uint64_t bytes = carrier->ops[action].coder.shape.total_items;
    return (struct rf_chunk){.items = bytes, .bytes = bytes};
}

static bool expect_all(struct rf_ucx_carrier *carrier, uint32_t action)
{
    const struct rf_chunk chunk = whole(carrier, action);
    return !rf_ucx_is_packed(&carrier->ops[action]) &&
           expect(carrier, action, &chunk);
}

/* Completes a send on the receiver's note. False: the note is not due, which it
 * is once an iteration, after the op was offered or, if sends have notes, all of
 * its items were issued. */
static bool take_end(struct rf_ucx_carrier *carrier, uint32_t send)
{
    struct rf_ucx_op *of = &carrier->ops[send];
    const bool sent = carrier->engine->flow->noted &&
                      of->moved == of->coder.shape.total_items;
    if (of->taken || (!of->offered && !sent)) {
        return false;
    }
    of->taken = true;
    rf_engine_complete(carrier->engine, send);
    return true;
}

static bool take_data(struct rf_ucx_carrier *carrier,
                      const struct message *message)
{
    const uint32_t action = carrier->engine->flow->of_op[message->op].recv;
    const struct rf_coder *coder = &carrier->ops[action].coder;
    const struct rf_chunk *chunk = &message->chunk;
    const uint64_t run = coder->shape.run_items;
    const bool lands = coder->codec == &rf_codec_raw &&
                       chunk->first % run + chunk->items <= run;
    if (message->codec != coder->codec->number ||
        !expect(carrier, action, chunk) ||
        (message->fetched && !lands && chunk->bytes > RF_UCX_STAGE_BYTES)) {
        return false;
    }
    if (message->fetched) {
        fetch(carrier, action, message, lands);
    } else {
        rf_ucx_unpack(carrier, action, chunk, message->data);
    }
    return true;
}

static bool take_op(struct rf_ucx_carrier *carrier,
                    const struct message *message)
{
    struct rf_engine *engine = carrier->engine;
    struct rf_ucx_op *ops = carrier->ops;
    struct rf_chunk all;
    const struct rf_op *op = &engine->flow->schedule->ops[message->op];
    const struct rf_op_actions *of = &engine->flow->of_op[message->op];
    const bool to_us = op->dst == engine->env->rank && op->src == message->rank;
    const bool from_us =
        op->src == engine->env->rank && op->dst == message->rank;
    if (message->generation != engine->flow->generation ||
        (message->kind != RF_UCX_DATA && message->chunk.bytes > 0)) {
        return false;
    }
    switch (message->kind) {
    case RF_UCX_DATA:
        return to_us && take_data(carrier, message);
    case RF_UCX_WRITTEN:
        if (!to_us || !expect_all(carrier, of->recv)) {
            return false;
        }
        all = whole(carrier, of->recv);
        rf_ucx_received(carrier, of->recv, &all);
        return true;
    case RF_UCX_OFFERED:
        if (!to_us || !expect_all(carrier, of->recv)) {
            return false;
        }
        rf_ucx_offered(message->peer, of->recv);
        return true;
    case RF_UCX_ADMITTED:
        return from_us && rf_carried_admit(engine->flow, of->send,
                                           &ops[of->send].generation);
    case RF_UCX_TAKEN:
        return from_us && take_end(carrier, of->send);
    default:
        return false;
    }
}

static bool decode(struct rf_ucx_carrier *carrier, const uint8_t *header,
                   size_t size, struct message *out)
{
    const struct rf_schedule *schedule = carrier->engine->env->schedule;
    size_t index;
    if (size != RF_UCX_HEADER_BYTES) {
        return false;
    }
    out->kind = rf_get_u32(header);
    out->id = rf_get_u32(header + 4);
    out->generation = rf_get_u32(header + 8);
    out->rank = rf_get_u32(header + 12);
    out->chunk.first = rf_get_u64(header + 16);
    out->chunk.items = rf_get_u64(header + 24);
    out->codec = rf_get_u32(header + 32);
    index = rf_schedule_index(schedule, out->id);
    out->op = index < schedule->n_ops ? (uint32_t)index : RF_NONE;
    if (out->rank >= carrier->engine->env->plan->world->n_ranks ||
        carrier->peer_of[out->rank] == RF_NONE) {
        return false;
    }
    out->peer = &carrier->peers[carrier->peer_of[out->rank]];
    return true;
}

static bool is_of_no_op(uint32_t kind)
{
    return kind == RF_UCX_HELLO || kind == RF_UCX_READY || kind == RF_UCX_BYE;
}

/* HELLO and READY: once, before the first iteration; BYE: once in each. */
static bool take_note(const struct rf_ucx_carrier *carrier,
                      const struct message *message)
{
    const uint32_t generation = carrier->engine->flow->generation;
    uint32_t *met = &message->peer->met[message->kind];
    if (message->chunk.bytes > 0 || message->id != RF_NO_OP ||
        message->generation != generation ||
        *met != (message->kind == RF_UCX_BYE ? generation - 1 : generation)) {
        return false;
    }
    (*met)++;
    return true;
}

static ucs_status_t on_message(void *opaque, const void *header, size_t size,
                               void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    struct rf_ucx_carrier *carrier = opaque;
    struct message message = {
        .data = data,
        .chunk = {.bytes = length},
        .fetched = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0};
    bool due = decode(carrier, header, size, &message);
    if (due) {
        due = is_of_no_op(message.kind)
                  ? take_note(carrier, &message)
                  : message.op != RF_NONE && take_op(carrier, &message);
    }
    if (!due && carrier->broken.status == RF_OK) {
        (void)rf_err_set(&carrier->broken, RF_ERR_PROTOCOL,
                         "rank %" PRIu32
                         " sent a UCX message out of turn (kind %" PRIu32
                         ", op %" PRIu32 ")",
                         message.rank, message.kind, message.id);
    }
    return due && message.fetched ? UCS_INPROGRESS : UCS_OK;
}

enum rf_status rf_ucx_listen(struct rf_ucx_carrier *carrier, struct rf_err *err)
{
    const ucp_am_handler_param_t param = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = RF_UCX_MESSAGE,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = on_message,
        .arg = carrier};
    const ucs_status_t status =
        ucp_worker_set_am_recv_handler(carrier->worker, &param);
    return status == UCS_OK
               ? RF_OK
               : rf_err_set(err, RF_ERR_IO, "UCX accepts no messages: %s",
                            ucs_status_string(status));
}
