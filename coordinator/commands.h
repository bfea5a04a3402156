/* The commands: each returns the exit code, its errors have been logged. */
#ifndef RF_COORDINATOR_COMMANDS_H
#define RF_COORDINATOR_COMMANDS_H

#include "coordinator/cli.h"

int rf_run_command(const struct rf_cli *cli);
int rf_plan_command(const struct rf_cli *cli); /* and --dry-run */
int rf_check_command(const struct rf_cli *cli);
int rf_predict_command(const struct rf_cli *cli);
int rf_report_command(const struct rf_cli *cli);
int rf_compare_command(const struct rf_cli *cli);

#endif
