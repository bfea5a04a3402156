/* The commands: each returns the exit code, its errors have been logged. Those
 * that talk to nodes have an `output`, which is the log's sink. */
#ifndef RF_COORDINATOR_COMMANDS_COMMANDS_H
#define RF_COORDINATOR_COMMANDS_COMMANDS_H

#include "coordinator/commands/cli.h"
#include "coordinator/commands/stderr_writer.h"

/* How long a reader of standard error is waited for at the end, and before
 * standard output goes on behind it. */
#define RF_STDERR_WRITER_WAIT_MS 5000

int rf_run_command(const struct rf_cli *cli, struct rf_stderr_writer *output);
int rf_plan_command(const struct rf_cli *cli); /* and --dry-run */
int rf_check_command(const struct rf_cli *cli, struct rf_stderr_writer *output);
int rf_predict_command(const struct rf_cli *cli);
int rf_advise_command(const struct rf_cli *cli);
int rf_report_command(const struct rf_cli *cli);
int rf_compare_command(const struct rf_cli *cli);
int rf_rerun_command(const struct rf_cli *cli, struct rf_stderr_writer *output);
int rf_megatron_command(struct rf_cli *cli, struct rf_stderr_writer *output);

#endif
