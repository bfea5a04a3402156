/*
 * Sharing device memory between the processes of a node: CUDA IPC handles of
 * whole arenas, opened once and kept. A process cannot open its own handle, and
 * handles need one PID namespace a node.
 */
#ifndef RF_CUDA_IPC_H
#define RF_CUDA_IPC_H

#include "cuda/api.h"
#include "transport/method.h"

/* What a rank tells the others; opaque bytes on the wire. */
struct rf_ipc_export {
    uint32_t rank, node;
    uint64_t bytes[RF_MEM_COUNT]; /* 0: no such arena */
    cudaIpcMemHandle_t memory[RF_MEM_COUNT];
    cudaIpcEventHandle_t event;
};

struct rf_ipc_peer {
    struct rf_ipc_export export;
    void *arena[RF_MEM_COUNT]; /* mapped here, NULL until opened */
    cudaEvent_t event;
};

/* Fills `out` for this rank; `event` must be interprocess. */
enum rf_status rf_ipc_export(const struct rf_method_env *env, cudaEvent_t event,
                             struct rf_ipc_export *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* Opens a peer's arena (idempotent) or event. */
enum rf_status rf_ipc_open_arena(struct rf_ipc_peer *peer, enum rf_mem mem,
                                 struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_ipc_open_event(struct rf_ipc_peer *peer,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_ipc_close(struct rf_ipc_peer *peer);

/* Whether an op fills a destination piece whole and unchanged from memory of
 * the same slot's device: such a piece need not be copied, only looked at where
 * it is. Both ends answer alike. A view of another device's memory would put
 * off the copying, not save it. */
bool rf_ipc_is_view(const struct rf_plan *plan, const struct rf_op *op);

#endif
