/* Scenarios taken on another thread. See planning.h. */
#include "coordinator/commands/planning.h"

#include <stdlib.h>

#include "common/mem.h"

struct planning {
    uv_work_t work;
    struct rf_scenarios *scenarios;
    size_t index;
    struct rf_scenario *scenario;
    struct rf_err why;
    rf_planned_fn planned;
    void *data;
};

static void work_cb(uv_work_t *work)
{
    struct planning *planning = work->data;
    if (rf_scenarios_take(planning->scenarios, planning->index,
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

void rf_planning_start(uv_loop_t *loop, struct rf_scenarios *scenarios,
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
