/*
 * The proof of a plan, fed with its transfers one after another, in order;
 * prove.c says what it shows. Internal to the planner and its tests.
 */
#ifndef RF_PLANNER_PROVE_H
#define RF_PLANNER_PROVE_H

#include "planner/plan.h"

struct rf_proof_boxes {
    struct rf_box *of;
    size_t n, cap;
};

struct rf_proof {
    const struct rf_plan *plan;
    uint32_t rank;    /* the current receiver */
    size_t piece;     /* of its layout */
    uint64_t missing; /* elements of the piece that no transfer has brought */
    size_t n;         /* transfers so far */
    struct rf_proof_boxes scratch;
};

/* Proves the layouts. rf_proof_free() frees the proof, after a failure, too. */
enum rf_status rf_proof_start(struct rf_proof *proof,
                              const struct rf_plan *plan,
                              struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_proof_add(struct rf_proof *proof,
                            const struct rf_transfer *transfer,
                            struct rf_err *err) RF_MUST_CHECK;
/* After the last transfer: nothing is missing. */
enum rf_status rf_proof_end(struct rf_proof *proof,
                            struct rf_err *err) RF_MUST_CHECK;
void rf_proof_free(struct rf_proof *proof);

#endif
