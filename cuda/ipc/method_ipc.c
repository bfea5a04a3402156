/*
 * Method ipc: each rank copies its sends straight into the destinations'
 * arenas, which it has mapped (cuda/ipc/ipc.h): no staging, no unpacking. In a
 * round copy engines move long runs over the links (cuda/device/copy_engine.h),
 * kernels move short ones and those inside the device; each of the three has a
 * stream and runs beside the others (cuda/ipc/ipc_rounds.h). The limit between
 * long and short is measured (cuda/ipc/ipc_choice.h). Destinations are served
 * in turns (planner/schedule/peer_order.h).
 *
 * Order between processes: after its copies of round k a rank records its
 * interprocess event and then publishes k in shared host memory. Others see the
 * number, and only then make their stream wait for that event, since a wait
 * takes the latest record at the time of the call. A round starts behind all
 * earlier rounds of all ranks of the node; the last wait makes the iteration
 * complete. Memory shared by descriptor has no such events: a rank publishes k
 * once its copies are done, and streams wait for nothing.
 *
 * Zero copy: a destination piece is not copied if one op fills it whole,
 * unchanged and with the same strides, from memory of the same slot's device.
 * Its rank reads the source through the mapping (base_of); only the handle
 * moved.
 *
 * Failures: handles that do not open fail open() with the reason. The agent
 * notices a dead rank and sets env->abort. All mappings are unmapped after our
 * streams are idle and before any rank's memory is freed. Streams that do not
 * become idle are given up, and with them the device (rf_device_abandon()).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/system_calls.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"
#include "cuda/device/methods.h"
#include "cuda/ipc/ipc_rounds.h"
#include "planner/schedule/in_place.h"
#include "transport/method/node_memory.h"

#define CLOSE_WAIT_NS (2 * RF_NS_PER_S)

/* A rank's line in the control segment. */
struct published {
    _Alignas(RF_CACHE_LINE) _Atomic uint64_t rounds; /* so far */
    _Atomic bool closed; /* has unmapped all peers' memory */
};

struct ipc_state {
    const struct rf_method_env *env;
    struct rf_node_memory *shm;
    struct rf_ipc_peer *peers; /* by slot */
    struct rf_ipc_rounds rounds;
    /* kernels to others; inside the device; copy engines */
    cudaStream_t stream, local, engine;
    cudaEvent_t event, first, last;
    bool by_events;   /* peers wait for our event, else for the host */
    uint64_t target;  /* published rounds before this iteration */
    size_t next;      /* round to issue */
    size_t told;      /* rounds published */
    bool closing;     /* last waits are enqueued */
    bool running;     /* an iteration is under way */
    int64_t moved_ns; /* when a round was last issued */
};

static enum rf_status ipc_probe(struct rf_err *err)
{
    RF_TRY(rf_device_ready(err));
    return rf_system_calls_try(RF_CALLS_OF_NODE | RF_CALLS_OF_IPC, err);
}

static struct published *published_of(const struct ipc_state *state,
                                      uint32_t slot)
{
    return (struct published *)state->shm->control + slot;
}

static enum rf_status make_events(struct ipc_state *state, struct rf_err *err)
{
    RF_CUDA_CHECK(
        err, cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking));
    RF_CUDA_CHECK(
        err, cudaStreamCreateWithFlags(&state->local, cudaStreamNonBlocking));
    RF_CUDA_CHECK(
        err, cudaStreamCreateWithFlags(&state->engine, cudaStreamNonBlocking));
    if (rf_ipc_is_legacy(state->env)) {
        RF_CUDA_CHECK(err, cudaEventCreateWithFlags(
                               &state->event,
                               cudaEventInterprocess | cudaEventDisableTiming));
    }
    RF_CUDA_CHECK(err, cudaEventCreate(&state->first));
    RF_CUDA_CHECK(err, cudaEventCreate(&state->last));
    return RF_OK;
}

static void ipc_close(void *opaque);

static enum rf_status ipc_open(const struct rf_method_env *env, void **out,
                               struct rf_err *err)
{
    struct ipc_state *state = rf_xcalloc(1, sizeof(*state));
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_ipc_choice choice;
    enum rf_status status;
    state->env = env;
    status = make_events(state, err);
    RF_THEN(status, rf_node_memory_open(env, n * sizeof(struct published), 0,
                                        &state->shm, err));
    if (status == RF_OK) {
        state->peers = rf_xcalloc(state->shm->n_peers, sizeof(*state->peers));
        status = rf_ipc_meet(env, state->shm, state->event, state->peers,
                             &state->by_events, err);
    }
    if (status == RF_OK && env->like != NULL) {
        choice = ((const struct ipc_state *)env->like)->rounds.choice;
    } else if (status == RF_OK) {
        status = rf_ipc_choose(env, state->shm, state->peers, &choice, err);
    }
    RF_THEN(status, rf_ipc_rounds_build(env, state->shm, state->peers, &choice,
                                        &state->rounds, err));
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
    (void)iteration;
    state->next = state->told = 0;
    state->closing = false;
    state->running = true;
    state->moved_ns = rf_now_ns();
    RF_CUDA_CHECK(err, cudaEventRecord(state->first, state->stream));
    return RF_OK;
}

static void publish(struct ipc_state *state)
{
    atomic_fetch_add_explicit(&published_of(state, state->shm->self)->rounds, 1,
                              memory_order_release);
    state->told++;
}

/* Without events a round counts once its copies are done. */
static enum rf_status publish_done(struct ipc_state *state, struct rf_err *err)
{
    while (!state->by_events && state->told < state->next) {
        const cudaError_t code =
            cudaEventQuery(state->rounds.at[state->told].end);
        if (code == cudaErrorNotReady) {
            (void)cudaGetLastError();
            return RF_OK;
        }
        if (code != cudaSuccess) {
            return rf_cuda_error(err, "cudaEventQuery", code);
        }
        publish(state);
    }
    return RF_OK;
}

/* Whether all peers have published round `count` of this iteration; if so our
 * stream waits for them, unless it already does. */
static enum rf_status wait_for_peers(struct ipc_state *state, size_t count,
                                     bool *ready, struct rf_err *err)
{
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
    for (uint32_t slot = 0; state->by_events && slot < state->shm->n_peers;
         slot++) {
        if (slot != state->shm->self) {
            RF_CUDA_CHECK(err, cudaStreamWaitEvent(
                                   state->stream, state->peers[slot].event, 0));
        }
    }
    return RF_OK;
}

/* Enqueues the round's copies on their streams, behind its begin event. */
static enum rf_status issue_copies(struct ipc_state *state,
                                   struct rf_ipc_round *round,
                                   struct rf_err *err)
{
    const struct rf_bases *bases = &state->rounds.bases;
    enum rf_status status = rf_copy_engine_run(
        &round->engine, state->rounds.choice.batches, state->engine, err);
    RF_THEN(status, rf_device_copies(round->copies[RF_IPC_LINKS], bases,
                                     state->stream, err));
    RF_THEN(status, rf_device_copies(round->copies[RF_IPC_LOCAL], bases,
                                     state->local, err));
    return status;
}

static enum rf_status issue_round(struct ipc_state *state,
                                  struct rf_ipc_round *round,
                                  struct rf_err *err)
{
    RF_CUDA_CHECK(err, cudaEventRecord(round->begin, state->stream));
    RF_CUDA_CHECK(err, cudaStreamWaitEvent(state->local, round->begin, 0));
    RF_CUDA_CHECK(err, cudaStreamWaitEvent(state->engine, round->begin, 0));
    RF_TRY(issue_copies(state, round, err));
    RF_CUDA_CHECK(err, cudaEventRecord(round->local_end, state->local));
    RF_CUDA_CHECK(err, cudaStreamWaitEvent(state->stream, round->local_end, 0));
    RF_CUDA_CHECK(err, cudaEventRecord(round->engine_end, state->engine));
    RF_CUDA_CHECK(err,
                  cudaStreamWaitEvent(state->stream, round->engine_end, 0));
    RF_CUDA_CHECK(err, cudaEventRecord(round->end, state->stream));
    state->next++;
    state->moved_ns = rf_now_ns();
    if (state->by_events) {
        RF_CUDA_CHECK(err, cudaEventRecord(state->event, state->stream));
        publish(state);
    }
    return RF_OK;
}

static enum rf_status ipc_progress(void *opaque, bool *done, struct rf_err *err)
{
    struct ipc_state *state = opaque;
    bool ready;
    *done = false;
    if (atomic_load(state->env->abort) || rf_node_memory_aborted(state->shm)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    RF_TRY(publish_done(state, err));
    if (!state->closing) {
        RF_TRY(wait_for_peers(state, state->next, &ready, err));
        if (!ready) {
            return RF_OK;
        }
        if (state->next < state->rounds.n) {
            return issue_round(state, &state->rounds.at[state->next], err);
        }
        RF_CUDA_CHECK(err, cudaEventRecord(state->last, state->stream));
        state->closing = true;
    }
    switch (cudaEventQuery(state->last)) {
    case cudaSuccess:
        state->target += state->rounds.n;
        state->running = false;
        *done = true;
        return RF_OK;
    case cudaErrorNotReady:
        (void)cudaGetLastError();
        return RF_OK;
    default:
        RF_CUDA_CHECK(err, cudaEventSynchronize(state->last));
        return RF_OK;
    }
}

static void ipc_timing(void *opaque, struct rf_phase_times *out)
{
    struct ipc_state *state = opaque;
    memset(out, 0, sizeof(*out));
    for (size_t r = 0; r < state->rounds.n; r++) {
        out->wire_ns +=
            rf_events_ns(state->rounds.at[r].begin, state->rounds.at[r].end);
    }
    out->device_ns = rf_events_ns(state->first, state->last);
    out->sync_ns = RF_MAX(out->device_ns - out->wire_ns, 0);
    out->sent_bytes = state->rounds.sent_bytes;
    out->received_bytes = state->rounds.received_bytes;
}

static void ipc_ways(const void *opaque, struct rf_copy_ways *out)
{
    const struct rf_ipc_rounds *rounds =
        &((const struct ipc_state *)opaque)->rounds;
    *out = (struct rf_copy_ways){.rule = rounds->choice.rule,
                                 .engine_from_bytes = rounds->choice.from_bytes,
                                 .engine_bytes = rounds->engine_bytes,
                                 .kernel_bytes = rounds->kernel_bytes};
}

static const void *ipc_base_of(const struct rf_piece *piece,
                               uint64_t stride[RF_BOX_DIMS], void *opaque)
{
    struct ipc_state *state = opaque;
    return rf_ipc_rounds_base_of(&state->rounds, piece, stride);
}

static bool ipc_leaves(size_t op, const void *opaque)
{
    const struct ipc_state *state = opaque;
    return rf_in_place_in_slot(state->env->plan,
                               &state->env->schedule->ops[op]);
}

/* See RF_STUCK_NS. */
static void tell_where(const struct ipc_state *state)
{
    char ranks[128] = "";
    size_t used = 0;
    if (!state->running || rf_now_ns() - state->moved_ns < RF_STUCK_NS) {
        return;
    }
    for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
        if (atomic_load(&published_of(state, slot)->rounds) <
                state->target + state->next &&
            used < sizeof(ranks)) {
            used += (size_t)snprintf(ranks + used, sizeof(ranks) - used, "%s%u",
                                     used > 0 ? ", " : "",
                                     state->shm->peers[slot].rank);
        }
    }
    rf_cuda_log(RF_LOG_WARN, "stopped after round %zu of %zu, %s%s",
                state->next, state->rounds.n,
                used > 0 ? "waiting for rank " : "waiting for the device",
                ranks);
}

static bool is_idle(cudaStream_t stream)
{
    const cudaError_t code = cudaStreamQuery(stream);
    (void)cudaGetLastError();
    return stream == NULL || code != cudaErrorNotReady;
}

/* Waits for our streams, up to a limit: they may wait for a peer's device. */
static void settle(const struct ipc_state *state)
{
    const cudaStream_t streams[] = {state->stream, state->local, state->engine};
    const int64_t deadline = rf_now_ns() + CLOSE_WAIT_NS;
    for (size_t s = 0; s < RF_ARRAY_SIZE(streams); s++) {
        while (!rf_device_abandoned() && !is_idle(streams[s])) {
            if (rf_now_ns() > deadline) {
                rf_device_abandon();
            }
            rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
        }
    }
}

/* Settles here, because frees of others than us follow, which wait for the
 * device, too. */
static void ipc_abort(void *opaque)
{
    struct ipc_state *state = opaque;
    tell_where(state);
    rf_node_memory_abort(state->shm);
    settle(state);
}

static void free_events(struct ipc_state *state)
{
    rf_event_free(state->event);
    rf_event_free(state->first);
    rf_event_free(state->last);
    rf_stream_free(state->stream);
    rf_stream_free(state->local);
    rf_stream_free(state->engine);
}

/* Memory must not be freed while a peer has it mapped: waits, up to a limit,
 * until all ranks of the node have unmapped. */
static void wait_for_closes(struct ipc_state *state)
{
    const int64_t deadline = rf_now_ns() + CLOSE_WAIT_NS;
    atomic_store(&published_of(state, state->shm->self)->closed, true);
    for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
        while (!atomic_load(&published_of(state, slot)->closed) &&
               !atomic_load(state->env->abort) &&
               !rf_node_memory_aborted(state->shm) && rf_now_ns() < deadline) {
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
    settle(state);
    if (state->peers != NULL && !rf_device_abandoned()) {
        for (uint32_t slot = 0; slot < state->shm->n_peers; slot++) {
            rf_ipc_close(&state->peers[slot]);
        }
        wait_for_closes(state);
    }
    rf_ipc_rounds_free(&state->rounds);
    free_events(state);
    rf_node_memory_close(state->shm);
    free(state->peers);
    free(state);
}

const struct rf_method_ops rf_cuda_method_ipc = {
    .info = &rf_method_infos[RF_METHOD_IPC],
    .probe = ipc_probe,
    .open = ipc_open,
    .start = ipc_start,
    .progress = ipc_progress,
    .timing = ipc_timing,
    .ways = ipc_ways,
    .base_of = ipc_base_of,
    .leaves = ipc_leaves,
    .abort = ipc_abort,
    .close = ipc_close,
};
