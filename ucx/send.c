/*
 * The sending end of an endpoint. See carrier.h.
 *
 * Ready ops leave in ascending op index, which is ascending id, one request
 * after the other as far as the window allows.
 */
#include "common/bytes.h"
#include "common/clock.h"
#include "ucx/carrier.h"

/* --- completion ----------------------------------------------------------- */

static void sent(struct rf_ucx_carrier *carrier, uint32_t action)
{
    if (!carrier->engine->flow->noted) {
        rf_engine_complete(carrier->engine, action);
    }
}

void rf_ucx_left(const struct rf_ucx_request *request)
{
    struct rf_ucx_carrier *carrier = request->carrier;
    struct rf_ucx_op *op = &carrier->ops[request->action];
    request->peer->under_way--;
    op->under_way--;
    if (request->work == RF_UCX_SENDING && op->under_way == 0 &&
        op->moved == op->coder.shape.total_items) {
        sent(carrier, request->action);
    }
}

void rf_ucx_flushed(struct rf_ucx_peer *peer)
{
    const struct rf_flow *flow = peer->carrier->engine->flow;
    peer->flushing = false;
    for (uint32_t i = 0; i < peer->flushed.n; i++) {
        const uint32_t action = peer->flushed.at[i];
        rf_ucx_note(peer, RF_UCX_WRITTEN, flow->actions[action].op);
        sent(peer->carrier, action);
    }
}

/* --- messages ------------------------------------------------------------- */

static void send_message(struct rf_ucx_request *request, enum rf_ucx_kind kind,
                         uint32_t op, const void *data, size_t bytes)
{
    const struct rf_engine *engine = request->carrier->engine;
    ucp_request_param_t param = rf_ucx_params(request);
    uint8_t *at = request->header;
    if (request->peer->eager) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_AM_SEND_FLAG_EAGER;
    }
    rf_put_u32(at, (uint32_t)kind);
    rf_put_u32(at + 4,
               op != RF_NONE ? engine->env->schedule->ops[op].id : RF_NO_OP);
    rf_put_u32(at + 8, engine->flow->generation);
    rf_put_u32(at + 12, engine->env->rank);
    rf_put_u64(at + 16, request->chunk.first);
    rf_put_u64(at + 24, request->chunk.items);
    rf_put_u32(at + 32, kind == RF_UCX_DATA
                            ? rf_ucx_coder_of(request)->codec->number
                            : 0);
    request->carrier->dirty = true;
    rf_ucx_settle(request,
                  ucp_am_send_nbx(request->peer->end.ep, RF_UCX_MESSAGE,
                                  request->header, sizeof(request->header),
                                  data, bytes, &param));
}

void rf_ucx_note(struct rf_ucx_peer *peer, enum rf_ucx_kind kind, uint32_t op)
{
    send_message(rf_ucx_request_new(peer->carrier, peer, RF_UCX_NOTING), kind,
                 op, NULL, 0);
}

/* Flushes each endpoint: a flush of the worker covers only puts. */
void rf_ucx_drain(struct rf_ucx_carrier *carrier)
{
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        struct rf_ucx_request *request =
            rf_ucx_request_new(carrier, peer, RF_UCX_DRAINING);
        const ucp_request_param_t param = rf_ucx_params(request);
        rf_ucx_settle(request, ucp_ep_flush_nbx(peer->end.ep, &param));
    }
    carrier->dirty = false;
}

/* --- data ----------------------------------------------------------------- */

bool rf_ucx_is_packed(const struct rf_ucx_op *of)
{
    const struct rf_copy_shape *shape = &of->coder.shape;
    const struct rf_codec *codec = of->coder.codec;
    return !codec->source_view || !codec->destination_view ||
           (shape->run_items < RF_UCX_PACK_BELOW &&
            shape->run_items < shape->total_items);
}

static void put(struct rf_ucx_request *request, const void *src)
{
    const struct rf_ucx_peer *peer = request->peer;
    const struct rf_ucx_carrier *carrier = request->carrier;
    const struct rf_op *op = rf_ucx_op_of(carrier, request->action);
    const ucp_request_param_t param = rf_ucx_params(request);
    const uint64_t to = peer->end.base[op->dst_mem] + op->dst_offset +
                        rf_ucx_offset(&rf_ucx_coder_of(request)->shape,
                                      request->chunk.first, RF_COPY_DST);
    request->carrier->dirty = true;
    rf_ucx_settle(request,
                  ucp_put_nbx(peer->end.ep, src, request->chunk.bytes, to,
                              peer->end.rkey[op->dst_mem], &param));
}

static uint64_t most_bytes(const struct rf_ucx_peer *peer,
                           const struct rf_coder *coder, bool packed)
{
    return coder->wire_item == 0 ? RF_CHUNK_BYTES
           : peer->eager         ? RF_UCX_EAGER_BYTES
           : packed              ? RF_UCX_STAGE_BYTES
                                 : RF_UCX_RUN_BYTES;
}

/* Encodes a chunk into the request's stage. */
static void pack(struct rf_ucx_request *request)
{
    struct rf_ucx_carrier *carrier = request->carrier;
    const struct rf_coder *coder = rf_ucx_coder_of(request);
    const int64_t before = rf_now_ns();
    coder->codec->encode(
        coder, rf_ucx_address(carrier, request->action, 0, RF_COPY_SRC),
        &request->chunk, rf_ucx_stage(request));
    rf_engine_spent(carrier->engine, RF_TRACE_PACK, before,
                    carrier->engine->flow->actions[request->action].op,
                    request->chunk.bytes);
}

/* A request for as many next items of the current op as it takes. */
static struct rf_ucx_request *next_request(struct rf_ucx_peer *peer,
                                           bool packed)
{
    struct rf_ucx_carrier *carrier = peer->carrier;
    struct rf_ucx_op *of = &carrier->ops[peer->current];
    const struct rf_copy_shape *shape = &of->coder.shape;
    struct rf_ucx_request *request =
        rf_ucx_request_new(carrier, peer, RF_UCX_SENDING);
    const uint64_t most = most_bytes(peer, &of->coder, packed);
    request->action = peer->current;
    request->chunk = (struct rf_chunk){.first = of->moved,
                                       .items = shape->total_items - of->moved,
                                       .bytes = most};
    if (packed) {
        pack(request);
    } else {
        request->chunk.items = request->chunk.bytes =
            RF_MIN(shape->run_items - of->moved % shape->run_items, most);
    }
    of->moved += request->chunk.items;
    of->under_way++;
    peer->under_way++;
    rf_engine_sent(carrier->engine, peer->rank, request->chunk.bytes);
    return request;
}

/* Offers the current op to the receiver, if it uses gets. */
static bool offer(struct rf_ucx_peer *peer)
{
    struct rf_ucx_carrier *carrier = peer->carrier;
    struct rf_ucx_op *of = &carrier->ops[peer->current];
    const uint32_t op = carrier->engine->flow->actions[peer->current].op;
    if (!peer->rma || !carrier->env->plan->spec->ucx_gets ||
        rf_ucx_is_packed(of)) {
        return false;
    }
    of->offered = true;
    rf_engine_sent(carrier->engine, peer->rank, of->coder.shape.total_items);
    peer->current = RF_NONE;
    rf_ucx_note(peer, RF_UCX_OFFERED, op);
    return true;
}

/* Issues one request of the current op. Updates the carrier's state first,
 * since the request may complete at once. */
static void issue(struct rf_ucx_peer *peer)
{
    struct rf_ucx_carrier *carrier = peer->carrier;
    const uint32_t action = peer->current;
    const struct rf_ucx_op *of = &carrier->ops[action];
    const bool packed = rf_ucx_is_packed(of);
    const bool by_puts = peer->rma && !packed;
    struct rf_ucx_request *request = next_request(peer, packed);
    const uint64_t bytes = request->chunk.bytes;
    const uint32_t op = carrier->engine->flow->actions[action].op;
    const void *src = packed
                          ? rf_ucx_stage(request)
                          : rf_ucx_address(carrier, action,
                                           request->chunk.first, RF_COPY_SRC);
    const int64_t before = rf_now_ns();
    if (of->moved == of->coder.shape.total_items) {
        peer->current = RF_NONE;
    }
    if (by_puts) {
        request->work = RF_UCX_PUTTING;
        put(request, src);
        if (peer->current == RF_NONE) {
            peer->written.at[peer->written.n++] = action;
        }
    } else {
        send_message(request, RF_UCX_DATA, op, src, bytes);
    }
    rf_engine_spent(carrier->engine, RF_TRACE_SEND, before, op, bytes);
}

/* One flush at a time: it covers all puts that were issued before it. */
static void flush(struct rf_ucx_peer *peer)
{
    struct rf_ucx_request *request =
        rf_ucx_request_new(peer->carrier, peer, RF_UCX_FLUSHING);
    const ucp_request_param_t param = rf_ucx_params(request);
    const struct rf_ucx_list covered = peer->written;
    peer->written = peer->flushed;
    peer->written.n = 0;
    peer->flushed = covered;
    peer->flushing = true;
    peer->carrier->dirty = true;
    rf_ucx_settle(request, ucp_ep_flush_nbx(peer->end.ep, &param));
}

void rf_ucx_send(struct rf_ucx_peer *peer, bool *worked)
{
    const struct rf_flow *flow = peer->carrier->engine->flow;
    const uint32_t window = peer->eager ? RF_UCX_EAGER_WINDOW : RF_UCX_WINDOW;
    for (uint32_t i = 0; i < window && peer->under_way < window; i++) {
        if (peer->current == RF_NONE) {
            if (peer->ready.n == 0) {
                break;
            }
            peer->current = flow->of_op[rf_carried_pop(&peer->ready)].send;
        }
        if (!offer(peer)) {
            issue(peer);
        }
        *worked = true;
    }
    if (peer->written.n > 0 && !peer->flushing) {
        flush(peer);
        *worked = true;
    }
}
