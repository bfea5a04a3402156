/*
 * Sharing device memory between the processes of a node: each rank's arenas,
 * opened once and kept, in one of two forms. Legacy: CUDA IPC handles, which
 * need one PID namespace per node and cannot be opened by the process that made
 * them. By descriptor: memory of cuda/device/vmm.h, whose file descriptors the
 * ranks pass to each other (cuda/ipc/fd_passing.h). Each rank announces its
 * form; ranks and arenas may differ.
 */
#ifndef RF_CUDA_IPC_IPC_H
#define RF_CUDA_IPC_IPC_H

#include "cuda/device/checked.h"
#include "cuda/ipc/fd_passing.h"
#include "transport/method/method.h"
#include "transport/method/node_memory.h"

/* A rank's announcement to the others; opaque bytes on the wire. */
struct rf_ipc_export {
    uint32_t rank, node;
    uint64_t bytes[RF_MEM_COUNT]; /* 0: no such arena */
    uint8_t by_fd[RF_MEM_COUNT];
    uint8_t has_event;
    cudaIpcMemHandle_t memory[RF_MEM_COUNT];
    cudaIpcEventHandle_t event;
    struct rf_fd_passing_name name; /* of its socket for descriptors */
};

struct rf_ipc_peer {
    struct rf_ipc_export export;
    int fd[RF_MEM_COUNT];      /* received from it, -1: none */
    void *arena[RF_MEM_COUNT]; /* mapped here, NULL until opened */
    cudaEvent_t event;
};

/* Whether all of a rank's arenas have legacy handles. Interprocess events use
 * the same mechanism, so a rank without handles does not use them. */
bool rf_ipc_is_legacy(const struct rf_method_env *env);

/* Announces our arenas to the node's ranks and learns theirs: `peers` by slot
 * of `shm`. `event` is our interprocess event, or NULL. *by_events: all ranks
 * of the node have one, and the peers' events are open. */
enum rf_status rf_ipc_meet(const struct rf_method_env *env,
                           const struct rf_node_memory *shm, cudaEvent_t event,
                           struct rf_ipc_peer *peers, bool *by_events,
                           struct rf_err *err) RF_MUST_CHECK;

/* Opens a peer's arena; idempotent. */
enum rf_status rf_ipc_open_arena(struct rf_ipc_peer *peer, enum rf_mem mem,
                                 struct rf_err *err) RF_MUST_CHECK;
/* Unmaps; the device must be done with it. */
void rf_ipc_close(struct rf_ipc_peer *peer);

#endif
