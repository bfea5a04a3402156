/*
 * Method nccl: packed messages over NCCL send/recv, in lockstep steps.
 *
 * open    rank 0 makes the unique ID, which exchange() brings to all;
 *         non-blocking communicators: one of all ranks and, if there are
 *         several nodes, one per node, split from it (a communicator across
 *         nodes takes its channel count from its slowest peer, so traffic
 *         inside a node gets its own). All pairs of the plan exchange a few
 *         bytes, so that connections exist before the window.
 * start   events of a new iteration; progress() then issues one step after the
 *         other: pack on one stream, the NCCL groups on one for each
 *         communicator (nccl_wire.h), unpack on another, tied by events, with
 *         two slots of send and receive buffers.
 * abort   ncclCommAbort from this same thread, the only one that calls NCCL.
 *
 * Failures: an asynchronous NCCL error, a CUDA error or the abort flag end
 * progress() with a status; every wait checks the flag.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/pair.h"
#include "cuda/lockstep/phases.h"
#include "cuda/lockstep/steps_build.h"
#include "cuda/nccl/nccl_buffers.h"
#include "cuda/nccl/nccl_comm.h"
#include "cuda/nccl/nccl_warm.h"
#include "cuda/nccl/nccl_wire.h"

#define SLOTS RF_BUFFER_SLOTS
/* The wires. Each has its own stream, as do packing and unpacking. */
enum { NODE_WIRE = RF_DEVICE_PHASE_OTHERS, WORLD_WIRE };

struct nccl_state {
    const struct rf_method_env *env;
    const struct rf_nccl *nccl;
    struct rf_nccl_comms comms;
    struct rf_nccl_registration registration;
    struct rf_nccl_wire wire;
    struct rf_steps steps;
    struct rf_phases phases;        /* `wire` owns the streams of the wires */
    struct rf_nccl_buffers buffers; /* of SLOTS slots each */
    size_t next_step;
    bool in_group;    /* the step's groups are not all issued */
    bool running;     /* an iteration is under way */
    int64_t moved_ns; /* when a step was last issued */
};

static enum rf_status nccl_probe(struct rf_err *err)
{
    enum rf_status status = rf_device_ready(err);
    if (status == RF_OK && rf_nccl_load(err) == NULL) {
        status = RF_ERR_UNSUPPORTED;
    }
    return status;
}

/* SLOTS slots each, and at least the size of the first exchanges. */
static enum rf_status allocate_buffers(struct nccl_state *state,
                                       struct rf_err *err)
{
    const struct rf_steps *steps = &state->steps;
    const uint64_t warm = rf_nccl_warm_bytes(state->env);
    const uint64_t bytes[RF_NCCL_BUFFERS] = {
        RF_MAX(SLOTS * steps->send_slot_bytes, warm),
        RF_MAX(SLOTS * steps->recv_slot_bytes, warm)};
    enum rf_status status =
        rf_nccl_buffers_alloc(&state->buffers, state->nccl, bytes, err);
    state->phases.send = state->buffers.at[0].base;
    state->phases.recv = state->buffers.at[1].base;
    return status;
}

static enum rf_status allocate(struct nccl_state *state, struct rf_err *err)
{
    cudaStream_t *stream = state->phases.stream;
    uint32_t blocks = 0;
    enum rf_status status;
    RF_TRY(rf_nccl_wire_open(&state->wire, &state->comms, err));
    stream[NODE_WIRE] = state->wire.stream[RF_NCCL_NODE];
    stream[WORLD_WIRE] = state->wire.stream[RF_NCCL_WORLD];
    status = allocate_buffers(state, err);
    if (state->steps.sent_bytes > 0 || state->steps.received_bytes > 0) {
        RF_THEN(status, rf_device_pack_blocks(&blocks, err));
    }
    return status == RF_OK ? rf_phases_open(&state->phases, state->env,
                                            &state->steps, blocks, err)
                           : status;
}

static enum rf_status open_steps(struct nccl_state *state, struct rf_err *err)
{
    uint64_t least;
    enum rf_status status =
        rf_direct_bytes(getenv(RF_DIRECT_VARIABLE), &least, err);
    return status != RF_OK
               ? status
               : rf_steps_open(state->env, least, false, &state->steps, err);
}

static void nccl_abort(void *opaque);
static void nccl_close(void *opaque);

static enum rf_status nccl_open(const struct rf_method_env *env, void **out,
                                struct rf_err *err)
{
    struct nccl_state *state = rf_xcalloc(1, sizeof(*state));
    enum rf_status status;
    state->env = env;
    state->nccl = rf_nccl_load(err);
    status = state->nccl == NULL ? RF_ERR_UNSUPPORTED : open_steps(state, err);
    RF_THEN(status, allocate(state, err));
    RF_THEN(status, rf_nccl_comms_open(&state->comms, env, err));
    RF_THEN(status, rf_nccl_register(&state->registration, &state->comms,
                                     &state->buffers, err));
    RF_THEN(status, rf_nccl_warm_up(&state->wire, &state->steps,
                                    state->buffers.at, err));
    if (status != RF_OK) {
        nccl_abort(state);
        nccl_close(state);
        return status;
    }
    *out = state;
    return RF_OK;
}

static enum rf_status nccl_start(void *opaque, uint64_t iteration,
                                 struct rf_err *err)
{
    struct nccl_state *state = opaque;
    (void)iteration;
    (void)err;
    state->next_step = 0;
    state->in_group = false;
    state->running = true;
    state->moved_ns = rf_now_ns();
    return RF_OK;
}

/* Packs a slot only after its last exchange, and receives into a slot only
 * after its previous content is unpacked. Otherwise a step waits only for the
 * steps whose bytes it reads or overwrites, so packing overlaps earlier rounds
 * on the wire. */
static enum rf_status wait_for_earlier(struct nccl_state *state, size_t index,
                                       struct rf_err *err)
{
    const struct rf_phases *phases = &state->phases;
    enum rf_status status = RF_OK;
    const size_t after = state->steps.at[index].after;
    for (int wire = NODE_WIRE; wire <= WORLD_WIRE && index >= SLOTS; wire++) {
        status = rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, index - SLOTS,
                                  wire, err);
        RF_THEN(status, rf_phases_follow(phases, wire, index - SLOTS,
                                         RF_DEVICE_PHASE_UNPACK, err));
        if (status != RF_OK) {
            return status;
        }
    }
    return after > 0 ? rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, after - 1,
                                        RF_DEVICE_PHASE_UNPACK, err)
                     : status;
}

/* Packs step `index` and sets its exchange. */
static enum rf_status begin_step(struct nccl_state *state, size_t index,
                                 struct rf_err *err)
{
    const struct rf_step *step = &state->steps.at[index];
    const struct rf_phases *phases = &state->phases;
    struct rf_nccl_exchange exchange = {.sends = step->sends,
                                        .n_sends = step->n_sends,
                                        .recvs = step->recvs,
                                        .n_recvs = step->n_recvs};
    struct rf_bases bases;
    enum rf_status status = wait_for_earlier(state, index, err);
    RF_THEN(status, rf_phases_copy(phases, RF_DEVICE_PHASE_PACK, index, err));
    for (int w = NODE_WIRE; w <= WORLD_WIRE && status == RF_OK; w++) {
        status = rf_phases_follow(phases, w, index, RF_DEVICE_PHASE_PACK, err);
        RF_THEN(status, rf_phases_begin(phases, w, index, err));
    }
    if (status != RF_OK) {
        return status;
    }
    rf_phases_bases(phases, index, &bases);
    memcpy(exchange.at, bases.at, sizeof(exchange.at));
    rf_nccl_wire_set(&state->wire, &exchange);
    state->in_group = true;
    return RF_OK;
}

/* Once NCCL has taken the groups: unpacks behind them. */
static enum rf_status end_step(struct nccl_state *state, size_t index,
                               struct rf_err *err)
{
    const struct rf_phases *phases = &state->phases;
    enum rf_status status = RF_OK;
    for (int w = NODE_WIRE; w <= WORLD_WIRE && status == RF_OK; w++) {
        status = rf_phases_end(phases, w, index, err);
        RF_THEN(status, rf_phases_follow(phases, RF_DEVICE_PHASE_UNPACK, index,
                                         w, err));
    }
    state->in_group = false;
    return status == RF_OK
               ? rf_phases_copy(phases, RF_DEVICE_PHASE_UNPACK, index, err)
               : status;
}

static enum rf_status all_unpacked(struct nccl_state *state, bool *done,
                                   struct rf_err *err)
{
    const size_t n = state->steps.n;
    enum rf_status status = RF_OK;
    *done = n == 0;
    if (n > 0) {
        status = rf_phases_ended(&state->phases, RF_DEVICE_PHASE_UNPACK, n - 1,
                                 done, err);
    }
    state->running = !*done;
    return status;
}

static enum rf_status nccl_progress(void *opaque, bool *done,
                                    struct rf_err *err)
{
    struct nccl_state *state = opaque;
    bool issued;
    enum rf_status status = rf_nccl_wire_issue(&state->wire, &issued, err);
    *done = false;
    if (status != RF_OK) {
        return status;
    }
    if (atomic_load(state->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (!issued) {
        return RF_OK;
    }
    if (state->in_group) {
        status = end_step(state, state->next_step++, err);
        state->moved_ns = rf_now_ns();
        if (status != RF_OK) {
            return status;
        }
    }
    return state->next_step < state->steps.n
               ? begin_step(state, state->next_step, err)
               : all_unpacked(state, done, err);
}

/* Both wires begin together, behind the packing. The first step's packing
 * begins first of all, and the last step's unpacking ends last. */
static void nccl_timing(void *opaque, struct rf_phase_times *out)
{
    const struct nccl_state *state = opaque;
    const struct rf_phases *phases = &state->phases;
    memset(out, 0, sizeof(*out));
    out->pack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_PACK);
    out->unpack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_UNPACK);
    for (size_t s = 0; s < state->steps.n; s++) {
        out->wire_ns += RF_MAX(rf_phases_ns(phases, NODE_WIRE, s),
                               rf_phases_ns(phases, WORLD_WIRE, s));
    }
    out->device_ns = rf_phases_span_ns(phases, RF_DEVICE_PHASE_UNPACK);
    out->sent_bytes = state->steps.sent_bytes;
    out->received_bytes = state->steps.received_bytes;
}

static bool wire_ended(const struct nccl_state *state, size_t index)
{
    struct rf_err err; /* already reported */
    bool node = false, world = false;
    return rf_phases_ended(&state->phases, NODE_WIRE, index, &node, &err) ==
               RF_OK &&
           rf_phases_ended(&state->phases, WORLD_WIRE, index, &world, &err) ==
               RF_OK &&
           node && world;
}

/* See RF_STUCK_NS. */
static void tell_where(const struct nccl_state *state)
{
    char peers[128];
    size_t at = 0;
    if (!state->running || rf_now_ns() - state->moved_ns < RF_STUCK_NS) {
        return;
    }
    while (at < state->next_step && wire_ended(state, at)) {
        at++;
    }
    (void)cudaGetLastError();
    if (at < state->steps.n) {
        rf_step_peers(&state->steps.at[at], peers, sizeof(peers));
        rf_cuda_log(RF_LOG_WARN,
                    "stopped in step %zu of %zu, an exchange with rank %s",
                    at + 1, state->steps.n, peers);
    }
}

/* Registered memory is in use, and deregistering may wait for a peer: the
 * registration ends with the communicators. */
static void nccl_abort(void *opaque)
{
    struct nccl_state *state = opaque;
    tell_where(state);
    rf_nccl_comms_abort(&state->comms);
    state->registration.n = 0;
}

static void nccl_close(void *opaque)
{
    struct nccl_state *state = opaque;
    if (state == NULL) {
        return;
    }
    rf_nccl_deregister(&state->registration); /* nothing is in flight */
    rf_nccl_comms_abort(&state->comms);
    rf_phases_free(&state->phases);
    rf_nccl_wire_close(&state->wire);
    rf_nccl_buffers_free(&state->buffers, state->nccl);
    rf_steps_free(&state->steps);
    free(state);
}

const struct rf_method_ops rf_cuda_method_nccl = {
    .info = &rf_method_infos[RF_METHOD_NCCL],
    .probe = nccl_probe,
    .open = nccl_open,
    .start = nccl_start,
    .progress = nccl_progress,
    .timing = nccl_timing,
    .abort = nccl_abort,
    .close = nccl_close,
};
