/* How much memory this machine has, and how much a process may still take. */
#ifndef RF_COMMON_MEMORY_INFO_H
#define RF_COMMON_MEMORY_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Bytes of memory in the machine. */
uint64_t rf_memory_total(void);

/* What limits the memory of this process and of others that have the same
 * `group`. */
struct rf_memory_limit {
    uint64_t group; /* inode of a control group, however it is mounted; 0: the
                       machine */
    uint64_t available_bytes;
};

#define RF_MEMORY_LIMITS_MAX 64

/* The kernel's MemAvailable, and what each control group above this process
 * leaves that has a limit (reclaimable file pages count as free). Returns how
 * many. */
size_t rf_memory_limits(struct rf_memory_limit out[RF_MEMORY_LIMITS_MAX]);

/* Bytes that can be allocated without swapping or hitting a control group's
 * limit: the least of these, and of what /proc/meminfo says in a container. */
uint64_t rf_memory_available(void);

/* This process's private resident bytes: anonymous and file pages, without
 * shared arenas, which are counted by their size. */
uint64_t rf_memory_private(void);

/* Whether the memory at `at` is this process's alone and so among
 * rf_memory_private(). False where nothing is mapped. */
bool rf_memory_is_private(const void *at);

/* RF_ERR_NOMEM where `what`, which is about to be made, takes more than half of
 * rf_memory_available(): the kernel would hand it out, and end a process when
 * it is used. Also where the kernel refuses so much, as under `ulimit -v`. */
enum rf_status rf_memory_admit(uint64_t bytes, const char *what,
                               struct rf_err *err) RF_MUST_CHECK;

/* Makes all pages present that are mapped at `at`, for writing if this process
 * will: a page that was only read needs no fault to be written (shared memory
 * is not tracked for write-back), but the processor must mark it dirty, which
 * costs as much as copying it. False where there is no room for them. */
bool rf_memory_populate(void *at, uint64_t bytes, bool write);

/* realloc() for blocks that may get large. NULL, with `old` as it was, also
 * where rf_memory_admit() would refuse it. */
void *rf_realloc_large(void *old, size_t old_bytes, size_t bytes);

#endif
