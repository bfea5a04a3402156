/* Plans and schedules from JSON texts. See schedule_lab.h. */
#include "tests/unit/planner/schedule/schedule_lab.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/model_read.h"
#include "planner/layout/mesh_rules.h"
#include "planner/schedule/bcast.h"
#include "planner/schedule/ring.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/quotes.h"

static enum rf_status parse(struct lab *lab, int which, const char *text,
                            struct rf_jnode *out)
{
    enum rf_status status = rf_json_parse(Q(text), strlen(text), "test",
                                          &lab->documents[which], &lab->err);
    if (status == RF_OK) {
        *out = rf_jnode_root(lab->documents[which], "test");
    }
    return status;
}

enum rf_status lab_make(struct lab *lab, const char *model,
                        const char *scenario, const uint32_t *slots,
                        uint32_t n_nodes)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4",  "n5",
                                        "n6", "n7", "n8", "n9", "n10", "n11"};
    struct rf_jnode root;
    enum rf_status status;
    memset(lab, 0, sizeof(*lab));
    if ((status = parse(lab, 0, model, &root)) != RF_OK ||
        (status = rf_model_from_json(&root, &lab->model, &lab->err)) != RF_OK ||
        (status = parse(lab, 1, scenario, &root)) != RF_OK ||
        (status = rf_spec_from_json(&root, names, n_nodes, &lab->spec,
                                    &lab->err)) != RF_OK ||
        (status = rf_mesh_rules_place(lab->spec, lab->model, slots, n_nodes,
                                      &lab->world, &lab->err)) != RF_OK ||
        (status = rf_plan_build(lab->model, lab->world, lab->spec, &lab->plan,
                                &lab->err)) != RF_OK ||
        (status = rf_schedule_build(lab->plan, RF_NONE, &lab->schedule,
                                    &lab->err)) != RF_OK) {
        return status;
    }
    status = rf_schedule_prove(lab->plan, lab->schedule, &lab->err);
    lab_list_bcasts(lab->schedule);
    return status == RF_OK
               ? rf_schedule_prove(lab->plan, lab->schedule, &lab->err)
               : status;
}

void lab_list_bcasts(struct rf_schedule *schedule)
{
    struct rf_schedule_walk walk;
    const struct rf_op *op;
    struct rf_op *ops = rf_xcalloc(schedule->n_world_ops + 1, sizeof(*ops));
    size_t n = 0;
    rf_schedule_walk_start(&walk, schedule);
    while (n < schedule->n_world_ops &&
           (op = rf_schedule_walk_next(&walk)) != NULL) {
        ops[n++] = *op;
    }
    rf_bcast_template_destroy(schedule->tmpl);
    rf_rings_destroy(schedule->rings);
    free(schedule->ops);
    schedule->tmpl = NULL;
    schedule->rings = NULL;
    schedule->ops = ops;
    schedule->n_ops = n;
}

void lab_free(struct lab *lab)
{
    rf_schedule_destroy(lab->schedule);
    rf_plan_destroy(lab->plan);
    rf_world_destroy(lab->world);
    rf_spec_destroy(lab->spec);
    rf_model_destroy(lab->model);
    json_decref(lab->documents[0]);
    json_decref(lab->documents[1]);
    memset(lab, 0, sizeof(*lab));
}

void lab_links(struct rf_capacities *links, uint32_t n, double copy,
               double copy1, double pair)
{
    rf_capacities_init(links, n);
    for (uint32_t i = 0; i < n; i++) {
        links->copy_gbytes_per_s[i] = copy;
        links->copy1_gbytes_per_s[i] = copy1;
        for (uint32_t k = 0; k < n; k++) {
            links->pair_gbytes_per_s[i * n + k] = pair;
        }
    }
}
