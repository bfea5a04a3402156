/*
 * Method nvshmem: one-sided puts from the host's stream calls into symmetric
 * memory, a stream-ordered wire of the lockstep engine
 * (cuda/lockstep/lockstep.h).
 *
 * open    starts the library and registers the arenas with it
 *         (cuda/nvshmem/nvshmem_setup.h); exchange() distributes every rank's
 *         table of message places (cuda/nvshmem/nvshmem_table.h).
 * a step  is puts on their own stream; the unpacking stream waits for arrivals.
 *
 * Two words of symmetric memory per slot and pair order the ranks. The put of a
 * step's last message to a rank sets `arrived`, after its bytes and once those
 * of earlier messages are complete: the receiver unpacks when all messages of
 * its step have arrived. The receiver sets `room` when a slot is unpacked; the
 * next senders into that slot wait for it. Values only grow, over all
 * iterations. A step's slot follows from the receiver's own count of steps,
 * which is in the table. All ranks run their steps in one order, so the first
 * step that any rank waits for can always proceed.
 *
 * If ranks share a device, NVSHMEM cannot wait for signals (it supports that
 * with MPS only): instead a barrier of all ranks ends each step, including
 * ranks without a part in it. A barrier comes after all unpacking of earlier
 * steps, so a slot is free two steps later. Inside its call the library meets
 * the ranks of a device in a loop on the host that has no end, so a thread of
 * its own makes the call. Until that returns nothing else calls the library
 * (NVSHMEM_THREAD_SERIALIZED).
 *
 * NVSHMEM ends the process on its own errors, so the user sees a rank that
 * exited, with its last lines of standard error. A wait for a lost rank has no
 * way out: an abort leaves the device alone and the process ends.
 */
#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/lockstep.h"
#include "cuda/lockstep/steps_build.h"
#include "cuda/nvshmem/nvshmem_setup.h"
#include "cuda/nvshmem/nvshmem_table.h"

#define SLOTS RF_BUFFER_SLOTS

/* Puts have their own stream, as do packing and unpacking; the unpacking stream
 * first waits for arrivals. */
enum { PUT = RF_DEVICE_PHASE_OTHERS, ARRIVE };

enum word { ARRIVED, ROOM, WORDS };

/* A barrier of all ranks, on the stream of puts. */
struct barrier {
    const struct rf_nvshmem *api;
    cudaStream_t stream;
    atomic_bool inside; /* the library, by a thread */
};

struct shmem_state {
    struct rf_lockstep lockstep; /* its buffers are symmetric */
    struct rf_nvshmem_setup setup;
    struct rf_nvshmem_table table;
    uint64_t *words;    /* symmetric: [word][slot][rank] */
    uint64_t iteration; /* from 1 */
    size_t next_turn;
    struct barrier *barrier; /* if ranks share a device */
    bool put;                /* the next turn's messages are */
};

static enum rf_status nvshmem_probe(struct rf_err *err)
{
    RF_TRY(rf_device_ready(err));
    return rf_nvshmem_load(err) != NULL ? RF_OK : RF_ERR_UNSUPPORTED;
}

/* --- opening -------------------------------------------------------------- */

static uint32_t n_ranks(const struct shmem_state *state)
{
    return state->lockstep.env->plan->world->n_ranks;
}

static enum rf_status allocate(struct shmem_state *state, struct rf_err *err)
{
    const struct rf_nvshmem *api = state->setup.api;
    struct rf_phases *phases = &state->lockstep.phases;
    const uint64_t send = SLOTS * state->table.send_slot_bytes;
    const uint64_t recv = SLOTS * state->table.recv_slot_bytes;
    phases->send_slot_bytes = state->table.send_slot_bytes;
    phases->recv_slot_bytes = state->table.recv_slot_bytes;
    phases->send = api->nvshmem_malloc((size_t)(send + 256));
    phases->recv = api->nvshmem_malloc((size_t)(recv + 256));
    if (phases->send == NULL || phases->recv == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM,
                          "the symmetric heap cannot hold %llu bytes; raise "
                          "NVSHMEM_SYMMETRIC_SIZE (to more than eight "
                          "buckets) or lower bucket_bytes",
                          (unsigned long long)(send + recv));
    }
    state->words = api->nvshmem_calloc((size_t)WORDS * SLOTS * n_ranks(state),
                                       sizeof(*state->words));
    return RF_OK;
}

/* Starts the library first: only then is it known whether arenas are
 * registered, so that runs may leave them without packing. */
static enum rf_status prepare(struct shmem_state *state, struct rf_err *err)
{
    struct rf_lockstep *of = &state->lockstep;
    const struct rf_method_env *env = of->env;
    const struct shmem_state *like = env->like;
    cudaStream_t *stream = of->phases.stream;
    RF_TRY(rf_nvshmem_setup_open(&state->setup, env,
                                 like != NULL ? &like->setup : NULL, err));
    RF_TRY(rf_steps_open(env, state->setup.registered ? of->direct_bytes : 0,
                         true, &of->steps, err));
    RF_TRY(rf_device_stream(RF_STREAM_WIRE, &stream[PUT], err));
    RF_TRY(rf_phases_open(&of->phases, env, &of->steps, 0, err));
    stream[ARRIVE] = stream[RF_DEVICE_PHASE_UNPACK];
    RF_TRY(rf_nvshmem_table_open(env, &of->steps, &state->table, err));
    if (state->table.share_device) {
        state->barrier = rf_xcalloc(1, sizeof(*state->barrier));
        state->barrier->api = state->setup.api;
        state->barrier->stream = stream[PUT];
    }
    return allocate(state, err);
}

static enum rf_status shmem_open(struct rf_lockstep *of, struct rf_err *err)
{
    struct shmem_state *state = (void *)of;
    enum rf_status status = prepare(state, err);
    if (status != RF_OK && state->setup.started) {
        rf_device_abandon(); /* others may not join the closing */
    }
    return status;
}

/* --- puts and signals ----------------------------------------------------- */

/* This rank's copy of the word for the pair with `rank`. The address is
 * symmetric: for a peer's copy, pass this rank instead. */
static uint64_t *word_of(const struct shmem_state *state, enum word word,
                         uint64_t index, uint32_t rank)
{
    return &state->words[((uint64_t)word * SLOTS + index % SLOTS) *
                             n_ranks(state) +
                         rank];
}

/* The value of a word from the receiver's step `index` of this iteration on. */
static uint64_t value_of(const struct shmem_state *state, uint64_t index)
{
    return state->iteration * (state->table.most_steps + 1) + index;
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

/* One put: its source and destination. */
struct put {
    int peer;
    size_t bytes;
    const void *from;
    void *to;
    uint32_t index; /* the receiver's step */
};

static struct put put_of(const struct shmem_state *state,
                         const struct rf_nvshmem_turn *turn, size_t index)
{
    const struct rf_lockstep *of = &state->lockstep;
    const struct rf_phases *phases = &of->phases;
    const struct rf_message *send = &of->steps.at[turn->local].sends[index];
    const struct rf_nvshmem_place *place = &turn->places[index];
    return (struct put){.peer = (int)send->peer,
                        .bytes = (size_t)send->bytes,
                        .from = rf_phases_place(phases, turn->local, send),
                        .to = phases->recv +
                              place->index % SLOTS * phases->recv_slot_bytes +
                              place->offset,
                        .index = place->index};
}

static void put_without_signal(const struct shmem_state *state,
                               const struct put *put)
{
    state->setup.api->nvshmemx_putmem_nbi_on_stream(
        put->to, put->from, put->bytes, put->peer,
        state->lockstep.phases.stream[PUT]);
}

static void put_with_signal(const struct shmem_state *state,
                            const struct put *put)
{
    const struct rf_lockstep *of = &state->lockstep;
    state->setup.api->nvshmemx_putmem_signal_on_stream(
        put->to, put->from, put->bytes,
        word_of(state, ARRIVED, put->index, of->env->rank),
        value_of(state, put->index), RF_NVSHMEM_SIGNAL_SET, put->peer,
        of->phases.stream[PUT]);
}

/* The first message to a peer waits until its slot is free. */
static void await_room(const struct shmem_state *state, const struct put *put)
{
    if (put->index >= SLOTS) {
        state->setup.api->nvshmemx_signal_wait_until_on_stream(
            word_of(state, ROOM, put->index, (uint32_t)put->peer),
            RF_NVSHMEM_CMP_GE, value_of(state, put->index),
            state->lockstep.phases.stream[PUT]);
    }
}

/* A signal follows the bytes of its own put only, so all messages but the last
 * to each peer go first, and complete before any put with a signal. */
static void put_by_signals(const struct shmem_state *state,
                           const struct rf_nvshmem_turn *turn)
{
    const struct rf_step *step = &state->lockstep.steps.at[turn->local];
    bool any = false;
    for (int signals = 0; signals < 2; signals++) {
        for (size_t m = 0; m < step->n_sends; m++) {
            const struct put put = put_of(state, turn, m);
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
            state->setup.api->nvshmemx_quiet_on_stream(
                state->lockstep.phases.stream[PUT]);
        }
    }
}

static void *cross(void *opaque)
{
    struct barrier *barrier = opaque;
    (void)cudaSetDevice(rf_device_index());
    barrier->api->nvshmemx_quiet_on_stream(barrier->stream);
    barrier->api->nvshmemx_barrier_all_on_stream(barrier->stream);
    atomic_store(&barrier->inside, false);
    return NULL;
}

static enum rf_status enter(struct barrier *barrier, struct rf_err *err)
{
    pthread_t thread;
    int failed;
    atomic_store(&barrier->inside, true);
    failed = pthread_create(&thread, NULL, cross, barrier);
    if (failed != 0) {
        atomic_store(&barrier->inside, false);
        return rf_err_errno(err, RF_ERR_NOMEM, failed,
                            "cannot start a thread for a barrier");
    }
    pthread_detach(thread);
    return RF_OK;
}

/* --- a step --------------------------------------------------------------- */

static enum rf_status put_unsignalled(struct shmem_state *state, size_t index,
                                      struct rf_err *err)
{
    const struct rf_phases *phases = &state->lockstep.phases;
    const struct rf_nvshmem_turn *turn = &state->table.at[state->next_turn];
    const struct rf_step *step = &state->lockstep.steps.at[index];
    RF_TRY(rf_phases_follow(phases, PUT, index, RF_DEVICE_PHASE_PACK, err));
    if (index > 0) {
        RF_TRY(rf_phases_follow(phases, PUT, index - 1, RF_DEVICE_PHASE_UNPACK,
                                err));
    }
    RF_TRY(rf_phases_begin(phases, PUT, index, err));
    for (size_t m = 0; m < step->n_sends; m++) {
        const struct put put = put_of(state, turn, m);
        put_without_signal(state, &put);
    }
    return RF_OK;
}

/* By barriers: passes the turns of others up to that of our step `index`, or,
 * after all our steps, those that are left. *out: the last barrier is on the
 * stream. */
static enum rf_status take_turns(struct shmem_state *state, size_t index,
                                 bool *out, struct rf_err *err)
{
    const struct rf_nvshmem_table *table = &state->table;
    *out = false;
    if (atomic_load(&state->barrier->inside)) {
        rf_sleep_until_ns(rf_now_ns() + 20 * RF_NS_PER_US); /* let it run */
        return RF_OK;
    }
    if (state->put) {
        state->put = false;
        state->next_turn++;
        *out = true;
        return rf_phases_end(&state->lockstep.phases, PUT, index, err);
    }
    if (state->next_turn == table->n) {
        *out = true;
        return RF_OK;
    }
    if (table->at[state->next_turn].local == index) {
        RF_TRY(put_unsignalled(state, index, err));
        state->put = true;
    } else {
        state->next_turn++;
    }
    return enter(state->barrier, err);
}

/* By barriers, shmem_arrived() puts. */
static enum rf_status shmem_post(struct rf_lockstep *of, size_t index,
                                 struct rf_err *err)
{
    struct shmem_state *state = (void *)of;
    const struct rf_phases *phases = &of->phases;
    const struct rf_nvshmem_turn *turns = state->table.at;
    if (state->table.share_device) {
        return RF_OK;
    }
    while (turns[state->next_turn].local != index) {
        state->next_turn++;
    }
    RF_TRY(rf_phases_follow(phases, PUT, index, RF_DEVICE_PHASE_PACK, err));
    RF_TRY(rf_phases_begin(phases, PUT, index, err));
    put_by_signals(state, &turns[state->next_turn]);
    return rf_phases_end(phases, PUT, index, err);
}

/* Unpacking waits for all arrivals of its step, and for our own packing, which
 * may read bytes that it overwrites. */
static enum rf_status shmem_arrived(struct rf_lockstep *of, size_t index,
                                    bool *out, struct rf_err *err)
{
    struct shmem_state *state = (void *)of;
    const struct rf_phases *phases = &of->phases;
    const struct rf_step *step = &of->steps.at[index];
    const bool barriers = state->table.share_device;
    *out = true;
    RF_TRY(barriers ? take_turns(state, index, out, err) : RF_OK);
    if (!*out) {
        return RF_OK;
    }
    RF_TRY(rf_phases_follow(phases, ARRIVE, index,
                            barriers ? PUT : RF_DEVICE_PHASE_PACK, err));
    RF_TRY(rf_phases_begin(phases, ARRIVE, index, err));
    for (size_t m = 0; m < step->n_recvs && !barriers; m++) {
        if (last_of_peer(step->recvs, step->n_recvs, m)) {
            state->setup.api->nvshmemx_signal_wait_until_on_stream(
                word_of(state, ARRIVED, index, step->recvs[m].peer),
                RF_NVSHMEM_CMP_GE, value_of(state, index),
                phases->stream[ARRIVE]);
        }
    }
    return rf_phases_end(phases, ARRIVE, index, err);
}

/* Tells the next senders into this step's slot that it is free. */
static void make_room(struct rf_lockstep *of, size_t index)
{
    const struct shmem_state *state = (void *)of;
    const size_t next = index + SLOTS;
    const struct rf_step *step;
    if (next >= of->steps.n || state->table.share_device) {
        return;
    }
    step = &of->steps.at[next];
    for (size_t m = 0; m < step->n_recvs; m++) {
        if (last_of_peer(step->recvs, step->n_recvs, m)) {
            state->setup.api->nvshmemx_signal_op_on_stream(
                word_of(state, ROOM, next, of->env->rank),
                value_of(state, next), RF_NVSHMEM_SIGNAL_SET,
                (int)step->recvs[m].peer,
                of->phases.stream[RF_DEVICE_PHASE_UNPACK]);
        }
    }
}

/* --- an iteration --------------------------------------------------------- */

static void shmem_start(struct rf_lockstep *of, uint64_t iteration)
{
    struct shmem_state *state = (void *)of;
    state->iteration = iteration + 1;
    state->next_turn = 0;
    state->put = false;
}

/* Whether all streams are idle after all steps, and all turns are over; then
 * our signals to others have left, too. */
static enum rf_status shmem_idle(struct rf_lockstep *of, bool *out,
                                 struct rf_err *err)
{
    struct shmem_state *state = (void *)of;
    *out = true;
    RF_TRY(state->table.share_device ? take_turns(state, of->steps.n, out, err)
                                     : RF_OK);
    for (int p = RF_DEVICE_PHASE_PACK; p <= PUT && *out; p++) {
        RF_TRY(rf_stream_is_idle(of->phases.stream[p], out, err));
    }
    return RF_OK;
}

/* Puts run beside the wait for arrivals. */
static int64_t shmem_wire_ns(const struct rf_lockstep *of)
{
    return RF_MAX(rf_phases_sum_ns(&of->phases, PUT),
                  rf_phases_sum_ns(&of->phases, ARRIVE));
}

/* NVSHMEM has no abort, and its waits have no end: everything on the device
 * stays as it is until the process ends, which is now; so does a thread inside
 * a barrier. */
static void shmem_abort(struct rf_lockstep *of)
{
    (void)of;
    rf_device_abandon();
}

/* Collective if NVSHMEM is started. */
static void shmem_close(struct rf_lockstep *of)
{
    struct shmem_state *state = (void *)of;
    const struct rf_nvshmem *api = state->setup.api;
    rf_nvshmem_table_free(&state->table);
    if (rf_device_abandoned()) {
        return;
    }
    free(state->barrier);
    rf_stream_free(of->phases.stream[PUT]);
    if (state->setup.started) {
        api->nvshmem_free(state->words);
        api->nvshmem_free(of->phases.send);
        api->nvshmem_free(of->phases.recv);
        rf_nvshmem_setup_close(&state->setup);
    }
}

static enum rf_status open_method(const struct rf_method_env *env, void **out,
                                  struct rf_err *err)
{
    static const struct rf_lockstep_ops ops = {.state_bytes =
                                                   sizeof(struct shmem_state),
                                               .streams = 1,
                                               .open = shmem_open,
                                               .start = shmem_start,
                                               .post = shmem_post,
                                               .arrived = shmem_arrived,
                                               .unpacked = make_room,
                                               .idle = shmem_idle,
                                               .wire_ns = shmem_wire_ns,
                                               .abort = shmem_abort,
                                               .close = shmem_close};
    return rf_lockstep_open(&ops, env, out, err);
}

const struct rf_method_ops rf_cuda_method_nvshmem = {
    .info = &rf_method_infos[RF_METHOD_NVSHMEM],
    .probe = nvshmem_probe,
    .open = open_method,
    RF_LOCKSTEP_HOOKS,
};
