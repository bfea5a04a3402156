/* Reads START. See scenario.h. The coordinator has checked all of it before;
 * an error here means that the two programs differ. */
#include "worker/task.h"

#include <stdlib.h>

#include "common/json.h"
#include "common/mem.h"

static enum rf_status load_nodes(struct rf_task *scenario,
                                 const struct rf_jnode *nodes, uint32_t *slots,
                                 struct rf_err *err)
{
    for (uint32_t i = 0; i < scenario->n_nodes; i++) {
        struct rf_jnode node = rf_jnode_at(nodes, i);
        struct rf_jnode address = rf_jnode_get(&node, "address");
        enum rf_status status = rf_jnode_require(&node, "name", err);
        if (status == RF_OK) {
            status =
                rf_jnode_string(&node, "name", &scenario->node_names[i], err);
        }
        if (status == RF_OK) {
            status =
                rf_jnode_u32(&node, "slots", 0, UINT32_MAX - 1, &slots[i], err);
        }
        if (status != RF_OK) {
            return status;
        }
        scenario->node_addresses[i] = json_is_string(address.value)
                                          ? json_string_value(address.value)
                                          : scenario->node_names[i];
    }
    return RF_OK;
}

static enum rf_status build(struct rf_task *scenario,
                            const struct rf_jnode *root, const uint32_t *slots,
                            struct rf_err *err)
{
    struct rf_jnode model = rf_jnode_get(root, "model");
    struct rf_jnode spec = rf_jnode_get(root, "scenario");
    enum rf_status status = rf_model_from_json(&model, &scenario->model, err);
    if (status == RF_OK) {
        status = rf_spec_from_json(&spec, scenario->node_names,
                                   scenario->n_nodes, &scenario->spec, err);
    }
    if (status == RF_OK) {
        status = rf_world_build(scenario->spec, scenario->model, slots,
                                scenario->n_nodes, &scenario->world, err);
    }
    return status;
}

enum rf_status rf_task_load(json_t *start, struct rf_task **out,
                            struct rf_err *err)
{
    struct rf_jnode root = rf_jnode_root(start, "START");
    struct rf_jnode nodes = rf_jnode_get(&root, "nodes");
    struct rf_task *scenario;
    uint32_t *slots;
    enum rf_status status;
    if (!json_is_array(nodes.value) || json_array_size(nodes.value) == 0 ||
        json_array_size(nodes.value) >= RF_NONE) {
        return rf_jnode_fail(&nodes, err, "must be an array of nodes");
    }
    scenario = rf_xcalloc(1, sizeof(*scenario));
    scenario->start = json_incref(start);
    scenario->attempt = json_integer_value(json_object_get(start, "attempt"));
    scenario->n_nodes = (uint32_t)json_array_size(nodes.value);
    scenario->node_names =
        rf_xcalloc(scenario->n_nodes, sizeof(*scenario->node_names));
    scenario->node_addresses =
        rf_xcalloc(scenario->n_nodes, sizeof(*scenario->node_addresses));
    slots = rf_xcalloc(scenario->n_nodes, sizeof(*slots));
    status = load_nodes(scenario, &nodes, slots, err);
    if (status == RF_OK) {
        status = build(scenario, &root, slots, err);
    }
    free(slots);
    if (status != RF_OK) {
        rf_task_destroy(scenario);
        return status;
    }
    *out = scenario;
    return RF_OK;
}

void rf_task_destroy(struct rf_task *scenario)
{
    if (scenario == NULL) {
        return;
    }
    rf_world_destroy(scenario->world);
    rf_spec_destroy(scenario->spec);
    rf_model_destroy(scenario->model);
    free(scenario->node_names);
    free(scenario->node_addresses);
    json_decref(scenario->start);
    free(scenario);
}
