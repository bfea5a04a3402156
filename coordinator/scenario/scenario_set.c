/* Scenarios that are planned once. See scenario_set.h. */
#include "coordinator/scenario/scenario_set.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"

/* Memory of a planned scenario besides its operations: the file's object, the
 * layouts, and the loads of each rank (measured: 30 to 120 KiB for 2 to 20
 * ranks). */
#define BASE_BYTES (32 << 10)
#define RANK_BYTES (4 << 10)

#define SKIPS_SHOWN 10

#define NO_SKIP                                                                \
    "; \"impossible\": \"skip\" cannot leave it out after the nodes have "     \
    "been "                                                                    \
    "asked for the checkpoint's headers: take it out of the file, or mount "   \
    "the folder on this machine under the same path"

struct rf_scenario_set {
    const struct rf_config *config;
    const struct rf_model *model;
    struct rf_scenario **kept; /* by index; NULL: not kept, or taken */
    uint64_t left_bytes;       /* of the budget */
};

static void note(const struct rf_scenario *scenario)
{
    rf_debug("scenario %s: planned in %.1f ms", scenario->spec->name,
             (double)scenario->built_ns / 1e6);
}

/* Whether the file allows to skip a scenario that failed with `why`. */
static bool may_skip(const struct rf_scenario_config *scenario,
                     enum rf_status why)
{
    return scenario->skip &&
           (why == RF_ERR_CONFIG || why == RF_ERR_UNSUPPORTED);
}

enum rf_status rf_scenario_set_try(struct rf_config *config,
                                   const struct rf_model *model, size_t index,
                                   struct rf_scenario **out, struct rf_err *err)
{
    while (index < config->n_scenarios) {
        struct rf_err why = {0};
        enum rf_status status =
            rf_scenario_build(config, model, index, out, &why);
        if (status == RF_OK) {
            return RF_OK;
        }
        if (!may_skip(&config->scenarios[index], status)) {
            *err = why;
            return status;
        }
        rf_config_skip(config, index, why.text);
    }
    return config->n_scenarios > 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_CONFIG,
                            "no scenario left: %zu impossible, the first: %s",
                            config->n_skipped, config->skipped[0].reason);
}

/* ", 2 not selected", or nothing. */
static void add(char **text, size_t n, const char *what)
{
    if (n > 0) {
        rf_text_add(text, ", ", "%zu %s", n, what);
    }
}

/* The summary, which the caller frees; NULL: nothing to say. */
static char *count(const struct rf_config *config)
{
    const json_t *written = json_object_get(config->document, "scenarios");
    const size_t n = config->n_scenarios;
    const size_t left = config->n_in_file - n;
    char *text;
    if (left + config->n_equal_left == 0 && n == json_array_size(written)) {
        return NULL;
    }
    text = left > 0 ? rf_xasprintf("%zu of %zu scenarios", n, config->n_in_file)
                    : rf_xasprintf("%zu scenario%s", n, n == 1 ? "" : "s");
    add(&text, config->n_equal_left, "equal left out");
    add(&text, config->n_skipped, "skipped");
    add(&text, config->n_slow_left, "slow left out");
    add(&text, left - config->n_skipped - config->n_slow_left, "not selected");
    return text;
}

void rf_scenario_set_announce(const struct rf_config *config)
{
    char *text = count(config);
    if (text != NULL) {
        rf_info("%s", text);
    }
    for (size_t i = 0; i < config->n_skipped; i++) {
        rf_log(i < SKIPS_SHOWN ? RF_LOG_INFO : RF_LOG_DEBUG, "skipped: %s",
               config->skipped[i].reason);
    }
    if (config->n_skipped > SKIPS_SHOWN) {
        rf_info("skipped: %zu more (--verbose shows all, run.json lists them)",
                config->n_skipped - SKIPS_SHOWN);
    }
    free(text);
}

/* Approximate memory of a scenario, rather too high than too low. */
static uint64_t memory_of(const struct rf_scenario *scenario)
{
    return BASE_BYTES + RANK_BYTES * (uint64_t)scenario->world->n_ranks +
           rf_schedule_memory(scenario->schedule);
}

/* Warns, of the first of such scenarios, that its encoding has no effect. */
static void warn_of_staging(const struct rf_scenario *scenario, bool *warned)
{
    const struct rf_spec *spec = scenario->spec;
    if (!*warned && spec->encoding != RF_ENCODING_DENSE &&
        scenario->schedule->stage_bytes != NULL) {
        rf_warn("scenario %s: strategy %s moves whole weights whatever the "
                "encoding, through staging that holds none before: choose "
                "another strategy to move only what changed",
                spec->name, rf_strategy_name(spec->strategy));
        *warned = true;
    }
}

static void keep(struct rf_scenario_set *scenarios,
                 struct rf_scenario *scenario)
{
    uint64_t bytes = memory_of(scenario);
    if (bytes > scenarios->left_bytes) {
        rf_scenario_destroy(scenario);
        return;
    }
    scenarios->left_bytes -= bytes;
    scenarios->kept[scenario->index] = scenario;
}

/* Builds a scenario of a configuration that keeps its scenarios. */
static enum rf_status build_late(const struct rf_config *config,
                                 const struct rf_model *model, size_t index,
                                 struct rf_scenario **out, struct rf_err *err)
{
    struct rf_err why = {0};
    const enum rf_status status =
        rf_scenario_build(config, model, index, out, &why);
    return status == RF_OK
               ? RF_OK
               : rf_err_set(err, status, "%s%s", why.text,
                            may_skip(&config->scenarios[index], status)
                                ? NO_SKIP
                                : "");
}

/* `skips` is `config` if scenarios may be removed from it, otherwise NULL. */
static enum rf_status plan_all(const struct rf_config *config,
                               struct rf_config *skips,
                               const struct rf_model *model,
                               uint64_t budget_bytes,
                               struct rf_scenario_set **out, struct rf_err *err)
{
    struct rf_scenario_set *scenarios = rf_xcalloc(1, sizeof(*scenarios));
    enum rf_status status = RF_OK;
    bool warned = false;
    *scenarios = (struct rf_scenario_set){
        .config = config,
        .model = model,
        .kept = rf_xcalloc(config->n_scenarios + 1, sizeof(*scenarios->kept)),
        .left_bytes = budget_bytes};
    for (size_t i = 0; status == RF_OK && i < config->n_scenarios; i++) {
        struct rf_scenario *scenario = NULL;
        status = skips != NULL
                     ? rf_scenario_set_try(skips, model, i, &scenario, err)
                     : build_late(config, model, i, &scenario, err);
        if (scenario != NULL) {
            note(scenario);
            warn_of_staging(scenario, &warned);
            keep(scenarios, scenario);
        }
    }
    if (status != RF_OK) {
        rf_scenario_set_destroy(scenarios);
        return status;
    }
    rf_scenario_set_announce(config);
    *out = scenarios;
    return RF_OK;
}

enum rf_status rf_scenario_set_plan(struct rf_config *config,
                                    const struct rf_model *model,
                                    uint64_t budget_bytes,
                                    struct rf_scenario_set **out,
                                    struct rf_err *err)
{
    return plan_all(config, config, model, budget_bytes, out, err);
}

enum rf_status rf_scenario_set_plan_late(const struct rf_config *config,
                                         const struct rf_model *model,
                                         uint64_t budget_bytes,
                                         struct rf_scenario_set **out,
                                         struct rf_err *err)
{
    return plan_all(config, NULL, model, budget_bytes, out, err);
}

void rf_scenario_set_destroy(struct rf_scenario_set *scenarios)
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

enum rf_status rf_scenario_set_take(struct rf_scenario_set *scenarios,
                                    size_t index, struct rf_scenario **out,
                                    struct rf_err *err)
{
    struct rf_scenario *scenario = scenarios->kept[index];
    if (scenario == NULL) {
        RF_TRY(rf_scenario_build(scenarios->config, scenarios->model, index,
                                 out, err));
        note(*out);
        return RF_OK;
    }
    scenarios->kept[index] = NULL;
    scenarios->left_bytes += memory_of(scenario);
    *out = scenario;
    return RF_OK;
}

void rf_scenario_set_return(struct rf_scenario_set *scenarios,
                            struct rf_scenario *scenario)
{
    keep(scenarios, scenario);
}
