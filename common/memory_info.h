/* Memory of this machine, and how much of it a process may still allocate. */
#ifndef RF_COMMON_MEMORY_INFO_H
#define RF_COMMON_MEMORY_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Bytes of memory in the machine. */
uint64_t rf_memory_total(void);

/* A memory limit, shared by all processes of the same `group`. */
struct rf_memory_limit {
    uint64_t group; /* inode of the control group, the same under every mount;
                       0: the machine */
    uint64_t available_bytes;
};

#define RF_MEMORY_LIMITS_MAX 64

/* The kernel's MemAvailable, and the remainder of each limited control group
 * above this process (reclaimable file pages count as free). Returns the number
 * of limits. */
size_t rf_memory_limits(struct rf_memory_limit out[RF_MEMORY_LIMITS_MAX]);

/* Bytes that can be allocated without swapping or hitting a control group's
 * limit: the least of these and of the value in a container's /proc/meminfo. */
uint64_t rf_memory_available(void);

/* This process's private resident bytes: anonymous and file pages, without
 * shared arenas, which are counted by their size. */
uint64_t rf_memory_private(void);

/* Whether the memory at `at` is private to this process and so counted by
 * rf_memory_private(). False where nothing is mapped. */
bool rf_memory_is_private(const void *at);

/* RF_ERR_NOMEM when `what`, about to be allocated, takes more than half of
 * rf_memory_available(): the kernel would grant it, and kill a process when it
 * is used. Also when the kernel refuses the size, as under `ulimit -v`. */
enum rf_status rf_memory_admit(uint64_t bytes, const char *what,
                               struct rf_err *err) RF_MUST_CHECK;

/* Makes all pages mapped at `at` present; `write`: this process will write
 * them. A page that was only read needs no fault to be written (shared memory
 * is not tracked for write-back), but the processor must mark it dirty, which
 * costs as much as copying it. False when there is no room for them. */
bool rf_memory_populate(void *at, uint64_t bytes, bool write);

/* realloc() for blocks that may get large. NULL, with `old` unchanged, also
 * where rf_memory_admit() would refuse it. */
void *rf_realloc_large(void *old, size_t old_bytes, size_t bytes);

#endif
