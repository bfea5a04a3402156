/* Plans from texts. See planned.h. */
#include "tests/lib/planned.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/model_read.h"
#include "planner/layout/mesh_rules.h"
#include "planner/plan/plan_walk.h"
#include "tests/lib/quotes.h"

static enum rf_status parse(struct planned *planned, int which,
                            const char *text, struct rf_jnode *out)
{
    enum rf_status status =
        rf_json_parse(Q(text), strlen(text), "test", &planned->documents[which],
                      &planned->err);
    if (status == RF_OK) {
        *out = rf_jnode_root(planned->documents[which], "test");
    }
    return status;
}

const char *const planned_nodes[] = {"n0", "n1", "n2", "n3", "n4",  "n5",
                                     "n6", "n7", "n8", "n9", "n10", "n11"};

enum rf_status planned_make(struct planned *planned, const char *model,
                            const char *scenario, const uint32_t *slots,
                            uint32_t n_nodes)
{
    struct rf_err *err = &planned->err;
    struct rf_jnode root;
    enum rf_status status;
    memset(planned, 0, sizeof(*planned));
    status = parse(planned, 0, model, &root);
    if (status == RF_OK) {
        status = rf_model_from_json(&root, &planned->model, err);
    }
    if (status == RF_OK) {
        status = parse(planned, 1, scenario, &root);
    }
    if (status == RF_OK) {
        status = rf_spec_from_json(&root, planned_nodes, n_nodes,
                                   &planned->spec, err);
    }
    if (status == RF_OK) {
        status = rf_mesh_rules_place(planned->spec, planned->model, slots,
                                     n_nodes, &planned->world, err);
    }
    if (status == RF_OK) {
        status = rf_plan_build(planned->model, planned->world, planned->spec,
                               &planned->plan, err);
    }
    if (status != RF_OK) {
        struct rf_err why = *err;
        planned_free(planned);
        planned->err = why;
    }
    return status;
}

enum rf_status planned_of_arguments(struct planned *planned,
                                    const char *model_path,
                                    const char *scenario, const char *slots)
{
    uint32_t counts[8], n_nodes = 0;
    json_error_t error;
    json_t *config = json_load_file(model_path, 0, &error), *model;
    char *text, *end;
    enum rf_status status;
    if (config == NULL) {
        memset(planned, 0, sizeof(*planned));
        return rf_err_set(&planned->err, RF_ERR_CONFIG, "%s: %s", model_path,
                          error.text);
    }
    model = json_pack("{so}", "config", config);
    text = json_dumps(model, 0);
    json_decref(model);
    do {
        counts[n_nodes++] = (uint32_t)strtoul(slots, &end, 10);
        slots = end + 1;
    } while (*end == ',' && n_nodes < RF_ARRAY_SIZE(counts));
    status = planned_make(planned, text, scenario, counts, n_nodes);
    free(text);
    return status;
}

void planned_free(struct planned *planned)
{
    rf_schedule_destroy(planned->schedule);
    rf_plan_destroy(planned->plan);
    rf_world_destroy(planned->world);
    rf_spec_destroy(planned->spec);
    rf_model_destroy(planned->model);
    json_decref(planned->documents[0]);
    json_decref(planned->documents[1]);
    memset(planned, 0, sizeof(*planned));
}

struct rf_transfer *planned_transfers(const struct rf_plan *plan)
{
    struct rf_transfer *all = rf_xcalloc(plan->n_transfers + 1, sizeof(*all));
    struct rf_plan_walk walk;
    size_t n = 0;
    rf_plan_walk_start(&walk, plan);
    while (rf_plan_walk_step(&walk)) {
        if (n == plan->n_transfers) {
            abort();
        }
        all[n++] = *rf_plan_walk_transfer(&walk);
    }
    rf_plan_walk_end(&walk);
    if (n != plan->n_transfers) {
        abort();
    }
    return all;
}
