/*
 * What a START message describes, read back into the planner's objects. The
 * agent needs it to know which ranks are its own, each rank to plan.
 */
#ifndef RF_WORKER_TASK_H
#define RF_WORKER_TASK_H

#include <jansson.h>

#include "planner/world.h"

struct rf_task {
    json_t *start; /* owned; strings below are borrowed from it */
    json_int_t attempt;
    struct rf_model *model;
    struct rf_spec *spec;
    struct rf_world *world;
    const char **node_names;
    const char **node_addresses; /* the name where no address is given */
    uint32_t n_nodes;
};

/* Reads `start` (a new reference is taken). */
enum rf_status rf_task_load(json_t *start, struct rf_task **out,
                            struct rf_err *err) RF_MUST_CHECK;
void rf_task_destroy(struct rf_task *scenario); /* NULL is fine */

#endif
