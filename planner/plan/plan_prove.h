/*
 * The proof of a plan, fed with its transfers one after another, in order;
 * plan_prove.c says what it shows. Internal to the planner and its tests.
 */
#ifndef RF_PLANNER_PLAN_PLAN_PROVE_H
#define RF_PLANNER_PLAN_PLAN_PROVE_H

#include "planner/plan/plan_walk.h"

struct rf_plan_proof_boxes {
    struct rf_box *of;
    size_t n, cap;
};

struct rf_plan_proof {
    const struct rf_plan *plan;
    uint32_t rank;    /* the current receiver */
    size_t piece;     /* of its layout */
    uint64_t missing; /* elements of the piece that no transfer has brought */
    size_t n;         /* transfers so far */
    struct rf_plan_proof_boxes scratch;
    /* what was proved of ranks with the same layouts */
    uint32_t *seen;     /* per match: 1 + the source layout that served it */
    bool *whole;        /* per piece of the target layouts: its matches are
                           disjoint and make it up */
    size_t at;          /* the current piece among those */
    size_t first_match; /* of the current piece */
    size_t repeated;    /* its transfers that were taken as proved */
    bool all_whole;     /* none of its transfers was a part of a match */
};

/* Proves the layouts. rf_plan_proof_free() frees the proof, after a failure,
 * too. */
enum rf_status rf_plan_proof_start(struct rf_plan_proof *proof,
                                   const struct rf_plan *plan,
                                   struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_plan_proof_add(struct rf_plan_proof *proof,
                                 const struct rf_transfer *transfer,
                                 struct rf_err *err) RF_MUST_CHECK;
/* Whether the transfer that `walk` is at was proved of other ranks with the
 * same two layouts; then it counts as added. A transfer's place and box follow
 * from the layouts, the piece and the match if it is all of the match. */
bool rf_plan_proof_repeats(struct rf_plan_proof *proof,
                           const struct rf_plan_walk *walk);
/* Adds `transfer`, which `walk` is at, and remembers what it proves. */
enum rf_status rf_plan_proof_add_step(struct rf_plan_proof *proof,
                                      const struct rf_plan_walk *walk,
                                      const struct rf_transfer *transfer,
                                      struct rf_err *err) RF_MUST_CHECK;
/* After the last transfer: nothing is missing. */
enum rf_status rf_plan_proof_end(struct rf_plan_proof *proof,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_plan_proof_free(struct rf_plan_proof *proof);

#endif
