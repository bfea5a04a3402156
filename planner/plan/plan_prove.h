/*
 * The proof of a plan, which takes its transfers one after another, in order;
 * plan_prove.c lists the properties. Internal to the planner and its tests.
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
    uint64_t missing; /* elements of the piece not yet received */
    size_t n;         /* transfers so far */
    struct rf_plan_proof_boxes scratch;
};

/* Part 1 of the proof for one layout; `items`: bytes of an element, by family.
 */
enum rf_status rf_plan_prove_layout(const struct rf_rank_layout *layout,
                                    const uint32_t *items,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Part 1 for all layouts, the only part that rf_plan_build() runs. */
enum rf_status rf_plan_prove_layouts(const struct rf_plan *plan,
                                     struct rf_err *err) RF_MUST_CHECK;

/* rf_plan_proof_free() frees the proof, also after a failure. */
void rf_plan_proof_start(struct rf_plan_proof *proof,
                         const struct rf_plan *plan);
enum rf_status rf_plan_proof_add(struct rf_plan_proof *proof,
                                 const struct rf_transfer *transfer,
                                 struct rf_err *err) RF_MUST_CHECK;
/* Call it after the last transfer: checks that nothing is missing. */
enum rf_status rf_plan_proof_end(struct rf_plan_proof *proof,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_plan_proof_free(struct rf_plan_proof *proof);

#endif
