/* The tensors of a model, family by family. */
#ifndef RF_COORDINATOR_PLAN_FAMILIES_H
#define RF_COORDINATOR_PLAN_FAMILIES_H

#include "planner/plan.h"

/* Prints name, shape, number and role of every family and, unless `plan` is
 * NULL, what the first rank of either mesh that has it holds of a tensor. */
void rf_plan_families_print(const struct rf_model *model,
                            const struct rf_plan *plan);

#endif
