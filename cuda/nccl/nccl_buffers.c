/* Buffers of NCCL's memory. See nccl_buffers.h. */
#include "cuda/nccl/nccl_buffers.h"

#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"

/* Whether NCCL gave the memory; else `why` says what was in the way. */
static bool alloc_of_nccl(struct rf_arena *out, const struct rf_nccl *nccl,
                          char *why, size_t size)
{
    ncclResult_t result;
    if (nccl->MemAlloc == NULL || nccl->MemFree == NULL) {
        snprintf(why, size, "cudaMalloc buffers: NCCL %d has no ncclMemAlloc",
                 nccl->version);
        return false;
    }
    result = nccl->MemAlloc(&out->base, out->bytes);
    if (result != ncclSuccess) {
        out->base = NULL;
        snprintf(why, size, "cudaMalloc buffers: ncclMemAlloc: %.60s",
                 nccl->GetErrorString(result));
    }
    return result == ncclSuccess;
}

enum rf_status rf_nccl_buffers_alloc(struct rf_nccl_buffers *out,
                                     const struct rf_nccl *nccl,
                                     const uint64_t bytes[RF_NCCL_BUFFERS],
                                     struct rf_err *err)
{
    memset(out, 0, sizeof(*out));
    for (size_t b = 0; b < RF_NCCL_BUFFERS; b++) {
        out->at[b] = (struct rf_arena){.bytes = bytes[b], .fd = -1};
        out->of_nccl[b] =
            alloc_of_nccl(&out->at[b], nccl, out->why, sizeof(out->why));
        if (!out->of_nccl[b]) { /* also where it is the device that is full */
            RF_CUDA_CHECK(err, cudaMalloc(&out->at[b].base, bytes[b]));
        }
    }
    return RF_OK;
}

void rf_nccl_buffers_free(struct rf_nccl_buffers *buffers,
                          const struct rf_nccl *nccl)
{
    for (size_t b = 0; b < RF_NCCL_BUFFERS; b++) {
        if (buffers->of_nccl[b]) { /* which, unlike cudaFree, does not wait */
            (void)cudaDeviceSynchronize();
            (void)nccl->MemFree(buffers->at[b].base);
        } else {
            cudaFree(buffers->at[b].base);
        }
    }
    memset(buffers, 0, sizeof(*buffers));
}
