/*
 * Opening and closing UCX on a rank. See carrier.h.
 *
 * env->exchange() gives every rank's peer info (its worker's address; the
 * addresses and keys of its arenas) to all. Endpoints are then connected: UCX
 * connects on first use, and both sides must take part. A rank that has HELLO
 * from all its peers and whose own have left sends READY; once it has READY
 * from all, no peer needs it to connect.
 */
#include <stdlib.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/mem.h"
#include "ucx/carrier.h"

/* --- peer info ------------------------------------------------------------ */

static enum rf_status append_key(const struct rf_ucx_carrier *carrier,
                                 enum rf_mem mem, struct rf_blob *info,
                                 struct rf_err *err)
{
    uint8_t base[8];
    void *key = NULL;
    size_t size = 0;
    if (carrier->memory[mem] != NULL) {
        const ucs_status_t status = ucp_rkey_pack(
            carrier->library->context, carrier->memory[mem], &key, &size);
        if (status != UCS_OK) {
            return rf_ucx_failed("make a key of registered memory", status,
                                 err);
        }
    }
    rf_put_u64(base, (uint64_t)(uintptr_t)carrier->env->arena[mem].base);
    rf_ucx_peer_info_append(info, base, sizeof(base));
    rf_ucx_peer_info_append(info, key, size);
    if (key != NULL) {
        ucp_rkey_buffer_release(key);
    }
    return RF_OK;
}

static enum rf_status swap_peer_infos(struct rf_ucx_carrier *carrier,
                                      struct rf_err *err)
{
    struct rf_blob info = {NULL, 0};
    enum rf_status status =
        rf_ucx_peer_info_append_address(&info, carrier->worker, err);
    for (int mem = 0; mem < RF_MEM_COUNT && status == RF_OK; mem++) {
        status = append_key(carrier, (enum rf_mem)mem, &info, err);
    }
    RF_THEN(status,
            rf_share(carrier->env, info.data, info.size, &carrier->infos, err));
    free(info.data);
    return status;
}

/* --- endpoints ------------------------------------------------------------ */

/* The arena's base and key from peer info; false: missing. */
static bool read_key(struct rf_ucx_end *end, int mem, struct rf_blob *info,
                     ucs_status_t *why)
{
    const void *field;
    size_t size;
    if (!rf_ucx_peer_info_next(info, &field, &size) || size != 8) {
        return false;
    }
    end->base[mem] = rf_get_u64(field);
    if (!rf_ucx_peer_info_next(info, &field, &size)) {
        return false;
    }
    *why =
        size > 0 ? ucp_ep_rkey_unpack(end->ep, field, &end->rkey[mem]) : UCS_OK;
    return true;
}

enum rf_status rf_ucx_end_open(struct rf_ucx_carrier *carrier, uint32_t rank,
                               struct rf_ucx_peer *peer, struct rf_ucx_end *out,
                               struct rf_err *err)
{
    struct rf_blob info = carrier->infos[rank];
    const void *address;
    size_t size;
    ucs_status_t why = UCS_OK;
    bool whole = rf_ucx_peer_info_next(&info, &address, &size) && size > 0;
    if (whole) {
        RF_TRY(rf_ucx_endpoint_open(carrier->worker, address, rank,
                                    peer != NULL ? &peer->loss : NULL, &out->ep,
                                    err));
    }
    for (int mem = 0; mem < RF_MEM_COUNT && whole && why == UCS_OK; mem++) {
        whole = read_key(out, mem, &info, &why);
    }
    if (why != UCS_OK) {
        return rf_ucx_failed("use a key of registered memory", why, err);
    }
    return whole ? RF_OK : rf_ucx_peer_info_wrong(rank, err);
}

void rf_ucx_end_close(struct rf_ucx_end *end)
{
    for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
        if (end->rkey[mem] != NULL) {
            ucp_rkey_destroy(end->rkey[mem]);
        }
    }
}

static enum rf_status reach_peers(struct rf_ucx_carrier *carrier,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < carrier->n_peers && status == RF_OK; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        const struct rf_ucx_neighbour *here =
            rf_ucx_neighbour_of(carrier, peer->rank);
        if (here != NULL) {
            peer->end = here->end;
        } else {
            status =
                rf_ucx_end_open(carrier, peer->rank, peer, &peer->end, err);
        }
    }
    rf_shared_free(carrier->env, &carrier->infos);
    return status;
}

/* --- connecting endpoints ------------------------------------------------- */

static const struct rf_ucx_peer *missing(const struct rf_ucx_carrier *carrier,
                                         enum rf_ucx_kind kind)
{
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        if (carrier->peers[i].met[kind] == 0) {
            return &carrier->peers[i];
        }
    }
    return NULL;
}

/* Sends `kind` to all peers and waits for it from all. Flushes HELLOs, so that
 * the connection is free for later messages; a READY needs no flush. A READY
 * may take long, since its sender waits for others: only open limits it. */
static enum rf_status meet(struct rf_ucx_carrier *carrier,
                           enum rf_ucx_kind kind, struct rf_err *err)
{
    const struct rf_ucx_peer *peer, *last = NULL;
    int64_t since_ns = rf_now_ns();
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        rf_ucx_note(&carrier->peers[i], kind, RF_NONE);
    }
    if (kind == RF_UCX_HELLO) {
        rf_ucx_drain(carrier);
    }
    while ((peer = missing(carrier, kind)) != NULL ||
           carrier->outstanding > 0) {
        if (peer != last || kind == RF_UCX_READY) {
            last = peer;
            since_ns = rf_now_ns();
        }
        RF_TRY(rf_ucx_wait(carrier->env, carrier->worker, &carrier->broken,
                           peer != NULL ? peer->rank : RF_NONE, since_ns, err));
    }
    return RF_OK;
}

/* --- opening and closing -------------------------------------------------- */

static enum rf_status register_arenas(struct rf_ucx_carrier *carrier,
                                      struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (int mem = 0; mem < RF_MEM_COUNT && status == RF_OK; mem++) {
        if (carrier->env->arena[mem].bytes > 0) {
            status = rf_ucx_register(carrier->library, RF_HOST_MEMORY,
                                     &carrier->env->arena[mem],
                                     &carrier->memory[mem], err);
        }
    }
    return status;
}

enum rf_status rf_ucx_join(const struct rf_method_env *env,
                           struct rf_ucx_carrier **out, struct rf_err *err)
{
    struct rf_ucx_carrier *carrier = rf_xcalloc(1, sizeof(*carrier));
    enum rf_status status = rf_ucx_library_take(
        RF_UCX_CARRY, env->plan->world->n_ranks, &carrier->library, err);
    carrier->env = env;
    RF_THEN(status,
            rf_ucx_worker_open(carrier->library, &carrier->worker, err));
    RF_THEN(status, rf_ucx_listen(carrier, err));
    RF_THEN(status, register_arenas(carrier, err));
    RF_THEN(status, swap_peer_infos(carrier, err));
    RF_THEN(status, rf_ucx_meet_node(carrier, err));
    if (status != RF_OK) {
        rf_ucx_free(carrier);
        return status;
    }
    *out = carrier;
    return RF_OK;
}

enum rf_status rf_ucx_connect(struct rf_ucx_carrier *carrier,
                              struct rf_err *err)
{
    enum rf_status status = reach_peers(carrier, err);
    RF_THEN(status, meet(carrier, RF_UCX_HELLO, err));
    RF_THEN(status, meet(carrier, RF_UCX_READY, err));
    carrier->dirty = false;
    return status == RF_OK ? rf_ucx_select_protocols(carrier, err) : status;
}

static bool has_work_left(const struct rf_ucx_carrier *carrier)
{
    return carrier->outstanding > 0 || carrier->dirty ||
           carrier->broken.status != RF_OK ||
           (carrier->engine != NULL && carrier->engine->own_left > 0);
}

/* UCX ends the process if a worker with requests in flight is destroyed, and
 * cannot cancel them all: after an abort everything stays until the process
 * ends, which is soon. Otherwise all messages have left by the end of the last
 * iteration, and the worker destroys its endpoints. */
void rf_ucx_disconnect(struct rf_ucx_carrier *carrier)
{
    rf_shared_free(carrier->env, &carrier->infos);
    if (carrier->library == NULL) {
        return;
    }
    carrier->library->stuck |= has_work_left(carrier);
    if (!carrier->library->stuck) {
        for (uint32_t i = 0; i < carrier->n_peers; i++) {
            if (!rf_ucx_neighbour_of(carrier, carrier->peers[i].rank)) {
                rf_ucx_end_close(&carrier->peers[i].end);
            }
        }
        for (uint32_t i = 0; i < carrier->n_neighbours; i++) {
            rf_ucx_end_close(&carrier->neighbours[i].end);
        }
        if (carrier->worker != NULL) {
            ucp_worker_destroy(carrier->worker);
        }
        for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
            rf_ucx_deregister(carrier->library, carrier->memory[mem]);
        }
    }
    rf_ucx_library_give(carrier->library);
}
