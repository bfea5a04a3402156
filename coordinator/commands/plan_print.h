/* Plans as text on standard output. */
#ifndef RF_COORDINATOR_COMMANDS_PLAN_PRINT_H
#define RF_COORDINATOR_COMMANDS_PLAN_PRINT_H

#include "coordinator/scenario/scenario.h"

void rf_plan_print_model(const struct rf_model *model);
/* With `families`, also lists each family and its largest holding per rank. */
void rf_plan_print_scenario(const struct rf_scenario *scenario, bool families);

#endif
