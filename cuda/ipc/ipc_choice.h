/*
 * The run length from which method ipc uses copy engines instead of kernels.
 * Variable REFIT_IPC_COPY sets it (engine: every run; kernel: none), or it is
 * measured (auto, the default): at open the lowest rank of the node that copies
 * to another rank tries runs of growing length both ways while the others wait,
 * and announces the result. The links are otherwise idle then; the devices of a
 * node are assumed to be alike.
 */
#ifndef RF_CUDA_IPC_IPC_CHOICE_H
#define RF_CUDA_IPC_IPC_CHOICE_H

#include "cuda/ipc/ipc.h"

#define RF_ENGINE_NEVER UINT64_MAX

struct rf_ipc_choice {
    const char *rule;    /* "measured", "engine" or "kernel" */
    uint64_t from_bytes; /* RF_ENGINE_NEVER: none */
    bool batches;        /* see rf_copy_engine_has_batches() */
};

/* Times of the same bytes in runs of one length, both ways. */
struct rf_ipc_trial {
    uint64_t run_bytes;
    float engine_ms, kernel_ms;
};

/* The shortest length of `n` ascending trials from which on the engine is at
 * least as fast; RF_ENGINE_NEVER if it is slower at the longest. */
uint64_t rf_ipc_engine_from(const struct rf_ipc_trial *trials, size_t n);

/* Collective. A measurement overwrites the lowest sender's first destination;
 * arenas are filled before each iteration anyway. */
enum rf_status rf_ipc_choose(const struct rf_method_env *env,
                             const struct rf_node_memory *shm,
                             struct rf_ipc_peer *peers,
                             struct rf_ipc_choice *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
