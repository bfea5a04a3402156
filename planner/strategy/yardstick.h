/*
 * The yardstick of a refit: the same traffic in its plainest form. Between each
 * two ranks (and inside each) it moves as many bytes, with the same casts, as
 * the refit's schedule does, but as contiguous runs that wait for nothing. It
 * is a schedule too, over the same arenas, so that every method can run it and
 * a refit can be compared with what its method and this machine could do at
 * that moment. What it writes is of no use to anybody.
 */
#ifndef RF_PLANNER_STRATEGY_YARDSTICK_H
#define RF_PLANNER_STRATEGY_YARDSTICK_H

#include "planner/schedule/schedule.h"

/*
 * Makes the yardstick of `schedule`, whose ops touch one node or the world; so
 * do those of *out. `left` says by op which ones the method carries out without
 * moving bytes: these are not charged. NULL: none.
 *
 * The ops of two ranks that agree in memories and cast become one run, or as
 * few as fit into both memories. A run has the id, the task and, where the
 * schedule is serialised, the round of the first op in it, so the two nodes
 * that it joins know it by the same id; otherwise all runs are of one round.
 * Runs begin at multiples of 256 bytes where there is room.
 * - Destinations in inference memory do not overlap; there is room since each
 *   byte is written once. Staging memory takes more than it holds: a run that
 *   does not fit behind the last one begins at its start again.
 * - Sources follow each other in the same way, and also begin again.
 * - Offsets in the memory of a rank that is on another node than the ops that
 *   were kept are inside it, but that node may choose others. No method uses
 *   them.
 *
 * Beside the runs it takes 16 bytes for each op of `schedule` while it works.
 */
struct rf_schedule *rf_yardstick_build(const struct rf_plan *plan,
                                       const struct rf_schedule *schedule,
                                       const bool *left);

/* What it moves through one rank's memory and its node's link, as payload: half
 * of what is read and half of what is written, on the wire once. */
struct rf_yardstick_traffic {
    uint64_t copied_bytes; /* to this rank from ranks of its node, and itself */
    uint64_t peer_bytes;   /* to this rank from any other, on the wire */
    uint64_t sent_bytes, received_bytes; /* to and from other nodes */
};

/* All ops of `rank` must be in the yardstick. */
void rf_yardstick_traffic(const struct rf_plan *plan,
                          const struct rf_schedule *yardstick, uint32_t rank,
                          struct rf_yardstick_traffic *out);

#endif
