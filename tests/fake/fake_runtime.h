/* Shared by the files of the fake CUDA runtime. */
#ifndef RF_TESTS_FAKE_RUNTIME_H
#define RF_TESTS_FAKE_RUNTIME_H

#include <cuda_runtime_api.h>

#include "tests/fake/fake_cuda.h"

/* Keeps `code` for cudaGetLastError() unless it is success; returns it. */
cudaError_t fake_set_error(cudaError_t code);

/* Memory of cuMem*: count bytes of the device; reserve addresses; map a
 * descriptor (taken) there, which nothing may use before it is allowed. */
bool fake_memory_take(size_t bytes);
void fake_memory_give_back(size_t bytes);
void *fake_memory_reserve(size_t bytes);
bool fake_memory_map(void *device, size_t bytes, int fd);
void fake_memory_allow(void *device, size_t bytes);
void fake_memory_unmap(void *device);

/* At the start of every call: an injected error ends it. */
#define FAKE_ENTER(call)                                                       \
    do {                                                                       \
        int code_ = fake_cuda_injected("FAKE_CUDA_FAIL", #call);               \
        if (code_ != 0) {                                                      \
            return fake_set_error((cudaError_t)code_);                         \
        }                                                                      \
    } while (0)

#endif
