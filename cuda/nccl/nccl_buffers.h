/*
 * Send and receive buffers of method nccl, of memory that NCCL allocates: only
 * memory of the driver's virtual memory management is used in place inside a
 * node once it is registered, and cudaMalloc's is not. Where NCCL cannot (it
 * has ncclMemAlloc from 2.19 on), they are cudaMalloc memory.
 */
#ifndef RF_CUDA_NCCL_NCCL_BUFFERS_H
#define RF_CUDA_NCCL_NCCL_BUFFERS_H

#include "cuda/nccl/nccl_api.h"
#include "transport/method/memory.h"

#define RF_NCCL_BUFFERS 2u /* send and receive */

struct rf_nccl_buffers {
    struct rf_arena at[RF_NCCL_BUFFERS];
    bool of_nccl[RF_NCCL_BUFFERS];
    char why[120]; /* some are not NCCL's memory; else empty */
};

/* Buffers of `bytes` each. rf_nccl_buffers_free() also after a failure. */
enum rf_status rf_nccl_buffers_alloc(struct rf_nccl_buffers *out,
                                     const struct rf_nccl *nccl,
                                     const uint64_t bytes[RF_NCCL_BUFFERS],
                                     struct rf_err *err) RF_MUST_CHECK;

/* Waits for the device; after the communicators have ended. Zeros are fine. */
void rf_nccl_buffers_free(struct rf_nccl_buffers *buffers,
                          const struct rf_nccl *nccl);

#endif
