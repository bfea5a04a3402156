/* Loads START. See start_task.h. The coordinator has checked it before; an
 * error here means that the two programs differ. Unknown keys of a newer
 * coordinator are ignored, except those it requires and those of models, all of
 * which define what to move. */
#include "worker/shared/start_task.h"

#include <stdlib.h>

#include "common/json.h"
#include "common/mem.h"
#include "planner/families/model_read.h"
#include "planner/layout/mesh_rules.h"

/* Keys that must be known: rf_jnode's `needs`. */
struct keys {
    const char *const *of_model, *const *of_scenario;
};

static enum rf_status build(struct rf_start_task *task,
                            const struct rf_msg_start *start,
                            const struct keys *keys, const uint32_t *slots,
                            struct rf_err *err)
{
    const struct rf_jnode model = {.value = start->model,
                                   .file = "START",
                                   .path = "$.model",
                                   .needs = keys->of_model};
    const struct rf_jnode spec = {.value = start->scenario,
                                  .file = "START",
                                  .path = "$.scenario",
                                  .needs = keys->of_scenario};
    enum rf_status status = rf_model_from_json(&model, &task->model, err);
    RF_THEN(status, rf_spec_from_json(&spec, task->node_names, task->n_nodes,
                                      &task->spec, err));
    RF_THEN(status, rf_mesh_rules_place(task->spec, task->model, slots,
                                        task->n_nodes, &task->world, err));
    return status;
}

static enum rf_status build_on_nodes(struct rf_start_task *task,
                                     const struct rf_msg_start *start,
                                     const struct keys *keys,
                                     struct rf_err *err)
{
    uint32_t *slots = rf_xcalloc(start->n_nodes, sizeof(*slots));
    enum rf_status status;
    task->n_nodes = (uint32_t)start->n_nodes;
    task->node_names = rf_xcalloc(task->n_nodes, sizeof(*task->node_names));
    task->node_addresses =
        rf_xcalloc(task->n_nodes, sizeof(*task->node_addresses));
    for (uint32_t i = 0; i < task->n_nodes; i++) {
        const struct rf_msg_member *node = &start->nodes[i];
        task->node_names[i] = node->name;
        task->node_addresses[i] =
            node->address != NULL ? node->address : node->name;
        slots[i] = node->slots;
    }
    status = build(task, start, keys, slots, err);
    free(slots);
    return status;
}

static enum rf_status load(const struct rf_msg_start *start,
                           const struct keys *keys, struct rf_start_task **out,
                           struct rf_err *err)
{
    struct rf_start_task *task = rf_xcalloc(1, sizeof(*task));
    enum rf_status status = build_on_nodes(task, start, keys, err);
    if (status != RF_OK) {
        rf_start_task_destroy(task);
        return status;
    }
    *out = task;
    return RF_OK;
}

enum rf_status rf_start_task_load(const struct rf_msg_start *start,
                                  struct rf_start_task **out,
                                  struct rf_err *err)
{
    const char **needs = rf_xcalloc(start->needs.n + 1, sizeof(*needs));
    enum rf_status status;
    for (size_t i = 0; i < start->needs.n; i++) {
        needs[i] = start->needs.list[i];
    }
    status = load(start, &(struct keys){NULL, needs}, out, err);
    free(needs);
    return status;
}

enum rf_status rf_start_task_place(const struct rf_msg_start *start,
                                   struct rf_start_task **out,
                                   struct rf_err *err)
{
    static const char *const none[] = {NULL};
    return load(start, &(struct keys){none, none}, out, err);
}

void rf_start_task_destroy(struct rf_start_task *task)
{
    if (task == NULL) {
        return;
    }
    rf_world_destroy(task->world);
    rf_spec_destroy(task->spec);
    rf_model_destroy(task->model);
    free(task->node_names);
    free(task->node_addresses);
    free(task);
}
