/*
 * Reading from other ranks' arenas. See carrier.h.
 *
 * Offers are taken in order of arrival, one request after the other as far as
 * the window allows. The data of a completed get is in this rank's memory.
 */
#include "common/clock.h"
#include "ucx/carrier.h"

void rf_ucx_offered(struct rf_ucx_peer *peer, uint32_t action)
{
    peer->carrier->ops[action].offered = true;
    peer->offers.at[peer->offers.n++] = action;
}

/* The next items of an action: within one run, in one request. */
static struct rf_ucx_request *next_request(struct rf_ucx_peer *peer,
                                           uint32_t action)
{
    struct rf_ucx_op *of = &peer->carrier->ops[action];
    const uint64_t run = of->coder.shape.run_items;
    struct rf_ucx_request *request =
        rf_ucx_request_new(peer->carrier, peer, RF_UCX_GETTING);
    request->action = action;
    request->chunk.first = of->asked;
    request->chunk.items = request->chunk.bytes =
        RF_MIN(run - of->asked % run, RF_UCX_RUN_BYTES);
    of->asked += request->chunk.items;
    peer->under_way++;
    return request;
}

static void issue(struct rf_ucx_peer *peer, uint32_t action)
{
    struct rf_ucx_carrier *carrier = peer->carrier;
    const struct rf_ucx_op *of = &carrier->ops[action];
    const struct rf_op *op = rf_ucx_op_of(carrier, action);
    struct rf_ucx_request *request = next_request(peer, action);
    const ucp_request_param_t param = rf_ucx_params(request);
    const uint64_t bytes = request->chunk.bytes;
    const uint64_t from =
        peer->end.base[op->src_mem] + op->src_offset +
        rf_ucx_offset(&of->coder.shape, request->chunk.first, RF_COPY_SRC);
    void *to =
        rf_ucx_address(carrier, action, request->chunk.first, RF_COPY_DST);
    const int64_t before = rf_now_ns();
    carrier->dirty = true;
    rf_ucx_settle(request, ucp_get_nbx(peer->end.ep, to, bytes, from,
                                       peer->end.rkey[op->src_mem], &param));
    rf_engine_spent(carrier->engine, RF_TRACE_RECEIVE, before,
                    carrier->engine->flow->actions[action].op, bytes);
}

void rf_ucx_get(struct rf_ucx_peer *peer, bool *worked)
{
    while (peer->next_offer < peer->offers.n &&
           peer->under_way < RF_UCX_WINDOW) {
        const uint32_t action = peer->offers.at[peer->next_offer];
        const struct rf_ucx_op *of = &peer->carrier->ops[action];
        issue(peer, action);
        peer->next_offer += of->asked == of->coder.shape.total_items;
        *worked = true;
    }
    if (peer->next_offer == peer->offers.n) {
        peer->next_offer = peer->offers.n = 0;
    }
}
