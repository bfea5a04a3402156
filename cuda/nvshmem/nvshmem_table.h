/*
 * The start-up exchange of method nvshmem's ranks: the common order of all
 * steps, the place of each rank's messages, and whether two ranks share a
 * device.
 */
#ifndef RF_CUDA_NVSHMEM_NVSHMEM_TABLE_H
#define RF_CUDA_NVSHMEM_NVSHMEM_TABLE_H

#include "cuda/lockstep/steps.h"
#include "transport/method/method.h"

/* Destination of a message: the slot of the receiver's step `index`; slots
 * alternate. */
struct rf_nvshmem_place {
    uint64_t offset; /* in the slot */
    uint32_t index;
};

/* A step of the union of all ranks' steps, in their common order. */
struct rf_nvshmem_turn {
    uint32_t round, wave;
    size_t local;                    /* our step's index; SIZE_MAX: not ours */
    struct rf_nvshmem_place *places; /* of each of that step's sends */
};

struct rf_nvshmem_table {
    struct rf_nvshmem_turn *at;
    size_t n, capacity;
    uint64_t send_slot_bytes, recv_slot_bytes; /* the largest of any rank */
    uint64_t most_steps;                       /* maximum over all ranks */
    bool share_device;                         /* two ranks share one */
};

/* Collective. rf_nvshmem_table_free() also after a failure. */
enum rf_status rf_nvshmem_table_open(const struct rf_method_env *env,
                                     const struct rf_steps *steps,
                                     struct rf_nvshmem_table *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_nvshmem_table_free(struct rf_nvshmem_table *table);

#endif
