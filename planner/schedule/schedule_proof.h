/*
 * The state of the proof of a schedule, which reads the ops in ascending order
 * of id. Private to schedule_prove.c and *_prove.c.
 */
#ifndef RF_PLANNER_SCHEDULE_SCHEDULE_PROOF_H
#define RF_PLANNER_SCHEDULE_SCHEDULE_PROOF_H

#include "planner/schedule/delivery.h"
#include "planner/schedule/schedule.h"

/* Addresses [low, high). */
struct rf_range {
    uint64_t low, high;
};

struct rf_rank_state {
    uint32_t task, first_round, end_round;
    bool busy;
    size_t first_piece; /* its first inference piece, counted over all ranks */
    struct rf_range used[RF_IN_FLIGHT_MAX]; /* by slot: addresses that its
                                               groups use */
};

/* One write to staging memory. It copies the first sort keys from its op, so
 * that sorting rarely reads the ops. */
struct rf_stage_write {
    uint32_t dst, family;
    uint64_t origin; /* address of element 0 of the family, modulo 2^64 */
    const struct rf_op *op;
};

/* A box that appears once in a whole: a piece of inference memory (counted over
 * all ranks) or what a route brings. */
struct rf_box_in {
    size_t whole;
    const struct rf_box *box;
};

struct rf_boxes_in {
    const struct rf_box_in *boxes;
    size_t n;
    const uint64_t *elements; /* per whole */
    size_t n_wholes;
};

struct rf_schedule_proof {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule;
    struct rf_rank_state *ranks;
    size_t n_pieces;
    struct rf_box_in *writes; /* to pieces */
    size_t n_writes;
    uint32_t group; /* the last one; RF_NO_GROUP: none */
    uint32_t floor; /* the first round in which its ops may be */
    uint32_t ends[RF_IN_FLIGHT_MAX]; /* by slot: the first round after its
                                        groups so far */
    struct rf_stage_write *stage;    /* the group's writes to staging memory */
    size_t n_stage, stage_capacity;
    struct rf_err *err;
};

/* RF_ERR_INTERNAL with the op and the fault `what`. */
enum rf_status rf_schedule_proof_fault(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       const char *what) RF_MUST_CHECK;

/* Checks that `op` reads what its dep wrote, at the same place. */
enum rf_status rf_schedule_proof_reads(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       const struct rf_op *dep) RF_MUST_CHECK;

/* Checks that `op`, the first of those in rounds before `end`, waits for the
 * lower groups of its slot. */
enum rf_status rf_schedule_proof_enter(struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       uint64_t end) RF_MUST_CHECK;

/* Checks and notes a write to rank `dst`'s staging memory at the place that
 * `op`, owned by the schedule, writes. */
enum rf_status rf_schedule_proof_stages(struct rf_schedule_proof *proof,
                                        const struct rf_op *op,
                                        uint32_t dst) RF_MUST_CHECK;

/* Whether an op has the forms of its memories, and converts at the right end.
 */
bool rf_schedule_proof_forms(const struct rf_plan *plan,
                             const struct rf_op *op);

/* Checks an op that should have the id `id`; its dependency is ops[dep]. */
enum rf_status rf_schedule_proof_op(struct rf_schedule_proof *proof,
                                    const struct rf_op *op,
                                    uint64_t id) RF_MUST_CHECK;

/* Whether the boxes in each whole are disjoint and fill it; otherwise *bad is
 * the first whole that fails. */
bool rf_schedule_proof_fill(const struct rf_boxes_in *all, size_t *bad);

/* Whether an end of an op, at `offset`, lies in a piece. */
bool rf_schedule_proof_lies_in(const struct rf_piece *piece,
                               const struct rf_op *op, uint64_t offset,
                               const uint64_t *stride);
/* Whether the bytes that an op reads lie in a piece of its source's layout. */
bool rf_schedule_proof_held(const struct rf_rank_layout *layout,
                            const struct rf_op *op);

/* Whether a box fits into a receiver's piece; notes it as written. */
bool rf_schedule_proof_receives(struct rf_schedule_proof *proof,
                                const struct rf_holder *to, uint32_t family,
                                const struct rf_box *box);

/* Checks the group's writes to staging memory, then forgets them. */
enum rf_status
rf_schedule_proof_group(struct rf_schedule_proof *proof) RF_MUST_CHECK;
/* The final check: staging memory suffices, and its slots do not overlap. */
enum rf_status
rf_schedule_proof_slots(const struct rf_schedule_proof *proof) RF_MUST_CHECK;

/* Checks a whole schedule of deliveries; notes the writes to pieces, and of
 * ranks whose staging memory sees the same writes those of one. */
enum rf_status
rf_deliveries_prove(struct rf_schedule_proof *proof) RF_MUST_CHECK;
/* Copies that rank's staging addresses to the others. */
void rf_deliveries_prove_alike(struct rf_schedule_proof *proof);

#endif
