/* Asks Slurm for a job to run in. */
#ifndef RF_COORDINATOR_COMMANDS_SALLOC_H
#define RF_COORDINATOR_COMMANDS_SALLOC_H

#include "common/json.h"
#include "coordinator/commands/cli.h"

/*
 * For the commands whose row says so: if launch.method of the document is
 * "slurm" and this process is in no job: with launch.slurm.options, becomes
 * salloc with them, which runs the same command line again inside the job it
 * gets, and does not return; without, an error that says what to do. `file` is
 * what errors call the document.
 */
enum rf_status rf_salloc(const struct rf_cli *cli, json_t *document,
                         const char *file, struct rf_err *err) RF_MUST_CHECK;

#endif
