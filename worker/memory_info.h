/* How much memory this node has, and how much a process may still take. */
#ifndef RF_WORKER_MEMORY_INFO_H
#define RF_WORKER_MEMORY_INFO_H

#include <stdint.h>

/* Bytes of memory in the node. */
uint64_t rf_memory_total(void);

/* Bytes that can be allocated without swapping or hitting a control group's
 * limit: the least of the kernel's MemAvailable and what each control group
 * above this process leaves (reclaimable file pages count as free). */
uint64_t rf_memory_available(void);

/* This process's private resident bytes: anonymous and file pages, without
 * shared arenas, which are counted by their size. */
uint64_t rf_memory_private(void);

#endif
