/*
 * Method ucx-cuda: packed messages over UCX's tagged messages, in the lockstep
 * steps of cuda/lockstep/steps.h.
 *
 * open    refit-ucx.so's wire (transport/method/ucx_wire.h), which the worker
 *         lends, registers arenas and buffers and connects ranks that share
 *         ops.
 * start   begins an iteration; progress() then advances its steps.
 *         A step is packed (kernels, on a stream) when its send slot is free
 *         and the steps that it follows are unpacked. UCX knows no streams:
 *         when the host sees that the packing has ended and that the receive
 *         slot is unpacked, it posts the step's messages. When those it
 *         receives have arrived, they are unpacked on another stream. Two slots
 *         of buffers let neighbouring steps overlap.
 *         After its last step a rank stays until all its peers are done with
 *         it, because UCX serves them in its progress calls.
 * abort   UCX cannot cancel requests: the device is left alone and the process
 *         ends.
 *
 * Failures: a loss reported by UCX, a CUDA error or the abort flag end
 * progress() with a status.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/pair.h"
#include "cuda/lockstep/phases.h"
#include "cuda/lockstep/steps_build.h"
#include "transport/method/ucx_wire.h"

#define SLOTS RF_BUFFER_SLOTS
enum { SEND, RECV, BUFFERS };

/* Messages of a step that are not complete. */
struct exchange {
    uint32_t sends, recvs;
};

/* How many of the first steps have reached each stage. */
struct reached {
    size_t packed;   /* packing is enqueued */
    size_t posted;   /* messages are posted */
    size_t gone;     /* all sends are complete */
    size_t unpacked; /* unpacking is enqueued */
};

struct ucx_state {
    const struct rf_method_env *env;
    const struct rf_ucx_wire_ops *ops;
    struct rf_ucx_wire *wire;
    struct rf_steps steps;
    struct rf_phases phases;
    struct exchange *exchanges; /* of each step */
    struct reached reached;
    size_t landed;     /* steps whose messages are all complete */
    int64_t posted_ns; /* since when messages are in flight */
    int64_t wire_ns;   /* total time with messages in flight */
    int64_t moved_ns;  /* when a step last advanced */
    bool running;      /* an iteration is under way */
};

static enum rf_status ucx_probe(struct rf_err *err)
{
    const struct rf_ucx_wire_ops *ops;
    RF_TRY(rf_device_ready(err));
    ops = rf_cuda_ucx_wire(err);
    return ops != NULL ? ops->probe(RF_DEVICE_MEMORY, err) : RF_ERR_UNSUPPORTED;
}

/* --- opening -------------------------------------------------------------- */

static enum rf_status allocate(struct ucx_state *state, struct rf_err *err)
{
    struct rf_phases *phases = &state->phases;
    RF_TRY(rf_phases_open(phases, state->env, &state->steps, 0, err));
    if (phases->send_slot_bytes > 0) {
        RF_CUDA_CHECK(err, cudaMalloc((void **)&phases->send,
                                      SLOTS * phases->send_slot_bytes));
    }
    if (phases->recv_slot_bytes > 0) {
        RF_CUDA_CHECK(err, cudaMalloc((void **)&phases->recv,
                                      SLOTS * phases->recv_slot_bytes));
    }
    return RF_OK;
}

static enum rf_status open_wire(struct ucx_state *state, struct rf_err *err)
{
    const struct rf_phases *phases = &state->phases;
    struct rf_arena at[RF_MEM_COUNT + BUFFERS];
    const struct rf_ucx_wire_memory memory = {
        .kind = RF_DEVICE_MEMORY, .at = at, .n = RF_ARRAY_SIZE(at)};
    enum rf_status status;
    memcpy(at, state->env->arena, sizeof(state->env->arena));
    at[RF_MEM_COUNT + SEND] =
        (struct rf_arena){.base = phases->send,
                          .bytes = SLOTS * phases->send_slot_bytes,
                          .fd = -1};
    at[RF_MEM_COUNT + RECV] =
        (struct rf_arena){.base = phases->recv,
                          .bytes = SLOTS * phases->recv_slot_bytes,
                          .fd = -1};
    status = state->ops->open(state->env, &memory, &state->wire, err);
    if (status != RF_OK) { /* UCX may still use the memory */
        rf_device_abandon();
    }
    return status;
}

static enum rf_status prepare(struct ucx_state *state, struct rf_err *err)
{
    uint64_t least;
    enum rf_status status;
    state->ops = rf_cuda_ucx_wire(err);
    if (state->ops == NULL) {
        return RF_ERR_UNSUPPORTED;
    }
    status = rf_direct_bytes(getenv(RF_DIRECT_VARIABLE), &least, err);
    RF_THEN(status,
            rf_steps_open(state->env, least, false, &state->steps, err));
    RF_THEN(status, allocate(state, err));
    if (status == RF_OK) {
        state->exchanges =
            rf_xcalloc(state->steps.n, sizeof(*state->exchanges));
        status = open_wire(state, err);
    }
    return status;
}

static void ucx_close(void *opaque);

static enum rf_status ucx_open(const struct rf_method_env *env, void **out,
                               struct rf_err *err)
{
    struct ucx_state *state = rf_xcalloc(1, sizeof(*state));
    enum rf_status status;
    state->env = env;
    status = prepare(state, err);
    if (status != RF_OK) { /* no payload is in flight */
        ucx_close(state);
        return status;
    }
    *out = state;
    return RF_OK;
}

/* --- a step --------------------------------------------------------------- */

/* Packs a slot only after its last messages have left it. Otherwise a step
 * waits only for the steps whose bytes it reads or overwrites. */
static enum rf_status pack(struct ucx_state *state, bool *moved,
                           struct rf_err *err)
{
    const size_t index = state->reached.packed;
    size_t after;
    enum rf_status status = RF_OK;
    if (index == state->steps.n) {
        return RF_OK;
    }
    after = state->steps.at[index].after;
    if ((index >= SLOTS && state->reached.gone <= index - SLOTS) ||
        state->reached.gone < after || state->reached.unpacked < after) {
        return RF_OK;
    }
    if (after > 0) {
        status = rf_phases_follow(&state->phases, RF_DEVICE_PHASE_PACK,
                                  after - 1, RF_DEVICE_PHASE_UNPACK, err);
    }
    RF_THEN(status,
            rf_phases_copy(&state->phases, RF_DEVICE_PHASE_PACK, index, err));
    state->reached.packed++;
    *moved = true;
    return status;
}

static void post(struct ucx_state *state, size_t index)
{
    const struct rf_step *step = &state->steps.at[index];
    struct exchange *exchange = &state->exchanges[index];
    struct rf_bases bases;
    rf_phases_bases(&state->phases, index, &bases);
    *exchange = (struct exchange){0, 0};
    for (size_t m = 0; m < step->n_recvs; m++) {
        const struct rf_message *of = &step->recvs[m];
        state->ops->receive(state->wire, of->peer,
                            (unsigned char *)bases.at[of->base] + of->offset,
                            of->bytes, &exchange->recvs);
    }
    for (size_t m = 0; m < step->n_sends; m++) {
        const struct rf_message *of = &step->sends[m];
        state->ops->send(state->wire, of->peer,
                         (const unsigned char *)bases.at[of->base] + of->offset,
                         of->bytes, &exchange->sends);
    }
}

/* Posts the next step's messages once it is packed (packing also reads bytes
 * that they overwrite) and its receive slot is unpacked. */
static enum rf_status post_next(struct ucx_state *state, bool *moved,
                                struct rf_err *err)
{
    const size_t index = state->reached.posted;
    bool ready = index < state->reached.packed &&
                 (index < SLOTS || state->reached.unpacked > index - SLOTS);
    enum rf_status status = RF_OK;
    if (ready) {
        status = rf_phases_ended(&state->phases, RF_DEVICE_PHASE_PACK, index,
                                 &ready, err);
    }
    if (status == RF_OK && ready && index >= SLOTS) {
        status = rf_phases_ended(&state->phases, RF_DEVICE_PHASE_UNPACK,
                                 index - SLOTS, &ready, err);
    }
    if (status == RF_OK && ready) {
        if (state->landed == index) {
            state->posted_ns = rf_now_ns();
        }
        state->reached.posted++;
        *moved = true;
        post(state, index);
    }
    return status;
}

static enum rf_status unpack(struct ucx_state *state, bool *moved,
                             struct rf_err *err)
{
    const size_t index = state->reached.unpacked;
    if (index == state->reached.posted || state->exchanges[index].recvs > 0) {
        return RF_OK;
    }
    state->reached.unpacked++;
    *moved = true;
    return rf_phases_copy(&state->phases, RF_DEVICE_PHASE_UNPACK, index, err);
}

/* Takes note of completions by UCX. */
static void see_exchanges(struct ucx_state *state)
{
    struct reached *reached = &state->reached;
    const size_t before = state->landed;
    while (reached->gone < reached->posted &&
           state->exchanges[reached->gone].sends == 0) {
        reached->gone++;
    }
    while (state->landed < reached->gone &&
           state->exchanges[state->landed].recvs == 0) {
        state->landed++;
    }
    if (state->landed > before && state->landed == reached->posted) {
        state->wire_ns += rf_now_ns() - state->posted_ns;
    }
}

/* --- an iteration --------------------------------------------------------- */

static enum rf_status ucx_start(void *opaque, uint64_t iteration,
                                struct rf_err *err)
{
    struct ucx_state *state = opaque;
    (void)iteration;
    (void)err;
    state->reached = (struct reached){0};
    state->landed = 0;
    state->wire_ns = 0;
    state->running = true;
    state->moved_ns = rf_now_ns();
    state->ops->start(state->wire);
    return RF_OK;
}

static enum rf_status move_steps(struct ucx_state *state, bool *worked,
                                 struct rf_err *err)
{
    bool moved = false;
    enum rf_status status = pack(state, &moved, err);
    RF_THEN(status, post_next(state, &moved, err));
    RF_THEN(status, unpack(state, &moved, err));
    if (moved) {
        state->moved_ns = rf_now_ns();
    }
    *worked |= moved;
    return status;
}

/* After the last step: waits for the peers. */
static enum rf_status part(struct ucx_state *state, bool *done,
                           struct rf_err *err)
{
    const size_t n = state->steps.n;
    enum rf_status status = RF_OK;
    state->ops->end(state->wire, done);
    if (*done && n > 0) {
        status = rf_phases_ended(&state->phases, RF_DEVICE_PHASE_UNPACK, n - 1,
                                 done, err);
    }
    state->running = !*done;
    return status;
}

static enum rf_status ucx_progress(void *opaque, bool *done, struct rf_err *err)
{
    struct ucx_state *state = opaque;
    enum rf_status status;
    bool worked = false;
    *done = false;
    if (atomic_load(state->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    RF_TRY(state->ops->progress(state->wire, &worked, err));
    see_exchanges(state);
    status = state->reached.unpacked == state->steps.n &&
                     state->landed == state->steps.n
                 ? part(state, done, err)
                 : move_steps(state, &worked, err);
    if (!worked) {
        sched_yield(); /* UCX in another process may need this CPU */
    }
    return status;
}

/* The wire's time is by the host's clock: the time with messages in flight. */
static void ucx_timing(void *opaque, struct rf_phase_times *out)
{
    const struct ucx_state *state = opaque;
    const struct rf_phases *phases = &state->phases;
    memset(out, 0, sizeof(*out));
    out->pack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_PACK);
    out->wire_ns = state->wire_ns;
    out->unpack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_UNPACK);
    out->device_ns = rf_phases_span_ns(phases, RF_DEVICE_PHASE_UNPACK);
    out->sent_bytes = state->steps.sent_bytes;
    out->received_bytes = state->steps.received_bytes;
}

/* --- ending --------------------------------------------------------------- */

/* See RF_STUCK_NS. */
static void tell_where(const struct ucx_state *state)
{
    char peers[128];
    if (!state->running || rf_now_ns() - state->moved_ns < RF_STUCK_NS) {
        return;
    }
    if (state->landed < state->reached.posted) {
        rf_step_peers(&state->steps.at[state->landed], peers, sizeof(peers));
        rf_cuda_log(RF_LOG_WARN,
                    "stopped in step %zu of %zu, an exchange with rank %s",
                    state->landed + 1, state->steps.n, peers);
    }
}

static void ucx_abort(void *opaque)
{
    struct ucx_state *state = opaque;
    tell_where(state);
    state->ops->abort(state->wire);
    rf_device_abandon();
}

static void ucx_close(void *opaque)
{
    struct ucx_state *state = opaque;
    if (state == NULL) {
        return;
    }
    if (state->ops != NULL) { /* before the memory it has registered is freed */
        state->ops->close(state->wire);
    }
    rf_phases_free(&state->phases);
    if (!rf_device_abandoned()) {
        cudaFree(state->phases.send);
        cudaFree(state->phases.recv);
    }
    free(state->exchanges);
    rf_steps_free(&state->steps);
    free(state);
}

const struct rf_method_ops rf_cuda_method_ucx = {
    .info = &rf_method_infos[RF_METHOD_UCX_CUDA],
    .probe = ucx_probe,
    .open = ucx_open,
    .start = ucx_start,
    .progress = ucx_progress,
    .timing = ucx_timing,
    .abort = ucx_abort,
    .close = ucx_close,
};
