/*
 * Tagged messages between ranks. See transport/method/ucx_wire.h.
 *
 * A tag is the sender's rank and the number of its messages to this receiver so
 * far, counted by both. Empty messages of the same sequence connect ranks
 * during open and part them at the end of an iteration: UCX answers other ranks
 * only in our progress calls, so a rank stays until all its peers have sent
 * theirs, each after a flush.
 *
 * Errors are recorded in `broken`, which progress() returns. An endpoint
 * between nodes reports a lost peer; inside a node the agent notices the end of
 * a process, and the abort flag is set.
 */
#include "ucx/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "ucx/endpoint.h"
#include "ucx/lanes.h"
#include "ucx/peer_info.h"

/* Limit of progress calls before the rank does other work. */
#define PROGRESS_CALLS 32
#define TAG(rank, number) ((ucp_tag_t)(rank) << 32 | (ucp_tag_t)(number))
#define WHOLE_TAG (~(ucp_tag_t)0)

struct wire_peer {
    uint32_t rank;
    struct rf_ucx_loss loss;
    ucp_ep_h ep;
    uint32_t sent, received; /* messages requested, over all iterations */
    uint32_t awaited;        /* receives in flight */
    bool receives;           /* the peer has ops from this rank */
};

/* A message or a flush in flight. */
struct request {
    struct request *next; /* in the free list */
    struct rf_ucx_wire *wire;
    struct wire_peer *peer;
    uint32_t *left; /* NULL: not counted */
    uint64_t bytes; /* expected */
    bool receives;
};

/* Phases of an iteration. */
enum phase { MOVING, FLUSHING, PARTING };

struct rf_ucx_wire {
    const struct rf_method_env *env;
    struct rf_ucx_library *library;
    ucp_worker_h worker;
    enum rf_memory_kind kind;
    ucp_mem_h *memory;
    size_t n_memory;
    struct wire_peer *peers;
    uint32_t n_peers;
    uint32_t *peer_of;    /* by rank: its index, or RF_NONE */
    struct request *free; /* requests */
    struct request **all; /* to free */
    size_t n_all, all_cap;
    uint32_t under_way; /* requests in flight */
    enum phase phase;
    struct rf_err broken; /* RF_OK: no error */
};

/* --- requests ------------------------------------------------------------- */

static struct request *request_new(struct rf_ucx_wire *wire,
                                   struct wire_peer *peer, uint32_t *left)
{
    struct request *request = wire->free;
    if (request != NULL) {
        wire->free = request->next;
    } else {
        request = rf_xcalloc(1, sizeof(*request));
        RF_PUSH(wire->all, wire->n_all, wire->all_cap, request);
    }
    *request = (struct request){.wire = wire, .peer = peer, .left = left};
    wire->under_way++;
    if (left != NULL) {
        ++*left;
    }
    return request;
}

static void end(struct request *request, ucs_status_t status)
{
    struct rf_ucx_wire *wire = request->wire;
    if (status != UCS_OK) {
        rf_ucx_lose(&request->peer->loss, status);
    }
    if (request->left != NULL) {
        --*request->left;
    }
    request->peer->awaited -= request->receives;
    request->next = wire->free;
    wire->free = request;
    wire->under_way--;
}

static void on_end(void *handle, ucs_status_t status, void *request)
{
    end(request, status);
    ucp_request_free(handle);
}

static void arrived(struct request *request, ucs_status_t status,
                    uint64_t bytes)
{
    struct rf_err *broken = &request->wire->broken;
    if ((status == UCS_ERR_MESSAGE_TRUNCATED ||
         (status == UCS_OK && bytes != request->bytes)) &&
        broken->status == RF_OK) {
        (void)rf_err_set(
            broken, RF_ERR_PROTOCOL,
            "rank %" PRIu32
            " sent a UCX message of the wrong size, expected %" PRIu64 " bytes",
            request->peer->rank, request->bytes);
    }
    end(request, status);
}

static void on_arrived(void *handle, ucs_status_t status,
                       const ucp_tag_recv_info_t *info, void *request)
{
    arrived(request, status, info->length);
    ucp_request_free(handle);
}

/* Gives UCX the kind of memory: it would take memory allocated before UCX
 * started for host memory. */
static ucp_request_param_t params_of(struct request *request)
{
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.send = on_end,
        .memory_type = request->bytes > 0
                           ? rf_ucx_memory_type(request->wire->kind)
                           : UCS_MEMORY_TYPE_HOST,
        .user_data = request};
}

/* --- messages ------------------------------------------------------------- */

static struct wire_peer *peer_at(struct rf_ucx_wire *wire, uint32_t rank)
{
    return &wire->peers[wire->peer_of[rank]];
}

static void wire_send(struct rf_ucx_wire *wire, uint32_t rank, const void *from,
                      uint64_t bytes, uint32_t *left)
{
    struct wire_peer *peer = peer_at(wire, rank);
    struct request *request = request_new(wire, peer, left);
    ucp_request_param_t param;
    ucs_status_ptr_t answer;
    request->bytes = bytes;
    param = params_of(request);
    answer = ucp_tag_send_nbx(peer->ep, from, bytes,
                              TAG(wire->env->rank, peer->sent++), &param);
    if (!UCS_PTR_IS_PTR(answer)) {
        end(request, UCS_PTR_STATUS(answer));
    }
}

/* For a message that has already arrived, UCX 1.13 gives the size only to the
 * callback. */
static void wire_receive(struct rf_ucx_wire *wire, uint32_t rank, void *to,
                         uint64_t bytes, uint32_t *left)
{
    struct wire_peer *peer = peer_at(wire, rank);
    struct request *request = request_new(wire, peer, left);
    ucp_request_param_t param;
    ucs_status_ptr_t answer;
    request->bytes = bytes;
    request->receives = true;
    peer->awaited++;
    param = params_of(request);
    param.cb.recv = on_arrived;
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    answer = ucp_tag_recv_nbx(wire->worker, to, bytes,
                              TAG(rank, peer->received++), WHOLE_TAG, &param);
    if (UCS_PTR_IS_ERR(answer)) {
        end(request, UCS_PTR_STATUS(answer));
    }
}

/* Posts an empty message to and from each peer. */
static void greet(struct rf_ucx_wire *wire)
{
    for (uint32_t i = 0; i < wire->n_peers; i++) {
        wire_receive(wire, wire->peers[i].rank, NULL, 0, NULL);
        wire_send(wire, wire->peers[i].rank, NULL, 0, NULL);
    }
}

/* Flushes all endpoints; on completion everything sent before has left this
 * worker. */
static void flush(struct rf_ucx_wire *wire)
{
    for (uint32_t i = 0; i < wire->n_peers; i++) {
        struct wire_peer *peer = &wire->peers[i];
        struct request *request = request_new(wire, peer, NULL);
        const ucp_request_param_t param = params_of(request);
        ucs_status_ptr_t answer = ucp_ep_flush_nbx(peer->ep, &param);
        if (!UCS_PTR_IS_PTR(answer)) {
            end(request, UCS_PTR_STATUS(answer));
        }
    }
}

/* --- an iteration --------------------------------------------------------- */

static void wire_start(struct rf_ucx_wire *wire)
{
    wire->phase = MOVING;
}

static enum rf_status wire_progress(struct rf_ucx_wire *wire, bool *worked,
                                    struct rf_err *err)
{
    for (int i = 0; i < PROGRESS_CALLS && wire->n_peers > 0; i++) {
        if (ucp_worker_progress(wire->worker) == 0) {
            break;
        }
        *worked = true;
    }
    return wire->broken.status == RF_OK
               ? RF_OK
               : rf_err_set(err, wire->broken.status, "%s", wire->broken.text);
}

/* After a flush an empty message has nothing to wait for. */
static void wire_end(struct rf_ucx_wire *wire, bool *done)
{
    *done = false;
    if (wire->under_way > 0) {
        return;
    }
    switch (wire->phase) {
    case MOVING:
        flush(wire);
        wire->phase = FLUSHING;
        break;
    case FLUSHING:
        greet(wire);
        wire->phase = PARTING;
        break;
    case PARTING:
        *done = true;
        break;
    }
}

/* --- opening -------------------------------------------------------------- */

/* Ranks with which this one has ops. */
static void find_peers(struct rf_ucx_wire *wire)
{
    const struct rf_schedule *schedule = wire->env->schedule;
    const uint32_t n_ranks = wire->env->plan->world->n_ranks;
    const uint32_t self = wire->env->rank;
    wire->peer_of = rf_xcalloc(n_ranks, sizeof(*wire->peer_of));
    memset(wire->peer_of, 0xFF, sizeof(*wire->peer_of) * n_ranks);
    wire->peers = rf_xcalloc(n_ranks, sizeof(*wire->peers));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        const uint32_t other = op->src == self ? op->dst : op->src;
        if ((op->src != self && op->dst != self) || other == self) {
            continue;
        }
        if (wire->peer_of[other] == RF_NONE) {
            wire->peer_of[other] = wire->n_peers;
            wire->peers[wire->n_peers++] = (struct wire_peer){
                .rank = other, .loss = {&wire->broken, other}};
        }
        wire->peers[wire->peer_of[other]].receives |= op->dst == other;
    }
}

static enum rf_status register_memory(struct rf_ucx_wire *wire,
                                      const struct rf_ucx_wire_memory *memory,
                                      struct rf_err *err)
{
    enum rf_status status = RF_OK;
    wire->kind = memory->kind;
    wire->memory = rf_xcalloc(memory->n, sizeof(*wire->memory));
    wire->n_memory = memory->n;
    for (size_t i = 0; i < memory->n && status == RF_OK; i++) {
        if (memory->at[i].bytes > 0) {
            status = rf_ucx_register(wire->library, memory->kind,
                                     &memory->at[i], &wire->memory[i], err);
        }
    }
    return status;
}

static bool same_node(const struct rf_ucx_wire *wire, uint32_t rank)
{
    const struct rf_rank *ranks = wire->env->plan->world->ranks;
    return ranks[rank].node == ranks[wire->env->rank].node;
}

static enum rf_status make_endpoints(struct rf_ucx_wire *wire,
                                     const struct rf_blob *infos,
                                     struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < wire->n_peers && status == RF_OK; i++) {
        struct wire_peer *peer = &wire->peers[i];
        struct rf_blob info = infos[peer->rank];
        const void *address;
        size_t size;
        status = rf_ucx_peer_info_next(&info, &address, &size) && size > 0
                     ? rf_ucx_endpoint_open(
                           wire->worker, address, peer->rank,
                           same_node(wire, peer->rank) ? NULL : &peer->loss,
                           &peer->ep, err)
                     : rf_ucx_peer_info_wrong(peer->rank, err);
    }
    return status;
}

static enum rf_status reach_peers(struct rf_ucx_wire *wire, struct rf_err *err)
{
    struct rf_blob info = {NULL, 0}, *infos = NULL;
    enum rf_status status =
        rf_ucx_peer_info_append_address(&info, wire->worker, err);
    RF_THEN(status, rf_share(wire->env, info.data, info.size, &infos, err));
    RF_THEN(status, make_endpoints(wire, infos, err));
    rf_shared_free(wire->env, &infos);
    free(info.data);
    return status;
}

/* Waits until all requests are complete. Only the wait for peers that send
 * `at_once` is limited to less than the whole of open. */
static enum rf_status settle(struct rf_ucx_wire *wire, bool at_once,
                             struct rf_err *err)
{
    enum rf_status status = RF_OK;
    uint32_t left = wire->under_way;
    int64_t since_ns = rf_now_ns();
    while (wire->under_way > 0 && status == RF_OK) {
        uint32_t at = 0;
        if (wire->under_way < left || !at_once) {
            left = wire->under_way;
            since_ns = rf_now_ns();
        }
        while (at < wire->n_peers && wire->peers[at].awaited == 0) {
            at++;
        }
        status = rf_ucx_wait(
            wire->env, wire->worker, &wire->broken,
            at < wire->n_peers ? wire->peers[at].rank : RF_NONE, since_ns, err);
    }
    return status;
}

/* UCX connects an endpoint on first use, and both sides must take part: once
 * all ranks have heard from all their peers twice, no peer needs this rank to
 * connect. A peer's second message waits for the first of all of its peers. */
static enum rf_status connect_peers(struct rf_ucx_wire *wire,
                                    struct rf_err *err)
{
    enum rf_status status;
    greet(wire);
    flush(wire);
    status = settle(wire, true, err);
    if (status == RF_OK) {
        greet(wire);
        status = settle(wire, false, err);
    }
    return status;
}

static enum rf_status tell_choices(const struct rf_ucx_wire *wire,
                                   struct rf_err *err)
{
    struct rf_ucx_lane_counts mine = {.n = 0};
    struct rf_ucx_lanes lanes;
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < wire->n_peers && status == RF_OK; i++) {
        if (!wire->peers[i].receives) {
            continue;
        }
        status = rf_ucx_lanes_ask(wire->peers[i].ep, &lanes, err);
        if (status == RF_OK) {
            rf_ucx_lanes_count(&mine, "messages by",
                               wire->kind == RF_DEVICE_MEMORY ? lanes.device
                                                              : lanes.all,
                               lanes.tcp ? RF_UCX_OVER_TCP : RF_UCX_NO_DOUBT);
        }
    }
    RF_THEN(status, rf_ucx_lanes_publish(wire->env, &mine, err));
    rf_ucx_lanes_free(&mine);
    return status;
}

static void wire_close(struct rf_ucx_wire *wire);

static enum rf_status wire_open(const struct rf_method_env *env,
                                const struct rf_ucx_wire_memory *memory,
                                struct rf_ucx_wire **out, struct rf_err *err)
{
    struct rf_ucx_wire *wire = rf_xcalloc(1, sizeof(*wire));
    enum rf_status status = rf_ucx_library_take(
        RF_UCX_WIRE, env->plan->world->n_ranks, &wire->library, err);
    wire->env = env;
    if (status == RF_OK) {
        find_peers(wire);
        status = rf_ucx_worker_open(wire->library, &wire->worker, err);
    }
    RF_THEN(status, register_memory(wire, memory, err));
    RF_THEN(status, reach_peers(wire, err));
    RF_THEN(status, connect_peers(wire, err));
    RF_THEN(status, tell_choices(wire, err));
    if (status != RF_OK) {
        wire_close(wire);
        return status;
    }
    *out = wire;
    return RF_OK;
}

/* --- ending --------------------------------------------------------------- */

static void wire_abort(struct rf_ucx_wire *wire)
{
    wire->library->stuck = true;
}

/* UCX ends the process if a worker with requests in flight is destroyed. The
 * worker destroys its endpoints. */
static void release(struct rf_ucx_wire *wire)
{
    struct rf_ucx_library *library = wire->library;
    library->stuck |= wire->under_way > 0 || wire->broken.status != RF_OK;
    if (!library->stuck && wire->worker != NULL) {
        ucp_worker_destroy(wire->worker);
    }
    for (size_t i = 0; i < wire->n_memory; i++) {
        rf_ucx_deregister(library, wire->memory[i]);
    }
    rf_ucx_library_give(library);
}

static void wire_close(struct rf_ucx_wire *wire)
{
    if (wire == NULL) {
        return;
    }
    if (wire->library != NULL) {
        release(wire);
    }
    for (size_t i = 0; i < wire->n_all; i++) {
        free(wire->all[i]);
    }
    free(wire->all);
    free(wire->memory);
    free(wire->peers);
    free(wire->peer_of);
    free(wire);
}

/* --- the table ------------------------------------------------------------ */

static enum rf_status wire_probe(enum rf_memory_kind kind, struct rf_err *err)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    struct rf_ucx_library *library;
    ucs_status_t why;
    if (rf_ucx_library_take(RF_UCX_WIRE, 1, &library, err) != RF_OK) {
        return err->status = RF_ERR_UNSUPPORTED;
    }
    why = ucp_context_query(library->context, &attr);
    rf_ucx_library_give(library);
    if (why != UCS_OK) {
        (void)rf_ucx_failed("say which memory it reaches", why, err);
        return err->status = RF_ERR_UNSUPPORTED;
    }
    return (attr.memory_types & UCS_BIT(rf_ucx_memory_type(kind))) != 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_UNSUPPORTED,
                            "UCX %s does not support CUDA memory: install one "
                            "built with CUDA (libuct_cuda.so); if UCX_TLS is "
                            "set, it must include cuda_copy",
                            ucp_get_version_string());
}

const struct rf_ucx_wire_ops rf_ucx_wire_ops = {
    .probe = wire_probe,
    .open = wire_open,
    .start = wire_start,
    .send = wire_send,
    .receive = wire_receive,
    .progress = wire_progress,
    .end = wire_end,
    .abort = wire_abort,
    .close = wire_close,
};
