/* Schedules of nodes against the schedule of the world. */
#ifndef RF_TESTS_SCHEDULE_PARTS_H
#define RF_TESTS_SCHEDULE_PARTS_H

#include "planner/schedule/schedule.h"

/* Builds the schedule of the world and of every node: a node's has exactly the
 * world's ops that touch it, the same totals and digest; together the nodes
 * have all ops; and the world's is proved. Fails the test with `what`. */
void schedule_parts_check(const struct rf_plan *plan, const char *what);

#endif
