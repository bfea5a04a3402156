/* The control groups that this process is in. */
#ifndef RF_COMMON_CGROUP_H
#define RF_COMMON_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Gives `visit` the folder of the process's group and of each above it, where
 * the kernel has `controller` ("memory"). `unified`: version 2 of the
 * interface. What cannot be read is left out. */
typedef void (*rf_cgroup_visit_fn)(const char *folder, bool unified,
                                   void *data);
void rf_cgroup_each(const char *controller, rf_cgroup_visit_fn visit,
                    void *data);

/* How many processors' time the group in `folder` may take (cpu.max, or the
 * quota of version 1), rounded up; UINT32_MAX: any. */
uint32_t rf_cgroup_processors_in(const char *folder, bool unified);

/* The least of all groups that this process is in. */
uint32_t rf_cgroup_processors(void);

#endif
