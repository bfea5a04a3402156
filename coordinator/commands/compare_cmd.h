/* What the commands that compare results print. */
#ifndef RF_COORDINATOR_COMMANDS_COMPARE_CMD_H
#define RF_COORDINATOR_COMMANDS_COMPARE_CMD_H

#include "coordinator/reports/compare.h"

/* On standard output: a table and its totals, or the document of --json. */
void rf_compare_print(const struct rf_comparisons *all, bool json);

#endif
