/*
 * Loads a START message into the planner's objects. The agent uses them to find
 * its ranks, each rank to plan.
 */
#ifndef RF_WORKER_SHARED_START_TASK_H
#define RF_WORKER_SHARED_START_TASK_H

#include "planner/scenario/world.h"
#include "transport/control/message_fields.h"

struct rf_start_task {
    struct rf_model *model;
    struct rf_spec *spec;
    struct rf_world *world;
    const char **node_names;     /* borrowed from START */
    const char **node_addresses; /* likewise; the name if there is no address */
    uint32_t n_nodes;
};

/* `start` must outlive the task. An unknown key that the coordinator requires
 * is RF_ERR_CONFIG with the key's path. */
enum rf_status rf_start_task_load(const struct rf_msg_start *start,
                                  struct rf_start_task **out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The same for an agent, which only places ranks. Ignores unknown keys: ranks
 * refuse them, so that the node stays available for other scenarios. */
enum rf_status rf_start_task_place(const struct rf_msg_start *start,
                                   struct rf_start_task **out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_start_task_destroy(struct rf_start_task *task); /* NULL is fine */

#endif
