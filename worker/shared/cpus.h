/* Sets of processors: their text, and how cores and NUMA nodes divide them. The
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

/* The number of the node that has all of `cpus`; RF_ABSENT_U32: none. */
uint32_t rf_cpus_node_of(const char *root, const cpu_set_t *cpus);

/* Divides `cpus` into cores, in order of their first processors: all hardware
 * threads of a core are one set. Without files about cores each processor is
 * one. Returns how many; the caller frees *out. */
size_t rf_cpus_cores(const char *root, const cpu_set_t *cpus, cpu_set_t **out);

#endif
