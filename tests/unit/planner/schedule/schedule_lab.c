/* Plans and schedules from JSON texts. See schedule_lab.h. */
#include "tests/unit/planner/schedule/schedule_lab.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/predict/simulate.h"
#include "planner/schedule/delivery.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/unit.h"

enum rf_status lab_make(struct planned *lab, const char *model,
                        const char *scenario, const uint32_t *slots,
                        uint32_t n_nodes)
{
    RF_TRY(planned_make(lab, model, scenario, slots, n_nodes));
    RF_TRY(rf_schedule_build(lab->plan, RF_NONE, &lab->schedule, &lab->err));
    RF_TRY(rf_schedule_prove(lab->plan, lab->schedule, &lab->err));
    lab_list_ops(lab->schedule);
    return rf_schedule_prove(lab->plan, lab->schedule, &lab->err);
}

void lab_list_ops(struct rf_schedule *schedule)
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
    rf_deliveries_destroy(schedule->deliveries);
    free(schedule->ops);
    schedule->deliveries = NULL;
    schedule->ops = ops;
    schedule->n_ops = n;
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

double lab_ms(const struct planned *lab, const struct rf_schedule *schedule,
              double latency_us)
{
    const char *node_names[512];
    struct rf_simulated found;
    AUTO(rf_capacities) links;
    lab_links(&links, lab->world->n_nodes, 0, 0, 1);
    for (size_t n = 0; n < RF_ARRAY_SIZE(node_names); n++) {
        node_names[n] = "node";
    }
    for (uint32_t i = 0; i < links.n_nodes * links.n_nodes; i++) {
        links.pair_latency_us[i] = latency_us;
    }
    ck_assert_int_eq(
        rf_simulate(&(struct rf_simulate_env){.plan = lab->plan,
                                              .schedule = schedule,
                                              .links = &links,
                                              .node_names = node_names},
                    &found, NULL),
        RF_OK);
    return found.ms;
}
