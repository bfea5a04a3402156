/*
 * The groups of a scenario ("group"): a refit moves whole tensors, group after
 * group, with few groups under way at a time (planner/schedule/schedule.h, rule
 * 2). Tensors follow one another as in the model: those before the layers, the
 * layers, those after them. Each training stage has groups of its own; groups
 * of different stages have the same numbers, or with serial_pp later ones for
 * later stages.
 */
#ifndef RF_PLANNER_PLAN_TENSOR_GROUPS_H
#define RF_PLANNER_PLAN_TENSOR_GROUPS_H

#include "planner/plan/plan.h"

/* Whole tensors of a family that are in one group. */
struct rf_group_slice {
    uint32_t group, family;
    struct rf_box box;
};

struct rf_tensor_groups {
    struct rf_group_slice *slices; /* by group, family, box; disjoint, together
                                      all tensors */
    size_t n_slices, capacity;
    size_t *first; /* slice of each group; at the end, n_slices */
    uint32_t n;    /* groups; 0: the refit is not cut */
};

/* Forms the groups of a plan's scenario. A layer is what has one number in the
 * decoder; tensors before and after the layers form groups by themselves. By
 * bytes, a group is filled as long as the next tensor fits, so a larger tensor
 * is alone in its group. rf_tensor_groups_free() frees *out. */
void rf_tensor_groups_make(const struct rf_plan *plan,
                           struct rf_tensor_groups *out);
void rf_tensor_groups_free(struct rf_tensor_groups *groups);

/* The bytes of the largest group, as they move, of one copy of the weights. */
uint64_t rf_tensor_groups_largest(const struct rf_plan *plan,
                                  const struct rf_tensor_groups *groups);

/* Whether a group has tensors of a family; without groups, it has. */
bool rf_tensor_groups_have(const struct rf_tensor_groups *groups,
                           uint32_t group, uint32_t family);

/* The parts of a box that are in a group, one per call; *at begins as 0. False
 * after the last. Without groups, the whole box is the only part. */
bool rf_tensor_groups_part(const struct rf_tensor_groups *groups,
                           uint32_t group, uint32_t family,
                           const struct rf_box *box, size_t *at,
                           struct rf_box *out);

#endif
