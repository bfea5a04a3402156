/*
 * Requests, and addresses of items. See carrier.h.
 *
 * Callbacks run inside ucp_worker_progress(), so on the rank's data thread;
 * their errors are recorded in `broken`, which work() returns.
 */
#include "common/mem.h"
#include "ucx/carrier.h"

struct rf_ucx_request *rf_ucx_request_new(struct rf_ucx_carrier *carrier,
                                          struct rf_ucx_peer *peer,
                                          enum rf_ucx_work work)
{
    struct rf_ucx_request *request = carrier->requests;
    if (request != NULL) {
        carrier->requests = request->next;
    } else {
        request = rf_xcalloc(1, sizeof(*request));
        request->carrier = carrier;
        RF_PUSH(carrier->all, carrier->n_all, carrier->all_cap, request);
    }
    request->peer = peer;
    request->work = work;
    request->action = RF_NONE;
    request->chunk = (struct rf_chunk){0};
    carrier->outstanding++;
    return request;
}

void rf_ucx_request_done(struct rf_ucx_request *request, ucs_status_t status)
{
    struct rf_ucx_carrier *carrier = request->carrier;
    if (status != UCS_OK) {
        rf_ucx_lost(carrier, request->peer, status);
    } else {
        switch (request->work) {
        case RF_UCX_SENDING:
        case RF_UCX_PUTTING:
            rf_ucx_left(request);
            break;
        case RF_UCX_GETTING:
            request->peer->under_way--;
            rf_ucx_received(carrier, request->action, &request->chunk);
            break;
        case RF_UCX_LANDING:
            rf_ucx_received(carrier, request->action, &request->chunk);
            break;
        case RF_UCX_STAGING:
            rf_ucx_unpack(carrier, request->action, &request->chunk,
                          request->stage);
            break;
        case RF_UCX_FLUSHING:
            rf_ucx_flushed(request->peer);
            break;
        case RF_UCX_NOTING:
        case RF_UCX_DRAINING:
            break;
        }
    }
    request->next = carrier->requests;
    carrier->requests = request;
    carrier->outstanding--;
}

static void on_done(void *handle, ucs_status_t status, void *request)
{
    rf_ucx_request_done(request, status);
    ucp_request_free(handle);
}

ucp_request_param_t rf_ucx_params(struct rf_ucx_request *request)
{
    return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_done,
                                 .user_data = request};
}

void rf_ucx_settle(struct rf_ucx_request *request, ucs_status_ptr_t answer)
{
    if (!UCS_PTR_IS_PTR(answer)) {
        rf_ucx_request_done(request, UCS_PTR_STATUS(answer));
    }
}

uint8_t *rf_ucx_stage(struct rf_ucx_request *request)
{
    if (request->stage == NULL) {
        request->stage = rf_xmalloc(RF_UCX_STAGE_BYTES);
    }
    return request->stage;
}

void rf_ucx_lost(struct rf_ucx_carrier *carrier, const struct rf_ucx_peer *peer,
                 ucs_status_t why)
{
    const struct rf_ucx_loss nobody = {&carrier->broken, RF_NONE};
    rf_ucx_lose(peer != NULL ? &peer->loss : &nobody, why);
}

uint64_t rf_ucx_offset(const struct rf_copy_shape *shape, uint64_t item,
                       enum rf_copy_side side)
{
    const uint64_t in_run = item % shape->run_items;
    uint64_t src, dst;
    rf_copy_run_at(shape, item / shape->run_items, &src, &dst);
    return side == RF_COPY_SRC ? src + in_run * shape->src_item
                               : dst + in_run * shape->dst_item;
}

void *rf_ucx_address(const struct rf_ucx_carrier *carrier, uint32_t action,
                     uint64_t first, enum rf_copy_side side)
{
    return rf_engine_place_of(carrier->engine, rf_ucx_op_of(carrier, action),
                              side) +
           rf_ucx_offset(&carrier->ops[action].coder.shape, first, side);
}
