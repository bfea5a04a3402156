/* The tensors of a model, by family. */
#ifndef RF_COORDINATOR_COMMANDS_PLAN_FAMILIES_H
#define RF_COORDINATOR_COMMANDS_PLAN_FAMILIES_H

#include "planner/plan/plan.h"

/* Prints name, shape, number and role of every family and, unless `plan` is
 * NULL, the largest part of a tensor that a rank of either mesh holds. */
void rf_plan_families_print(const struct rf_model *model,
                            const struct rf_plan *plan);

#endif
