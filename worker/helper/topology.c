/*
 * See topology.h. A device's folder in /sys/devices is its PCI path:
 *
 *     /sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0
 *
 * is below a root complex, a root port and the two ports of a switch. Two
 * devices are the nearer, the more of their paths they share (as NCCL and hwloc
 * measure it); below different root complexes the NUMA node decides.
 */
#include "worker/helper/topology.h"

#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "worker/shared/cpus.h"
#include "worker/shared/sysfs.h"

#define DEVICES "/sys/devices/"
#define TEXT_SIZE 256
#define PATH_BYTES_MAX 1023 /* as in HELLO */

/* Bytes of a PCI address ("0000:18:00.0") at `text`; 0: there is none. */
static size_t address_size(const char *text)
{
    unsigned domain, bus, device, function;
    int size = 0;
    return sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
                  &size) == 4 &&
                   (text[size] == '\0' || text[size] == '/')
               ? (size_t)size
               : 0;
}

/* Ends the folder of a device after its PCI function, of which it may be a
 * virtio device ("0000:00:03.0/virtio2"). False if it belongs to none. */
static bool cut_to_function(char *folder)
{
    char *last = strrchr(folder, '/');
    if (last != NULL && strncmp(last, "/virtio", 7) == 0) {
        *last = '\0';
        last = strrchr(folder, '/');
    }
    return last != NULL && address_size(last + 1) > 0;
}

/* Fills in the place of the device whose folder `link` names. False if it is no
 * PCI device. */
static bool find_place(const char *link, struct rf_msg_pci *out)
{
    char folder[PATH_MAX], speed[TEXT_SIZE];
    const char *path;
    int64_t node, lanes;
    double gtransfers;
    if (realpath(link, folder) == NULL || !cut_to_function(folder)) {
        return false;
    }
    path = strstr(folder, DEVICES);
    if (path == NULL || strlen(path) > PATH_BYTES_MAX) {
        return false;
    }
    rf_schema_init(&rf_msg_pci_schema, out);
    out->path = rf_xstrdup(path + strlen(DEVICES));
    rf_text_clean(out->path, strlen(out->path));
    node = rf_sysfs_number("%s/numa_node", folder);
    out->numa_node =
        node >= 0 && node <= UINT16_MAX ? (uint32_t)node : RF_ABSENT_U32;
    rf_sysfs_line(speed, sizeof(speed), "%s/current_link_speed", folder);
    gtransfers = strtod(speed, NULL); /* "32.0 GT/s PCIe", "Unknown" */
    out->gtransfers_per_s =
        gtransfers > 0 && gtransfers < 1e6 ? gtransfers : RF_ABSENT_REAL;
    lanes = rf_sysfs_number("%s/current_link_width", folder);
    out->lanes = lanes >= 1 && lanes <= 64 ? (uint32_t)lanes : RF_ABSENT_U32;
    return true;
}

/* --- NICs ----------------------------------------------------------------- */

static int64_t interface_mbit(const char *folder)
{
    return rf_sysfs_number("%s/speed", folder);
}

/* Of the fastest port that is active. */
static int64_t rdma_mbit(const char *folder)
{
    char *pattern = rf_xasprintf("%s/ports/*", folder);
    int64_t best = RF_ABSENT_I64;
    glob_t ports;
    if (glob(pattern, 0, NULL, &ports) == 0) {
        for (size_t i = 0; i < ports.gl_pathc; i++) {
            if (rf_sysfs_port_is_active(ports.gl_pathv[i])) {
                best = RF_MAX(best, rf_sysfs_port_mbit(ports.gl_pathv[i]));
            }
        }
        globfree(&ports);
    }
    free(pattern);
    return best;
}

/* The entry of the PCI function, a new one if there is none; NULL: no room. */
static struct rf_msg_topology_nic *entry_of(struct rf_msg_topology *topology,
                                            struct rf_msg_pci *pci,
                                            const char *name)
{
    struct rf_msg_topology_nic *nic = topology->nics;
    for (size_t i = 0; i < topology->n_nics; i++) {
        if (strcmp(nic[i].pci.path, pci->path) == 0) {
            rf_schema_free(&rf_msg_pci_schema, pci);
            return &nic[i];
        }
    }
    if (topology->n_nics == RF_MSG_TOPOLOGY_NICS_MAX) {
        rf_schema_free(&rf_msg_pci_schema, pci);
        return NULL;
    }
    nic = rf_xrealloc(nic, topology->n_nics + 1, sizeof(*nic));
    topology->nics = nic;
    nic += topology->n_nics++;
    rf_schema_init(&rf_msg_topology_nic_schema, nic);
    nic->name = rf_xstrdup(name);
    nic->pci = *pci;
    return nic;
}

static void add_text(struct rf_texts *texts, const char *text)
{
    texts->list = rf_xrealloc(texts->list, texts->n + 1, sizeof(*texts->list));
    texts->list[texts->n++] = rf_xstrdup(text);
}

/* Adds the PCI devices of a class: "net", or before it "infiniband", whose names
 * come first. */
static void find_nics(const char *root, const char *class, bool interfaces,
                      struct rf_msg_topology *topology)
{
    char *pattern = rf_xasprintf("%s/sys/class/%s/*", root, class);
    glob_t found;
    size_t n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    for (size_t i = 0; i < n; i++) {
        const char *folder = found.gl_pathv[i];
        char *link = rf_xasprintf("%s/device", folder);
        char *name = rf_xasprintf("%.63s", strrchr(folder, '/') + 1);
        const int64_t mbit =
            interfaces ? interface_mbit(folder) : rdma_mbit(folder);
        struct rf_msg_topology_nic *nic = NULL;
        struct rf_msg_pci pci;
        rf_text_clean(name, strlen(name));
        if (find_place(link, &pci)) {
            nic = entry_of(topology, &pci, name);
        }
        if (nic != NULL) {
            nic->speed_mbit = RF_MAX(nic->speed_mbit, mbit);
        }
        if (nic != NULL && interfaces && nic->interfaces.n < 64) {
            add_text(&nic->interfaces, name);
        }
        free(link);
        free(name);
    }
    if (n > 0) {
        globfree(&found);
    }
    free(pattern);
}

/* --- GPUs ----------------------------------------------------------------- */

/* Equal parts at the beginning of two paths. */
static size_t shared_parts(const char *a, const char *b)
{
    size_t n = 0;
    for (size_t i = 0; a[i] == b[i] && a[i] != '\0'; i++) {
        n += a[i] == '/';
    }
    return n;
}

static size_t nearness(const struct rf_msg_pci *a, const struct rf_msg_pci *b)
{
    return 2 * shared_parts(a->path, b->path) +
           (a->numa_node != RF_ABSENT_U32 && a->numa_node == b->numa_node);
}

static void find_nearest(const struct rf_msg_topology *topology,
                         struct rf_msg_topology_gpu *gpu)
{
    size_t best = 0;
    for (size_t i = 0; i < topology->n_nics; i++) {
        best = RF_MAX(best, nearness(&gpu->pci, &topology->nics[i].pci));
    }
    for (size_t i = 0; i < topology->n_nics; i++) {
        if (nearness(&gpu->pci, &topology->nics[i].pci) == best) {
            add_text(&gpu->nearest_nics, topology->nics[i].name);
        }
    }
}

/* CUDA writes addresses with capitals, NVML with a longer domain. */
static char *gpu_link(const char *root, const char *pci_bus_id)
{
    unsigned domain, bus, device, function;
    return sscanf(pci_bus_id, "%8x:%2x:%2x.%1x", &domain, &bus, &device,
                  &function) == 4
               ? rf_xasprintf("%s/sys/bus/pci/devices/%04x:%02x:%02x.%x", root,
                              domain, bus, device, function)
               : NULL;
}

static void find_gpus(const char *root, const struct rf_msg_gpu *gpus,
                      size_t n_gpus, struct rf_msg_topology *topology)
{
    topology->gpus = rf_xcalloc(n_gpus + 1, sizeof(*topology->gpus));
    for (size_t i = 0; i < n_gpus; i++) {
        char *link = gpu_link(root, gpus[i].pci_bus_id);
        struct rf_msg_topology_gpu *gpu = &topology->gpus[topology->n_gpus];
        rf_schema_init(&rf_msg_topology_gpu_schema, gpu);
        if (link != NULL && find_place(link, &gpu->pci)) {
            gpu->index = gpus[i].index;
            find_nearest(topology, gpu);
            topology->n_gpus++;
        }
        free(link);
    }
}

static void find_numa_nodes(const char *root, struct rf_msg_topology *topology)
{
    struct rf_numa_node *nodes = NULL;
    cpu_set_t allowed;
    const size_t n = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                         ? rf_cpus_nodes(root, &allowed, &nodes)
                         : 0;
    topology->numa_nodes = rf_xcalloc(n + 1, sizeof(*topology->numa_nodes));
    topology->n_numa_nodes = n;
    for (size_t i = 0; i < n; i++) {
        topology->numa_nodes[i] =
            (struct rf_msg_numa){nodes[i].number, rf_cpus_text(&nodes[i].cpus)};
    }
    free(nodes);
}

struct rf_msg_topology *
rf_topology_find(const char *root, const struct rf_msg_gpu *gpus, size_t n_gpus)
{
    struct rf_msg_topology *out = rf_schema_new(&rf_msg_topology_schema);
    find_numa_nodes(root, out);
    find_nics(root, "infiniband", false, out);
    find_nics(root, "net", true, out);
    find_gpus(root, gpus, n_gpus, out);
    return out;
}
