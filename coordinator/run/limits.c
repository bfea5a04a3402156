#include "coordinator/run/limits.h"

#include "common/mem.h"
#include "transport/info/method_info.h"

#define LEAST_S 60
#define SLOWEST_MEMORY_BYTES_PER_S UINT64_C(100000000)
#define SLOWEST_COPY_BYTES_PER_S UINT64_C(50000000)
#define SLOWEST_DISK_BYTES_PER_S UINT64_C(10000000)
#define BOUND_TIMES 40

int64_t rf_run_limit_prepare_s(const struct rf_scenario *scenario)
{
    return LEAST_S + (int64_t)(scenario->plan->totals.bytes_total /
                               SLOWEST_COPY_BYTES_PER_S);
}

int64_t rf_run_limit_memory_s(const struct rf_scenario *scenario)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        most = RF_MAX(most, rf_scenario_node_bytes(scenario, i));
    }
    return LEAST_S + (int64_t)(most / (scenario->plan->model->files != NULL
                                           ? SLOWEST_DISK_BYTES_PER_S
                                           : SLOWEST_MEMORY_BYTES_PER_S));
}

/* Through files every byte of the arenas may be written and read, and no link
 * was probed. */
static int64_t disk_s(const struct rf_scenario *scenario)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        bytes += rf_scenario_node_bytes(scenario, i);
    }
    return (int64_t)(bytes / SLOWEST_DISK_BYTES_PER_S);
}

int64_t rf_run_limit_export_s(const struct rf_scenario *scenario)
{
    return LEAST_S + disk_s(scenario);
}

int64_t rf_run_limit_iteration_s(const struct rf_scenario *scenario,
                                 double bound_ms)
{
    const uint64_t bytes = scenario->plan->totals.bytes_total;
    int64_t slowest = (int64_t)(bytes / SLOWEST_COPY_BYTES_PER_S);
    if (scenario->spec->timeout_s > 0) {
        return scenario->spec->timeout_s;
    }
    if (rf_method_info_find(scenario->spec->method)->needs_folder) {
        slowest = disk_s(scenario);
    }
    return LEAST_S + RF_MAX((int64_t)(BOUND_TIMES * bound_ms / 1e3), slowest);
}
