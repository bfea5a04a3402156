/*
 * Method ucx-cuda: packed messages over UCX's tagged messages, a polled wire of
 * the lockstep engine (cuda/lockstep/lockstep.h).
 *
 * open    refit-ucx.so's wire (transport/method/ucx_wire.h), which the worker
 *         lends, registers arenas and buffers and connects ranks that share
 *         ops.
 * end     after its last step a rank stays until all its peers are done with
 *         it, because UCX serves them in its progress calls.
 * abort   UCX cannot cancel requests: the device is left alone and the process
 *         ends.
 *
 * Failures: a loss reported by UCX ends progress() with a status.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/lockstep.h"
#include "cuda/lockstep/steps_build.h"
#include "transport/method/ucx_wire.h"

enum { SEND, RECV, BUFFERS };
struct ucx_state {
    struct rf_lockstep lockstep;
    const struct rf_ucx_wire_ops *ops;
    struct rf_ucx_wire *wire;
    uint32_t *left; /* of each step: its messages that are not complete */
    int64_t worked_ns;
};

static enum rf_status ucx_probe(struct rf_err *err)
{
    const struct rf_ucx_wire_ops *ops;
    RF_TRY(rf_device_ready(err));
    ops = rf_cuda_ucx_wire(err);
    return ops != NULL ? ops->probe(RF_DEVICE_MEMORY, err) : RF_ERR_UNSUPPORTED;
}

/* --- opening -------------------------------------------------------------- */

static enum rf_status allocate(uint64_t slot_bytes, unsigned char **slots,
                               struct rf_arena *out, struct rf_err *err)
{
    out->bytes = RF_BUFFER_SLOTS * slot_bytes;
    out->fd = -1;
    if (out->bytes > 0) {
        RF_CUDA_CHECK(err, cudaMalloc(&out->base, out->bytes));
    }
    *slots = out->base;
    return RF_OK;
}

static enum rf_status ucx_open(struct rf_lockstep *of, struct rf_err *err)
{
    struct ucx_state *state = (void *)of;
    struct rf_phases *phases = &of->phases;
    struct rf_arena at[RF_MEM_COUNT + BUFFERS] = {{.base = NULL}};
    const struct rf_ucx_wire_memory memory = {
        .kind = RF_DEVICE_MEMORY, .at = at, .n = RF_ARRAY_SIZE(at)};
    enum rf_status status;
    state->ops = rf_cuda_ucx_wire(err);
    RF_TRY(state->ops == NULL ? RF_ERR_UNSUPPORTED
                              : rf_steps_open(of->env, of->direct_bytes, false,
                                              &of->steps, err));
    RF_TRY(rf_phases_open(phases, of->env, &of->steps, 0, err));
    memcpy(at, of->env->arena, sizeof(of->env->arena));
    RF_TRY(allocate(phases->send_slot_bytes, &phases->send,
                    &at[RF_MEM_COUNT + SEND], err));
    RF_TRY(allocate(phases->recv_slot_bytes, &phases->recv,
                    &at[RF_MEM_COUNT + RECV], err));
    state->left = rf_xcalloc(of->steps.n, sizeof(*state->left));
    status = state->ops->open(of->env, &memory, &state->wire, err);
    if (status != RF_OK) { /* UCX may still use the memory */
        rf_device_abandon();
    }
    return status;
}

/* --- an iteration --------------------------------------------------------- */

static void ucx_start(struct rf_lockstep *of, uint64_t iteration)
{
    struct ucx_state *state = (void *)of;
    (void)iteration;
    state->worked_ns = rf_now_ns();
    state->ops->start(state->wire);
}

static enum rf_status ucx_progress(struct rf_lockstep *of, struct rf_err *err)
{
    struct ucx_state *state = (void *)of;
    bool worked = false;
    RF_TRY(state->ops->progress(state->wire, &worked, err));
    if (worked) {
        state->worked_ns = rf_now_ns();
    } else {
        rf_pause_between_polls(state->worked_ns);
    }
    return RF_OK;
}

static enum rf_status ucx_post(struct rf_lockstep *of, size_t index,
                               struct rf_err *err)
{
    struct ucx_state *state = (void *)of;
    const struct rf_step *step = &of->steps.at[index];
    uint32_t *left = &state->left[index];
    (void)err;
    for (size_t m = 0; m < step->n_recvs; m++) {
        const struct rf_message *recv = &step->recvs[m];
        state->ops->receive(state->wire, recv->peer,
                            rf_phases_place(&of->phases, index, recv),
                            recv->bytes, left);
    }
    for (size_t m = 0; m < step->n_sends; m++) {
        const struct rf_message *send = &step->sends[m];
        state->ops->send(state->wire, send->peer,
                         rf_phases_place(&of->phases, index, send), send->bytes,
                         left);
    }
    return RF_OK;
}

static enum rf_status ucx_arrived(struct rf_lockstep *of, size_t step,
                                  bool *out, struct rf_err *err)
{
    const struct ucx_state *state = (void *)of;
    (void)err;
    *out = state->left[step] == 0;
    return RF_OK;
}

/* Waits for the peers. */
static enum rf_status ucx_idle(struct rf_lockstep *of, bool *out,
                               struct rf_err *err)
{
    struct ucx_state *state = (void *)of;
    (void)err;
    state->ops->end(state->wire, out);
    return RF_OK;
}

/* --- ending --------------------------------------------------------------- */

static void ucx_abort(struct rf_lockstep *of)
{
    struct ucx_state *state = (void *)of;
    state->ops->abort(state->wire);
    rf_device_abandon();
}

static void ucx_close(struct rf_lockstep *of)
{
    struct ucx_state *state = (void *)of;
    if (state->ops != NULL) { /* before the memory it has registered is freed */
        state->ops->close(state->wire);
    }
    if (!rf_device_abandoned()) {
        cudaFree(of->phases.send);
        cudaFree(of->phases.recv);
    }
    free(state->left);
}

static enum rf_status open_method(const struct rf_method_env *env, void **out,
                                  struct rf_err *err)
{
    static const struct rf_lockstep_ops polled = {.state_bytes =
                                                      sizeof(struct ucx_state),
                                                  .open = ucx_open,
                                                  .start = ucx_start,
                                                  .progress = ucx_progress,
                                                  .post = ucx_post,
                                                  .arrived = ucx_arrived,
                                                  .idle = ucx_idle,
                                                  .abort = ucx_abort,
                                                  .close = ucx_close};
    return rf_lockstep_open(&polled, env, out, err);
}

const struct rf_method_ops rf_cuda_method_ucx = {
    .info = &rf_method_infos[RF_METHOD_UCX_CUDA],
    .probe = ucx_probe,
    .open = open_method,
    RF_LOCKSTEP_HOOKS,
};
