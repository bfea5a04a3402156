/* The command line: refit-coord(1). */
#ifndef RF_COORDINATOR_COMMANDS_CLI_H
#define RF_COORDINATOR_COMMANDS_CLI_H

#include <stdio.h>

#include "common/err.h"
#include "coordinator/commands/cli_args.h"
#include "coordinator/scenario/exit_code.h"

/* Parses argv (kept, not copied; getopt reorders it). RF_ERR_USAGE with one
 * line that names the error; `command` is then set as far as it is known, and
 * nothing is kept. The flags of `megatron` are taken out of argv before its
 * options are parsed. rf_cli_free() frees what was allocated. */
enum rf_status rf_cli_parse(int argc, char **argv, struct rf_cli *out,
                            struct rf_err *err) RF_MUST_CHECK;
void rf_cli_free(struct rf_cli *cli);

/* One screen about all commands if `topic` is RF_CMD_HELP. */
void rf_cli_help(enum rf_command topic, FILE *to);

/* {library: version} for each linked library. A new reference. */
json_t *rf_library_versions(void);

#endif
