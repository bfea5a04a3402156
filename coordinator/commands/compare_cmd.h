/* Output of the commands that compare results. */
#ifndef RF_COORDINATOR_COMMANDS_COMPARE_CMD_H
#define RF_COORDINATOR_COMMANDS_COMPARE_CMD_H

#include "coordinator/reports/compare.h"

/* Prints a table and its totals, or the document of --json, to standard
 * output. */
void rf_compare_print(const struct rf_comparisons *all, bool json);

#endif
