/* Reads the kernel's one-line files. */
#ifndef RF_WORKER_SHARED_SYSFS_H
#define RF_WORKER_SHARED_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"

/* The first line of the file at the path, without its end, as much of it as
 * fits; false, and `out` is "", if it cannot be read. */
bool rf_sysfs_line(char *out, size_t size, const char *path, ...)
    RF_PRINTF(3, 4);

/* The number in it, 0 or more; RF_ABSENT_I64: none, or a negative one, which
 * stands for "unknown". */
int64_t rf_sysfs_number(const char *path, ...) RF_PRINTF(1, 2);

/* Of an RDMA port, whose folder is below infiniband/DEVICE/ports/: whether it is
 * active, and its rate in Mbit/s; RF_ABSENT_I64: unknown. */
bool rf_sysfs_port_is_active(const char *folder);
int64_t rf_sysfs_port_mbit(const char *folder);

#endif
