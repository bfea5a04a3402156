/* Checked calls of CUDA's runtime: every error is named. Only files of cuda/
 * include this. */
#ifndef RF_CUDA_DEVICE_CHECKED_H
#define RF_CUDA_DEVICE_CHECKED_H

#include <cuda_runtime_api.h>

#include "common/err.h"

/* 12.8 is the first runtime that loads a fat binary as a library. A module
 * built with CUDA 12 (12.8 or later) runs on drivers from 525 on. */
#if CUDART_VERSION < 12080
#error "refit-cuda.so needs a CUDA toolkit of 12.8 or later (CUDA_HOME)"
#endif

/* The version of the driver functions that we look up. A driver refuses to look
 * up those of a version later than its own, and it may be older than the
 * toolkit. This is the oldest that a module of CUDA 12 runs on. */
#define RF_CUDA_DRIVER_INTERFACE 12000

/* Runs `call`; on an error clears CUDA's sticky copy, fills `err`, sets the
 * local variable `status` and goes to `label`. */
#define RF_CUDA_TRY(err, label, call)                                          \
    do {                                                                       \
        cudaError_t result_ = (call);                                          \
        if (result_ != cudaSuccess) {                                          \
            status = rf_cuda_error((err), #call, result_);                     \
            goto label;                                                        \
        }                                                                      \
    } while (0)

/* The same with nothing to undo: returns the error. */
#define RF_CUDA_CHECK(err, call)                                               \
    do {                                                                       \
        cudaError_t result_ = (call);                                          \
        if (result_ != cudaSuccess) {                                          \
            return rf_cuda_error((err), #call, result_);                       \
        }                                                                      \
    } while (0)

/* "cudaMalloc: out of memory (cudaErrorMemoryAllocation)". Returns RF_ERR_NOMEM
 * for that error, RF_ERR_DEVICE otherwise. `call` is cut at its parenthesis. */
enum rf_status rf_cuda_error(struct rf_err *err, const char *call,
                             cudaError_t code);

#endif
