/* What the kernel says of a process, and of itself. */
#ifndef RF_COMMON_PROCSTAT_H
#define RF_COMMON_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rf_procstat {
    char state; /* 'Z': a zombie */
    pid_t parent;
    /* When it started, in clock ticks since boot: with the id it names a
     * process for good. */
    int64_t start_ticks;
};

/* Reads /proc/PID/stat; false, with *out as it was, when there is no such
 * process or it cannot be read. */
bool rf_procstat_read(pid_t pid, struct rf_procstat *out);

#define RF_BOOT_ID_SIZE 37

/* The random name of this boot of this machine's kernel, which containers share
 * with their host; "" when it is not known. */
void rf_procstat_boot_id(char out[RF_BOOT_ID_SIZE]);

#endif
