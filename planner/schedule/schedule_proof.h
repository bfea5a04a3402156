/*
 * What the proof of a schedule knows while it reads the ops in ascending order
 * of id. Private to schedule_prove.c and *_prove.c.
 */
#ifndef RF_PLANNER_SCHEDULE_SCHEDULE_PROOF_H
#define RF_PLANNER_SCHEDULE_SCHEDULE_PROOF_H

#include "planner/schedule/bcast.h"
#include "planner/schedule/ring.h"
#include "planner/schedule/schedule.h"

/* Addresses [low, high). */
struct rf_range {
    uint64_t low, high;
};

/* The staging memory of one rank while ops are read in order. */
struct rf_slot_state {
    uint32_t bucket;     /* in the slot now, RF_NO_BUCKET: none */
    uint32_t read_round; /* first round after its reads */
    uint32_t floor;      /* first round in which it may be written */
};

struct rf_rank_state {
    struct rf_slot_state slot[RF_STAGE_SLOTS];
    uint32_t task, first_round, end_round;
    bool busy;
    size_t first_piece; /* of its inference pieces, counted over all ranks */
    struct rf_range used[RF_STAGE_SLOTS]; /* addresses of all buckets there */
};

/* One write to staging memory; the fields of its op that it is sorted by are
 * repeated here, so that sorting need not look at the ops. */
struct rf_stage_write {
    uint32_t dst, family;
    uint64_t origin; /* address of element 0 of the family, modulo 2^64 */
    const struct rf_op *op;
};

/* A box that goes once into a whole: a piece of inference memory (counted over
 * all ranks) or a unit task. */
struct rf_box_in {
    size_t whole;
    const struct rf_box *box;
};

struct rf_boxes_in {
    const struct rf_box_in *boxes;
    size_t n;
    const uint64_t *elements; /* of every whole */
    size_t n_wholes;
};

struct rf_schedule_proof {
    const struct rf_plan *plan;
    const struct rf_schedule *schedule;
    struct rf_rank_state *ranks;
    size_t n_pieces;
    struct rf_box_in *writes; /* to pieces */
    size_t n_writes;
    uint32_t bucket; /* the last one that was written to staging memory */
    struct rf_stage_write *stage; /* its writes */
    size_t n_stage, stage_capacity;
    struct rf_err *err;
};

/* RF_ERR_INTERNAL with the op and what is wrong with it. */
enum rf_status rf_schedule_proof_fault(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       const char *what) RF_MUST_CHECK;

/* Whether two address rules agree on a box; strides of dimensions that the box
 * does not extend in do not matter. */
bool rf_schedule_proof_same(const struct rf_box *box, uint64_t offset,
                            const uint64_t *stride, uint64_t other,
                            const uint64_t *other_stride);

/* Whether `op` reads what its dep wrote, where that wrote it. */
enum rf_status rf_schedule_proof_reads(const struct rf_schedule_proof *proof,
                                       const struct rf_op *op,
                                       const struct rf_op *dep) RF_MUST_CHECK;

/* A write to rank `dst`'s staging memory in `round`, where `op`, which is the
 * schedule's, writes: the slot is free by then. */
enum rf_status rf_schedule_proof_stages(struct rf_schedule_proof *proof,
                                        const struct rf_op *op, uint32_t dst,
                                        uint32_t round) RF_MUST_CHECK;

/* An op whose id ought to be `id`; what it depends on is ops[dep]. */
enum rf_status rf_schedule_proof_op(struct rf_schedule_proof *proof,
                                    const struct rf_op *op,
                                    uint64_t id) RF_MUST_CHECK;

/* Whether the boxes in each whole are disjoint and add up to it; if not, *bad is
 * the first whole where they do not. */
bool rf_schedule_proof_fill(const struct rf_boxes_in *all, size_t *bad);

/* Whether an end of an op, which is at `offset`, lies in a piece. */
bool rf_schedule_proof_lies_in(const struct rf_piece *piece,
                               const struct rf_op *op, uint64_t offset,
                               const uint64_t *stride);
/* Whether what an op reads lies in a piece of its source's layout. */
bool rf_schedule_proof_held(const struct rf_rank_layout *layout,
                            const struct rf_op *op);

/* Whether a box fits into a receiver's piece, which is noted as written. */
bool rf_schedule_proof_receives(struct rf_schedule_proof *proof,
                                const struct rf_holder *to, uint32_t family,
                                const struct rf_box *box);

/* The writes of the bucket, which are forgotten. */
enum rf_status
rf_schedule_proof_bucket(struct rf_schedule_proof *proof) RF_MUST_CHECK;
/* At the end: all staging memory is large enough, and its slots are apart. */
enum rf_status
rf_schedule_proof_slots(const struct rf_schedule_proof *proof) RF_MUST_CHECK;

/* All of a schedule with rings; notes what is written to pieces. */
enum rf_status rf_rings_prove(struct rf_schedule_proof *proof) RF_MUST_CHECK;

/* All of a schedule with a template; notes what is written to pieces and to the
 * staging memory of the root and of one other rank. */
enum rf_status rf_bcast_prove(struct rf_schedule_proof *proof) RF_MUST_CHECK;
/* The other ranks use the same addresses as that one. */
void rf_bcast_prove_alike(struct rf_schedule_proof *proof);

#endif
