/* The cluster file described by Megatron-LM's flags. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_CLUSTER_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_CLUSTER_H

#include "coordinator/megatron/megatron_flags.h"

/* The document's name in errors. */
#define RF_MEGATRON_FILE "megatron"

/*
 * One scenario between as many processes of this machine as its meshes need:
 * the least common multiple of both sides if collocated, else their sum.
 * Defaults are those of the benchmark's README, else of Megatron-LM. A new
 * reference. Flags without effect beside the others become idle. Missing or
 * contradictory flags are RF_ERR_USAGE; an impossible mesh is RF_ERR_CONFIG.
 */
enum rf_status rf_megatron_cluster(struct rf_megatron_args *args, json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* --refit-method, or its default. */
const char *rf_megatron_backend(const struct rf_megatron_args *args);

#endif
