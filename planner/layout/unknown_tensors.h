/*
 * Tensors without a rule (RF_ROLE_OTHER) in layouts that need one.
 *
 * Tensor and expert parallelism cut tensors by their role. A tensor of unknown
 * name, matrix or vector (perhaps the bias of split columns), can only be held
 * whole by all ranks of the group, which moves more than a real framework
 * would. So it is an error unless the model says "unknown_tensors":
 * "replicate". Layouts fsdp, fsdp1, zero3 and spec cut any tensor, and a side
 * that splits nothing needs no rules.
 */
#ifndef RF_PLANNER_LAYOUT_UNKNOWN_TENSORS_H
#define RF_PLANNER_LAYOUT_UNKNOWN_TENSORS_H

#include "planner/scenario/spec.h"

/* Families that a side holds whole for lack of a rule. */
struct rf_unknown {
    uint32_t families;
    uint64_t tensors;
    uint64_t bytes; /* each tensor counted once, in the model's dtype */
};

/* Counts the model's families of that kind, on either side of `spec`. */
struct rf_unknown rf_unknown_tensors_count(const struct rf_model *model,
                                           const struct rf_spec *spec);

/* RF_ERR_CONFIG with their names, shapes and the remedy, unless there are none
 * or the model replicates them. */
enum rf_status rf_unknown_tensors_check(const struct rf_model *model,
                                        const struct rf_spec *spec,
                                        struct rf_err *err) RF_MUST_CHECK;

#endif
