/* Scenarios taken on another thread. See plan_thread.h. */
#include "coordinator/commands/plan_thread.h"

#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/commands/load.h"

struct planning {
    uv_work_t work;
    struct rf_scenario_set *scenarios;
    size_t index;
    struct rf_scenario *scenario;
    struct rf_err why;
    rf_planned_fn planned;
    void *data;
};

static void work_cb(uv_work_t *work)
{
    struct planning *planning = work->data;
    if (rf_scenario_set_take(planning->scenarios, planning->index,
                             &planning->scenario, &planning->why) != RF_OK) {
        planning->scenario = NULL;
    }
}

static void after_cb(uv_work_t *work, int status)
{
    struct planning *planning = work->data;
    (void)status; /* never cancelled */
    planning->planned(planning->scenario, &planning->why, planning->data);
    free(planning);
}

void rf_plan_thread_start(uv_loop_t *loop, struct rf_scenario_set *scenarios,
                          size_t index, rf_planned_fn planned, void *data)
{
    struct planning *planning = rf_xmalloc(sizeof(*planning));
    *planning = (struct planning){.work.data = planning,
                                  .scenarios = scenarios,
                                  .index = index,
                                  .planned = planned,
                                  .data = data};
    uv_queue_work(loop, &planning->work, work_cb, after_cb);
}

struct planning_all {
    uv_work_t work;
    const struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario_set *scenarios;
    struct rf_err why;
    rf_all_planned_fn planned;
    void *data;
};

static void work_all_cb(uv_work_t *work)
{
    struct planning_all *all = work->data;
    if (rf_load_model(all->config, &all->model, &all->why) == RF_OK &&
        rf_scenario_set_plan_late(all->config, all->model, RF_SCENARIOS_BYTES,
                                  &all->scenarios, &all->why) != RF_OK) {
        rf_model_destroy(all->model);
        all->model = NULL;
    }
}

static void after_all_cb(uv_work_t *work, int status)
{
    struct planning_all *all = work->data;
    (void)status; /* never cancelled */
    all->planned(all->model, all->scenarios, &all->why, all->data);
    free(all);
}

void rf_plan_thread_start_all(uv_loop_t *loop, const struct rf_config *config,
                              rf_all_planned_fn planned, void *data)
{
    struct planning_all *all = rf_xmalloc(sizeof(*all));
    *all = (struct planning_all){
        .work.data = all, .config = config, .planned = planned, .data = data};
    uv_queue_work(loop, &all->work, work_all_cb, after_all_cb);
}
