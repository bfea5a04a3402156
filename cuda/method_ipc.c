/*
 * Method ipc: each rank copies what it sends straight into the destinations'
 * arenas, which it has mapped through CUDA IPC: no staging, no unpacking, one
 * kernel launch a round.
 *
 * Order between processes: after its copies of round k a rank records its
 * interprocess event and then publishes k in shared host memory. Others see the
 * number, and only then make their stream wait for that event, since a wait
 * takes the latest record at the time of the call. A round starts behind all
 * earlier rounds of all ranks of the node; the last wait makes the iteration
 * complete.
 *
 * Zero copy: a destination piece that one op fills whole, unchanged and with
 * the same strides from memory of the same slot's device is not copied at all;
 * its rank reads the source through the mapping (base_of), and what moved is
 * the handle.
 *
 * Failures: handles that do not open say why at open(); a rank that dies is
 * noticed by the agent, which sets env->abort.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device.h"
#include "cuda/ipc.h"
#include "cuda/methods.h"
#include "transport/nodeshm.h"

#define CLOSE_WAIT_NS (2 * RF_NS_PER_S)
#define OWN_BASES ((uint32_t)RF_MEM_COUNT)

/* A rank's line in the control segment. */
struct published {
    _Alignas(RF_CACHE_LINE) _Atomic uint64_t rounds; /* so far */
    _Atomic bool closed; /* has unmapped everybody's memory */
};

struct ipc_round {
    uint32_t round;
    struct rf_copies host;
    struct rf_device_slices copies[2];
    cudaEvent_t begin, end;
};

struct alias {
    const struct rf_op *op;
    void *base; /* of the source arena, in this process */
};

struct ipc_state {
    const struct rf_method_env *env;
    struct rf_nodeshm *shm;
    struct rf_ipc_peer *peers; /* by slot */
    struct rf_bases bases;
    uint32_t n_bases;
    uint32_t *base_index; /* [slot · RF_MEM_COUNT + mem], RF_NONE: none */
    struct ipc_round *rounds;
    size_t n_rounds, rounds_capacity;
    struct alias *aliases; /* pieces of ours that are views */
    size_t n_aliases, aliases_capacity;
    uint32_t cast;
    uint64_t sent_bytes, received_bytes;
    cudaStream_t stream;
    cudaEvent_t event, first, last;
    uint64_t target; /* published rounds before this iteration */
    size_t next;     /* round to issue */
    bool closing;    /* last waits are enqueued */
};

static enum rf_status ipc_probe(struct rf_err *err)
{
    return rf_device_ready(err);
}

static struct published *published_of(const struct ipc_state *state,
                                      uint32_t slot)
{
    return (struct published *)state->shm->control + slot;
}

/* All peers' handles, and their events opened. */
static enum rf_status meet(struct ipc_state *state, struct rf_err *err)
{
    const struct rf_method_env *env = state->env;
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    struct rf_ipc_export mine;
    enum rf_status status = rf_ipc_export(env, state->event, &mine, err);
    if (status == RF_OK) {
        status =
            env->exchange(env->exchange_data, &mine, sizeof(mine), all, err);
    }
    for (uint32_t slot = 0; status == RF_OK && slot < state->shm->n_peers;
         slot++) {
        const uint32_t rank = state->shm->peers[slot].rank;
        struct rf_ipc_peer *peer = &state->peers[slot];
        if (all[rank].size != sizeof(peer->export)) {
            status = rf_err_set(err, RF_ERR_PROTOCOL,
                                "rank %u: bad IPC handles", rank);
            break;
        }
        memcpy(&peer->export, all[rank].data, sizeof(peer->export));
        if (slot != state->shm->self) {
            status = rf_ipc_open_event(peer, err);
        }
    }
    rf_blobs_free(all, n);
    free(all);
    return status;
}

/* Index in `bases` of a memory of a rank of this node, opening it if new. */
static enum rf_status base_for(struct ipc_state *state, uint32_t rank,
                               uint8_t mem, uint32_t *out, struct rf_err *err)
{
    const uint32_t slot = rf_nodeshm_slot(state->shm, rank);
    uint32_t *index = &state->base_index[slot * RF_MEM_COUNT + mem];
    enum rf_status status = RF_OK;
    if (slot == state->shm->self) {
        *out = mem;
        return RF_OK;
    }
    if (*index == RF_NONE) {
        if (state->n_bases == RF_MAX_BASES) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "rank %u sends to more than %u memories",
                              state->env->rank, RF_MAX_BASES - OWN_BASES);
        }
        status = rf_ipc_open_arena(&state->peers[slot], mem, err);
        if (status != RF_OK) {
            return status;
        }
        *index = state->n_bases;
        state->bases.at[state->n_bases++] = state->peers[slot].arena[mem];
    }
    *out = *index;
    return RF_OK;
}

static struct ipc_round *round_of(struct ipc_state *state, uint32_t round)
{
    for (size_t i = state->n_rounds; i-- > 0;) {
        if (state->rounds[i].round == round) {
            return &state->rounds[i];
        }
    }
    RF_PUSH(state->rounds, state->n_rounds, state->rounds_capacity,
            ((struct ipc_round){.round = round}));
    return &state->rounds[state->n_rounds - 1];
}

static enum rf_status add_op(struct ipc_state *state, const struct rf_op *op,
                             struct rf_err *err)
{
    const uint32_t rank = state->env->rank;
    struct ipc_round *round = round_of(state, op->round);
    struct rf_op_place place = {0};
    enum rf_status status;
    if (rf_ipc_is_view(state->env->plan, op)) {
        if (op->dst == rank) {
            status =
                base_for(state, op->src, op->src_mem, &place.src_base, err);
            if (status != RF_OK) {
                return status;
            }
            RF_PUSH(state->aliases, state->n_aliases, state->aliases_capacity,
                    ((struct alias){.op = op,
                                    .base = state->bases.at[place.src_base]}));
        }
        return RF_OK;
    }
    if (op->dst == rank && op->src != rank) {
        state->received_bytes += rf_op_bytes(op);
    }
    if (op->src != rank) {
        return RF_OK;
    }
    place.src_base = op->src_mem;
    status = base_for(state, op->dst, op->dst_mem, &place.dst_base, err);
    if (status != RF_OK) {
        return status;
    }
    if (!rf_device_can_cast(op->cast)) {
        return rf_device_no_cast(err);
    }
    if (op->cast != RF_CAST_NONE) {
        state->cast = op->cast;
    }
    if (op->dst != rank) {
        state->sent_bytes += rf_op_bytes(op);
    }
    rf_slices_add_op(op->cast != RF_CAST_NONE ? &round->host.cast
                                              : &round->host.plain,
                     op, &place);
    return RF_OK;
}

static int by_round(const void *a, const void *b)
{
    const uint32_t x = ((const struct ipc_round *)a)->round;
    const uint32_t y = ((const struct ipc_round *)b)->round;
    return (x > y) - (x < y);
}

/* Every rank of the node makes the same list of rounds, also those in which it
 * sends nothing, so that counting them means the same to all. */
static enum rf_status build_rounds(struct ipc_state *state, struct rf_err *err)
{
    const struct rf_schedule *schedule = state->env->schedule;
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < schedule->n_ops; i++) {
        status = add_op(state, &schedule->ops[i], err);
    }
    if (status != RF_OK) {
        return status;
    }
    if (state->n_rounds > 1) {
        qsort(state->rounds, state->n_rounds, sizeof(*state->rounds), by_round);
    }
    for (size_t r = 0; r < state->n_rounds; r++) {
        struct ipc_round *round = &state->rounds[r];
        status = rf_device_copies_upload(&round->host, state->cast,
                                         round->copies, err);
        rf_slices_free(&round->host.plain);
        rf_slices_free(&round->host.cast);
        if (status != RF_OK) {
            return status;
        }
        RF_CUDA_TRY(err, out, cudaEventCreate(&round->begin));
        RF_CUDA_TRY(err, out, cudaEventCreate(&round->end));
    }
out:
    return status;
}

static enum rf_status make_events(struct ipc_state *state, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(
        err, out,
        cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking));
    RF_CUDA_TRY(
        err, out,
        cudaEventCreateWithFlags(&state->event, cudaEventInterprocess |
                                                    cudaEventDisableTiming));
    RF_CUDA_TRY(err, out, cudaEventCreate(&state->first));
    RF_CUDA_TRY(err, out, cudaEventCreate(&state->last));
out:
    return status;
}

static void ipc_close(void *opaque);

static enum rf_status ipc_open(const struct rf_method_env *env, void **out,
                               struct rf_err *err)
{
    struct ipc_state *state = rf_xcalloc(1, sizeof(*state));
    const uint32_t n = env->plan->world->n_ranks;
    enum rf_status status;
    state->env = env;
    state->n_bases = OWN_BASES;
    for (uint32_t m = 0; m < RF_MEM_COUNT; m++) {
        state->bases.at[m] = env->arena[m].base;
    }
    status = make_events(state, err);
    if (status == RF_OK) {
        status = rf_nodeshm_open(env, n * sizeof(struct published), 0,
                                 &state->shm, err);
    }
    if (status == RF_OK) {
        const size_t slots = state->shm->n_peers;
        state->peers = rf_xcalloc(slots, sizeof(*state->peers));
        state->base_index =
            rf_xcalloc(slots * RF_MEM_COUNT, sizeof(*state->base_index));
        memset(state->base_index, 0xFF,
               slots * RF_MEM_COUNT * sizeof(*state->base_index));
        status = meet(state, err);
    }
    if (status == RF_OK) {
        status = build_rounds(state, err);
    }
    if (status != RF_OK) {
        ipc_close(state);
        return status;
    }
    *out = state;
    return RF_OK;
}

static enum rf_status ipc_start(void *opaque, uint64_t iteration,
                                struct rf_err *err)
{
    struct ipc_state *state = opaque;
    enum rf_status status = RF_OK;
    (void)iteration;
    state->next = 0;
    state->closing = false;
    RF_CUDA_TRY(err, out, cudaEventRecord(state->first, state->stream));
out:
    return status;
}

/* Whether all peers have published round `count` of this iteration; if so our
 * stream waits for them. */
static enum rf_status wait_for_peers(struct ipc_state *state, size_t count,
                                     bool *ready, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    *ready = true;
    if (count == 0) {
        return RF_OK;
    }
    for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
        if (atomic_load_explicit(&published_of(state, slot)->rounds,
                                 memory_order_acquire) <
            state->target + count) {
            *ready = false;
            return RF_OK;
        }
    }
    for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
        if (slot != state->shm->self) {
            RF_CUDA_TRY(err, out,
                        cudaStreamWaitEvent(state->stream,
                                            state->peers[slot].event, 0));
        }
    }
out:
    return status;
}

static enum rf_status issue_round(struct ipc_state *state,
                                  struct ipc_round *round, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out, cudaEventRecord(round->begin, state->stream));
    status = rf_device_copies(round->copies, &state->bases, state->stream, err);
    if (status != RF_OK) {
        return status;
    }
    RF_CUDA_TRY(err, out, cudaEventRecord(round->end, state->stream));
    RF_CUDA_TRY(err, out, cudaEventRecord(state->event, state->stream));
    atomic_fetch_add_explicit(&published_of(state, state->shm->self)->rounds, 1,
                              memory_order_release);
    state->next++;
out:
    return status;
}

static enum rf_status ipc_progress(void *opaque, bool *done, struct rf_err *err)
{
    struct ipc_state *state = opaque;
    enum rf_status status;
    bool ready;
    *done = false;
    if (atomic_load(state->env->abort) || rf_nodeshm_aborted(state->shm)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (!state->closing) {
        status = wait_for_peers(state, state->next, &ready, err);
        if (status != RF_OK || !ready) {
            return status;
        }
        if (state->next < state->n_rounds) {
            return issue_round(state, &state->rounds[state->next], err);
        }
        RF_CUDA_TRY(err, out, cudaEventRecord(state->last, state->stream));
        state->closing = true;
    }
    switch (cudaEventQuery(state->last)) {
    case cudaSuccess:
        state->target += state->n_rounds;
        *done = true;
        return RF_OK;
    case cudaErrorNotReady:
        (void)cudaGetLastError();
        return RF_OK;
    default:
        RF_CUDA_TRY(err, out, cudaEventSynchronize(state->last));
    }
out:
    return status;
}

static void ipc_timing(void *opaque, struct rf_phase_times *out)
{
    struct ipc_state *state = opaque;
    float ms = 0;
    memset(out, 0, sizeof(*out));
    for (size_t r = 0; r < state->n_rounds; r++) {
        if (cudaEventElapsedTime(&ms, state->rounds[r].begin,
                                 state->rounds[r].end) == cudaSuccess) {
            out->wire_ns += (int64_t)((double)ms * 1e6);
        }
    }
    if (cudaEventElapsedTime(&ms, state->first, state->last) == cudaSuccess) {
        out->sync_ns = RF_MAX((int64_t)((double)ms * 1e6) - out->wire_ns, 0);
    }
    out->sent_bytes = state->sent_bytes;
    out->received_bytes = state->received_bytes;
}

static const void *ipc_base_of(const struct rf_piece *piece,
                               uint64_t stride[RF_BOX_DIMS], void *opaque)
{
    const struct ipc_state *state = opaque;
    for (size_t i = 0; i < state->n_aliases; i++) {
        const struct rf_op *op = state->aliases[i].op;
        if (op->family == piece->family && op->dst_offset == piece->offset &&
            memcmp(&op->box, &piece->box, sizeof(op->box)) == 0) {
            memcpy(stride, op->src_stride, sizeof(op->src_stride));
            return (const unsigned char *)state->aliases[i].base +
                   op->src_offset;
        }
    }
    return NULL;
}

static void ipc_abort(void *opaque)
{
    rf_nodeshm_abort(((struct ipc_state *)opaque)->shm);
}

static void free_events(struct ipc_state *state)
{
    cudaEvent_t events[] = {state->event, state->first, state->last};
    for (size_t r = 0; r < state->n_rounds; r++) {
        struct ipc_round *round = &state->rounds[r];
        rf_slices_free(&round->host.plain);
        rf_slices_free(&round->host.cast);
        rf_device_slices_free(&round->copies[0]);
        rf_device_slices_free(&round->copies[1]);
        if (round->begin != NULL) {
            cudaEventDestroy(round->begin);
        }
        if (round->end != NULL) {
            cudaEventDestroy(round->end);
        }
    }
    for (size_t e = 0; e < RF_ARRAY_SIZE(events); e++) {
        if (events[e] != NULL) {
            cudaEventDestroy(events[e]);
        }
    }
    if (state->stream != NULL) {
        cudaStreamDestroy(state->stream);
    }
}

/* Memory must not be freed while somebody has it mapped: waits, for a while,
 * until all ranks of the node have unmapped. */
static void wait_for_closes(struct ipc_state *state)
{
    const int64_t deadline = rf_now_ns() + CLOSE_WAIT_NS;
    atomic_store(&published_of(state, state->shm->self)->closed, true);
    for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
        while (!atomic_load(&published_of(state, slot)->closed) &&
               !atomic_load(state->env->abort) &&
               !rf_nodeshm_aborted(state->shm) && rf_now_ns() < deadline) {
            rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
        }
    }
}

static void ipc_close(void *opaque)
{
    struct ipc_state *state = opaque;
    if (state == NULL) {
        return;
    }
    if (state->stream != NULL) {
        cudaStreamSynchronize(state->stream);
    }
    if (state->peers != NULL) {
        for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
            rf_ipc_close(&state->peers[slot]);
        }
        wait_for_closes(state);
    }
    free_events(state);
    rf_nodeshm_close(state->shm);
    free(state->peers);
    free(state->base_index);
    free(state->rounds);
    free(state->aliases);
    free(state);
}

const struct rf_method_ops rf_cuda_method_ipc = {
    .info = &rf_method_infos[RF_METHOD_IPC],
    .probe = ipc_probe,
    .open = ipc_open,
    .start = ipc_start,
    .progress = ipc_progress,
    .timing = ipc_timing,
    .base_of = ipc_base_of,
    .abort = ipc_abort,
    .close = ipc_close,
};
