/* The carrier of ops through UCX: its ops, and an iteration. See carrier.h. */
#include "ucx/carrier.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Limit of progress calls before the rank does other work. */
#define PROGRESS_CALLS 32

/* --- opening -------------------------------------------------------------- */

static void add_op(struct rf_ucx_carrier *carrier, uint32_t action,
                   uint32_t peer)
{
    const struct rf_flow *flow = carrier->engine->flow;
    const struct rf_op *op = &flow->schedule->ops[flow->actions[action].op];
    struct rf_ucx_op *entry = &carrier->ops[action];
    uint32_t unpacked;
    rf_coder_of(op, carrier->env->codec, &entry->coder);
    entry->peer = peer;
    unpacked = !rf_ucx_is_packed(entry);
    if (flow->actions[action].kind == RF_ACTION_SEND) {
        carrier->peers[peer].n_sends++;
        carrier->peers[peer].put_mems |= unpacked << op->dst_mem;
    } else {
        carrier->peers[peer].n_recvs++;
        carrier->peers[peer].get_mems |= unpacked << op->src_mem;
    }
}

static void find_ops(struct rf_ucx_carrier *carrier)
{
    const struct rf_engine *engine = carrier->engine;
    const uint32_t n_ranks = engine->env->plan->world->n_ranks;
    const uint32_t n_actions = engine->flow->n_actions;
    uint32_t *index = rf_xcalloc(n_ranks, sizeof(*index)), peer;
    bool sends;
    memset(index, 0xFF, sizeof(*index) * n_ranks);
    carrier->peer_of = index;
    carrier->ops = rf_xcalloc(n_actions, sizeof(*carrier->ops));
    carrier->peers = rf_xcalloc(n_ranks, sizeof(*carrier->peers));
    for (uint32_t i = 0; i < n_actions; i++) {
        if (!rf_carried_here(engine, i, &peer, &sends)) {
            continue;
        }
        if (index[peer] == RF_NONE) {
            index[peer] = carrier->n_peers++;
            carrier->peers[index[peer]] =
                (struct rf_ucx_peer){.carrier = carrier,
                                     .rank = peer,
                                     .loss = {&carrier->broken, peer},
                                     .current = RF_NONE};
        }
        add_op(carrier, i, index[peer]);
    }
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        struct rf_ucx_peer *of = &carrier->peers[i];
        of->ready.at = rf_xcalloc(of->n_sends, sizeof(*of->ready.at));
        of->written.at = rf_xcalloc(of->n_sends, sizeof(*of->written.at));
        of->flushed.at = rf_xcalloc(of->n_sends, sizeof(*of->flushed.at));
        of->offers.at = rf_xcalloc(of->n_recvs, sizeof(*of->offers.at));
    }
}

static enum rf_status prepare(struct rf_engine *engine, void **out,
                              uint16_t *port, struct rf_err *err)
{
    struct rf_ucx_carrier *carrier = *out;
    (void)port;
    (void)err;
    carrier->engine = engine;
    find_ops(carrier);
    return RF_OK;
}

static void on_event(struct rf_watch *watch, uint32_t events)
{
    (void)watch; /* only wakes us; work() does the rest */
    (void)events;
}

static enum rf_status open_carrier(void *opaque, struct rf_err *err)
{
    struct rf_ucx_carrier *carrier = opaque;
    enum rf_status status = rf_ucx_connect(carrier, err);
    int fd;
    if (status != RF_OK || carrier->n_peers == 0) {
        return status;
    }
    carrier->watch.on_event = on_event;
    if (ucp_worker_get_efd(carrier->worker, &fd) != UCS_OK) {
        return rf_err_set(err, RF_ERR_IO, "UCX has no descriptor to wait on");
    }
    return rf_engine_watch(carrier->engine, fd, &carrier->watch, err);
}

void rf_ucx_free(struct rf_ucx_carrier *carrier)
{
    if (carrier == NULL) {
        return;
    }
    rf_ucx_disconnect(carrier);
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        free(carrier->peers[i].ready.at);
        free(carrier->peers[i].written.at);
        free(carrier->peers[i].flushed.at);
        free(carrier->peers[i].offers.at);
    }
    for (size_t i = 0; i < carrier->n_all; i++) {
        free(carrier->all[i]->stage);
        free(carrier->all[i]);
    }
    free(carrier->all);
    free(carrier->peers);
    free(carrier->neighbours);
    free(carrier->peer_of);
    free(carrier->ops);
    free(carrier);
}

static void close_carrier(void *carrier)
{
    rf_ucx_free(carrier);
}

/* --- an iteration --------------------------------------------------------- */

static enum rf_status start(void *opaque, struct rf_err *err)
{
    struct rf_ucx_carrier *carrier = opaque;
    carrier->said_bye = false;
    (void)err;
    return RF_OK;
}

static void send_action(void *opaque, uint32_t action)
{
    struct rf_ucx_carrier *carrier = opaque;
    struct rf_ucx_op *op = &carrier->ops[action];
    op->moved = 0;
    op->under_way = 0;
    op->offered = op->taken = false;
    rf_carried_push(&carrier->peers[op->peer].ready,
                    carrier->engine->flow->actions[action].op);
}

static void admit_action(void *opaque, uint32_t action)
{
    struct rf_ucx_carrier *carrier = opaque;
    const struct rf_flow *flow = carrier->engine->flow;
    const uint32_t op = flow->actions[action].op;
    const uint32_t recv = flow->of_op[op].recv;
    rf_ucx_note(&carrier->peers[carrier->ops[recv].peer], RF_UCX_ADMITTED, op);
}

/* UCX answers other ranks only in our progress calls, and there are none
 * between iterations, so a rank stays until all its peers are done with it.
 * Once all its own data has left, it tells its peers that it is done. */
static void part(struct rf_ucx_carrier *carrier)
{
    if (carrier->engine->own_left > 0 || carrier->outstanding > 0 ||
        carrier->said_bye) {
        return;
    }
    if (carrier->dirty) {
        rf_ucx_drain(carrier);
        return;
    }
    carrier->said_bye = true;
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        rf_ucx_note(&carrier->peers[i], RF_UCX_BYE, RF_NONE);
    }
    carrier->dirty = false; /* a BYE has nothing left to wait for */
}

static enum rf_status work(void *opaque, bool *worked, struct rf_err *err)
{
    struct rf_ucx_carrier *carrier = opaque;
    for (int i = 0; i < PROGRESS_CALLS && carrier->n_peers > 0; i++) {
        if (ucp_worker_progress(carrier->worker) == 0) {
            break;
        }
        *worked = true;
    }
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        rf_ucx_send(&carrier->peers[i], worked);
        rf_ucx_get(&carrier->peers[i], worked);
    }
    part(carrier);
    if (carrier->broken.status != RF_OK) {
        return rf_err_set(err, carrier->broken.status, "%s",
                          carrier->broken.text);
    }
    return RF_OK;
}

static bool idle(void *opaque)
{
    const struct rf_ucx_carrier *carrier = opaque;
    const uint32_t generation = carrier->engine->flow->generation;
    if (!carrier->said_bye || carrier->outstanding > 0) {
        return false;
    }
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        if (carrier->peers[i].met[RF_UCX_BYE] < generation) {
            return false;
        }
    }
    return true;
}

/* Arms UCX's descriptor for later events; 0: some are pending already. */
static int nap_ms(void *opaque)
{
    struct rf_ucx_carrier *carrier = opaque;
    return carrier->n_peers > 0 && ucp_worker_arm(carrier->worker) != UCS_OK
               ? 0
               : RF_ENGINE_NAP_MS;
}

const struct rf_carrier_ops rf_carrier_ucx = {
    .prepare = prepare,
    .open = open_carrier,
    .start = start,
    .send = send_action,
    .admit = admit_action,
    .work = work,
    .idle = idle,
    .nap_ms = nap_ms,
    .close = close_carrier,
};
