/*
 * Method nvshmem: the lockstep steps of cuda/steps.h with one-sided puts from
 * the host's stream calls into symmetric memory.
 *
 * open    rank 0's unique ID and every rank's table of where it wants its
 *         messages travel by exchange(). All ranks go through the same list of
 *         steps, the union of everybody's, because the barrier that ends a step
 *         is of all. Two slots alternate: a put into slot s of a peer comes two
 *         barriers after what it overwrites, and the peer unpacked before the
 *         first of them.
 * start   enqueues the whole iteration on one stream; progress() only looks.
 *
 * NVSHMEM ends the process on its own errors, so those reach the user as a rank
 * that exited, with its last lines of standard error. It has no way out of a
 * barrier that a lost rank does not reach: an abort leaves the device alone and
 * the process ends.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device.h"
#include "cuda/methods.h"
#include "cuda/nvshmem_api.h"
#include "cuda/steps.h"
#include "cuda/timing.h"

#define SLOTS 2

/* On the wire: a header, then one entry per step, then one per message. */
struct table_head {
    struct rf_nvshmem_id id; /* rank 0's */
    uint64_t send_slot_bytes, recv_slot_bytes;
    uint32_t n_steps, n_entries;
};
struct table_step {
    uint32_t round, wave;
};
struct table_entry {
    uint32_t round, wave, from;
    uint64_t offset; /* in the receiver's slot */
};

struct global_step {
    uint32_t round, wave;
    size_t local;      /* index of ours, SIZE_MAX: we only keep step */
    uint64_t *offsets; /* where each of our sends goes in its peer's slot */
};

struct shmem_state {
    const struct rf_method_env *env;
    const struct rf_nvshmem *api;
    struct rf_steps steps;
    struct global_step *global;
    size_t n_global, global_capacity;
    struct rf_device_slices (*pack)[2], (*unpack)[2];
    unsigned char *send, *recv; /* symmetric */
    uint64_t send_slot, recv_slot;
    cudaStream_t stream;
    cudaEvent_t first, last;
    bool initialised;
};

static enum rf_status nvshmem_probe(struct rf_err *err)
{
    enum rf_status status = rf_device_ready(err);
    if (status == RF_OK && rf_nvshmem_load(err) == NULL) {
        status = RF_ERR_UNSUPPORTED;
    }
    return status;
}

/* The number of a step within its round. */
static uint32_t wave_of(const struct rf_steps *steps, size_t index)
{
    uint32_t wave = 0;
    while (index > 0 && steps->at[index - 1].round == steps->at[index].round) {
        index--;
        wave++;
    }
    return wave;
}

static void *make_table(struct shmem_state *state,
                        const struct rf_nvshmem_id *id, size_t *size)
{
    const struct rf_steps *steps = &state->steps;
    struct table_head head = {.id = *id,
                              .send_slot_bytes = steps->send_slot_bytes,
                              .recv_slot_bytes = steps->recv_slot_bytes,
                              .n_steps = (uint32_t)steps->n};
    struct table_step *rows;
    struct table_entry *entry;
    unsigned char *table;
    for (size_t s = 0; s < steps->n; s++) {
        head.n_entries += (uint32_t)steps->at[s].n_recvs;
    }
    *size = sizeof(head) + head.n_steps * sizeof(*rows) +
            head.n_entries * sizeof(*entry);
    table = rf_xcalloc(1, *size);
    memcpy(table, &head, sizeof(head));
    rows = (void *)(table + sizeof(head));
    entry = (void *)(rows + head.n_steps);
    for (size_t s = 0; s < steps->n; s++) {
        const struct rf_step *step = &steps->at[s];
        const uint32_t wave = wave_of(steps, s);
        rows[s] = (struct table_step){.round = step->round, .wave = wave};
        for (size_t m = 0; m < step->n_recvs; m++) {
            *entry++ = (struct table_entry){.round = step->round,
                                            .wave = wave,
                                            .from = step->recvs[m].peer,
                                            .offset = step->recvs[m].offset};
        }
    }
    return table;
}

static int by_round_wave(const void *a, const void *b)
{
    const struct global_step *x = a, *y = b;
    if (x->round != y->round) {
        return x->round < y->round ? -1 : 1;
    }
    return x->wave < y->wave ? -1 : x->wave > y->wave;
}

/* A peer's table with its lengths checked. */
static const struct table_head *checked(const struct rf_blob *blob)
{
    const struct table_head *head = blob->data;
    return blob->size >= sizeof(*head) &&
                   blob->size ==
                       sizeof(*head) +
                           head->n_steps * sizeof(struct table_step) +
                           head->n_entries * sizeof(struct table_entry)
               ? head
               : NULL;
}

static void unite_steps(struct shmem_state *state, const struct rf_blob *all)
{
    size_t kept = 0;
    for (uint32_t r = 0; r < state->env->plan->world->n_ranks; r++) {
        const struct table_head *head = all[r].data;
        const struct table_step *rows = (const void *)(head + 1);
        for (uint32_t s = 0; s < head->n_steps; s++) {
            RF_PUSH(state->global, state->n_global, state->global_capacity,
                    ((struct global_step){.round = rows[s].round,
                                          .wave = rows[s].wave,
                                          .local = SIZE_MAX}));
        }
        state->send_slot = RF_MAX(state->send_slot, head->send_slot_bytes);
        state->recv_slot = RF_MAX(state->recv_slot, head->recv_slot_bytes);
    }
    if (state->n_global > 1) {
        qsort(state->global, state->n_global, sizeof(*state->global),
              by_round_wave);
    }
    for (size_t g = 0; g < state->n_global; g++) {
        if (kept == 0 ||
            by_round_wave(&state->global[kept - 1], &state->global[g]) != 0) {
            state->global[kept++] = state->global[g];
        }
    }
    state->n_global = kept;
}

/* Where one of our sends goes: the peer's entry for us in that step. */
static bool find_offset(const struct table_head *head, uint32_t rank,
                        const struct global_step *step, uint64_t *out)
{
    const struct table_step *rows = (const void *)(head + 1);
    const struct table_entry *entries = (const void *)(rows + head->n_steps);
    for (uint32_t e = 0; e < head->n_entries; e++) {
        if (entries[e].from == rank && entries[e].round == step->round &&
            entries[e].wave == step->wave) {
            *out = entries[e].offset;
            return true;
        }
    }
    return false;
}

static enum rf_status join_steps(struct shmem_state *state,
                                 const struct rf_blob *all, struct rf_err *err)
{
    size_t local = 0;
    for (size_t g = 0; g < state->n_global && local < state->steps.n; g++) {
        struct global_step *step = &state->global[g];
        const struct rf_step *ours = &state->steps.at[local];
        if (ours->round != step->round ||
            wave_of(&state->steps, local) != step->wave) {
            continue;
        }
        step->local = local++;
        step->offsets = rf_xcalloc(ours->n_sends, sizeof(*step->offsets));
        for (size_t m = 0; m < ours->n_sends; m++) {
            const uint32_t peer = ours->sends[m].peer;
            if (!find_offset(all[peer].data, state->env->rank, step,
                             &step->offsets[m])) {
                return rf_err_set(err, RF_ERR_INTERNAL,
                                  "rank %u does not expect the message of "
                                  "round %u, wave %u",
                                  peer, step->round, step->wave);
            }
        }
    }
    return RF_OK;
}

static enum rf_status initialise(struct shmem_state *state,
                                 struct rf_nvshmem_id *id, struct rf_err *err)
{
    struct rf_nvshmem_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.version = RF_NVSHMEM_VERSION(sizeof(attr));
    attr.args.version = RF_NVSHMEM_VERSION(sizeof(attr.args));
    attr.args.uid.version = RF_NVSHMEM_VERSION(sizeof(attr.args.uid));
    attr.args.uid.id = id;
    attr.args.uid.rank = (int)state->env->rank;
    attr.args.uid.ranks = (int)state->env->plan->world->n_ranks;
    if (state->api->nvshmemx_hostlib_init_attr(RF_NVSHMEM_INIT_WITH_UNIQUEID,
                                               &attr) != 0) {
        return rf_err_set(err, RF_ERR_DEVICE,
                          "NVSHMEM did not start (NVSHMEM_DEBUG=INFO in "
                          "launch.env says more)");
    }
    state->initialised = true;
    state->send =
        state->api->nvshmem_malloc((size_t)(SLOTS * state->send_slot + 256));
    state->recv =
        state->api->nvshmem_malloc((size_t)(SLOTS * state->recv_slot + 256));
    if (state->send == NULL || state->recv == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM,
                          "the symmetric heap cannot hold %llu bytes; raise "
                          "NVSHMEM_SYMMETRIC_SIZE or lower bucket_bytes",
                          (unsigned long long)(SLOTS * (state->send_slot +
                                                        state->recv_slot)));
    }
    return RF_OK;
}

static enum rf_status meet(struct shmem_state *state, struct rf_err *err)
{
    const struct rf_method_env *env = state->env;
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    struct rf_nvshmem_id id;
    enum rf_status status = RF_OK;
    void *table = NULL;
    size_t size;
    memset(&id, 0, sizeof(id));
    id.version = RF_NVSHMEM_VERSION(sizeof(id));
    if (env->rank == 0 && state->api->nvshmemx_get_uniqueid(&id) != 0) {
        status = rf_err_set(err, RF_ERR_DEVICE, "nvshmemx_get_uniqueid failed");
    }
    if (status == RF_OK) {
        table = make_table(state, &id, &size);
        status = env->exchange(env->exchange_data, table, size, all, err);
    }
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        if (checked(&all[r]) == NULL) {
            status = rf_err_set(err, RF_ERR_PROTOCOL, "rank %u: bad table", r);
        }
    }
    if (status == RF_OK) {
        unite_steps(state, all);
        status = join_steps(state, all, err);
    }
    if (status == RF_OK) {
        id = ((const struct table_head *)all[0].data)->id;
        status = initialise(state, &id, err);
    }
    rf_blobs_free(all, n);
    free(all);
    free(table);
    return status;
}

static enum rf_status upload(struct shmem_state *state, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    state->pack = rf_xcalloc(state->steps.n, sizeof(*state->pack));
    state->unpack = rf_xcalloc(state->steps.n, sizeof(*state->unpack));
    for (size_t s = 0; s < state->steps.n; s++) {
        const struct rf_step *step = &state->steps.at[s];
        status = rf_device_copies_upload(&step->pack, state->steps.cast,
                                         state->pack[s], err);
        if (status == RF_OK) {
            status = rf_device_copies_upload(&step->unpack, state->steps.cast,
                                             state->unpack[s], err);
        }
        if (status != RF_OK) {
            return status;
        }
    }
    RF_CUDA_TRY(
        err, out,
        cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking));
    RF_CUDA_TRY(err, out, cudaEventCreate(&state->first));
    RF_CUDA_TRY(err, out, cudaEventCreate(&state->last));
out:
    return status;
}

static void nvshmem_close(void *opaque);

static enum rf_status nvshmem_open(const struct rf_method_env *env, void **out,
                                   struct rf_err *err)
{
    struct shmem_state *state = rf_xcalloc(1, sizeof(*state));
    enum rf_status status;
    state->env = env;
    state->api = rf_nvshmem_load(err);
    status = state->api == NULL ? RF_ERR_UNSUPPORTED
                                : rf_steps_open(env, &state->steps, err);
    if (status == RF_OK) {
        status = upload(state, err);
    }
    if (status == RF_OK) {
        status = meet(state, err);
    }
    if (status != RF_OK) {
        nvshmem_close(state);
        return status;
    }
    *out = state;
    return RF_OK;
}

static enum rf_status enqueue_step(struct shmem_state *state, size_t index,
                                   struct rf_err *err)
{
    const struct global_step *global = &state->global[index];
    const uint64_t slot = index % SLOTS;
    const struct rf_step *step;
    struct rf_bases bases;
    enum rf_status status;
    if (global->local == SIZE_MAX) {
        state->api->nvshmemx_barrier_all_on_stream(state->stream);
        return RF_OK;
    }
    step = &state->steps.at[global->local];
    memset(&bases, 0, sizeof(bases));
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bases.at[m] = state->env->arena[m].base;
    }
    bases.at[RF_BASE_SEND] = state->send + slot * state->send_slot;
    bases.at[RF_BASE_RECV] = state->recv + slot * state->recv_slot;
    status = rf_device_copies(state->pack[global->local], &bases, state->stream,
                              err);
    if (status != RF_OK) {
        return status;
    }
    for (size_t m = 0; m < step->n_sends; m++) {
        state->api->nvshmemx_putmem_nbi_on_stream(
            bases.at[RF_BASE_RECV] + global->offsets[m],
            bases.at[RF_BASE_SEND] + step->sends[m].offset,
            (size_t)step->sends[m].bytes, (int)step->sends[m].peer,
            state->stream);
    }
    state->api->nvshmemx_quiet_on_stream(state->stream);
    state->api->nvshmemx_barrier_all_on_stream(state->stream);
    return rf_device_copies(state->unpack[global->local], &bases, state->stream,
                            err);
}

static enum rf_status nvshmem_start(void *opaque, uint64_t iteration,
                                    struct rf_err *err)
{
    struct shmem_state *state = opaque;
    enum rf_status status = RF_OK;
    (void)iteration;
    RF_CUDA_TRY(err, out, cudaEventRecord(state->first, state->stream));
    for (size_t g = 0; g < state->n_global && status == RF_OK; g++) {
        status = enqueue_step(state, g, err);
    }
    if (status == RF_OK) {
        RF_CUDA_TRY(err, out, cudaEventRecord(state->last, state->stream));
    }
out:
    return status;
}

static enum rf_status nvshmem_progress(void *opaque, bool *done,
                                       struct rf_err *err)
{
    struct shmem_state *state = opaque;
    const cudaError_t code = cudaEventQuery(state->last);
    *done = code == cudaSuccess;
    if (atomic_load(state->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return RF_OK;
    }
    return *done ? RF_OK : rf_cuda_error(err, "cudaEventQuery", code);
}

static void nvshmem_timing(void *opaque, struct rf_phase_times *out)
{
    struct shmem_state *state = opaque;
    memset(out, 0, sizeof(*out));
    out->device_ns = rf_events_ns(state->first, state->last);
    out->wire_ns = out->device_ns;
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

/* NVSHMEM has no abort, and its barrier waits for ever: everything on the
 * device stays as it is until the process ends, which is now. */
static void nvshmem_abort(void *opaque)
{
    (void)opaque;
    rf_device_abandon();
}

/* Collective where NVSHMEM is concerned. */
static void free_device(struct shmem_state *state)
{
    if (state->first != NULL) {
        cudaEventDestroy(state->first);
    }
    if (state->last != NULL) {
        cudaEventDestroy(state->last);
    }
    if (state->stream != NULL) {
        cudaStreamDestroy(state->stream);
    }
    if (state->initialised) {
        state->api->nvshmem_free(state->send);
        state->api->nvshmem_free(state->recv);
        state->api->nvshmemx_hostlib_finalize();
    }
}

static void nvshmem_close(void *opaque)
{
    struct shmem_state *state = opaque;
    if (state == NULL) {
        return;
    }
    for (size_t s = 0; s < state->steps.n; s++) {
        for (int c = 0; c < 2; c++) {
            if (state->pack != NULL && state->unpack != NULL) {
                rf_device_slices_free(&state->pack[s][c]);
                rf_device_slices_free(&state->unpack[s][c]);
            }
        }
    }
    if (!rf_device_abandoned()) {
        free_device(state);
    }
    for (size_t g = 0; g < state->n_global; g++) {
        free(state->global[g].offsets);
    }
    free(state->global);
    free(state->pack);
    free(state->unpack);
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
    .base_of = nvshmem_base_of,
    .abort = nvshmem_abort,
    .close = nvshmem_close,
};
