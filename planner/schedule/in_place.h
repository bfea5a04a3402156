/*
 * Which pieces of the inference side need not be copied: those that ops from
 * one rank's training memory cover as they lie there. Method shm leaves these
 * in place, method ipc those that one op fills; predictions count no time for
 * them.
 */
#ifndef RF_PLANNER_SCHEDULE_IN_PLACE_H
#define RF_PLANNER_SCHEDULE_IN_PLACE_H

#include "planner/schedule/schedule.h"

/* What the ops that end in one piece say of it. */
struct rf_in_place {
    bool usable; /* the piece can be used where the source has it */
    uint32_t src;
    uint64_t elements; /* covered */
    uint64_t offset;   /* of the piece's first element in the source's arena */
    uint64_t stride[RF_BOX_DIMS]; /* bytes, there */
};

struct rf_rank_in_place {
    const struct rf_rank_layout *layout; /* NULL: no op ends there, or it was
                                            not looked at */
    struct rf_in_place *by_piece;        /* by piece number */
};

struct rf_in_place_set {
    struct rf_rank_in_place *ranks; /* of the world */
    uint32_t n_ranks, only;         /* RF_NONE: all are looked at */
};

/* Looks at the pieces of `rank`, or with RF_NONE of all ranks in which ops of
 * `schedule` end, of those that it lists in `ops`. The plan is borrowed. */
void rf_in_place_find(const struct rf_plan *plan,
                      const struct rf_schedule *schedule, uint32_t rank,
                      struct rf_in_place_set *out);
void rf_in_place_free(struct rf_in_place_set *set);

/* Of the piece that `op` ends in; NULL: in none that was looked at. */
const struct rf_in_place *rf_in_place_of_op(const struct rf_in_place_set *set,
                                            const struct rf_op *op);

/* Whether an op fills a destination piece whole and unchanged from memory of
 * the same slot: such a piece need not be copied, only looked at where it is.
 * Both ends answer alike. A view of another device's memory would put off the
 * copying, not save it. */
bool rf_in_place_in_slot(const struct rf_plan *plan, const struct rf_op *op);

#endif
