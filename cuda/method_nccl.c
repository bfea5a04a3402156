/*
 * Method nccl: packed messages over NCCL send/recv, in lockstep steps.
 *
 * open    rank 0 makes the unique ID, which travels to all by exchange();
 *         non-blocking communicators: one of all ranks, and where a node has
 *         several ranks and there are several nodes, one per node, split from
 *         it (a communicator across nodes takes its channel count from its
 *         slowest peer, so traffic inside a node gets its own). All pairs of
 *         the plan exchange a few bytes, so that connections exist before the
 *         window.
 * start   events of a new iteration; progress() then issues one step after the
 *         other: pack on one stream, the NCCL groups on one for each
 *         communicator (nccl_wire.h), unpack on another, tied by events, with
 *         two slots of send and receive buffers.
 * abort   ncclCommAbort from this same thread, which is the only one in NCCL.
 *
 * Failures: an asynchronous NCCL error, a CUDA error or the abort flag end
 * progress() with a status; nothing waits without looking at the flag.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device.h"
#include "cuda/methods.h"
#include "cuda/nccl_comm.h"
#include "cuda/nccl_register.h"
#include "cuda/nccl_wire.h"
#include "cuda/pair.h"
#include "cuda/steps.h"
#include "cuda/timing.h"

#define SLOTS 2
#define WARM_BYTES 256
/* What runs on a stream of its own. */
enum stage { PACK, NODE_WIRE, WORLD_WIRE, UNPACK, STAGES };

struct device_step {
    struct rf_device_slices pack[2], unpack[2]; /* plain, cast */
    cudaEvent_t begin[STAGES], end[STAGES];
};

struct nccl_state {
    const struct rf_method_env *env;
    struct rf_nccl_comms comms;
    struct rf_nccl_registration registration;
    struct rf_nccl_wire wire;
    struct rf_steps steps;
    struct device_step *device_steps;
    cudaStream_t stream[STAGES]; /* those of the wire are `wire`'s */
    struct rf_arena buffer[RF_NCCL_BUFFERS]; /* of SLOTS slots each */
    unsigned char *send, *recv;              /* those */
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

/* A few bytes of `base`, a buffer, for each of a step's messages whose peer is
 * not in `known` yet, which then has it. Both ends of a message leave it out or
 * not alike. */
static struct rf_message *first_messages(const struct rf_message *messages,
                                         size_t n, enum rf_step_base base,
                                         bool *known, size_t *n_out)
{
    struct rf_message *out = rf_xcalloc(n, sizeof(*out));
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t peer = messages[i].peer;
        if (!known[peer]) {
            known[peer] = true;
            out[(*n_out)++] =
                (struct rf_message){.peer = peer,
                                    .base = base,
                                    .offset = (uint64_t)peer * WARM_BYTES,
                                    .bytes = WARM_BYTES};
        }
    }
    return out;
}

/* Whether everything that was issued has arrived. */
static enum rf_status wire_is_idle(struct nccl_state *state, bool *idle,
                                   struct rf_err *err)
{
    *idle = true;
    for (int p = 0; p < RF_NCCL_PATHS; p++) {
        const cudaError_t code = cudaStreamQuery(state->wire.stream[p]);
        if (code == cudaErrorNotReady) {
            (void)cudaGetLastError();
            *idle = false;
        } else if (code != cudaSuccess) {
            return rf_cuda_error(err, "cudaStreamQuery", code);
        }
    }
    return RF_OK;
}

/* Issues the exchange that is set and waits for it, outside the window. */
static enum rf_status finish_exchange(struct nccl_state *state,
                                      const struct rf_step *step,
                                      struct rf_err *err)
{
    char what[160] = "first exchange with rank ";
    rf_step_peers(step, what + strlen(what), 100);
    for (;;) {
        bool done;
        enum rf_status status = rf_nccl_wire_issue(&state->wire, &done, err);
        if (status == RF_OK && done) {
            status = wire_is_idle(state, &done, err);
        }
        if (status != RF_OK) {
            rf_err_wrap(err, "%s", what);
            return status;
        }
        if (done) {
            return RF_OK;
        }
        status = rf_nccl_wait(&state->comms, what, err);
        if (status != RF_OK) {
            return status;
        }
    }
}

/* Every pair of the plan exchanges something once, outside the window, so that
 * NCCL makes their connections then. */
static enum rf_status warm_up(struct nccl_state *state, struct rf_err *err)
{
    const uint32_t n = state->env->plan->world->n_ranks;
    bool *known = rf_xcalloc(2 * (size_t)n, sizeof(*known));
    enum rf_status status = RF_OK;
    for (size_t s = 0; s < state->steps.n && status == RF_OK; s++) {
        const struct rf_step *step = &state->steps.at[s];
        size_t n_sends, n_recvs;
        struct rf_message *sends = first_messages(
            step->sends, step->n_sends, RF_BASE_SEND, known, &n_sends);
        struct rf_message *recvs = first_messages(
            step->recvs, step->n_recvs, RF_BASE_RECV, known + n, &n_recvs);
        if (n_sends + n_recvs > 0) {
            rf_nccl_wire_set(&state->wire,
                             &(struct rf_nccl_exchange){
                                 .sends = sends,
                                 .n_sends = n_sends,
                                 .recvs = recvs,
                                 .n_recvs = n_recvs,
                                 .at = {[RF_BASE_SEND] = state->send,
                                        [RF_BASE_RECV] = state->recv}});
            status = finish_exchange(state, step, err);
        }
        free(sends);
        free(recvs);
    }
    free(known);
    return status;
}

static enum rf_status upload_step(const struct rf_steps *steps, size_t index,
                                  uint32_t most_blocks, struct device_step *out,
                                  struct rf_err *err)
{
    const struct rf_step *step = &steps->at[index];
    enum rf_status status =
        rf_device_copies_upload(&step->pack, steps->cast, out->pack, err);
    if (status == RF_OK) {
        status = rf_device_copies_upload(&step->unpack, steps->cast,
                                         out->unpack, err);
    }
    rf_device_copies_limit(out->pack, most_blocks);
    rf_device_copies_limit(out->unpack, most_blocks);
    for (int s = 0; status == RF_OK && s < STAGES; s++) {
        RF_CUDA_TRY(err, out_label, cudaEventCreate(&out->begin[s]));
        RF_CUDA_TRY(err, out_label, cudaEventCreate(&out->end[s]));
    }
out_label:
    return status;
}

/* SLOTS slots each, and at least what the first exchanges use. */
static enum rf_status allocate_buffers(struct nccl_state *state,
                                       struct rf_err *err)
{
    const struct rf_steps *steps = &state->steps;
    const uint64_t warm =
        (uint64_t)state->env->plan->world->n_ranks * WARM_BYTES;
    enum rf_status status = RF_OK;
    state->buffer[0].bytes = RF_MAX(SLOTS * steps->send_slot_bytes, warm);
    state->buffer[1].bytes = RF_MAX(SLOTS * steps->recv_slot_bytes, warm);
    for (size_t b = 0; b < RF_NCCL_BUFFERS; b++) {
        RF_CUDA_TRY(err, out,
                    cudaMalloc(&state->buffer[b].base, state->buffer[b].bytes));
    }
    state->send = state->buffer[0].base;
    state->recv = state->buffer[1].base;
out:
    return status;
}

static enum rf_status allocate(struct nccl_state *state, struct rf_err *err)
{
    uint32_t blocks = 0;
    enum rf_status status = rf_nccl_wire_open(&state->wire, &state->comms, err);
    if (status != RF_OK) {
        return status;
    }
    state->stream[NODE_WIRE] = state->wire.stream[RF_NCCL_NODE];
    state->stream[WORLD_WIRE] = state->wire.stream[RF_NCCL_WORLD];
    status = rf_device_stream(RF_STREAM_COPIES, &state->stream[PACK], err);
    if (status == RF_OK) {
        status =
            rf_device_stream(RF_STREAM_COPIES, &state->stream[UNPACK], err);
    }
    if (status == RF_OK) {
        status = rf_device_pack_blocks(&blocks, err);
    }
    if (status == RF_OK) {
        status = allocate_buffers(state, err);
    }
    for (size_t s = 0; s < state->steps.n && status == RF_OK; s++) {
        status =
            upload_step(&state->steps, s, blocks, &state->device_steps[s], err);
    }
    return status;
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
    status =
        rf_nccl_load(err) == NULL ? RF_ERR_UNSUPPORTED : open_steps(state, err);
    if (status == RF_OK) {
        state->device_steps =
            rf_xcalloc(state->steps.n, sizeof(*state->device_steps));
        status = allocate(state, err);
    }
    if (status == RF_OK) {
        status = rf_nccl_comms_open(&state->comms, env, err);
    }
    if (status == RF_OK) {
        status = rf_nccl_register(&state->registration, &state->comms,
                                  state->buffer, err);
    }
    if (status == RF_OK) {
        status = warm_up(state, err);
    }
    if (status != RF_OK) {
        nccl_abort(state);
        nccl_close(state);
        return status;
    }
    if (env->registration != NULL) {
        snprintf(env->registration, RF_REGISTRATION_SIZE, "%s",
                 state->registration.text);
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

static void fill_bases(const struct nccl_state *state, size_t slot,
                       struct rf_bases *bases)
{
    memset(bases, 0, sizeof(*bases));
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bases->at[m] = state->env->arena[m].base;
    }
    bases->at[RF_BASE_SEND] = state->send + slot * state->steps.send_slot_bytes;
    bases->at[RF_BASE_RECV] = state->recv + slot * state->steps.recv_slot_bytes;
}

/* `stream` goes on when step `index` has ended `stage`. */
static enum rf_status follow(struct nccl_state *state, enum stage stream,
                             size_t index, enum stage stage, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out,
                cudaStreamWaitEvent(state->stream[stream],
                                    state->device_steps[index].end[stage], 0));
out:
    return status;
}

static enum rf_status mark(struct nccl_state *state, enum stage stage,
                           cudaEvent_t event, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out, cudaEventRecord(event, state->stream[stage]));
out:
    return status;
}

/* Runs a step's copies on their stream, between its events. */
static enum rf_status copy_stage(struct nccl_state *state, size_t index,
                                 enum stage stage, struct rf_err *err)
{
    struct device_step *step = &state->device_steps[index];
    struct rf_bases bases;
    enum rf_status status = mark(state, stage, step->begin[stage], err);
    fill_bases(state, index % SLOTS, &bases);
    if (status == RF_OK) {
        status = rf_device_copies(stage == PACK ? step->pack : step->unpack,
                                  &bases, state->stream[stage], err);
    }
    return status == RF_OK ? mark(state, stage, step->end[stage], err) : status;
}

/* A slot is packed again only after its last exchange, and received into only
 * after what it held is unpacked. Else a step waits for no more than the steps
 * whose bytes it reads or overwrites, so it is packed while earlier rounds are
 * still on the wire. */
static enum rf_status wait_for_earlier(struct nccl_state *state, size_t index,
                                       struct rf_err *err)
{
    enum rf_status status = RF_OK;
    const size_t after = state->steps.at[index].after;
    for (int w = NODE_WIRE; w <= WORLD_WIRE && index >= SLOTS; w++) {
        const enum stage wire = (enum stage)w;
        status = follow(state, PACK, index - SLOTS, wire, err);
        if (status == RF_OK) {
            status = follow(state, wire, index - SLOTS, UNPACK, err);
        }
        if (status != RF_OK) {
            return status;
        }
    }
    return after > 0 ? follow(state, PACK, after - 1, UNPACK, err) : status;
}

/* Packs step `index` and sets its exchange. */
static enum rf_status begin_step(struct nccl_state *state, size_t index,
                                 struct rf_err *err)
{
    const struct rf_step *step = &state->steps.at[index];
    struct device_step *now = &state->device_steps[index];
    struct rf_nccl_exchange exchange = {.sends = step->sends,
                                        .n_sends = step->n_sends,
                                        .recvs = step->recvs,
                                        .n_recvs = step->n_recvs};
    struct rf_bases bases;
    enum rf_status status = wait_for_earlier(state, index, err);
    if (status == RF_OK) {
        status = copy_stage(state, index, PACK, err);
    }
    for (int w = NODE_WIRE; w <= WORLD_WIRE && status == RF_OK; w++) {
        const enum stage wire = (enum stage)w;
        status = follow(state, wire, index, PACK, err);
        if (status == RF_OK) {
            status = mark(state, wire, now->begin[wire], err);
        }
    }
    if (status != RF_OK) {
        return status;
    }
    fill_bases(state, index % SLOTS, &bases);
    memcpy(exchange.at, bases.at, sizeof(exchange.at));
    rf_nccl_wire_set(&state->wire, &exchange);
    state->in_group = true;
    return RF_OK;
}

/* After NCCL has taken the groups: unpack behind them. */
static enum rf_status end_step(struct nccl_state *state, size_t index,
                               struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (int w = NODE_WIRE; w <= WORLD_WIRE && status == RF_OK; w++) {
        const enum stage wire = (enum stage)w;
        status = mark(state, wire, state->device_steps[index].end[wire], err);
        if (status == RF_OK) {
            status = follow(state, UNPACK, index, wire, err);
        }
    }
    state->in_group = false;
    return status == RF_OK ? copy_stage(state, index, UNPACK, err) : status;
}

static enum rf_status all_unpacked(struct nccl_state *state, bool *done,
                                   struct rf_err *err)
{
    const size_t n = state->steps.n;
    const cudaError_t code =
        n == 0 ? cudaSuccess
               : cudaEventQuery(state->device_steps[n - 1].end[UNPACK]);
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return RF_OK;
    }
    *done = code == cudaSuccess;
    state->running = !*done;
    return *done ? RF_OK : rf_cuda_error(err, "cudaEventQuery", code);
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

/* Both ways of the wire begin together, behind the packing. The first step's
 * packing begins before all else, and the last one's unpacking ends last. */
static void nccl_timing(void *opaque, struct rf_phase_times *out)
{
    struct nccl_state *state = opaque;
    const size_t n = state->steps.n;
    memset(out, 0, sizeof(*out));
    for (size_t s = 0; s < n; s++) {
        const struct device_step *step = &state->device_steps[s];
        const int64_t node =
            rf_events_ns(step->begin[NODE_WIRE], step->end[NODE_WIRE]);
        const int64_t world =
            rf_events_ns(step->begin[WORLD_WIRE], step->end[WORLD_WIRE]);
        out->pack_ns += rf_events_ns(step->begin[PACK], step->end[PACK]);
        out->wire_ns += RF_MAX(node, world);
        out->unpack_ns += rf_events_ns(step->begin[UNPACK], step->end[UNPACK]);
    }
    if (n > 0) {
        out->device_ns = rf_events_ns(state->device_steps[0].begin[PACK],
                                      state->device_steps[n - 1].end[UNPACK]);
    }
    out->sent_bytes = state->steps.sent_bytes;
    out->received_bytes = state->steps.received_bytes;
}

static bool wire_ended(const struct device_step *step)
{
    return cudaEventQuery(step->end[NODE_WIRE]) == cudaSuccess &&
           cudaEventQuery(step->end[WORLD_WIRE]) == cudaSuccess;
}

/* See RF_STUCK_NS. */
static void tell_where(const struct nccl_state *state)
{
    char peers[128];
    size_t at = 0;
    if (!state->running || rf_now_ns() - state->moved_ns < RF_STUCK_NS) {
        return;
    }
    while (at < state->next_step && wire_ended(&state->device_steps[at])) {
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

/* What is registered is in use, and deregistering may wait for a peer: it ends
 * with the communicators. */
static void nccl_abort(void *opaque)
{
    struct nccl_state *state = opaque;
    tell_where(state);
    rf_nccl_comms_abort(&state->comms);
    state->registration.n = 0;
}

static void free_step(struct device_step *step)
{
    for (int i = 0; i < 2; i++) {
        rf_device_slices_free(&step->pack[i]);
        rf_device_slices_free(&step->unpack[i]);
    }
    for (int s = 0; s < STAGES; s++) {
        if (step->begin[s] != NULL) {
            cudaEventDestroy(step->begin[s]);
        }
        if (step->end[s] != NULL) {
            cudaEventDestroy(step->end[s]);
        }
    }
}

static void nccl_close(void *opaque)
{
    struct nccl_state *state = opaque;
    if (state == NULL) {
        return;
    }
    rf_nccl_deregister(&state->registration); /* nothing is in flight */
    rf_nccl_comms_abort(&state->comms);
    for (size_t s = 0; state->device_steps != NULL && s < state->steps.n; s++) {
        free_step(&state->device_steps[s]);
    }
    free(state->device_steps);
    rf_nccl_wire_close(&state->wire);
    if (state->stream[PACK] != NULL) {
        cudaStreamDestroy(state->stream[PACK]);
    }
    if (state->stream[UNPACK] != NULL) {
        cudaStreamDestroy(state->stream[UNPACK]);
    }
    for (size_t b = 0; b < RF_NCCL_BUFFERS; b++) {
        cudaFree(state->buffer[b].base);
    }
    rf_steps_free(&state->steps);
    free(state);
}

static const void *nccl_base_of(const struct rf_piece *piece,
                                uint64_t stride[RF_BOX_DIMS], void *opaque)
{
    (void)piece;
    (void)stride;
    (void)opaque;
    return NULL;
}

static bool nccl_leaves(size_t op, const void *opaque)
{
    (void)op;
    (void)opaque;
    return false;
}

const struct rf_method_ops rf_cuda_method_nccl = {
    .info = &rf_method_infos[RF_METHOD_NCCL],
    .probe = nccl_probe,
    .open = nccl_open,
    .start = nccl_start,
    .progress = nccl_progress,
    .timing = nccl_timing,
    .ways = rf_method_one_way,
    .base_of = nccl_base_of,
    .leaves = nccl_leaves,
    .abort = nccl_abort,
    .close = nccl_close,
};
