/*
 * A rank's copies in each round of method ipc, into the mapped arenas of the
 * node's ranks, and its own pieces that stay in the source's memory. Made once
 * per plan.
 */
#ifndef RF_CUDA_IPC_IPC_ROUNDS_H
#define RF_CUDA_IPC_IPC_ROUNDS_H

#include "cuda/device/copy_engine.h"
#include "cuda/device/device.h"
#include "cuda/ipc/ipc.h"
#include "cuda/ipc/ipc_choice.h"

/* Copies by kernels: those inside the device run beside those over links. */
enum rf_ipc_way { RF_IPC_LINKS, RF_IPC_LOCAL, RF_IPC_WAYS };

struct rf_ipc_round {
    uint32_t round;
    struct rf_copies host[RF_IPC_WAYS];
    struct rf_device_slices copies[RF_IPC_WAYS][2]; /* plain, cast */
    struct rf_copy_engine_list engine;              /* long runs over links */
    cudaEvent_t begin, local_end, engine_end, end;
};

struct rf_ipc_alias {
    const struct rf_op *op;
    void *base; /* of the source arena, in this process */
};

struct rf_ipc_rounds {
    const struct rf_method_env *env;
    const struct rf_node_memory *shm;
    struct rf_ipc_peer *peers; /* by slot */
    struct rf_bases bases;
    uint32_t n_bases;
    uint32_t *base_index; /* [slot · RF_MEM_COUNT + mem], RF_NONE: none */
    struct rf_ipc_round *at;
    size_t n, capacity;
    struct rf_ipc_alias *aliases; /* our pieces that are views */
    size_t n_aliases, aliases_capacity;
    uint32_t cast;
    struct rf_ipc_choice choice;
    uint64_t sent_bytes, received_bytes, engine_bytes, kernel_bytes;
};

/* Opens the arenas that are written to or viewed. All arguments are borrowed.
 * rf_ipc_rounds_free() also after a failure. */
enum rf_status rf_ipc_rounds_build(const struct rf_method_env *env,
                                   const struct rf_node_memory *shm,
                                   struct rf_ipc_peer *peers,
                                   const struct rf_ipc_choice *choice,
                                   struct rf_ipc_rounds *out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_ipc_rounds_free(struct rf_ipc_rounds *rounds);

/* As rf_method_ops.base_of. */
const void *rf_ipc_rounds_base_of(const struct rf_ipc_rounds *rounds,
                                  const struct rf_piece *piece,
                                  uint64_t stride[RF_BOX_DIMS]);

#endif
