/*
 * What the ranks of method nvshmem tell one another before they start: in which
 * order all of them go through their steps, where each wants its messages, and
 * whether two of them share a device.
 */
#ifndef RF_CUDA_NVSHMEM_NVSHMEM_TABLE_H
#define RF_CUDA_NVSHMEM_NVSHMEM_TABLE_H

#include "cuda/lockstep/steps.h"
#include "transport/method/method.h"

/* Where a message goes: into the slot of the receiver's step `index`, which
 * alternate. */
struct rf_nvshmem_place {
    uint64_t offset; /* in the slot */
    uint32_t index;
};

/* A step of the union of all ranks' steps, in the order that all share. */
struct rf_nvshmem_turn {
    uint32_t round, wave;
    size_t local; /* index of our step, SIZE_MAX: others only */
    struct rf_nvshmem_place *places; /* of each of that step's sends */
};

struct rf_nvshmem_table {
    struct rf_nvshmem_turn *at;
    size_t n, capacity;
    uint64_t send_slot_bytes, recv_slot_bytes; /* the largest of any rank */
    uint64_t most_steps;                       /* of one rank */
    bool share_device;                         /* two ranks do */
};

/* Collective. Freed also after a failure. */
enum rf_status rf_nvshmem_table_open(const struct rf_method_env *env,
                                     const struct rf_steps *steps,
                                     struct rf_nvshmem_table *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_nvshmem_table_free(struct rf_nvshmem_table *table);

#endif
