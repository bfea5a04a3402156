/* See cpus.h. The files are described in the kernel's
 * Documentation/ABI/stable/sysfs-devices-node and
 * Documentation/admin-guide/cputopology.rst. */
#include "worker/shared/cpus.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/text.h"
#include "transport/control/schema.h"
#include "worker/shared/sysfs.h"

#define LIST_SIZE 8192 /* the longest text of CPU_SETSIZE processors fits */

bool rf_cpus_read(const char *text, cpu_set_t *out)
{
    CPU_ZERO(out);
    while (*text != '\0') {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (end != text && *end == '-') {
            text = end + 1;
            last = strtoul(text, &end, 10);
        }
        if (end == text || last < first) {
            return false;
        }
        for (size_t i = first; i <= last && i < CPU_SETSIZE; i++) {
            CPU_SET(i, out);
        }
        text = *end == ',' ? end + 1 : end;
    }
    return true;
}

char *rf_cpus_text(const cpu_set_t *cpus)
{
    char *text = NULL;
    for (size_t at = 0; at < CPU_SETSIZE; at++) {
        const size_t first = at;
        while (at < CPU_SETSIZE && CPU_ISSET(at, cpus)) {
            at++;
        }
        if (at > first) {
            rf_text_add(&text, ",", "%zu", first);
        }
        if (at > first + 1) {
            rf_text_add(&text, "-", "%zu", at - 1);
        }
    }
    return text != NULL ? text : rf_xstrdup("");
}

size_t rf_cpus_nodes(const char *root, const cpu_set_t *among,
                     struct rf_numa_node **out)
{
    char list[LIST_SIZE];
    cpu_set_t numbers; /* of nodes: a list of the same form */
    size_t n = 0, capacity = 0;
    *out = NULL;
    rf_sysfs_line(list, sizeof(list), "%s/sys/devices/system/node/online",
                  root);
    if (!rf_cpus_read(list, &numbers)) {
        return 0;
    }
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        struct rf_numa_node node = {.number = (uint32_t)i};
        if (!CPU_ISSET(i, &numbers) ||
            !rf_sysfs_line(list, sizeof(list),
                           "%s/sys/devices/system/node/node%zu/cpulist", root,
                           i) ||
            !rf_cpus_read(list, &node.cpus)) {
            continue;
        }
        CPU_AND(&node.cpus, &node.cpus, among);
        if (CPU_COUNT(&node.cpus) > 0) {
            RF_PUSH(*out, n, capacity, node);
        }
    }
    return n;
}

uint32_t rf_cpus_node_of(const char *root, const cpu_set_t *cpus)
{
    struct rf_numa_node *nodes;
    const size_t n = rf_cpus_nodes(root, cpus, &nodes);
    const uint32_t number = n == 1 && CPU_EQUAL(&nodes[0].cpus, cpus)
                                ? nodes[0].number
                                : RF_ABSENT_U32;
    free(nodes);
    return number;
}

size_t rf_cpus_cores(const char *root, const cpu_set_t *cpus, cpu_set_t **out)
{
    cpu_set_t left = *cpus;
    size_t n = 0, capacity = 0;
    *out = NULL;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        char list[LIST_SIZE];
        cpu_set_t core;
        if (!CPU_ISSET(i, &left)) {
            continue;
        }
        rf_sysfs_line(
            list, sizeof(list),
            "%s/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
            root, i);
        if (!rf_cpus_read(list, &core) || !CPU_ISSET(i, &core)) {
            CPU_ZERO(&core);
            CPU_SET(i, &core);
        }
        CPU_AND(&core, &core, &left);
        CPU_XOR(&left, &left, &core);
        RF_PUSH(*out, n, capacity, core);
    }
    return n;
}
