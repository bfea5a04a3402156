#include "coordinator/preflight/preflight.h"

#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/preflight/addresses.h"
#include "coordinator/preflight/folders.h"
#include "coordinator/preflight/hello.h"
#include "transport/info/method_info.h"

static const char *host_of(const struct rf_scenario *scenario, uint32_t node)
{
    return scenario->config->node_names[node];
}

/* Advice for a node without GPUs. */
static const char *without_gpus(const struct rf_scenario *scenario)
{
    const struct rf_config *config = scenario->config;
    if (strcmp(scenario->spec->method,
               rf_method_infos[RF_METHOD_UCX_CUDA].name) != 0) {
        return "; method host (Megatron-LM's gloo) needs no GPU";
    }
    return json_object_get(config->scenarios[scenario->index].value,
                           "memory") != NULL
               ? "; omit \"memory\": method ucx in host memory needs no GPU"
               : "; method ucx needs no GPU";
}

static enum rf_status check_method(const struct rf_scenario *scenario,
                                   const struct rf_msg_hello *const *hellos,
                                   uint32_t node, struct rf_err *err)
{
    const char *method = scenario->spec->method, *why;
    if (rf_hello_offers(hellos[node], method, &why)) {
        return RF_OK;
    }
    return rf_err_set(
        err, RF_ERR_UNSUPPORTED, "method %s cannot be used on %s: %s%s", method,
        host_of(scenario, node), why,
        rf_scenario_on_device(scenario) && hellos[node]->n_gpus == 0
            ? without_gpus(scenario)
            : "");
}

/* Slot n uses GPU n, or, where slots share GPUs, n modulo their number. */
static enum rf_status check_each_gpu(const struct rf_scenario *scenario,
                                     const struct rf_msg_hello *hello,
                                     uint32_t node, struct rf_err *err)
{
    const struct rf_world *world = scenario->world;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const struct rf_rank *rank = &world->ranks[r];
        const char *why = hello->n_gpus > 0 && rank->node == node
                              ? hello->gpus[rank->slot % hello->n_gpus].why
                              : NULL;
        if (why != NULL) {
            return rf_err_set(
                err, RF_ERR_UNSUPPORTED, "method %s cannot be used on %s: %s",
                scenario->spec->method, host_of(scenario, node), why);
        }
    }
    return RF_OK;
}

static enum rf_status check_gpus(const struct rf_scenario *scenario,
                                 const struct rf_msg_hello *const *hellos,
                                 uint32_t node, struct rf_err *err)
{
    const size_t gpus = hellos[node]->n_gpus;
    const uint32_t slots = rf_scenario_node_slots(scenario, node);
    if (!rf_scenario_on_device(scenario)) {
        return RF_OK;
    }
    if (gpus >= slots || rf_config_shares_gpus(scenario->config)) {
        return check_each_gpu(scenario, hellos[node], node, err);
    }
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "%s has %zu GPU%s for %u slot%s; each needs one",
                      host_of(scenario, node), gpus, gpus == 1 ? "" : "s",
                      slots, slots == 1 ? "" : "s");
}

static const char *nccl_version(const struct rf_msg_hello *hello)
{
    return hello != NULL && hello->nccl != NULL ? hello->nccl->version : NULL;
}

/* All nodes must have the NCCL of the first node in use. */
static enum rf_status check_nccl(const struct rf_scenario *scenario,
                                 const struct rf_msg_hello *const *hellos,
                                 uint32_t node, struct rf_err *err)
{
    const char *mine, *theirs;
    uint32_t first = 0;
    if (!scenario->method->needs_one_nccl) {
        return RF_OK;
    }
    while (rf_scenario_node_ranks(scenario, first) == 0) {
        first++;
    }
    mine = nccl_version(hellos[node]);
    theirs = nccl_version(hellos[first]);
    if (mine == NULL || theirs == NULL || strcmp(mine, theirs) == 0) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "%s has NCCL %.40s, %s has %.40s: they must be the same",
                      host_of(scenario, node), mine, host_of(scenario, first),
                      theirs);
}

/* A node's own limit; no group has this number. */
#define OWN RF_ABSENT_U64

static bool shares(const struct rf_msg_hello *const *hellos, uint32_t node,
                   uint32_t other, uint64_t group)
{
    const struct rf_msg_hello *hello = hellos[other];
    if (node == other || !rf_hello_same_machine(hellos[node], hello)) {
        return node == other;
    }
    for (size_t i = 0; i < hello->n_memory_limits; i++) {
        if (hello->memory_limits[i].group == group) {
            return true;
        }
    }
    return false;
}

/* Several nodes may be one machine and share its memory and perhaps control
 * groups: their total demand must fit. */
static enum rf_status check_limit(const struct rf_scenario *scenario,
                                  const struct rf_msg_hello *const *hellos,
                                  uint32_t node,
                                  const struct rf_msg_memory_limit *limit,
                                  struct rf_err *err)
{
    const uint64_t available = limit->available_bytes;
    uint64_t need = 0;
    uint32_t names = 0;
    char a[32], b[32];
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        const uint64_t bytes = rf_scenario_node_bytes(scenario, i);
        if (bytes > 0 && shares(hellos, node, i, limit->group)) {
            need += bytes;
            names++;
        }
    }
    if (need <= available) {
        return RF_OK;
    }
    return rf_err_set(
        err, RF_ERR_NOMEM,
        "needs %s of memory on %s%s, which has %s available (%llu and %llu "
        "bytes); use fewer layers (\"num_layers\") or more nodes",
        rf_format_bytes(need, a, sizeof(a)), host_of(scenario, node),
        names < 2           ? ""
        : limit->group == 0 ? " and the other names of that machine"
                            : " and the other names in its control group",
        rf_format_bytes(available, b, sizeof(b)), (unsigned long long)need,
        (unsigned long long)available);
}

static enum rf_status check_memory(const struct rf_scenario *scenario,
                                   const struct rf_msg_hello *const *hellos,
                                   uint32_t node, struct rf_err *err)
{
    const struct rf_msg_hello *hello = hellos[node];
    const struct rf_msg_memory_limit own = {OWN, hello->memory_available_bytes};
    enum rf_status status;
    if (rf_scenario_on_device(scenario)) {
        return RF_OK;
    }
    status = check_limit(scenario, hellos, node, &own, err);
    for (size_t i = 0; i < hello->n_memory_limits && status == RF_OK; i++) {
        status =
            check_limit(scenario, hellos, node, &hello->memory_limits[i], err);
    }
    return status;
}

/* The threads of a rank's load run at the same time. */
static enum rf_status check_load(const struct rf_scenario *scenario,
                                 const struct rf_msg_hello *const *hellos,
                                 uint32_t node, struct rf_err *err)
{
    const struct rf_load_spec *load = &scenario->spec->load;
    const uint32_t cpus = hellos[node]->cpus; /* absent: RF_ABSENT_U32 */
    const struct rf_jnode place =
        rf_config_scenario(scenario->config, scenario->index);
    const struct rf_jnode loads = rf_jnode_get(&place, "load");
    const struct rf_jnode cores = rf_jnode_get(&loads, "cores");
    if (rf_scenario_loaded_ranks(scenario, node) == 0 ||
        rf_load_threads(load) <= cpus) {
        return RF_OK;
    }
    return rf_jnode_within(
        &cores,
        rf_err_set(err, RF_ERR_UNSUPPORTED,
                   "%u for each rank%s, but %s has %u processor%s; lower "
                   "\"cores\"",
                   load->cores,
                   load->network ? ", and as many that receive" : "",
                   host_of(scenario, node), cpus, cpus == 1 ? "" : "s"),
        err);
}

typedef enum rf_status (*check_fn)(const struct rf_scenario *scenario,
                                   const struct rf_msg_hello *const *hellos,
                                   uint32_t node, struct rf_err *err);

enum rf_status rf_preflight_node(const struct rf_scenario *scenario,
                                 const struct rf_msg_hello *const *hellos,
                                 uint32_t node, struct rf_err *err)
{
    static const check_fn checks[] = {check_method, check_gpus, check_nccl,
                                      check_memory, check_load};
    enum rf_status status = RF_OK;
    for (size_t c = 0; c < RF_ARRAY_SIZE(checks) && status == RF_OK; c++) {
        status = checks[c](scenario, hellos, node, err);
    }
    return status;
}

static enum rf_status check_nodes(const struct rf_scenario *scenario,
                                  const struct rf_preflight_join *join,
                                  const struct rf_msg_hello *const *hellos,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < scenario->config->n_nodes && status == RF_OK;
         i++) {
        const char *lost = rf_preflight_join_lost(join, i);
        if (rf_scenario_node_ranks(scenario, i) == 0) {
            continue;
        }
        status = lost == NULL ? rf_preflight_node(scenario, hellos, i, err)
                              : rf_err_set(err, RF_ERR_PEER,
                                           "node %s was lost earlier: %s",
                                           host_of(scenario, i), lost);
    }
    return status;
}

enum rf_status rf_preflight_check(const struct rf_scenario *scenario,
                                  const struct rf_preflight_join *join,
                                  struct rf_err *err)
{
    const struct rf_msg_hello *const *hellos = rf_preflight_join_hellos(join);
    enum rf_status status = check_nodes(scenario, join, hellos, err);
    RF_THEN(status, rf_folders_check(scenario, hellos, err));
    RF_THEN(status, rf_addresses_check(scenario, hellos, err));
    return status;
}
