/* Output of the commands that compare results. */
#ifndef RF_COORDINATOR_COMMANDS_COMPARE_CMD_H
#define RF_COORDINATOR_COMMANDS_COMPARE_CMD_H

#include "coordinator/reports/compare.h"

/* Prints to standard output: a table and its totals, or the document of --json.
 */
void rf_compare_print(const struct rf_comparisons *all, bool json);

#endif
