/*
 * Method nvshmem: the lockstep steps of cuda/lockstep/steps.h with one-sided
 * puts from the host's stream calls into symmetric memory.
 *
 * open    starts the library and registers the arenas with it
 *         (cuda/nvshmem/nvshmem_setup.h); exchange() distributes every rank's
 *         table of message places (cuda/nvshmem/nvshmem_table.h).
 * start   begins an iteration; progress() then enqueues one step after the
 *         other, some ahead of the device. Packing, puts and unpacking have a
 *         stream each, tied by events, with two slots of buffers, so
 *         neighbouring steps overlap. cuda/nvshmem/nvshmem_wire.h describes how
 *         ranks are ordered.
 *
 * NVSHMEM ends the process on its own errors, so the user sees a rank that
 * exited, with its last lines of standard error. A wait for a lost rank has no
 * way out: an abort leaves the device alone and the process ends.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/pair.h"
#include "cuda/lockstep/phases.h"
#include "cuda/lockstep/steps_build.h"
#include "cuda/nvshmem/nvshmem_setup.h"
#include "cuda/nvshmem/nvshmem_table.h"
#include "cuda/nvshmem/nvshmem_wire.h"

#define SLOTS RF_BUFFER_SLOTS
/* Steps enqueued before the first of them is done: enough to keep the device
 * busy, few enough for the driver's queues. */
#define AHEAD 8

struct shmem_state {
    const struct rf_method_env *env;
    struct rf_nvshmem_setup setup;
    struct rf_steps steps;
    struct rf_nvshmem_table table;
    struct rf_phases phases; /* its buffers are symmetric */
    struct rf_nvshmem_wire wire;
    size_t next_turn;
};

static enum rf_status nvshmem_probe(struct rf_err *err)
{
    enum rf_status status = rf_device_ready(err);
    if (status == RF_OK && rf_nvshmem_load(err) == NULL) {
        status = RF_ERR_UNSUPPORTED;
    }
    return status;
}

static enum rf_status allocate(struct shmem_state *state, struct rf_err *err)
{
    const struct rf_nvshmem *api = state->setup.api;
    struct rf_phases *phases = &state->phases;
    const uint64_t send = SLOTS * state->table.send_slot_bytes;
    const uint64_t recv = SLOTS * state->table.recv_slot_bytes;
    phases->send_slot_bytes = state->table.send_slot_bytes;
    phases->recv_slot_bytes = state->table.recv_slot_bytes;
    phases->send = api->nvshmem_malloc((size_t)(send + 256));
    phases->recv = api->nvshmem_malloc((size_t)(recv + 256));
    if (!rf_nvshmem_wire_open(&state->wire, api, &state->table, phases) ||
        phases->send == NULL || phases->recv == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM,
                          "the symmetric heap cannot hold %llu bytes; raise "
                          "NVSHMEM_SYMMETRIC_SIZE or lower bucket_bytes",
                          (unsigned long long)(send + recv));
    }
    return RF_OK;
}

static enum rf_status make_streams(struct shmem_state *state,
                                   struct rf_err *err)
{
    struct rf_phases *phases = &state->phases;
    RF_TRY(
        rf_device_stream(RF_STREAM_WIRE, &phases->stream[RF_NVSHMEM_PUT], err));
    RF_TRY(rf_phases_open(phases, state->env, &state->steps, 0, err));
    phases->stream[RF_NVSHMEM_ARRIVE] = phases->stream[RF_DEVICE_PHASE_UNPACK];
    return RF_OK;
}

static void nvshmem_abort(void *opaque);
static void nvshmem_close(void *opaque);

/* Starts the library first: only then is it known whether arenas are
 * registered, so that runs may leave them without packing. */
static enum rf_status prepare(struct shmem_state *state, struct rf_err *err)
{
    const struct rf_method_env *env = state->env;
    const struct shmem_state *like = env->like;
    uint64_t least;
    enum rf_status status =
        rf_direct_bytes(getenv(RF_DIRECT_VARIABLE), &least, err);
    if (status == RF_OK) {
        status = rf_nvshmem_setup_open(&state->setup, env,
                                       like != NULL ? &like->setup : NULL, err);
    }
    if (status == RF_OK) {
        status = rf_steps_open(env, state->setup.registered ? least : 0, true,
                               &state->steps, err);
    }
    RF_THEN(status, make_streams(state, err));
    RF_THEN(status,
            rf_nvshmem_table_open(env, &state->steps, &state->table, err));
    return status == RF_OK ? allocate(state, err) : status;
}

static enum rf_status nvshmem_open(const struct rf_method_env *env, void **out,
                                   struct rf_err *err)
{
    struct shmem_state *state = rf_xcalloc(1, sizeof(*state));
    enum rf_status status;
    state->env = env;
    status = prepare(state, err);
    if (status != RF_OK) {
        if (state->setup.started) { /* others may not join the closing */
            nvshmem_abort(state);
        }
        nvshmem_close(state);
        return status;
    }
    *out = state;
    return RF_OK;
}

/* --- A step --------------------------------------------------------------- */

/* Packs a slot only after its last puts. Otherwise a step waits only for the
 * steps whose bytes it reads or overwrites. */
static enum rf_status wait_for_earlier(struct shmem_state *state, size_t index,
                                       struct rf_err *err)
{
    const struct rf_phases *phases = &state->phases;
    const size_t after = state->steps.at[index].after;
    enum rf_status status = RF_OK;
    if (index >= SLOTS) {
        status = rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, index - SLOTS,
                                  RF_NVSHMEM_PUT, err);
    }
    if (status == RF_OK && after > 0) {
        status = rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, after - 1,
                                  RF_NVSHMEM_PUT, err);
    }
    if (status == RF_OK && after > 0) {
        status = rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, after - 1,
                                  RF_DEVICE_PHASE_UNPACK, err);
    }
    return status;
}

static enum rf_status pack(struct shmem_state *state, size_t index,
                           struct rf_err *err)
{
    enum rf_status status = wait_for_earlier(state, index, err);
    return status == RF_OK ? rf_phases_copy(&state->phases,
                                            RF_DEVICE_PHASE_PACK, index, err)
                           : status;
}

static enum rf_status unpack(struct shmem_state *state, size_t index,
                             struct rf_err *err)
{
    enum rf_status status = rf_nvshmem_wire_await(&state->wire, index, err);
    RF_THEN(status,
            rf_phases_copy(&state->phases, RF_DEVICE_PHASE_UNPACK, index, err));
    if (status == RF_OK) {
        rf_nvshmem_wire_make_room(&state->wire, index);
    }
    return status;
}

static enum rf_status enqueue_turn(struct shmem_state *state,
                                   const struct rf_nvshmem_turn *turn,
                                   struct rf_err *err)
{
    enum rf_status status;
    if (turn->local == SIZE_MAX) {
        rf_nvshmem_wire_pass(&state->wire);
        return RF_OK;
    }
    status = pack(state, turn->local, err);
    RF_THEN(status, rf_nvshmem_wire_put(&state->wire, turn, err));
    return status == RF_OK ? unpack(state, turn->local, err) : status;
}

/* --- An iteration --------------------------------------------------------- */

static enum rf_status nvshmem_start(void *opaque, uint64_t iteration,
                                    struct rf_err *err)
{
    struct shmem_state *state = opaque;
    (void)err;
    state->wire.iteration = iteration + 1;
    state->next_turn = 0;
    return RF_OK;
}

/* Whether the device is close enough to our step `index` to enqueue it. */
static enum rf_status can_take(const struct shmem_state *state, size_t index,
                               bool *out, struct rf_err *err)
{
    *out = true;
    return index != SIZE_MAX && index >= AHEAD
               ? rf_phases_ended(&state->phases, RF_DEVICE_PHASE_UNPACK,
                                 index - AHEAD, out, err)
               : RF_OK;
}

/* Whether all streams are idle after all steps; then our signals to others have
 * left, too. */
static enum rf_status is_idle(const struct shmem_state *state, bool *idle,
                              struct rf_err *err)
{
    enum rf_status status = RF_OK;
    *idle = true;
    for (int s = RF_DEVICE_PHASE_PACK;
         s <= RF_NVSHMEM_PUT && *idle && status == RF_OK; s++) {
        status = rf_stream_is_idle(state->phases.stream[s], idle, err);
    }
    return status;
}

static enum rf_status nvshmem_progress(void *opaque, bool *done,
                                       struct rf_err *err)
{
    struct shmem_state *state = opaque;
    const struct rf_nvshmem_turn *turn;
    enum rf_status status;
    bool ready;
    *done = false;
    if (atomic_load(state->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (state->next_turn == state->table.n) {
        return is_idle(state, done, err);
    }
    turn = &state->table.at[state->next_turn];
    status = can_take(state, turn->local, &ready, err);
    if (status == RF_OK && ready) {
        state->next_turn++;
        status = enqueue_turn(state, turn, err);
    }
    return status;
}

/* Puts run beside the wait for arrivals, and either may end last. */
static void nvshmem_timing(void *opaque, struct rf_phase_times *out)
{
    const struct shmem_state *state = opaque;
    const struct rf_phases *phases = &state->phases;
    memset(out, 0, sizeof(*out));
    out->device_ns = RF_MAX(rf_phases_span_ns(phases, RF_NVSHMEM_PUT),
                            rf_phases_span_ns(phases, RF_DEVICE_PHASE_UNPACK));
    out->pack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_PACK);
    out->wire_ns = RF_MAX(rf_phases_sum_ns(phases, RF_NVSHMEM_PUT),
                          rf_phases_sum_ns(phases, RF_NVSHMEM_ARRIVE));
    out->unpack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_UNPACK);
    out->sent_bytes = state->steps.sent_bytes;
    out->received_bytes = state->steps.received_bytes;
}

/* NVSHMEM has no abort, and its waits have no end: everything on the device
 * stays as it is until the process ends, which is now. */
static void nvshmem_abort(void *opaque)
{
    (void)opaque;
    rf_device_abandon();
}

/* Collective if NVSHMEM is started. */
static void free_device(struct shmem_state *state)
{
    rf_stream_free(state->phases.stream[RF_NVSHMEM_PUT]);
    if (state->setup.started) {
        rf_nvshmem_wire_close(&state->wire);
        state->setup.api->nvshmem_free(state->phases.send);
        state->setup.api->nvshmem_free(state->phases.recv);
        rf_nvshmem_setup_close(&state->setup);
    }
}

static void nvshmem_close(void *opaque)
{
    struct shmem_state *state = opaque;
    if (state == NULL) {
        return;
    }
    rf_phases_free(&state->phases);
    if (!rf_device_abandoned()) {
        free_device(state);
    }
    rf_nvshmem_table_free(&state->table);
    rf_steps_free(&state->steps);
    free(state);
}

const struct rf_method_ops rf_cuda_method_nvshmem = {
    .info = &rf_method_infos[RF_METHOD_NVSHMEM],
    .probe = nvshmem_probe,
    .open = nvshmem_open,
    .start = nvshmem_start,
    .progress = nvshmem_progress,
    .timing = nvshmem_timing,
    .abort = nvshmem_abort,
    .close = nvshmem_close,
};
