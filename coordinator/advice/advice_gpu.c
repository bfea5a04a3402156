/*
 * Rules of advice (advice.c) about GPUs and about adapters' access to them.
 * They apply only to scenarios that need these: methods between GPUs; the rules
 * between nodes also need ranks on several nodes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/advice/advice_rules.h"

/* With less, adapters cannot register the buffers of NCCL and NVSHMEM. */
#define LOW_MEMLOCK_BYTES (UINT64_C(1) << 30)

/* A node's devices that ranks of a scenario may use and that have a given
 * problem. */
struct devices {
    uint32_t n;
    uint64_t processes, bytes, errors; /* sums */
    const char *why;                   /* of the first; borrowed */
};

typedef bool (*wrong_fn)(const struct rf_msg_gpu *gpu);

static bool in_use(const struct rf_msg_gpu *gpu)
{
    return gpu->processes != RF_ABSENT_U32 && gpu->processes > 0;
}

static bool has_errors(const struct rf_msg_gpu *gpu)
{
    return gpu->ecc_errors != RF_ABSENT_U64 && gpu->ecc_errors > 0;
}

static bool is_slowed(const struct rf_msg_gpu *gpu)
{
    return gpu->slowed != NULL;
}

static void add_device(const struct rf_msg_gpu *gpu, struct devices *out)
{
    if (out->n++ == 0) {
        out->why = gpu->slowed;
    }
    out->processes += gpu->processes != RF_ABSENT_U32 ? gpu->processes : 0;
    out->bytes += gpu->foreign_bytes != RF_ABSENT_U64 ? gpu->foreign_bytes : 0;
    out->errors += gpu->ecc_errors != RF_ABSENT_U64 ? gpu->ecc_errors : 0;
}

/* "GPUs 0, 2 of beta: " for the devices with a problem; NULL: none. Slot n is
 * device n, so devices beyond the slots are unused. */
static char *find_devices(const struct rf_advice_view *view, wrong_fn wrong,
                          struct devices *out)
{
    const struct rf_msg_hello *hello = view->hello;
    size_t slots = view->config->slots[view->node];
    char *list = NULL, *text = NULL;
    *out = (struct devices){.n = 0};
    for (size_t i = 0; i < RF_MIN(hello->n_gpus, slots); i++) {
        if (wrong(&hello->gpus[i])) {
            rf_text_add(&list, ", ", "%" PRIu32, hello->gpus[i].index);
            add_device(&hello->gpus[i], out);
        }
    }
    if (rf_scenario_on_device(view->scenario) && list != NULL) {
        text = rf_xasprintf("GPU%s %s of %s: ", out->n == 1 ? "" : "s", list,
                            view->host);
    }
    free(list);
    return text;
}

char *rf_advice_rule_gpus_in_use(const struct rf_advice_view *view)
{
    struct devices found;
    char *text = find_devices(view, in_use, &found), bytes[32];
    if (text != NULL) {
        rf_text_add(&text, "",
                    "used by other processes (%" PRIu64
                    " process%s, %s), which slow the refit and take memory; "
                    "end them (nvidia-smi lists them) or exclude these GPUs "
                    "(CUDA_VISIBLE_DEVICES in launch.env)",
                    found.processes, found.processes == 1 ? "" : "es",
                    rf_format_bytes(found.bytes, bytes, sizeof(bytes)));
    }
    return text;
}

char *rf_advice_rule_gpus_with_errors(const struct rf_advice_view *view)
{
    struct devices found;
    char *text = find_devices(view, has_errors, &found);
    if (text != NULL) {
        rf_text_add(&text, "",
                    "%" PRIu64
                    " uncorrectable ECC error%s since the driver was "
                    "loaded: ranks may die; reset the device "
                    "(nvidia-smi --gpu-reset) or leave the node out",
                    found.errors, found.errors == 1 ? "" : "s");
    }
    return text;
}

char *rf_advice_rule_gpus_slowed(const struct rf_advice_view *view)
{
    struct devices found;
    char *text = find_devices(view, is_slowed, &found);
    if (text != NULL) {
        rf_text_add(&text, "",
                    "clocks are throttled (%s): times are too long; check "
                    "cooling and power (nvidia-smi -q -d PERFORMANCE)",
                    found.why);
    }
    return text;
}

/* --- Between nodes -------------------------------------------------------- */

/* Whether the scenario moves bytes from this node's GPUs to those of others.
 * False, too, if the node's adapters are unknown. */
static bool crosses(const struct rf_advice_view *view)
{
    const struct rf_scenario *scenario = view->scenario;
    const struct rf_config *config = view->config;
    uint32_t others = 0;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        others += i != view->node && rf_scenario_node_ranks(scenario, i) > 0;
    }
    return rf_scenario_on_device(scenario) && others > 0 &&
           view->hello->rdma != NULL;
}

static bool any_dmabuf(const struct rf_msg_hello *hello)
{
    for (size_t i = 0; i < hello->n_gpus; i++) {
        if (hello->gpus[i].dmabuf) {
            return true;
        }
    }
    return false;
}

char *rf_advice_rule_no_adapter(const struct rf_advice_view *view)
{
    if (!crosses(view) || view->hello->rdma->adapters > 0) {
        return NULL;
    }
    return rf_xasprintf("%s has no RDMA adapter (/sys/class/infiniband): "
                        "method %s goes over TCP between nodes",
                        view->host, view->scenario->spec->method);
}

char *rf_advice_rule_no_verbs(const struct rf_advice_view *view)
{
    const struct rf_msg_rdma *rdma = view->hello->rdma;
    if (!crosses(view) || rdma->adapters == 0 || rdma->verbs) {
        return NULL;
    }
    return rf_xasprintf("%s has %" PRIu32 " RDMA adapters, but no "
                        "/dev/infiniband/uverbs* can be opened: NCCL falls "
                        "back to TCP between nodes and NVSHMEM may not start; "
                        "give the container /dev/infiniband, or the user the "
                        "right to open it",
                        view->host, rdma->adapters);
}

/* Applies only if the adapters are usable. */
char *rf_advice_rule_no_peermem(const struct rf_advice_view *view)
{
    const struct rf_msg_rdma *rdma = view->hello->rdma;
    if (!crosses(view) || !rdma->verbs || rdma->adapters == 0 ||
        rdma->peermem || any_dmabuf(view->hello)) {
        return NULL;
    }
    return rf_xasprintf(
        "%s has neither nvidia-peermem nor dma-buf support: method %s copies "
        "through host memory between nodes; load nvidia-peermem (modprobe), or "
        "use NVIDIA's open kernel modules and Linux 5.12 or later",
        view->host, view->scenario->spec->method);
}

char *rf_advice_rule_low_memlock(const struct rf_advice_view *view)
{
    const struct rf_msg_hello *hello = view->hello;
    char limit[32];
    if (!crosses(view) || hello->rdma->adapters == 0 ||
        hello->memlock_bytes >= LOW_MEMLOCK_BYTES) {
        return NULL;
    }
    return rf_xasprintf(
        "ranks on %s may lock %s of memory (RLIMIT_MEMLOCK), too little for "
        "adapters to register buffers: method %s may fail between nodes; set "
        "memlock to unlimited (limits.conf, LimitMEMLOCK of sshd, --ulimit "
        "memlock=-1)",
        view->host, rf_format_bytes(hello->memlock_bytes, limit, sizeof(limit)),
        view->scenario->spec->method);
}

static const struct rf_msg_topology_nic *
find_nic(const struct rf_msg_topology *topology, const char *name)
{
    size_t i = 0;
    while (i < topology->n_nics && strcmp(topology->nics[i].name, name) != 0) {
        i++;
    }
    return i < topology->n_nics ? &topology->nics[i] : NULL;
}

/* Whether GPU and nearest NICs are known to be on different NUMA nodes. */
static bool is_far(const struct rf_msg_topology *topology,
                   const struct rf_msg_topology_gpu *gpu)
{
    const uint32_t own = gpu->pci.numa_node;
    bool far = own != RF_ABSENT_U32 && gpu->nearest_nics.n > 0;
    for (size_t i = 0; i < gpu->nearest_nics.n; i++) {
        const struct rf_msg_topology_nic *nic =
            find_nic(topology, gpu->nearest_nics.list[i]);
        far = far && nic != NULL && nic->pci.numa_node != RF_ABSENT_U32 &&
              nic->pci.numa_node != own;
    }
    return far;
}

char *rf_advice_rule_far_nics(const struct rf_advice_view *view)
{
    const struct rf_msg_topology *topology = view->hello->topology;
    char *list = NULL, *text = NULL;
    uint32_t n = 0;
    if (!crosses(view) || topology == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < topology->n_gpus; i++) {
        const struct rf_msg_topology_gpu *gpu = &topology->gpus[i];
        if (gpu->index < view->config->slots[view->node] &&
            is_far(topology, gpu)) {
            rf_text_add(&list, ", ", "%" PRIu32, gpu->index);
            n++;
        }
    }
    if (list != NULL) {
        text = rf_xasprintf(
            "GPU%s %s of %s: the nearest NIC is on another NUMA node, so bytes "
            "to other nodes cross between processors, which may be slower; use "
            "GPUs beside a NIC (CUDA_VISIBLE_DEVICES in launch.env)",
            n == 1 ? "" : "s", list, view->host);
    }
    free(list);
    return text;
}
