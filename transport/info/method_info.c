/*
 * What is known of every method without running it. Apart from the registry in
 * methods.c, so that the coordinator and refit-cuda.so can have it alone.
 */
#include "transport/info/method_info.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

const struct rf_method_info rf_method_infos[] = {
    [RF_METHOD_HOST] = {.name = "host",
                        .memory = RF_HOST_MEMORY,
                        .crosses_nodes = true,
                        .links_by_tcp = true,
                        .moves_bytes = true,
                        .inside = {.copier = RF_COPIER_ANY}},
    [RF_METHOD_TCP] = {.name = "tcp",
                       .memory = RF_HOST_MEMORY,
                       .crosses_nodes = true,
                       .links_by_tcp = true,
                       .moves_bytes = true,
                       .inside = {.copier = RF_COPIER_BOTH}},
    [RF_METHOD_SHM] = {.name = "shm",
                       .memory = RF_HOST_MEMORY,
                       .moves_bytes = true,
                       .inside = {RF_LEFT_COVERED, RF_COPIER_DST}},
    [RF_METHOD_DISK] = {.name = "disk",
                        .memory = RF_HOST_MEMORY,
                        .crosses_nodes = true,
                        .needs_folder = true,
                        .moves_bytes = true},
    [RF_METHOD_UCX] = {.name = "ucx",
                       .memory = RF_HOST_MEMORY,
                       .crosses_nodes = true,
                       .moves_bytes = true,
                       .slow_to_try = true},
    [RF_METHOD_NCCL] = {.name = "nccl",
                        .memory = RF_DEVICE_MEMORY,
                        .crosses_nodes = true,
                        .moves_bytes = true,
                        .inside = {.copier = RF_COPIER_SRC}},
    [RF_METHOD_IPC] = {.name = "ipc",
                       .memory = RF_DEVICE_MEMORY,
                       .moves_bytes = true,
                       .inside = {RF_LEFT_SLOT, RF_COPIER_SRC}},
    [RF_METHOD_NVSHMEM] = {.name = "nvshmem",
                           .memory = RF_DEVICE_MEMORY,
                           .crosses_nodes = true,
                           .moves_bytes = true,
                           .inside = {.copier = RF_COPIER_SRC}},
    [RF_METHOD_UCX_CUDA] = {.name = "ucx-cuda",
                            .memory = RF_DEVICE_MEMORY,
                            .crosses_nodes = true,
                            .moves_bytes = true,
                            .inside = {.copier = RF_COPIER_SRC}},
    [RF_METHOD_NULL] = {.name = "null",
                        .memory = RF_HOST_MEMORY,
                        .crosses_nodes = true,
                        .links_by_tcp = true},
    [RF_METHOD_COUNT] = {.name = NULL},
};

const struct rf_method_info *rf_method_info_find(const char *name)
{
    const struct rf_method_info *info = rf_method_infos;
    for (; info->name != NULL; info++) {
        if (strcmp(info->name, name) == 0) {
            return info;
        }
    }
    return NULL;
}

void rf_methods_in(enum rf_memory_kind memory, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < RF_METHOD_COUNT && used < size; i++) {
        if (rf_method_infos[i].memory == memory) {
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s",
                                 used > 0 ? ", " : "", rf_method_infos[i].name);
        }
    }
}

enum rf_status rf_method_unknown(const char *name, struct rf_err *err)
{
    const char *names[RF_METHOD_COUNT + 1] = {NULL};
    const char *nearest;
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < RF_METHOD_COUNT; i++) {
        names[i] = rf_method_infos[i].name;
    }
    nearest = rf_nearest_word(name, names);
    for (size_t i = 0; i < RF_METHOD_COUNT && used < sizeof(known); i++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
                                 i > 0 ? ", " : "", rf_method_infos[i].name);
    }
    return rf_err_set(err, RF_ERR_CONFIG,
                      "unknown method \"%s\"%s%s%s; must be one of %s", name,
                      nearest ? " (did you mean \"" : "",
                      nearest ? nearest : "", nearest ? "\"?)" : "", known);
}
