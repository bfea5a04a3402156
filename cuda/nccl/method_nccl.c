/*
 * Method nccl: packed messages over NCCL send/recv, a stream-ordered wire of
 * the lockstep engine (cuda/lockstep/lockstep.h).
 *
 * open    rank 0 makes the unique ID, which exchange() brings to all;
 *         non-blocking communicators: one of all ranks and, if there are
 *         several nodes, one per node, split from it (a communicator across
 *         nodes takes its channel count from its slowest peer, so traffic
 *         inside a node gets its own). All pairs of the plan exchange a few
 *         bytes, so that connections exist before the window.
 * a step  is a group of NCCL for each communicator, on its stream
 *         (nccl_wire.h). It has arrived when NCCL has taken both groups.
 * abort   ncclCommAbort of both communicators, in one group, from this same
 *         thread, the only one that calls NCCL.
 *
 * Failures: an asynchronous NCCL error ends progress() with a status; every
 * wait checks the abort flag.
 */
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/lockstep.h"
#include "cuda/lockstep/steps_build.h"
#include "cuda/nccl/nccl_buffers.h"
#include "cuda/nccl/nccl_comm.h"
#include "cuda/nccl/nccl_wire.h"

#define SLOTS RF_BUFFER_SLOTS
/* The wire's phases: each communicator has its own stream. */
enum { NODE_WIRE = RF_DEVICE_PHASE_OTHERS, WORLD_WIRE };

struct nccl_state {
    struct rf_lockstep lockstep;
    const struct rf_nccl *nccl;
    struct rf_nccl_comms comms;
    struct rf_nccl_registration registration;
    struct rf_nccl_wire wire; /* owns the streams of the wire */
    struct rf_nccl_buffers buffers;
    bool issued; /* NCCL has taken all groups of the last step */
};

static enum rf_status nccl_probe(struct rf_err *err)
{
    RF_TRY(rf_device_ready(err));
    return rf_nccl_load(err) != NULL ? RF_OK : RF_ERR_UNSUPPORTED;
}

/* --- opening -------------------------------------------------------------- */

/* SLOTS slots each, and at least the size of the first exchanges. */
static enum rf_status allocate(struct nccl_state *state, struct rf_err *err)
{
    struct rf_lockstep *of = &state->lockstep;
    const uint64_t warm = rf_nccl_wire_warm_bytes(of->env);
    const uint64_t bytes[RF_NCCL_BUFFERS] = {
        RF_MAX(SLOTS * of->steps.send_slot_bytes, warm),
        RF_MAX(SLOTS * of->steps.recv_slot_bytes, warm)};
    RF_TRY(rf_nccl_buffers_alloc(&state->buffers, state->nccl, bytes, err));
    of->phases.send = state->buffers.at[0].base;
    of->phases.recv = state->buffers.at[1].base;
    return RF_OK;
}

/* Packing leaves multiprocessors to NCCL, if there are messages. */
static enum rf_status open_phases(struct nccl_state *state, struct rf_err *err)
{
    struct rf_lockstep *of = &state->lockstep;
    cudaStream_t *stream = of->phases.stream;
    uint32_t blocks = 0;
    RF_TRY(rf_nccl_wire_open(&state->wire, &state->comms, err));
    stream[NODE_WIRE] = state->wire.stream[RF_NCCL_NODE];
    stream[WORLD_WIRE] = state->wire.stream[RF_NCCL_WORLD];
    if (of->steps.sent_bytes > 0 || of->steps.received_bytes > 0) {
        RF_TRY(rf_device_pack_blocks(rf_steps_copy_both_ways(&of->steps),
                                     &blocks, err));
    }
    return rf_phases_open(&of->phases, of->env, &of->steps, blocks, err);
}

static void nccl_abort(struct rf_lockstep *of);

static enum rf_status connect(struct nccl_state *state, struct rf_err *err)
{
    struct rf_lockstep *of = &state->lockstep;
    struct rf_bases bases;
    RF_TRY(rf_nccl_comms_open(&state->comms, of->env, err));
    RF_TRY(rf_nccl_register(&state->registration, &state->comms,
                            &state->buffers, err));
    rf_phases_bases(&of->phases, 0, &bases);
    return rf_nccl_wire_warm_up(&state->wire, &of->steps, &bases, err);
}

static enum rf_status nccl_open(struct rf_lockstep *of, struct rf_err *err)
{
    struct nccl_state *state = (void *)of;
    enum rf_status status;
    state->nccl = rf_nccl_load(err);
    RF_TRY(state->nccl == NULL ? RF_ERR_UNSUPPORTED
                               : rf_steps_open(of->env, of->direct_bytes, false,
                                               &of->steps, err));
    RF_TRY(open_phases(state, err));
    RF_TRY(allocate(state, err));
    status = connect(state, err);
    if (status != RF_OK) {
        nccl_abort(of);
    }
    return status;
}

/* --- a step --------------------------------------------------------------- */

static enum rf_status nccl_progress(struct rf_lockstep *of, struct rf_err *err)
{
    struct nccl_state *state = (void *)of;
    return rf_nccl_wire_issue(&state->wire, &state->issued, err);
}

/* Both wires begin together. progress() issues the groups. */
static enum rf_status nccl_post(struct rf_lockstep *of, size_t index,
                                struct rf_err *err)
{
    struct nccl_state *state = (void *)of;
    const struct rf_phases *phases = &of->phases;
    struct rf_bases bases;
    for (int w = NODE_WIRE; w <= WORLD_WIRE; w++) {
        if (index >= SLOTS) {
            RF_TRY(rf_phases_follow(phases, w, index - SLOTS,
                                    RF_DEVICE_PHASE_UNPACK, err));
        }
        RF_TRY(rf_phases_follow(phases, w, index, RF_DEVICE_PHASE_PACK, err));
        RF_TRY(rf_phases_begin(phases, w, index, err));
    }
    rf_phases_bases(phases, index, &bases);
    rf_nccl_wire_set(&state->wire, &of->steps.at[index], &bases);
    state->issued = false;
    return RF_OK;
}

static enum rf_status nccl_arrived(struct rf_lockstep *of, size_t index,
                                   bool *out, struct rf_err *err)
{
    const struct nccl_state *state = (void *)of;
    *out = state->issued;
    for (int w = NODE_WIRE; w <= WORLD_WIRE && *out; w++) {
        RF_TRY(rf_phases_end(&of->phases, w, index, err));
        RF_TRY(rf_phases_follow(&of->phases, RF_DEVICE_PHASE_UNPACK, index, w,
                                err));
    }
    return RF_OK;
}

static int64_t nccl_wire_ns(const struct rf_lockstep *of)
{
    int64_t sum = 0;
    for (size_t s = 0; s < of->steps.n; s++) {
        sum += RF_MAX(rf_phases_ns(&of->phases, NODE_WIRE, s),
                      rf_phases_ns(&of->phases, WORLD_WIRE, s));
    }
    return sum;
}

/* --- ending --------------------------------------------------------------- */

/* Registered memory is in use, and deregistering may wait for a peer: the
 * registration ends with the communicators. */
static void nccl_abort(struct rf_lockstep *of)
{
    struct nccl_state *state = (void *)of;
    rf_nccl_comms_abort(&state->comms);
    state->registration.n = 0;
}

static void nccl_close(struct rf_lockstep *of)
{
    struct nccl_state *state = (void *)of;
    rf_nccl_deregister(&state->registration); /* nothing is in flight */
    rf_nccl_comms_abort(&state->comms);
    rf_nccl_wire_close(&state->wire);
    rf_nccl_buffers_free(&state->buffers, state->nccl);
}

static enum rf_status open_method(const struct rf_method_env *env, void **out,
                                  struct rf_err *err)
{
    static const struct rf_lockstep_ops ops = {.state_bytes =
                                                   sizeof(struct nccl_state),
                                               .streams = 2,
                                               .open = nccl_open,
                                               .progress = nccl_progress,
                                               .post = nccl_post,
                                               .arrived = nccl_arrived,
                                               .wire_ns = nccl_wire_ns,
                                               .abort = nccl_abort,
                                               .close = nccl_close};
    return rf_lockstep_open(&ops, env, out, err);
}

const struct rf_method_ops rf_cuda_method_nccl = {
    .info = &rf_method_infos[RF_METHOD_NCCL],
    .probe = nccl_probe,
    .open = open_method,
    RF_LOCKSTEP_HOOKS,
};
