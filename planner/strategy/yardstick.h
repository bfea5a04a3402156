/*
 * The yardstick of a refit: the same traffic in its plainest form. Between each
 * two ranks (and inside each) it moves as many bytes, with the same casts, as
 * the refit's schedule, but as contiguous runs without dependencies. It is also
 * a schedule over the same arenas, so every method can run it, and a refit can
 * be compared with the capability of its method and machine at that moment.
 * Nobody uses the data that it writes.
 */
#ifndef RF_PLANNER_STRATEGY_YARDSTICK_H
#define RF_PLANNER_STRATEGY_YARDSTICK_H

#include "planner/schedule/schedule.h"

/*
 * Makes the yardstick of `schedule`, whose ops touch one node or the world;
 * those of *out touch the same. `left` marks the ops that the method performs
 * without moving bytes; these are not charged. NULL: none.
 *
 * The ops of two ranks with equal memories and cast become one run, or as few
 * as fit into both memories. A run has the id, the task and, if the schedule is
 * serialised, the round of its first op, so both of its nodes know it by the
 * same id; otherwise all runs are in one round. Runs begin at multiples of 256
 * bytes where there is room.
 * - Destinations in inference memory do not overlap; there is room since each
 *   byte is written once. Staging memory receives more than it holds: a run
 *   that does not fit after the last one begins at the start again.
 * - Sources follow each other in the same way, and also begin again.
 * - Offsets in the memory of a rank on another node than the stored ops' are
 *   inside it, but that node may choose others. No method uses them.
 *
 * Temporary memory beside the runs: 16 bytes for each op of `schedule`.
 */
struct rf_schedule *rf_yardstick_build(const struct rf_plan *plan,
                                       const struct rf_schedule *schedule,
                                       const bool *left);

/* Payload through one rank's memory and its node's link: half of the bytes read
 * and half of the bytes written, on the wire once. */
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
