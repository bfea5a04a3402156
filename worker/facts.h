/* What this node is and can do: HELLO's fields and `refit-worker --probe`. */
#ifndef RF_WORKER_FACTS_H
#define RF_WORKER_FACTS_H

#include <jansson.h>

/* {"version", "build", "hostname", "boot_id", "pid", "start_ticks", "cpus",
 * "memory_bytes", "memory_available_bytes", "kernel", "cpu", "nics", "methods",
 * "gpus", "cuda", "nccl", "congestion_control", "env"}. Never fails: what
 * cannot be found out is null. Loads refit-cuda.so, which may take a second. */
json_t *rf_facts_collect(void);

#endif
