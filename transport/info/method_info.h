/* What is known of every method without running it. */
#ifndef RF_TRANSPORT_INFO_METHOD_INFO_H
#define RF_TRANSPORT_INFO_METHOD_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "planner/plan/plan.h"
#include "planner/predict/intra_node.h"

#define RF_REGISTRATION_SIZE 1024

enum rf_memory_kind { RF_HOST_MEMORY, RF_DEVICE_MEMORY, RF_MEMORY_KINDS };

/* What must hold before a method can be used; checked before launch. */
struct rf_method_info {
    const char *name;
    enum rf_memory_kind memory;
    bool crosses_nodes; /* can move bytes between nodes */
    bool links_by_tcp;  /* and does it by TCP, as link probes do */
    bool needs_folder;  /* "disk" */
    bool moves_bytes;   /* false for null: nothing to verify */
    bool slow_to_try;   /* what it needs takes long to start */
    struct rf_intra_node inside;
};

/* Positions in rf_method_infos. */
enum rf_method_id {
    RF_METHOD_HOST,
    RF_METHOD_TCP,
    RF_METHOD_SHM,
    RF_METHOD_DISK,
    RF_METHOD_UCX,
    RF_METHOD_NCCL,
    RF_METHOD_IPC,
    RF_METHOD_NVSHMEM,
    RF_METHOD_UCX_CUDA,
    RF_METHOD_NULL,
    RF_METHOD_COUNT,
};

/* Everything that can be named in cluster.json, whether or not this build or
 * node can run it; ends with a NULL name. Pure: the coordinator uses it. */
extern const struct rf_method_info rf_method_infos[];

/* "ipc, nccl": those that keep weights in such memory. */
void rf_methods_in(enum rf_memory_kind memory, char *out, size_t size);

/* By name; NULL when there is none. */
const struct rf_method_info *rf_method_info_find(const char *name);

/* Sets RF_ERR_CONFIG: there is no method `name`, and which there are. */
enum rf_status rf_method_unknown(const char *name, struct rf_err *err);

/*
 * Refuses, before anything is launched, what cannot work: shm across nodes,
 * disk without a folder, device casts in host memory, … A NULL `info` is an
 * unknown method; the text then lists the known ones. `node_names` are those of
 * the plan's world.
 */
enum rf_status rf_method_check(const struct rf_method_info *info,
                               const struct rf_plan *plan,
                               const char *const *node_names,
                               struct rf_err *err) RF_MUST_CHECK;

#endif
