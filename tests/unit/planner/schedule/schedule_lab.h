/*
 * What tests of schedules need: plans and schedules from JSON texts, execution
 * on real bytes in any order that the rules allow, and a simulation of links.
 */
#ifndef RF_TESTS_SCHEDULE_LAB_H
#define RF_TESTS_SCHEDULE_LAB_H

#include "planner/predict/bounds.h"
#include "planner/schedule/schedule.h"
#include "tests/lib/planned.h"

/* Builds and proves everything, the schedule as deliveries and as ops; on
 * error what was made so far is freed by planned_free() and lab->err says why.
 * Nodes are called n0, n1, … */
enum rf_status lab_make(struct planned *lab, const char *model,
                        const char *scenario, const uint32_t *slots,
                        uint32_t n_nodes);

/* Lists all ops of the world in `ops` in place of its deliveries. */
void lab_list_ops(struct rf_schedule *schedule);

/*
 * Executes the schedule on real memory, picking at random among the ops that
 * may run, and compares every element of every destination piece. NULL when all
 * is well, else what is wrong.
 */
const char *lab_execute(const struct planned *lab, unsigned seed);

/*
 * Seconds that the schedule takes when every node has a full-duplex link of
 * `capacity` bytes/s that concurrent transfers share fairly and everything
 * inside a node takes no time. Between two ranks ops move one after another, of
 * those that may start the one with the lowest id first.
 */
double lab_time(const struct planned *lab, double capacity);

/* The predicted time of a schedule of at most 512 nodes, with links of 1 GB/s
 * and nothing else. */
double lab_ms(const struct planned *lab, const struct rf_schedule *schedule,
              double latency_us);

/* Figures of `n` equal nodes; rf_capacities_free() ends them. */
void lab_links(struct rf_capacities *links, uint32_t n, double copy,
               double copy1, double pair);

#endif
