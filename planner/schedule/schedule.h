/*
 * A schedule: the plan as operations ("ops"), each one copy of a box from one
 * rank's memory to another's, with its dependency. Strategies differ only in
 * their ops, so every method can run every strategy.
 *
 * Execution rules, the same for every method:
 *  1. An op may start when its `dep` (if any) is complete: the op that wrote,
 *     at op.src, the bytes that this one reads. dep's destination is op.src.
 *  2. Group g uses slot g % in_flight, also of staging memory. A slot has one
 *     group at a time at each rank: an op may start when, at both its ranks,
 *     all ops of lower groups of its slot are complete.
 *  3. With `serialize`, a rank takes part in the ops between different ranks
 *     of one `task` at a time, in ascending task number: an op may start when,
 *     at both its ranks, all such ops of lower tasks are complete. Ops of one
 *     task may overlap (a chain forwards one chunk while it receives the
 *     next); a direct op is a separate task. Local copies (src = dst) are not
 *     counted.
 *  4. A method that needs lockstep (NCCL groups) runs rounds in ascending
 *     order; ops of one round do not wait for each other by rules 1 to 3.
 *  5. Ascending id is always a legal order of execution, and goes group after
 *     group. Of the ops from one rank to another that may start, the one with
 *     the lowest id should move first and alone, so that a relay gets its first
 *     chunk early and not all chunks at the end.
 */
#ifndef RF_PLANNER_SCHEDULE_SCHEDULE_H
#define RF_PLANNER_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/plan/plan.h"
#include "planner/schedule/op.h"

struct rf_deliveries;

struct rf_schedule {
    struct rf_op *ops; /* ascending id; for a node: all that touch it */
    size_t n_ops;
    struct rf_deliveries *deliveries; /* NULL, or all ops of the world, none of
                                         which is in `ops` (delivery.h) */
    uint64_t n_world_ops;             /* over all ranks */
    uint32_t n_rounds;
    uint32_t in_flight;    /* for rule 2, 1 to RF_IN_FLIGHT_MAX */
    uint64_t *stage_bytes; /* per world rank, or NULL: 0 */
    uint64_t wire_bytes;   /* between different ranks, over all ops */
    uint64_t inter_node_bytes;
    uint64_t *rank_send, *rank_recv; /* bytes of each world rank (all ops) */
    uint64_t *node_send, *node_recv; /* bytes of each node's link (all ops) */
    uint64_t *node_copy;       /* bytes copied inside each node (all ops) */
    uint64_t *node_peer;       /* of these, between different ranks */
    uint64_t *node_write;      /* bytes that these copies write */
    uint64_t *rank_ops;        /* ops that touch each world rank */
    uint32_t n_ranks, n_nodes; /* lengths of these arrays */
    struct rf_hash digest;     /* over all ops of the world */
};

/* Creates a schedule without ops and with zero sums. */
struct rf_schedule *rf_schedule_create(const struct rf_world *world);
/* Adds `n` ops to the sums of the world, whether or not the schedule keeps
 * them: in total `bytes` on the wire and `written` at the destination. */
void rf_schedule_count(struct rf_schedule *schedule,
                       const struct rf_world *world, uint32_t src, uint32_t dst,
                       uint64_t n, uint64_t bytes, uint64_t written);
void rf_schedule_destroy(struct rf_schedule *schedule);

/* Walks the ops of a schedule, ascending by id, without changing it. */
struct rf_schedule_walk {
    const struct rf_schedule *schedule;
    size_t next;       /* in `ops`, or the delivery */
    uint64_t at;       /* the next op of that delivery */
    struct rf_op made; /* the last op returned from it */
};

void rf_schedule_walk_start(struct rf_schedule_walk *walk,
                            const struct rf_schedule *schedule);
/* The next op; NULL after the last. Valid until the next call. */
const struct rf_op *rf_schedule_walk_next(struct rf_schedule_walk *walk);

/* Finds the op with an id. False when the schedule does not have it. */
bool rf_schedule_find(const struct rf_schedule *schedule, uint32_t id,
                      struct rf_op *out);

/* The index in `ops` of the op with an id; n_ops when it is not there. */
size_t rf_schedule_index(const struct rf_schedule *schedule, uint32_t id);

/* Calls `each` with the number of ops from one rank to another and their bytes,
 * at least once for each such pair. The time is proportional to the stored
 * data, not to the ops of the world. */
typedef void (*rf_schedule_pair_fn)(uint32_t src, uint32_t dst, uint64_t n_ops,
                                    uint64_t bytes, void *data);
void rf_schedule_pairs(const struct rf_schedule *schedule,
                       rf_schedule_pair_fn each, void *data);

/* Calls `each` with a size in bytes and the number of ops of that size between
 * different ranks, until all are listed. The time is proportional to the stored
 * data and the chunks. */
typedef void (*rf_schedule_size_fn)(uint64_t bytes, uint64_t n_ops, void *data);
void rf_schedule_sizes(const struct rf_schedule *schedule,
                       rf_schedule_size_fn each, void *data);

/* The bytes of one of a rank's memories; 0: it has none. */
uint64_t rf_schedule_arena_bytes(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 uint32_t rank, enum rf_mem mem);

/* The approximate memory of the ops in bytes, rather too high: arrays grow by
 * up to doubling. */
uint64_t rf_schedule_memory(const struct rf_schedule *schedule);

/* Proves that every destination byte of the plan is written exactly once to
 * RF_MEM_INFER, that every op reads bytes that the training side holds or an
 * earlier op (its dep) wrote, and that staging fits. For whole-world schedules;
 * the coordinator runs it for every scenario. */
enum rf_status rf_schedule_prove(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
