/*
 * What is known of every method without running it. Apart from the registry in
 * methods.c, so that the coordinator and refit-cuda.so can have it alone.
 */
#include "transport/method.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct rf_method_info rf_method_infos[] = {
    [RF_METHOD_HOST] = {"host", "gloo", RF_HOST_MEMORY, true, true, false, true,
        "shared memory inside a node, TCP between nodes",
        false},
    [RF_METHOD_TCP] = {"tcp", NULL, RF_HOST_MEMORY, true, true, false, true,
        "TCP between all ranks, also inside a node",
        false},
    [RF_METHOD_SHM] = {"shm", NULL, RF_HOST_MEMORY, false, true, false, true,
        "destinations map sources' memory; zero copy where layouts agree",
        true},
    [RF_METHOD_DISK] = {"disk", NULL, RF_HOST_MEMORY, true, true, true, true,
        "sources write files, destinations read slices of them",
        false},
    [RF_METHOD_NCCL] = {"nccl", NULL, RF_DEVICE_MEMORY, true, true, false, true,
        "NCCL send and receive between GPUs",
        false},
    [RF_METHOD_IPC] = {"ipc", "cuda_ipc", RF_DEVICE_MEMORY, false, true, false,
        true, "GPU memory of one node mapped through CUDA IPC handles",
        true},
    [RF_METHOD_NVSHMEM] = {"nvshmem", NULL, RF_DEVICE_MEMORY, true, true, false,
        true, "one-sided puts into NVSHMEM symmetric memory",
        false},
    [RF_METHOD_NULL] = {"null", NULL, RF_HOST_MEMORY, true, true, false, false,
        "moves nothing; measures the program itself",
        false},
    [RF_METHOD_COUNT] = {0},
};
/* clang-format on */

const struct rf_method_info *rf_method_info_find(const char *name)
{
    const struct rf_method_info *info = rf_method_infos;
    for (; info->name != NULL; info++) {
        if (strcmp(info->name, name) == 0 ||
            (info->alias != NULL && strcmp(info->alias, name) == 0)) {
            return info;
        }
    }
    return NULL;
}

void rf_method_names(char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < RF_METHOD_COUNT && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
                         rf_method_infos[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
}

void rf_blobs_free(struct rf_blob *blobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(blobs[i].data);
        blobs[i] = (struct rf_blob){NULL, 0};
    }
}
