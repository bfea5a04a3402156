/* The control groups of this process. */
#ifndef RF_COMMON_CGROUP_H
#define RF_COMMON_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Called with the folder of the process's group and of each of its ancestors in
 * which the kernel offers `controller` ("memory"). `unified`: interface version
 * 2. Unreadable groups are skipped. */
typedef void (*rf_cgroup_visit_fn)(const char *folder, bool unified,
                                   void *data);
void rf_cgroup_each(const char *controller, rf_cgroup_visit_fn visit,
                    void *data);

/* The CPU quota of the group in `folder` (cpu.max, or the version 1 quota) in
 * processors, rounded up; UINT32_MAX: no quota. */
uint32_t rf_cgroup_processors_in(const char *folder, bool unified);

/* The smallest quota of all groups of this process. */
uint32_t rf_cgroup_processors(void);

#endif
