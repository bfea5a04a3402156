/* The commands and options of refit-coord: what the parser takes is what the
 * help says. */
#ifndef RF_COORDINATOR_COMMANDS_CLI_TABLE_H
#define RF_COORDINATOR_COMMANDS_CLI_TABLE_H

#include <stdio.h>

#include "coordinator/commands/cli_args.h"

/* In the order of the help. */
enum rf_cli_option_id {
    RF_OPT_OUTPUT,
    RF_OPT_SCENARIO,
    RF_OPT_SLOW,
    RF_OPT_DRY_RUN,
    RF_OPT_RESUME,
    RF_OPT_REPEAT,
    RF_OPT_TIMEOUT,
    RF_OPT_STRICT,
    RF_OPT_DEMO,
    RF_OPT_EXPLAIN,
    RF_OPT_PRINT,
    RF_OPT_JSON,
    RF_OPT_FULL,
    RF_OPT_CSV,
    RF_OPT_LATEX,
    RF_OPT_MARKDOWN,
    RF_OPT_HTML,
    RF_OPT_FIGURES,
    RF_OPT_ALPA,
    RF_OPT_DROP_CONSTANT,
    RF_OPT_POOL,
    RF_OPT_REFERENCE,
    RF_OPT_THRESHOLD,
    RF_OPT_OUTLIERS,
    RF_OPT_TRACE,
    RF_OPT_LOGS,
    RF_OPT_EXPORT,
    RF_OPT_SET,
    RF_OPT_NODES,
    RF_OPT_HOSTFILE,
    RF_OPT_VERBOSE,
    RF_OPT_QUIET,
    RF_OPT_HELP,
    RF_OPT_VERSION,
    RF_OPTIONS,
};

struct rf_cli_option {
    const char *name;  /* without dashes */
    char letter;       /* behind one dash; 0: none */
    unsigned commands; /* that take it: bits of enum rf_command */
    const char *value; /* what its value is called; NULL: it has none;
                          "[…]": it may be left out, "[=…]": it stands
                          behind "=" only */
    size_t at; /* in struct rf_cli: a text, or a bool if it has no value; 0: the
                  parser knows what it means */
    const char *help;
    bool form;                 /* of a report, which has one */
    enum rf_report_form table; /* what its table is printed in */
};

struct rf_cli_command {
    const char *name;
    const char *operands[2]; /* lines of usage; none: no help of its own */
    const char *help;        /* one line */
    const char *example;     /* behind "refit-coord" */
    void (*more)(FILE *to);  /* prints the rest of its help; NULL: none */
};

extern const struct rf_cli_option rf_cli_options[RF_OPTIONS];
extern const struct rf_cli_command rf_cli_commands[RF_COMMANDS];

/* Whether it is one of the options that every command takes. */
bool rf_cli_is_common(const struct rf_cli_option *option);

bool rf_cli_takes(enum rf_command command, const struct rf_cli_option *option);

#endif
