/*
 * Send and receive buffers of method nccl, in memory that NCCL allocates:
 * inside a node NCCL uses registered memory in place only if it comes from the
 * driver's virtual memory management, unlike cudaMalloc's. If NCCL cannot
 * allocate them (ncclMemAlloc exists from 2.19 on), they are cudaMalloc memory.
 *
 * The sources and destinations of messages are registered with NCCL, once per
 * plan, so that it may use them in place (2.19). Unless all ranks can register,
 * none does: NCCL does not define the outcome if only one end is registered.
 * docs/GPU.md lists the memory that NCCL really uses in place, and why there
 * are no windows.
 */
#ifndef RF_CUDA_NCCL_NCCL_BUFFERS_H
#define RF_CUDA_NCCL_NCCL_BUFFERS_H

#include "cuda/nccl/nccl_comm.h"

#define RF_NCCL_BUFFERS 2u /* send and receive */

struct rf_nccl_buffers {
    struct rf_arena at[RF_NCCL_BUFFERS];
    bool of_nccl[RF_NCCL_BUFFERS];
    char why[120]; /* not empty: why some are not NCCL's memory */
};

/* Buffers of `bytes` each. rf_nccl_buffers_free() also after a failure. */
enum rf_status rf_nccl_buffers_alloc(struct rf_nccl_buffers *out,
                                     const struct rf_nccl *nccl,
                                     const uint64_t bytes[RF_NCCL_BUFFERS],
                                     struct rf_err *err) RF_MUST_CHECK;

/* Waits for the device; call after the communicators have ended. Zeros are
 * fine. */
void rf_nccl_buffers_free(struct rf_nccl_buffers *buffers,
                          const struct rf_nccl *nccl);

#define RF_NCCL_MEMORIES (RF_NCCL_BUFFERS + RF_MEM_COUNT)

struct rf_nccl_registration {
    struct rf_nccl_comms *comms; /* borrowed */
    struct {
        ncclComm_t comm;
        void *handle;
    } made[2 * RF_NCCL_MEMORIES];
    size_t n;
};

/* Collective: registers the rank's arenas and buffers with all its
 * communicators. RF_OK also if nothing is registered. env->registration gets
 * "buffers", with the rank and the reason of any buffers that are not NCCL's
 * memory, or "none: why". */
enum rf_status rf_nccl_register(struct rf_nccl_registration *out,
                                struct rf_nccl_comms *comms,
                                const struct rf_nccl_buffers *buffers,
                                struct rf_err *err) RF_MUST_CHECK;

/* Call before the communicators end. */
void rf_nccl_deregister(struct rf_nccl_registration *registration);

#endif
