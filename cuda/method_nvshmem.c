/*
 * Method nvshmem: the lockstep steps of cuda/steps.h with one-sided puts from
 * the host's stream calls into symmetric memory.
 *
 * open    the library is started and arenas are registered with it
 *         (cuda/nvshmem_setup.h); every rank's table of where it wants its
 *         messages travels by exchange() (cuda/nvshmem_table.h).
 * start   begins an iteration; progress() then enqueues one step after the
 *         other, some ahead of the device. Packing, puts and unpacking have a
 *         stream each, tied by events, with two slots of buffers, so
 *         neighbouring steps overlap.
 *
 * Two words of symmetric memory per slot and pair order the ranks. `arrived` is
 * set by the put of the step's last message to a rank, after its bytes and when
 * those of earlier ones are complete: the receiver unpacks when all messages of
 * its step are there. `room` is set by the receiver when a slot is
 * unpacked, for those that put into it next: they wait for it. Values only
 * grow, over all iterations. A step's slot is that of the receiver's own count
 * of steps, which is in the table. All ranks go through their steps in one
 * order, so the first step that somebody waits for can always go on.
 *
 * Where ranks share a device NVSHMEM cannot wait for signals (it supports that
 * with MPS only): there a barrier of all ranks ends each step instead, also in
 * ranks that have no part in it. A barrier comes after all unpacking of earlier
 * steps, so a slot is free two steps later.
 *
 * NVSHMEM ends the process on its own errors, so those reach the user as a rank
 * that exited, with its last lines of standard error. It has no way out of a
 * wait for a rank that is lost: an abort leaves the device alone and the
 * process ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device.h"
#include "cuda/methods.h"
#include "cuda/nvshmem_setup.h"
#include "cuda/nvshmem_table.h"
#include "cuda/pair.h"
#include "cuda/steps.h"
#include "cuda/timing.h"

#define SLOTS 2
/* Steps that are enqueued before the first of them is done: enough to keep the
 * device busy, few enough for the driver's queues. */
#define AHEAD 8

/* What runs on a stream of its own; ARRIVE is the first part of what UNPACK's
 * stream does. */
enum stage { PACK, PUT, UNPACK, STREAMS, ARRIVE = STREAMS, STAGES };

enum word { ARRIVED, ROOM, WORDS };

struct device_step {
    struct rf_device_slices pack[2], unpack[2]; /* plain, cast */
    cudaEvent_t begin[STAGES], end[STAGES];
};

struct shmem_state {
    const struct rf_method_env *env;
    struct rf_nvshmem_setup setup;
    struct rf_steps steps;
    struct rf_nvshmem_table table;
    struct device_step *device_steps;
    unsigned char *send, *recv; /* symmetric, SLOTS slots each */
    uint64_t *words;            /* symmetric: [word][slot][rank] */
    cudaStream_t stream[STREAMS];
    uint64_t iteration; /* from 1 */
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
    const uint64_t send = SLOTS * state->table.send_slot_bytes;
    const uint64_t recv = SLOTS * state->table.recv_slot_bytes;
    const uint32_t ranks = state->env->plan->world->n_ranks;
    state->send = state->setup.api->nvshmem_malloc((size_t)(send + 256));
    state->recv = state->setup.api->nvshmem_malloc((size_t)(recv + 256));
    state->words = state->setup.api->nvshmem_calloc(
        (size_t)WORDS * SLOTS * ranks, sizeof(*state->words));
    if (state->send == NULL || state->recv == NULL || state->words == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM,
                          "the symmetric heap cannot hold %llu bytes; raise "
                          "NVSHMEM_SYMMETRIC_SIZE or lower bucket_bytes",
                          (unsigned long long)(send + recv));
    }
    return RF_OK;
}

static enum rf_status upload_step(struct shmem_state *state, size_t index,
                                  struct rf_err *err)
{
    const struct rf_step *step = &state->steps.at[index];
    struct device_step *out = &state->device_steps[index];
    enum rf_status status =
        rf_device_copies_upload(&step->pack, state->steps.cast, out->pack, err);
    if (status == RF_OK) {
        status = rf_device_copies_upload(&step->unpack, state->steps.cast,
                                         out->unpack, err);
    }
    if (status != RF_OK) {
        return status;
    }
    for (int s = 0; s < STAGES; s++) {
        RF_CUDA_TRY(err, out, cudaEventCreate(&out->begin[s]));
        RF_CUDA_TRY(err, out, cudaEventCreate(&out->end[s]));
    }
out:
    return status;
}

static enum rf_status upload(struct shmem_state *state, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    state->device_steps =
        rf_xcalloc(state->steps.n, sizeof(*state->device_steps));
    for (int s = 0; s < STREAMS; s++) {
        RF_CUDA_TRY(err, out,
                    cudaStreamCreateWithFlags(&state->stream[s],
                                              cudaStreamNonBlocking));
    }
    for (size_t s = 0; s < state->steps.n && status == RF_OK; s++) {
        status = upload_step(state, s, err);
    }
out:
    return status;
}

static void nvshmem_abort(void *opaque);
static void nvshmem_close(void *opaque);

/* The library first: only then it is known whether arenas are registered, so
 * that runs may leave them without packing. */
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
    if (status == RF_OK) {
        status = upload(state, err);
    }
    if (status == RF_OK) {
        status = rf_nvshmem_table_open(env, &state->steps, &state->table, err);
    }
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
        if (state->setup.started) { /* the others may not be with us */
            nvshmem_abort(state);
        }
        nvshmem_close(state);
        return status;
    }
    if (env->registration != NULL) {
        snprintf(env->registration, RF_REGISTRATION_SIZE, "%s",
                 state->setup.text);
    }
    *out = state;
    return RF_OK;
}

/* --- A step --------------------------------------------------------------- */

/* This rank's copy of the word between it and `rank`, or the other way round on
 * a peer. */
static uint64_t *word_of(const struct shmem_state *state, enum word word,
                         uint64_t index, uint32_t rank)
{
    const uint32_t ranks = state->env->plan->world->n_ranks;
    return &state->words[((uint64_t)word * SLOTS + index % SLOTS) * ranks +
                         rank];
}

/* What a word has from the receiver's step `index` of this iteration on. */
static uint64_t value_of(const struct shmem_state *state, uint64_t index)
{
    return state->iteration * (state->table.most_steps + 1) + index;
}

static void fill_bases(const struct shmem_state *state, size_t index,
                       struct rf_bases *bases)
{
    const uint64_t slot = index % SLOTS;
    memset(bases, 0, sizeof(*bases));
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bases->at[m] = state->env->arena[m].base;
    }
    bases->at[RF_BASE_SEND] = state->send + slot * state->table.send_slot_bytes;
    bases->at[RF_BASE_RECV] = state->recv + slot * state->table.recv_slot_bytes;
}

/* `stream` goes on when step `index` has ended `stage`. */
static enum rf_status follow(struct shmem_state *state, enum stage stream,
                             size_t index, enum stage stage, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out,
                cudaStreamWaitEvent(state->stream[stream],
                                    state->device_steps[index].end[stage], 0));
out:
    return status;
}

static enum rf_status mark(struct shmem_state *state, enum stage stream,
                           cudaEvent_t event, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    RF_CUDA_TRY(err, out, cudaEventRecord(event, state->stream[stream]));
out:
    return status;
}

/* A slot is packed again only after its last puts. Else a step waits for no
 * more than the steps whose bytes it reads or overwrites. */
static enum rf_status wait_for_earlier(struct shmem_state *state, size_t index,
                                       struct rf_err *err)
{
    const size_t after = state->steps.at[index].after;
    enum rf_status status = RF_OK;
    if (index >= SLOTS) {
        status = follow(state, PACK, index - SLOTS, PUT, err);
    }
    if (status == RF_OK && after > 0) {
        status = follow(state, PACK, after - 1, PUT, err);
    }
    if (status == RF_OK && after > 0) {
        status = follow(state, PACK, after - 1, UNPACK, err);
    }
    return status;
}

static enum rf_status pack(struct shmem_state *state, size_t index,
                           const struct rf_bases *bases, struct rf_err *err)
{
    struct device_step *step = &state->device_steps[index];
    enum rf_status status = wait_for_earlier(state, index, err);
    if (status == RF_OK) {
        status = mark(state, PACK, step->begin[PACK], err);
    }
    if (status == RF_OK) {
        status = rf_device_copies(step->pack, bases, state->stream[PACK], err);
    }
    return status == RF_OK ? mark(state, PACK, step->end[PACK], err) : status;
}

static bool first_of_peer(const struct rf_message *messages, size_t index)
{
    return index == 0 || messages[index - 1].peer != messages[index].peer;
}

static bool last_of_peer(const struct rf_message *messages, size_t n,
                         size_t index)
{
    return index + 1 == n || messages[index + 1].peer != messages[index].peer;
}

/* One put: what it moves, and where to. */
struct put {
    const struct rf_message *message;
    const struct rf_nvshmem_place *place;
    const unsigned char *from;
    unsigned char *to;
};

static struct put put_of(const struct shmem_state *state,
                         const struct rf_nvshmem_turn *turn, size_t index,
                         const struct rf_bases *bases)
{
    const struct rf_message *message =
        &state->steps.at[turn->local].sends[index];
    const struct rf_nvshmem_place *place = &turn->places[index];
    return (struct put){
        .message = message,
        .place = place,
        .from =
            (const unsigned char *)bases->at[message->base] + message->offset,
        .to = state->recv +
              place->index % SLOTS * state->table.recv_slot_bytes +
              place->offset};
}

static void put_without_signal(struct shmem_state *state, const struct put *put)
{
    state->setup.api->nvshmemx_putmem_nbi_on_stream(
        put->to, put->from, (size_t)put->message->bytes,
        (int)put->message->peer, state->stream[PUT]);
}

static void put_with_signal(struct shmem_state *state, const struct put *put)
{
    const uint32_t index = put->place->index;
    state->setup.api->nvshmemx_putmem_signal_on_stream(
        put->to, put->from, (size_t)put->message->bytes,
        word_of(state, ARRIVED, index, state->env->rank),
        value_of(state, index), RF_NVSHMEM_SIGNAL_SET, (int)put->message->peer,
        state->stream[PUT]);
}

/* The first message to a peer waits until its slot is free. */
static void await_room(struct shmem_state *state, const struct put *put)
{
    const uint32_t index = put->place->index;
    if (index >= SLOTS) {
        state->setup.api->nvshmemx_signal_wait_until_on_stream(
            word_of(state, ROOM, index, put->message->peer), RF_NVSHMEM_CMP_GE,
            value_of(state, index), state->stream[PUT]);
    }
}

/* A signal comes after the bytes of its own put, but says nothing of others: so
 * those to each peer but the last go first, and are complete before any that
 * has a signal. */
static void put_by_signals(struct shmem_state *state,
                           const struct rf_nvshmem_turn *turn,
                           const struct rf_bases *bases)
{
    const struct rf_step *step = &state->steps.at[turn->local];
    bool any = false;
    for (int signals = 0; signals < 2; signals++) {
        for (size_t m = 0; m < step->n_sends; m++) {
            const struct put put = put_of(state, turn, m, bases);
            if (last_of_peer(step->sends, step->n_sends, m) != (signals == 1)) {
                continue;
            }
            if (first_of_peer(step->sends, m)) {
                await_room(state, &put);
            }
            (signals == 1 ? put_with_signal : put_without_signal)(state, &put);
            any = true;
        }
        if (signals == 0 && any) {
            state->setup.api->nvshmemx_quiet_on_stream(state->stream[PUT]);
        }
    }
}

static void barrier(struct shmem_state *state)
{
    state->setup.api->nvshmemx_quiet_on_stream(state->stream[PUT]);
    state->setup.api->nvshmemx_barrier_all_on_stream(state->stream[PUT]);
}

static enum rf_status put_all(struct shmem_state *state,
                              const struct rf_nvshmem_turn *turn,
                              const struct rf_bases *bases, struct rf_err *err)
{
    const size_t index = turn->local;
    const bool barriers = state->table.share_device;
    enum rf_status status = follow(state, PUT, index, PACK, err);
    if (status == RF_OK && barriers && index > 0) {
        status = follow(state, PUT, index - 1, UNPACK, err);
    }
    if (status == RF_OK) {
        status = mark(state, PUT, state->device_steps[index].begin[PUT], err);
    }
    if (status == RF_OK && barriers) {
        for (size_t m = 0; m < state->steps.at[index].n_sends; m++) {
            const struct put put = put_of(state, turn, m, bases);
            put_without_signal(state, &put);
        }
        barrier(state);
    } else if (status == RF_OK) {
        put_by_signals(state, turn, bases);
    }
    return status == RF_OK
               ? mark(state, PUT, state->device_steps[index].end[PUT], err)
               : status;
}

/* Unpacking waits for everything of its step, also for our own packing, which
 * may read what it overwrites. */
static enum rf_status await_arrivals(struct shmem_state *state, size_t index,
                                     struct rf_err *err)
{
    const struct rf_step *step = &state->steps.at[index];
    struct device_step *now = &state->device_steps[index];
    const bool barriers = state->table.share_device;
    enum rf_status status =
        follow(state, UNPACK, index, barriers ? PUT : PACK, err);
    if (status == RF_OK) {
        status = mark(state, UNPACK, now->begin[ARRIVE], err);
    }
    for (size_t m = 0; m < step->n_recvs && status == RF_OK && !barriers; m++) {
        if (!last_of_peer(step->recvs, step->n_recvs, m)) {
            continue;
        }
        state->setup.api->nvshmemx_signal_wait_until_on_stream(
            word_of(state, ARRIVED, index, step->recvs[m].peer),
            RF_NVSHMEM_CMP_GE, value_of(state, index), state->stream[UNPACK]);
    }
    return status == RF_OK ? mark(state, UNPACK, now->end[ARRIVE], err)
                           : status;
}

/* Tells those that put into this step's slot next that it is free. */
static void make_room(struct shmem_state *state, size_t index)
{
    const size_t next = index + SLOTS;
    const struct rf_step *step;
    if (next >= state->steps.n || state->table.share_device) {
        return;
    }
    step = &state->steps.at[next];
    for (size_t m = 0; m < step->n_recvs; m++) {
        if (last_of_peer(step->recvs, step->n_recvs, m)) {
            state->setup.api->nvshmemx_signal_op_on_stream(
                word_of(state, ROOM, next, state->env->rank),
                value_of(state, next), RF_NVSHMEM_SIGNAL_SET,
                (int)step->recvs[m].peer, state->stream[UNPACK]);
        }
    }
}

static enum rf_status unpack(struct shmem_state *state, size_t index,
                             const struct rf_bases *bases, struct rf_err *err)
{
    struct device_step *step = &state->device_steps[index];
    enum rf_status status = await_arrivals(state, index, err);
    if (status == RF_OK) {
        status = mark(state, UNPACK, step->begin[UNPACK], err);
    }
    if (status == RF_OK) {
        status =
            rf_device_copies(step->unpack, bases, state->stream[UNPACK], err);
    }
    if (status == RF_OK) {
        status = mark(state, UNPACK, step->end[UNPACK], err);
    }
    if (status == RF_OK) {
        make_room(state, index);
    }
    return status;
}

static enum rf_status enqueue_turn(struct shmem_state *state,
                                   const struct rf_nvshmem_turn *turn,
                                   struct rf_err *err)
{
    struct rf_bases bases;
    enum rf_status status;
    if (turn->local == SIZE_MAX) {
        if (state->table.share_device) {
            barrier(state);
        }
        return RF_OK;
    }
    fill_bases(state, turn->local, &bases);
    status = pack(state, turn->local, &bases, err);
    if (status == RF_OK) {
        status = put_all(state, turn, &bases, err);
    }
    return status == RF_OK ? unpack(state, turn->local, &bases, err) : status;
}

/* --- An iteration --------------------------------------------------------- */

static enum rf_status nvshmem_start(void *opaque, uint64_t iteration,
                                    struct rf_err *err)
{
    struct shmem_state *state = opaque;
    (void)err;
    state->iteration = iteration + 1;
    state->next_turn = 0;
    return RF_OK;
}

/* Whether the device is near enough to step `index` of ours to take it. */
static enum rf_status can_take(const struct shmem_state *state, size_t index,
                               bool *out, struct rf_err *err)
{
    cudaError_t code = cudaSuccess;
    if (index != SIZE_MAX && index >= AHEAD) {
        code = cudaEventQuery(state->device_steps[index - AHEAD].end[UNPACK]);
    }
    *out = code == cudaSuccess;
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return RF_OK;
    }
    return *out ? RF_OK : rf_cuda_error(err, "cudaEventQuery", code);
}

/* After all steps: also what others are told has left. */
static enum rf_status is_idle(const struct shmem_state *state, bool *idle,
                              struct rf_err *err)
{
    *idle = true;
    for (int s = 0; s < STREAMS && *idle; s++) {
        const cudaError_t code = cudaStreamQuery(state->stream[s]);
        *idle = code == cudaSuccess;
        if (code == cudaErrorNotReady) {
            (void)cudaGetLastError();
        } else if (code != cudaSuccess) {
            return rf_cuda_error(err, "cudaStreamQuery", code);
        }
    }
    return RF_OK;
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

static int64_t spent_in(const struct shmem_state *state, enum stage stage)
{
    int64_t sum = 0;
    for (size_t s = 0; s < state->steps.n; s++) {
        const struct device_step *step = &state->device_steps[s];
        sum += rf_events_ns(step->begin[stage], step->end[stage]);
    }
    return sum;
}

/* From the first step's packing to the last step's end, whichever stage's. */
static int64_t spent_in_all(const struct shmem_state *state)
{
    const struct device_step *first = state->device_steps, *last;
    if (state->steps.n == 0) {
        return 0;
    }
    last = &first[state->steps.n - 1];
    return RF_MAX(rf_events_ns(first->begin[PACK], last->end[PUT]),
                  rf_events_ns(first->begin[PACK], last->end[UNPACK]));
}

/* Puts and waiting for those of others go on at the same time. */
static void nvshmem_timing(void *opaque, struct rf_phase_times *out)
{
    const struct shmem_state *state = opaque;
    memset(out, 0, sizeof(*out));
    out->device_ns = spent_in_all(state);
    out->pack_ns = spent_in(state, PACK);
    out->wire_ns = RF_MAX(spent_in(state, PUT), spent_in(state, ARRIVE));
    out->unpack_ns = spent_in(state, UNPACK);
    out->sent_bytes = state->steps.sent_bytes;
    out->received_bytes = state->steps.received_bytes;
}

static const void *nvshmem_base_of(const struct rf_piece *piece,
                                   uint64_t stride[RF_BOX_DIMS], void *opaque)
{
    (void)piece;
    (void)stride;
    (void)opaque;
    return NULL;
}

static bool nvshmem_leaves(size_t op, const void *opaque)
{
    (void)op;
    (void)opaque;
    return false;
}

/* NVSHMEM has no abort, and its waits have no end: everything on the device
 * stays as it is until the process ends, which is now. */
static void nvshmem_abort(void *opaque)
{
    (void)opaque;
    rf_device_abandon();
}

static void free_events(struct device_step *step)
{
    for (int s = 0; s < STAGES; s++) {
        if (step->begin[s] != NULL) {
            cudaEventDestroy(step->begin[s]);
        }
        if (step->end[s] != NULL) {
            cudaEventDestroy(step->end[s]);
        }
    }
}

/* Collective where NVSHMEM is concerned. */
static void free_device(struct shmem_state *state)
{
    for (size_t s = 0; state->device_steps != NULL && s < state->steps.n; s++) {
        free_events(&state->device_steps[s]);
    }
    for (int s = 0; s < STREAMS; s++) {
        if (state->stream[s] != NULL) {
            cudaStreamDestroy(state->stream[s]);
        }
    }
    if (state->setup.started) {
        state->setup.api->nvshmem_free(state->words);
        state->setup.api->nvshmem_free(state->send);
        state->setup.api->nvshmem_free(state->recv);
        rf_nvshmem_setup_close(&state->setup);
    }
}

static void nvshmem_close(void *opaque)
{
    struct shmem_state *state = opaque;
    if (state == NULL) {
        return;
    }
    for (size_t s = 0; state->device_steps != NULL && s < state->steps.n; s++) {
        for (int c = 0; c < 2; c++) {
            rf_device_slices_free(&state->device_steps[s].pack[c]);
            rf_device_slices_free(&state->device_steps[s].unpack[c]);
        }
    }
    if (!rf_device_abandoned()) {
        free_device(state);
    }
    rf_nvshmem_table_free(&state->table);
    free(state->device_steps);
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
    .ways = rf_method_one_way,
    .base_of = nvshmem_base_of,
    .leaves = nvshmem_leaves,
    .abort = nvshmem_abort,
    .close = nvshmem_close,
};
