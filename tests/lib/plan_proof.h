/*
 * An oracle of plans, from their layouts and transfers alone:
 *
 *  1. each transfer lies in a piece of its source's training layout and in one
 *     of its destination's inference layout, at the addresses these give it;
 *  2. the transfers into each piece do not overlap, and their volumes add up
 *     to the piece's.
 *
 * Any failure is RF_ERR_INTERNAL with the place.
 */
#ifndef RF_TESTS_LIB_PLAN_PROOF_H
#define RF_TESTS_LIB_PLAN_PROOF_H

#include "planner/plan/plan.h"

/* Takes the transfers of a plan one after another, in order. */
struct plan_proof {
    const struct rf_plan *plan;
    uint32_t rank;        /* the current receiver */
    size_t piece;         /* of its layout */
    uint64_t missing;     /* elements of the piece not yet received */
    size_t n;             /* transfers so far */
    struct rf_box *boxes; /* those into the piece */
    size_t n_boxes, cap;
};

/* plan_proof_free() frees the proof, also after a failure. */
void plan_proof_start(struct plan_proof *proof, const struct rf_plan *plan);
enum rf_status plan_proof_add(struct plan_proof *proof,
                              const struct rf_transfer *transfer,
                              struct rf_err *err) RF_MUST_CHECK;
/* Call it after the last transfer: checks that nothing is missing. */
enum rf_status plan_proof_end(struct plan_proof *proof,
                              struct rf_err *err) RF_MUST_CHECK;
void plan_proof_free(struct plan_proof *proof);

/* Proves the layouts and all transfers. */
enum rf_status plan_prove(const struct rf_plan *plan,
                          struct rf_err *err) RF_MUST_CHECK;

#endif
