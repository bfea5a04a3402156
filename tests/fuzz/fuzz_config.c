/*
 * Any bytes as a cluster file: read, and each scenario planned as far as it
 * goes. What is accepted must print as a scenario that reads back the same, and
 * its plan must prove. Large worlds and models are skipped: they are slow, not
 * different.
 */
#include <stdint.h>
#include <stdlib.h>

#include "coordinator/config/config.h"
#include "coordinator/scenario/scenario.h"
#include "planner/families/model_read.h"
#include "tests/lib/plan_proof.h"

#define MAX_RANKS 64
#define MAX_BYTES (UINT64_C(64) << 20)
#define MAX_SCENARIOS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool small_enough(const struct rf_config *config)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        slots += config->slots[i];
    }
    return slots <= MAX_RANKS && config->n_scenarios <= MAX_SCENARIOS;
}

static void check_spec(const struct rf_config *config, size_t index)
{
    struct rf_err err;
    struct rf_jnode node = rf_config_scenario(config, index);
    struct rf_spec *spec = NULL, *again = NULL;
    if (rf_spec_from_json(&node, config->node_names, config->n_nodes, &spec,
                          &err) != RF_OK) {
        return;
    }
    json_t *printed = rf_spec_to_json(spec, config->node_names);
    struct rf_jnode root = rf_jnode_root(printed, "printed");
    must(rf_spec_from_json(&root, config->node_names, config->n_nodes, &again,
                           &err) == RF_OK);
    json_t *twice = rf_spec_to_json(again, config->node_names);
    must(json_equal(printed, twice));
    json_decref(printed);
    json_decref(twice);
    rf_spec_destroy(spec);
    rf_spec_destroy(again);
}

static void check_plans(const struct rf_config *config)
{
    struct rf_err err;
    struct rf_jnode root = rf_jnode_root(config->model, config->file);
    struct rf_model *model = NULL;
    if (rf_model_from_json(&root, &model, &err) != RF_OK) {
        return;
    }
    if (model->bytes <= MAX_BYTES && model->n_tensors <= 4096) {
        for (size_t i = 0; i < config->n_scenarios; i++) {
            struct rf_scenario *scenario = NULL;
            if (rf_scenario_build(config, model, i, &scenario, &err) == RF_OK) {
                must(plan_prove(scenario->plan, &err) == RF_OK);
                rf_scenario_destroy(scenario);
            }
        }
    }
    rf_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_err err;
    json_t *document = NULL;
    struct rf_config *config = NULL;
    if (rf_json_parse((const char *)data, size, "cluster.json", &document,
                      &err) != RF_OK ||
        rf_config_from_json(document, "cluster.json", false, &config, &err) !=
            RF_OK) {
        return 0;
    }
    if (small_enough(config)) {
        for (size_t i = 0; i < config->n_scenarios; i++) {
            check_spec(config, i);
        }
        check_plans(config);
    }
    rf_config_destroy(config);
    return 0;
}
