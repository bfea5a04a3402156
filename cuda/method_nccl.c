/*
 * Method nccl: packed messages over NCCL send/recv, in lockstep steps.
 *
 * open    rank 0 makes the unique ID, which travels to all by exchange();
 *         non-blocking communicators: one of all ranks, and where a node has
 *         several ranks and there are several nodes, one per node split from it
 *         (a communicator across nodes takes its channel count from its slowest
 *         peer, so traffic inside a node gets its own). All pairs of the plan
 *         exchange a few bytes, so that connections exist before the window.
 * start   events of a new iteration; progress() then issues one step after the
 *         other: pack on one stream, the NCCL group on a second, unpack on a
 *         third, tied by events, with two slots of send and receive buffers.
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
#include "cuda/steps.h"

#define SLOTS 2
#define WARM_BYTES 256
/* One event per step and stage; timed pairs where a stage has work. */
enum stage { PACK, WIRE, UNPACK, STAGES };

struct device_step {
    struct rf_device_slices pack[2], unpack[2]; /* plain, cast */
    cudaEvent_t begin[STAGES], end[STAGES];
};

struct nccl_state {
    const struct rf_method_env *env;
    struct rf_nccl_comms comms;
    struct rf_steps steps;
    struct device_step *device_steps;
    cudaStream_t stream[STAGES];
    void *send, *recv; /* SLOTS slots each */
    size_t next_step;
    bool in_group;    /* the step's group has not completed being issued */
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

/* A step's messages as one group, each at most `limit` bytes long. */
static enum rf_status issue_messages(struct nccl_state *state,
                                     const struct rf_step *step, size_t slot,
                                     uint64_t limit, struct rf_err *err)
{
    const struct rf_nccl *nccl = state->comms.nccl;
    enum rf_status status = RF_OK;
    unsigned char *send =
        (unsigned char *)state->send + slot * state->steps.send_slot_bytes;
    unsigned char *recv =
        (unsigned char *)state->recv + slot * state->steps.recv_slot_bytes;
    bool in_group = false;
    int peer;
    RF_NCCL_TRY(&state->comms, err, out, nccl->GroupStart());
    in_group = true;
    for (size_t i = 0; i < step->n_sends; i++) {
        const struct rf_message *m = &step->sends[i];
        ncclComm_t comm = rf_nccl_route(&state->comms, m->peer, &peer);
        RF_NCCL_TRY(&state->comms, err, out,
                    nccl->Send(send + m->offset, RF_MIN(m->bytes, limit),
                               ncclUint8, peer, comm, state->stream[WIRE]));
    }
    for (size_t i = 0; i < step->n_recvs; i++) {
        const struct rf_message *m = &step->recvs[i];
        ncclComm_t comm = rf_nccl_route(&state->comms, m->peer, &peer);
        RF_NCCL_TRY(&state->comms, err, out,
                    nccl->Recv(recv + m->offset, RF_MIN(m->bytes, limit),
                               ncclUint8, peer, comm, state->stream[WIRE]));
    }
    in_group = false;
    RF_NCCL_TRY(&state->comms, err, out, nccl->GroupEnd());
out:
    if (in_group) { /* else an abort would become part of the group */
        (void)nccl->GroupEnd();
    }
    return status;
}

/* Those of a step's messages whose peer is not in `known` yet, which then has
 * them. Both ends of a message leave it out or not alike. */
static struct rf_message *first_messages(const struct rf_message *messages,
                                         size_t n, bool *known, size_t *n_out)
{
    struct rf_message *out = rf_xcalloc(n, sizeof(*out));
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (!known[messages[i].peer]) {
            known[messages[i].peer] = true;
            out[(*n_out)++] = messages[i];
        }
    }
    return out;
}

/* Waits, outside the window, for what is on the wire. */
static enum rf_status finish_exchange(struct nccl_state *state,
                                      const struct rf_step *step,
                                      struct rf_err *err)
{
    char what[160] = "first exchange with rank ";
    rf_step_peers(step, what + strlen(what), 100);
    for (;;) {
        enum rf_status status = rf_nccl_settle(&state->comms, what, err);
        const cudaError_t code = status == RF_OK
                                     ? cudaStreamQuery(state->stream[WIRE])
                                     : cudaSuccess;
        if (code == cudaSuccess) {
            return status;
        }
        if (code != cudaErrorNotReady) {
            return rf_cuda_error(err, "cudaStreamQuery", code);
        }
        (void)cudaGetLastError();
        if (atomic_load(state->env->abort)) {
            return rf_err_set(err, RF_ERR_ABORTED, "%s: aborted", what);
        }
        if (rf_now_ns() > state->env->deadline_ns) {
            return rf_err_set(err, RF_ERR_TIMEOUT, "%s did not end", what);
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
        struct rf_step first = {.round = step->round};
        first.sends =
            first_messages(step->sends, step->n_sends, known, &first.n_sends);
        first.recvs = first_messages(step->recvs, step->n_recvs, known + n,
                                     &first.n_recvs);
        if (first.n_sends + first.n_recvs > 0) {
            status = issue_messages(state, &first, 0, WARM_BYTES, err);
            status =
                status == RF_OK ? finish_exchange(state, step, err) : status;
        }
        free(first.sends);
        free(first.recvs);
    }
    free(known);
    return status;
}

static enum rf_status upload_step(const struct rf_steps *steps, size_t index,
                                  struct device_step *out, struct rf_err *err)
{
    const struct rf_step *step = &steps->at[index];
    enum rf_status status =
        rf_device_copies_upload(&step->pack, steps->cast, out->pack, err);
    if (status == RF_OK) {
        status = rf_device_copies_upload(&step->unpack, steps->cast,
                                         out->unpack, err);
    }
    for (int s = 0; status == RF_OK && s < STAGES; s++) {
        RF_CUDA_TRY(err, out_label, cudaEventCreate(&out->begin[s]));
        RF_CUDA_TRY(err, out_label, cudaEventCreate(&out->end[s]));
    }
out_label:
    return status;
}

static enum rf_status allocate(struct nccl_state *state, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (int s = 0; s < STAGES; s++) {
        RF_CUDA_TRY(err, out,
                    cudaStreamCreateWithFlags(&state->stream[s],
                                              cudaStreamNonBlocking));
    }
    RF_CUDA_TRY(
        err, out,
        cudaMalloc(&state->send, SLOTS * state->steps.send_slot_bytes + 256));
    RF_CUDA_TRY(
        err, out,
        cudaMalloc(&state->recv, SLOTS * state->steps.recv_slot_bytes + 256));
    for (size_t s = 0; s < state->steps.n; s++) {
        status = upload_step(&state->steps, s, &state->device_steps[s], err);
        if (status != RF_OK) {
            return status;
        }
    }
out:
    return status;
}

static void nccl_close(void *opaque);

static enum rf_status nccl_open(const struct rf_method_env *env, void **out,
                                struct rf_err *err)
{
    struct nccl_state *state = rf_xcalloc(1, sizeof(*state));
    enum rf_status status;
    state->env = env;
    status = rf_nccl_load(err) == NULL
                 ? RF_ERR_UNSUPPORTED
                 : rf_steps_build(env->schedule, env->rank,
                                  rf_message_bytes(env), &state->steps, err);
    if (status == RF_OK) {
        state->device_steps =
            rf_xcalloc(state->steps.n, sizeof(*state->device_steps));
        status = allocate(state, err);
    }
    if (status == RF_OK) {
        status = rf_nccl_comms_open(&state->comms, env, err);
    }
    if (status == RF_OK) {
        status = warm_up(state, err);
    }
    if (status != RF_OK) {
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

static void fill_bases(const struct nccl_state *state, size_t slot,
                       struct rf_bases *bases)
{
    memset(bases, 0, sizeof(*bases));
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bases->at[m] = state->env->arena[m].base;
    }
    bases->at[RF_BASE_SEND] =
        (unsigned char *)state->send + slot * state->steps.send_slot_bytes;
    bases->at[RF_BASE_RECV] =
        (unsigned char *)state->recv + slot * state->steps.recv_slot_bytes;
}

/* Packs step `index` and hands its group to NCCL. A slot is packed again only
 * after its last group; a new round reads what earlier rounds unpacked. */
static enum rf_status begin_step(struct nccl_state *state, size_t index,
                                 struct rf_err *err)
{
    enum rf_status status = RF_OK;
    struct device_step *now = &state->device_steps[index];
    const struct rf_step *step = &state->steps.at[index];
    struct rf_bases bases;
    fill_bases(state, index % SLOTS, &bases);
    if (index >= SLOTS) {
        const struct device_step *last = &state->device_steps[index - SLOTS];
        RF_CUDA_TRY(
            err, out,
            cudaStreamWaitEvent(state->stream[PACK], last->end[WIRE], 0));
        RF_CUDA_TRY(
            err, out,
            cudaStreamWaitEvent(state->stream[WIRE], last->end[UNPACK], 0));
    }
    if (index > 0 && step->round != state->steps.at[index - 1].round) {
        RF_CUDA_TRY(
            err, out,
            cudaStreamWaitEvent(state->stream[PACK],
                                state->device_steps[index - 1].end[UNPACK], 0));
    }
    RF_CUDA_TRY(err, out,
                cudaEventRecord(now->begin[PACK], state->stream[PACK]));
    status = rf_device_copies(now->pack, &bases, state->stream[PACK], err);
    if (status != RF_OK) {
        return status;
    }
    RF_CUDA_TRY(err, out, cudaEventRecord(now->end[PACK], state->stream[PACK]));
    RF_CUDA_TRY(err, out,
                cudaStreamWaitEvent(state->stream[WIRE], now->end[PACK], 0));
    RF_CUDA_TRY(err, out,
                cudaEventRecord(now->begin[WIRE], state->stream[WIRE]));
    if (step->n_sends + step->n_recvs > 0) {
        status = issue_messages(state, step, index % SLOTS, UINT64_MAX, err);
    }
    state->in_group = true;
out:
    return status;
}

/* After NCCL has taken the group: unpack behind it. */
static enum rf_status end_step(struct nccl_state *state, size_t index,
                               struct rf_err *err)
{
    enum rf_status status = RF_OK;
    struct device_step *now = &state->device_steps[index];
    struct rf_bases bases;
    fill_bases(state, index % SLOTS, &bases);
    RF_CUDA_TRY(err, out, cudaEventRecord(now->end[WIRE], state->stream[WIRE]));
    RF_CUDA_TRY(err, out,
                cudaStreamWaitEvent(state->stream[UNPACK], now->end[WIRE], 0));
    RF_CUDA_TRY(err, out,
                cudaEventRecord(now->begin[UNPACK], state->stream[UNPACK]));
    status = rf_device_copies(now->unpack, &bases, state->stream[UNPACK], err);
    if (status != RF_OK) {
        return status;
    }
    RF_CUDA_TRY(err, out,
                cudaEventRecord(now->end[UNPACK], state->stream[UNPACK]));
    state->in_group = false;
out:
    return status;
}

static enum rf_status nccl_progress(void *opaque, bool *done,
                                    struct rf_err *err)
{
    struct nccl_state *state = opaque;
    bool busy;
    enum rf_status status = rf_nccl_comms_busy(&state->comms, &busy, err);
    cudaError_t code;
    *done = false;
    if (status != RF_OK) {
        return status;
    }
    if (atomic_load(state->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (busy) {
        return RF_OK;
    }
    if (state->in_group) {
        status = end_step(state, state->next_step++, err);
        state->moved_ns = rf_now_ns();
        if (status != RF_OK) {
            return status;
        }
    }
    if (state->next_step < state->steps.n) {
        return begin_step(state, state->next_step, err);
    }
    if (state->steps.n == 0) {
        *done = true;
        state->running = false;
        return RF_OK;
    }
    code = cudaEventQuery(state->device_steps[state->steps.n - 1].end[UNPACK]);
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return RF_OK;
    }
    *done = code == cudaSuccess;
    state->running = !*done;
    return *done ? RF_OK : rf_cuda_error(err, "cudaEventQuery", code);
}

static void nccl_timing(void *opaque, struct rf_phase_times *out)
{
    struct nccl_state *state = opaque;
    int64_t *const into[STAGES] = {&out->pack_ns, &out->wire_ns,
                                   &out->unpack_ns};
    memset(out, 0, sizeof(*out));
    for (size_t s = 0; s < state->steps.n; s++) {
        for (int g = 0; g < STAGES; g++) {
            float ms = 0;
            if (cudaEventElapsedTime(&ms, state->device_steps[s].begin[g],
                                     state->device_steps[s].end[g]) ==
                cudaSuccess) {
                *into[g] += (int64_t)((double)ms * RF_NS_PER_MS);
            }
        }
    }
    out->sent_bytes = state->steps.sent_bytes;
    out->received_bytes = state->steps.received_bytes;
}

/* See RF_STUCK_NS. */
static void tell_where(const struct nccl_state *state)
{
    char peers[128];
    size_t at = 0;
    if (!state->running || rf_now_ns() - state->moved_ns < RF_STUCK_NS) {
        return;
    }
    while (at < state->next_step &&
           cudaEventQuery(state->device_steps[at].end[WIRE]) == cudaSuccess) {
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

static void nccl_abort(void *opaque)
{
    struct nccl_state *state = opaque;
    tell_where(state);
    rf_nccl_comms_abort(&state->comms);
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
    rf_nccl_comms_abort(&state->comms); /* nothing is in flight */
    for (size_t s = 0; state->device_steps != NULL && s < state->steps.n; s++) {
        free_step(&state->device_steps[s]);
    }
    free(state->device_steps);
    for (int s = 0; s < STAGES; s++) {
        if (state->stream[s] != NULL) {
            cudaStreamDestroy(state->stream[s]);
        }
    }
    cudaFree(state->send);
    cudaFree(state->recv);
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

const struct rf_method_ops rf_cuda_method_nccl = {
    .info = &rf_method_infos[RF_METHOD_NCCL],
    .probe = nccl_probe,
    .open = nccl_open,
    .start = nccl_start,
    .progress = nccl_progress,
    .timing = nccl_timing,
    .base_of = nccl_base_of,
    .abort = nccl_abort,
    .close = nccl_close,
};
