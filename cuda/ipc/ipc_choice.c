/* Measuring both ways to copy. See ipc_choice.h. */
#include "cuda/ipc/ipc_choice.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/copy_engine.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"
#include "planner/schedule/in_place.h"

/* Runs of 16 KiB … 16 MiB, four times longer each. */
#define SHORTEST_RUN (UINT64_C(16) << 10)
#define LENGTHS 6
#define TRIAL_BYTES (UINT64_C(64) << 20)
#define TRIAL_RUNS 128
/* The first attempt wakes clocks and loads kernels. */
#define ATTEMPTS 4

enum mode { AUTO, ENGINE, KERNEL };

uint64_t rf_ipc_engine_from(const struct rf_ipc_trial *trials, size_t n)
{
    uint64_t from = RF_ENGINE_NEVER;
    while (n > 0 && trials[n - 1].engine_ms <= trials[n - 1].kernel_ms) {
        from = trials[--n].run_bytes;
    }
    return from;
}

static enum rf_status read_mode(enum mode *out, struct rf_err *err)
{
    static const char *const names[] = {"auto", "engine", "kernel"};
    const char *text = getenv("REFIT_IPC_COPY");
    *out = AUTO;
    for (size_t i = 0; text != NULL && i < RF_ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum mode)i;
            return RF_OK;
        }
    }
    return text == NULL ? RF_OK
                        : rf_err_set(err, RF_ERR_CONFIG,
                                     "REFIT_IPC_COPY is \"%.40s\", must be "
                                     "auto, engine or kernel",
                                     text);
}

/* The op to measure with, the same on all ranks; NULL if no rank copies to
 * another. */
static const struct rf_op *first_link(const struct rf_method_env *env)
{
    const struct rf_schedule *schedule = env->schedule;
    const struct rf_op *first = NULL;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src != op->dst && !rf_in_place_in_slot(env->plan, op) &&
            (first == NULL || op->src < first->src)) {
            first = op;
        }
    }
    return first;
}

/* The same copies for engine and kernel. */
struct trial {
    struct rf_bases bases;
    bool batches;
    struct rf_copy_engine_list list;
    struct rf_device_slices slices;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

static enum rf_status time_once(struct trial *trial, bool engine, float *ms,
                                struct rf_err *err)
{
    RF_CUDA_CHECK(err, cudaEventRecord(trial->begin, trial->stream));
    RF_TRY(engine ? rf_copy_engine_run(&trial->list, trial->batches,
                                       trial->stream, err)
                  : rf_device_copy(&trial->slices, &trial->bases, trial->stream,
                                   err));
    RF_CUDA_CHECK(err, cudaEventRecord(trial->end, trial->stream));
    RF_CUDA_CHECK(err, cudaEventSynchronize(trial->end));
    RF_CUDA_CHECK(err, cudaEventElapsedTime(ms, trial->begin, trial->end));
    return RF_OK;
}

static enum rf_status time_best(struct trial *trial, bool engine, float *out,
                                struct rf_err *err)
{
    enum rf_status status = RF_OK;
    float ms = 0;
    for (int i = 0; i < ATTEMPTS && status == RF_OK; i++) {
        status = time_once(trial, engine, &ms, err);
        *out = i == 0 || ms < *out ? ms : *out;
    }
    return status;
}

/* Runs of one length within the first `bytes` bytes of both memories. */
static enum rf_status try_length(struct trial *trial, uint64_t bytes,
                                 struct rf_ipc_trial *result,
                                 struct rf_err *err)
{
    const uint64_t run = result->run_bytes;
    const uint64_t n = RF_MIN(bytes / run, (uint64_t)TRIAL_RUNS);
    struct rf_slices slices = {.bytes = 0};
    enum rf_status status;
    for (uint64_t i = 0; i < n; i++) {
        /* Backwards on one side, so that runs are not joined to longer ones. */
        const struct rf_slice slice = {.src_offset = (n - 1 - i) * run,
                                       .dst_offset = i * run,
                                       .width = run,
                                       .rows = 1,
                                       .src_base = 0,
                                       .dst_base = 1};
        rf_slices_add(&slices, slice, RF_KERNEL_CAST_NONE);
        rf_copy_engine_add(&trial->list, &slice, &trial->bases);
    }
    status = rf_device_slices_upload(&slices, RF_KERNEL_CAST_NONE,
                                     &trial->slices, err);
    RF_THEN(status, time_best(trial, true, &result->engine_ms, err));
    RF_THEN(status, time_best(trial, false, &result->kernel_ms, err));
    rf_slices_free(&slices);
    rf_device_slices_free(&trial->slices);
    rf_copy_engine_free(&trial->list);
    return status;
}

static enum rf_status try_lengths(struct trial *trial, uint64_t bytes,
                                  uint64_t *from, struct rf_err *err)
{
    struct rf_ipc_trial results[LENGTHS];
    enum rf_status status = RF_OK;
    size_t n = 0;
    RF_CUDA_TRY(
        err, out,
        cudaStreamCreateWithFlags(&trial->stream, cudaStreamNonBlocking));
    RF_CUDA_TRY(err, out, cudaEventCreate(&trial->begin));
    RF_CUDA_TRY(err, out, cudaEventCreate(&trial->end));
    while (n < LENGTHS && SHORTEST_RUN << (2 * n) <= bytes && status == RF_OK) {
        results[n] =
            (struct rf_ipc_trial){.run_bytes = SHORTEST_RUN << (2 * n)};
        status = try_length(trial, bytes, &results[n], err);
        n++;
    }
    *from = status == RF_OK ? rf_ipc_engine_from(results, n) : RF_ENGINE_NEVER;
out:
    rf_event_free(trial->begin);
    rf_event_free(trial->end);
    rf_stream_free(trial->stream);
    return status;
}

static enum rf_status measure(const struct rf_method_env *env,
                              const struct rf_node_memory *shm,
                              struct rf_ipc_peer *peers, const struct rf_op *op,
                              bool batches, uint64_t *from, struct rf_err *err)
{
    struct rf_ipc_peer *peer = &peers[rf_node_memory_slot(shm, op->dst)];
    const uint64_t bytes =
        RF_MIN(env->arena[op->src_mem].bytes, peer->export.bytes[op->dst_mem]);
    struct trial trial = {.batches = batches};
    RF_TRY(rf_ipc_open_arena(peer, op->dst_mem, err));
    trial.bases.at[0] = env->arena[op->src_mem].base;
    trial.bases.at[1] = peer->arena[op->dst_mem];
    return try_lengths(&trial, RF_MIN(bytes, TRIAL_BYTES), from, err);
}

/* Replaces *from with the measuring rank's result. */
static enum rf_status share(const struct rf_method_env *env, uint32_t measurer,
                            uint64_t *from, struct rf_err *err)
{
    uint64_t *all = rf_xcalloc(env->plan->world->n_ranks, sizeof(*all));
    enum rf_status status =
        rf_share_all(env, "length of runs", from, sizeof(*from), all, err);
    if (status == RF_OK) {
        *from = all[measurer];
    }
    free(all);
    return status;
}

enum rf_status rf_ipc_choose(const struct rf_method_env *env,
                             const struct rf_node_memory *shm,
                             struct rf_ipc_peer *peers,
                             struct rf_ipc_choice *out, struct rf_err *err)
{
    static const char *const rules[] = {"measured", "engine", "kernel"};
    const struct rf_op *op = first_link(env);
    uint64_t from = RF_ENGINE_NEVER;
    bool batches = false;
    enum mode mode;
    enum rf_status status = read_mode(&mode, err);
    if (status == RF_OK && mode != KERNEL) {
        status = rf_copy_engine_has_batches(&batches, err);
    }
    if (status == RF_OK && mode == AUTO && op != NULL && op->src == env->rank) {
        status = measure(env, shm, peers, op, batches, &from, err);
    }
    if (status == RF_OK) {
        from = mode == ENGINE ? 0 : from;
        status = share(env, op != NULL ? op->src : 0, &from, err);
    }
    if (status == RF_OK) {
        *out = (struct rf_ipc_choice){
            .rule = rules[mode], .from_bytes = from, .batches = batches};
    }
    return status;
}
