/* Scenarios that are planned once. See scenarios.h. */
#include "coordinator/commands/scenarios.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

/* What a planned scenario takes beside its operations: the file's object, the
 * layouts, and for each rank its loads (measured: 30 to 120 KiB for 2 to 20
 * ranks). */
#define BASE_BYTES (32 << 10)
#define RANK_BYTES (4 << 10)

struct rf_scenarios {
    const struct rf_config *config;
    const struct rf_model *model;
    struct rf_scenario **kept; /* by index; NULL: not kept, or taken */
    uint64_t left_bytes;       /* of the budget */
    size_t n_planned;
};

static enum rf_status plan(struct rf_scenarios *scenarios, size_t index,
                           struct rf_scenario **out, struct rf_err *err)
{
    int64_t begun_ns = rf_now_ns();
    enum rf_status status =
        rf_scenario_build(scenarios->config, scenarios->model, index, out, err);
    if (status != RF_OK) {
        return status;
    }
    scenarios->n_planned++;
    rf_debug("scenario %s: planned in %.1f ms", (*out)->spec->name,
             (double)(rf_now_ns() - begun_ns) / 1e6);
    return RF_OK;
}

/* About the memory that a scenario holds, rather more than less. */
static uint64_t memory_of(const struct rf_scenario *scenario)
{
    return BASE_BYTES + RANK_BYTES * (uint64_t)scenario->world->n_ranks +
           rf_schedule_memory(scenario->schedule);
}

static void keep(struct rf_scenarios *scenarios, struct rf_scenario *scenario)
{
    uint64_t bytes = memory_of(scenario);
    if (bytes > scenarios->left_bytes) {
        rf_scenario_destroy(scenario);
        return;
    }
    scenarios->left_bytes -= bytes;
    scenarios->kept[scenario->index] = scenario;
}

enum rf_status rf_scenarios_plan(const struct rf_config *config,
                                 const struct rf_model *model,
                                 uint64_t budget_bytes,
                                 struct rf_scenarios **out, struct rf_err *err)
{
    struct rf_scenarios *scenarios = rf_xcalloc(1, sizeof(*scenarios));
    *scenarios = (struct rf_scenarios){
        .config = config,
        .model = model,
        .kept = rf_xcalloc(config->n_scenarios + 1, sizeof(*scenarios->kept)),
        .left_bytes = budget_bytes};
    for (size_t i = 0; i < config->n_scenarios; i++) {
        struct rf_scenario *scenario = NULL;
        enum rf_status status = plan(scenarios, i, &scenario, err);
        if (status != RF_OK) {
            rf_scenarios_destroy(scenarios);
            return status;
        }
        keep(scenarios, scenario);
    }
    *out = scenarios;
    return RF_OK;
}

void rf_scenarios_destroy(struct rf_scenarios *scenarios)
{
    if (scenarios == NULL) {
        return;
    }
    for (size_t i = 0; i < scenarios->config->n_scenarios; i++) {
        rf_scenario_destroy(scenarios->kept[i]);
    }
    free(scenarios->kept);
    free(scenarios);
}

enum rf_status rf_scenarios_take(struct rf_scenarios *scenarios, size_t index,
                                 struct rf_scenario **out, struct rf_err *err)
{
    struct rf_scenario *scenario = scenarios->kept[index];
    if (scenario == NULL) {
        return plan(scenarios, index, out, err);
    }
    scenarios->kept[index] = NULL;
    scenarios->left_bytes += memory_of(scenario);
    *out = scenario;
    return RF_OK;
}

void rf_scenarios_return(struct rf_scenarios *scenarios,
                         struct rf_scenario *scenario)
{
    keep(scenarios, scenario);
}

size_t rf_scenarios_planned(const struct rf_scenarios *scenarios)
{
    return scenarios->n_planned;
}
