/*
 * Unit tasks: the boxes that a refit moves, each with all ranks that hold it on
 * the training side and all ranks that need it on the inference side. The unit
 * tasks of a plan are disjoint and together cover everything that the inference
 * side needs, so a strategy may choose sources and paths for each separately.
 *
 * They come from the plan's shards and their matches, not from its transfers;
 * shards that overlap partly are cut into disjoint parts.
 */
#ifndef RF_PLANNER_PLAN_UNIT_TASK_H
#define RF_PLANNER_PLAN_UNIT_TASK_H

#include "planner/plan/plan.h"

/* A rank that has a box, and the piece that contains it. */
struct rf_holder {
    uint32_t rank;
    uint32_t number;              /* piece number in the rank's layout */
    const struct rf_piece *piece; /* borrowed from the plan */
};

struct rf_unit_task {
    uint32_t family;
    struct rf_box box;
    size_t first_src, first_dst; /* positions in rf_unit_tasks.holders */
    uint32_t n_src, n_dst;       /* both ≥ 1; ascending by rank */
};

struct rf_unit_tasks {
    struct rf_unit_task *of; /* by family, destination box, source box */
    size_t n, capacity;
    struct rf_holder *holders;
    size_t n_holders, holders_capacity;
};

/* Finds the unit tasks of a plan; rf_unit_tasks_free() frees them. */
enum rf_status rf_unit_tasks_build(const struct rf_plan *plan,
                                   struct rf_unit_tasks *out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_unit_tasks_free(struct rf_unit_tasks *units);

#endif
