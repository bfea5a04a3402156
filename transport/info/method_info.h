/* Facts about every method, known without running it. */
#ifndef RF_TRANSPORT_INFO_METHOD_INFO_H
#define RF_TRANSPORT_INFO_METHOD_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "planner/plan/plan.h"
#include "planner/predict/intra_node.h"

#define RF_REGISTRATION_SIZE 1024

/* What a method's library does with memory and bytes; "": nothing to say. */
struct rf_registration {
    char text[RF_REGISTRATION_SIZE];     /* memory registered, or ways taken */
    char over_tcp[RF_REGISTRATION_SIZE]; /* the ways that are TCP alone */
    char unmapped[RF_REGISTRATION_SIZE]; /* the way inside a node, for lack of
                                            room in shared memory */
};

enum rf_memory_kind { RF_HOST_MEMORY, RF_DEVICE_MEMORY, RF_MEMORY_KINDS };

/* The properties and needs of a method; checked before launch. */
struct rf_method_info {
    const char *name;
    enum rf_memory_kind memory;
    bool crosses_nodes;  /* can move bytes between nodes */
    bool links_by_tcp;   /* and does so by TCP, like link probes */
    bool sockets_inside; /* bytes between ranks of a node go by sockets */
    bool copies_inside;  /* there ops are copies in mapped memory */
    bool needs_folder;   /* "disk" */
    bool needs_one_nccl; /* the same version on all nodes */
    bool moves_bytes;    /* false for null: nothing to verify */
    bool slow_to_try;    /* its dependencies start slowly */
    struct rf_intra_node inside;
};

/*
 * X(ID, ops, name, facts...): the row of a method, its only description. Its
 * functions are rf_method_<ops>, those of refit-cuda.so rf_cuda_method_<ops>.
 */
#define RF_WORKER_METHODS(X)                                                   \
    X(HOST, host, "host", .memory = RF_HOST_MEMORY, .crosses_nodes = true,     \
      .links_by_tcp = true, .copies_inside = true, .moves_bytes = true,        \
      .inside = {.copier = RF_COPIER_ANY})                                     \
    X(TCP, tcp, "tcp", .memory = RF_HOST_MEMORY, .crosses_nodes = true,        \
      .links_by_tcp = true, .sockets_inside = true, .moves_bytes = true,       \
      .inside = {.copier = RF_COPIER_BOTH})                                    \
    X(SHM, shm, "shm", .memory = RF_HOST_MEMORY, .copies_inside = true,        \
      .moves_bytes = true, .inside = {RF_LEFT_COVERED, RF_COPIER_DST})         \
    X(DISK, disk, "disk", .memory = RF_HOST_MEMORY, .crosses_nodes = true,     \
      .needs_folder = true, .moves_bytes = true)                               \
    X(NULL, null, "null", .memory = RF_HOST_MEMORY, .crosses_nodes = true,     \
      .links_by_tcp = true)

#define RF_UCX_METHODS(X)                                                      \
    X(UCX, ucx, "ucx", .memory = RF_HOST_MEMORY, .crosses_nodes = true,        \
      .moves_bytes = true, .slow_to_try = true)

#define RF_CUDA_METHODS(X)                                                     \
    X(NCCL, nccl, "nccl", .memory = RF_DEVICE_MEMORY, .crosses_nodes = true,   \
      .needs_one_nccl = true, .moves_bytes = true,                             \
      .inside = {.copier = RF_COPIER_SRC})                                     \
    X(IPC, ipc, "ipc", .memory = RF_DEVICE_MEMORY, .moves_bytes = true,        \
      .inside = {RF_LEFT_SLOT, RF_COPIER_SRC})                                 \
    X(NVSHMEM, nvshmem, "nvshmem", .memory = RF_DEVICE_MEMORY,                 \
      .crosses_nodes = true, .moves_bytes = true,                              \
      .inside = {.copier = RF_COPIER_SRC})                                     \
    X(UCX_CUDA, ucx, "ucx-cuda", .memory = RF_DEVICE_MEMORY,                   \
      .crosses_nodes = true, .moves_bytes = true,                              \
      .inside = {.copier = RF_COPIER_SRC})

#define RF_METHOD_MAP(X)                                                       \
    RF_WORKER_METHODS(X) RF_UCX_METHODS(X) RF_CUDA_METHODS(X)

/* Positions in rf_method_infos. */
enum rf_method_id {
#define X(ID, ...) RF_METHOD_##ID,
    RF_METHOD_MAP(X) RF_METHOD_COUNT
#undef X
};

/* All methods that cluster.json can name, whether or not this build or node can
 * run them. Plain data: the coordinator uses it. */
extern const struct rf_method_info rf_method_infos[RF_METHOD_COUNT];

/* By name; NULL: unknown. */
const struct rf_method_info *rf_method_info_find(const char *name);

/* Sets RF_ERR_CONFIG: method `name` is unknown; lists the known ones. */
enum rf_status rf_method_unknown(const char *name, struct rf_err *err);

/*
 * Before launch, refuses combinations that cannot work: shm across nodes, disk
 * without a folder, device casts in host memory, … A NULL `info` is an unknown
 * method; the text then lists the known ones. `node_names` are those of the
 * plan's world.
 */
enum rf_status rf_method_check(const struct rf_method_info *info,
                               const struct rf_plan *plan,
                               const char *const *node_names,
                               struct rf_err *err) RF_MUST_CHECK;

#endif
