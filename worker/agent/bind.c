/* Deals out processors to slots. See bind.h. */
#include "worker/agent/bind.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "worker/shared/cpus.h"

#define KEY "$.launch.bind"

struct core {
    cpu_set_t cpus;
    size_t node; /* index into places.nodes */
};

/* Where slots can be. */
struct places {
    struct rf_numa_node *nodes;
    struct core *cores; /* node by node */
    size_t n_nodes, n_cores;
    size_t *home; /* by slot: index into nodes */
};

static void add_cores(const char *root, size_t node, struct places *places)
{
    cpu_set_t *cores;
    const size_t n = rf_cpus_cores(root, &places->nodes[node].cpus, &cores);
    places->cores =
        rf_xrealloc(places->cores, places->n_cores + n, sizeof(*places->cores));
    for (size_t i = 0; i < n; i++) {
        places->cores[places->n_cores++] = (struct core){cores[i], node};
    }
    free(cores);
}

static enum rf_status find_places(const struct rf_bind_how *how, bool by_core,
                                  struct places *places, struct rf_err *err)
{
    places->n_nodes = rf_cpus_nodes(how->root, how->allowed, &places->nodes);
    if (places->n_nodes == 0 && !by_core) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          KEY ": \"numa\": this kernel names no NUMA nodes "
                              "(/sys/devices/system/node; is /sys there?); use "
                              "\"core\" or \"none\"");
    }
    if (places->n_nodes == 0) { /* cores can be told without */
        places->nodes = rf_xcalloc(1, sizeof(*places->nodes));
        places->nodes[0].cpus = *how->allowed;
        places->n_nodes = 1;
    }
    for (size_t i = 0; i < places->n_nodes; i++) {
        add_cores(how->root, i, places);
    }
    return RF_OK;
}

static const struct rf_msg_topology_gpu *
find_gpu(const struct rf_msg_topology *where, uint32_t index)
{
    for (size_t i = 0; i < where->n_gpus; i++) {
        if (where->gpus[i].index == index) {
            return &where->gpus[i];
        }
    }
    return NULL;
}

/* Puts each slot on the node of its GPU. False if that is not possible. */
static bool follow_gpus(const struct rf_bind_how *how, struct places *places)
{
    if (how->where == NULL || how->where->n_gpus == 0) {
        return false;
    }
    for (uint32_t s = 0; s < how->bind->slots; s++) {
        const struct rf_msg_topology_gpu *gpu = find_gpu(how->where, s);
        size_t i = 0;
        while (gpu != NULL && i < places->n_nodes &&
               places->nodes[i].number != gpu->pci.numa_node) {
            i++;
        }
        if (gpu == NULL || i == places->n_nodes) {
            if (places->n_nodes > 1) {
                rf_warn(KEY ": the NUMA node of the GPU of slot %u is unknown "
                            "or has no processor that this process may use; "
                            "slots are dealt out over NUMA nodes instead",
                        s);
            }
            return false;
        }
        places->home[s] = i;
    }
    return true;
}

/* Slot s is where core s·cores/slots is: with a core for each slot, no node gets
 * more slots than it has cores. */
static void deal_out(uint32_t n_slots, struct places *places)
{
    for (size_t s = 0; s < n_slots; s++) {
        places->home[s] = places->cores[s * places->n_cores / n_slots].node;
    }
}

/* Slot `at` of the `of` slots on a node gets its share of the node's cores. */
static enum rf_status share_cores(const struct places *places, size_t node,
                                  size_t at, size_t of, cpu_set_t *out,
                                  struct rf_err *err)
{
    size_t first = 0, n = 0;
    assert(of > 0);
    while (places->cores[first].node != node) {
        first++;
    }
    while (first + n < places->n_cores &&
           places->cores[first + n].node == node) {
        n++;
    }
    if (n < of) {
        char *cpus = rf_cpus_text(&places->nodes[node].cpus);
        const enum rf_status status = rf_err_set(
            err, RF_ERR_UNSUPPORTED,
            KEY ": \"core\" needs a core for each slot, but %zu slots "
                "would share %zu core%s (processors %s); use \"numa\" "
                "or fewer slots, or let the worker use more processors "
                "(taskset, srun --cpus-per-task, the container's "
                "cpuset)",
            of, n, n == 1 ? "" : "s", cpus);
        free(cpus);
        return status;
    }
    CPU_ZERO(out);
    for (size_t i = first + at * n / of; i < first + (at + 1) * n / of; i++) {
        CPU_OR(out, out, &places->cores[i].cpus);
    }
    return RF_OK;
}

static enum rf_status fill(const struct places *places, bool by_core,
                           uint32_t n_slots, cpu_set_t *slots,
                           struct rf_err *err)
{
    for (uint32_t s = 0; s < n_slots; s++) {
        const size_t node = places->home[s];
        size_t at = 0, of = 0;
        for (uint32_t other = 0; other < n_slots; other++) {
            at += other < s && places->home[other] == node;
            of += places->home[other] == node;
        }
        slots[s] = places->nodes[node].cpus;
        if (by_core) {
            RF_TRY(share_cores(places, node, at, of, &slots[s], err));
        }
    }
    return RF_OK;
}

enum rf_status rf_bind_slots(const struct rf_bind_how *how, cpu_set_t **out,
                             struct rf_err *err)
{
    const struct rf_msg_bind *bind = how->bind;
    const bool by_core = strcmp(bind->to, "core") == 0;
    struct places places = {.n_nodes = 0};
    cpu_set_t *slots;
    enum rf_status status;
    if (!by_core && strcmp(bind->to, "numa") != 0) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          KEY ": this worker does not know \"%.40s\"",
                          bind->to);
    }
    slots = rf_xcalloc(bind->slots, sizeof(*slots));
    places.home = rf_xcalloc(bind->slots, sizeof(*places.home));
    status = find_places(how, by_core, &places, err);
    if (status == RF_OK && !follow_gpus(how, &places)) {
        deal_out(bind->slots, &places);
    }
    RF_THEN(status, fill(&places, by_core, bind->slots, slots, err));
    free(places.nodes);
    free(places.cores);
    free(places.home);
    if (status != RF_OK) {
        free(slots);
        return status;
    }
    *out = slots;
    return RF_OK;
}
