/* Sets of processors: their text, and how NUMA nodes divide them. The
 * kernel's files are read below `root` ("" for this machine). Processors beyond
 * CPU_SETSIZE (1024) are left out. */
#ifndef RF_WORKER_SHARED_CPUS_H
#define RF_WORKER_SHARED_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's form of a set: "0-3,8". "" is the empty one. False, with *out
 * undefined, if the text is not one. */
bool rf_cpus_read(const char *text, cpu_set_t *out);
/* The same from a set. The caller frees it. */
char *rf_cpus_text(const cpu_set_t *cpus);

struct rf_numa_node {
    uint32_t number; /* the kernel's */
    cpu_set_t cpus;
};

/* The NUMA nodes that have some of the processors `among`, in order of their
 * numbers, each with these. Returns how many; 0 if the kernel names none. The
 * caller frees *out. */
size_t rf_cpus_nodes(const char *root, const cpu_set_t *among,
                     struct rf_numa_node **out);

#endif
