/* Facts from the kernel about processes and about this boot. */
#ifndef RF_COMMON_PROCSTAT_H
#define RF_COMMON_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rf_procstat {
    char state; /* 'Z': a zombie */
    pid_t parent;
    /* Start time in clock ticks since boot; with the id it identifies a process
     * uniquely. */
    int64_t start_ticks;
};

/* Reads /proc/PID/stat. False, with *out unchanged, when the process does not
 * exist or cannot be read. */
bool rf_procstat_read(pid_t pid, struct rf_procstat *out);

#define RF_BOOT_ID_SIZE 37

/* The random id of this boot of the kernel, which containers share with their
 * host; "" when unknown. */
void rf_procstat_boot_id(char out[RF_BOOT_ID_SIZE]);

#endif
