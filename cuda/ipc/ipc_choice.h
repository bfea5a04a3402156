/*
 * From which length on a run of method ipc goes by copy engine and not by
 * kernel. Variable REFIT_IPC_COPY says so (engine: every run; kernel: none), or
 * it is measured (auto, the default): at open one rank of the node, the
 * lowest that copies to another one, tries runs of growing length both ways
 * while the others wait, and tells them what it found. Nothing else uses the
 * links then; the devices of a node are taken to be alike.
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

/* The least length from which on, in `n` trials of ascending length, the engine
 * is at least as fast; RF_ENGINE_NEVER when it is slower at the longest. */
uint64_t rf_ipc_engine_from(const struct rf_ipc_trial *trials, size_t n);

/* Collective. Overwrites what the lowest rank's first destination holds: arenas
 * are filled before each iteration. */
enum rf_status rf_ipc_choose(const struct rf_method_env *env,
                             const struct rf_node_memory *shm,
                             struct rf_ipc_peer *peers,
                             struct rf_ipc_choice *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
