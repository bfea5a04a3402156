/* Device memory behind transport/method/memory.h. */
#ifndef RF_CUDA_DEVICE_DEVICE_MEMORY_H
#define RF_CUDA_DEVICE_DEVICE_MEMORY_H

#include "transport/method/memory.h"

/* Arena sizes are multiples of this, so that an IPC handle covers one arena
 * only. */
#define RF_DEVICE_ALIGN (UINT64_C(2) << 20)

extern const struct rf_memory_ops rf_memory_cuda;

#endif
