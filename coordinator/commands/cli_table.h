/* The commands and options of refit-coord, for the parser and the help. */
#ifndef RF_COORDINATOR_COMMANDS_CLI_TABLE_H
#define RF_COORDINATOR_COMMANDS_CLI_TABLE_H

#include <stdio.h>

#include "coordinator/commands/cli_args.h"

/* X(ID, name, value, at, help...): one option, with members of struct
 * rf_cli_option. In the order of the help. */
#define RF_OPTION_MAP(X)                                                       \
    X(OUTPUT, "output", "DIR", RF_AT(out),                                     \
      "write results to DIR/<UTC time>-<name> (default: results)",             \
      .letter = 'o')                                                           \
    X(SCENARIO, "scenario", "GLOB", 0,                                         \
      "select scenarios by name; may be repeated", .letter = 's')              \
    X(SLOW, "slow", NULL, RF_AT(slow), "include scenarios marked as slow")     \
    X(DRY_RUN, "dry-run", NULL, RF_AT(dry_run),                                \
      "print the plan (--json, --full: as JSON); launch nothing, use no "      \
      "network",                                                               \
      .letter = 'n')                                                           \
    X(RESUME, "resume", "DIR", RF_AT(resume),                                  \
      "continue the unfinished run in DIR")                                    \
    X(REPEAT, "repeat", "N", 0,                                                \
      "measure each scenario N times, each with new processes")                \
    X(TIMEOUT, "timeout", "S", 0, "end the whole run after S seconds")         \
    X(STRICT, "strict", NULL, RF_AT(strict),                                   \
      "refuse workers whose build differs")                                    \
    X(DEMO, "demo", "[SIZE]", RF_AT(demo),                                     \
      "without a file, predict an update of SIZE (140GB, 70B parameters) "     \
      "over common disks and links")                                           \
    X(EXPLAIN, "explain", NULL, RF_AT(explain),                                \
      "with --demo: also explain IPC handles, and why weights are "            \
      "gathered")                                                              \
    X(PRINT, "print", NULL, RF_AT(print),                                      \
      "print the cluster file that the flags describe; run nothing")           \
    X(JSON, "json", NULL, RF_AT(json), "print JSON")                           \
    X(FULL, "full", NULL, RF_AT(full),                                         \
      "print JSON with every rank's boxes and transfers")                      \
    X(CSV, "csv", NULL, 0, "print CSV", .table = RF_REPORT_CSV)                \
    X(LATEX, "latex", NULL, 0, "print LaTeX", .table = RF_REPORT_LATEX)        \
    X(MARKDOWN, "markdown", NULL, 0, "print Markdown",                         \
      .table = RF_REPORT_MARKDOWN)                                             \
    X(HTML, "html", "FILE", RF_AT(html),                                       \
      "write the report as one page to FILE (-: standard output)")             \
    X(FIGURES, "figures", "DIR", RF_AT(figures),                               \
      "draw figures for papers into DIR")                                      \
    X(ALPA, "alpa", "[=FILE]", RF_AT(alpa),                                    \
      "print results of one tensor in the format of Alpa's resharding "        \
      "benchmark, or write them to FILE")                                      \
    X(ARTIFACT, "artifact", "DIR", RF_AT(artifact),                            \
      "pack the results with all that reruns need into the new folder DIR")    \
    X(NCCL_TESTS, "nccl-tests", NULL, RF_AT(nccl_tests),                       \
      "print results as JSON, under the names that nccl-tests has in its")     \
    X(STAGE_V2, "stage-v2", NULL, RF_AT(stage_v2),                             \
      "print a record refit-stage-v2, as ModelExpress logs them, for each "    \
      "iteration and receiving rank")                                          \
    X(DROP_CONSTANT, "drop-constant", NULL, RF_AT(drop_constant),              \
      "print columns with the same value in every row once, below")            \
    X(POOL, "pool", NULL, RF_AT(pool),                                         \
      "pool several runs of a scenario, as repeats of one")                    \
    X(REFERENCE, "reference", "DIR", RF_AT(reference),                         \
      "with --figures or --html: plot against these older results")            \
    X(THRESHOLD, "threshold", "LIMITS", 0,                                     \
      "limit beyond which a change counts (default: 10%), also by metric: "    \
      "time=5%,memory=+10%-20%,ratio=0.1")                                     \
    X(OUTLIERS, "outliers", "FILE", RF_AT(outliers),                           \
      "also write every verdict and difference to FILE as CSV")                \
    X(TRACE, "trace", "FILE", RF_AT(trace),                                    \
      "run each scenario once more and write a trace of all ranks for "        \
      "Perfetto to FILE (-: standard output)")                                 \
    X(LOGS, "logs", NULL, RF_AT(logs),                                         \
      "keep the logs of all ranks, not only of those that failed or wrote to " \
      "standard error")                                                        \
    X(EXPORT, "export", "DIR", RF_AT(export),                                  \
      "write the refitted model to DIR on the inference nodes")                \
    X(SET, "set", "PATH=VALUE", 0,                                             \
      "set a member of the file: model.num_layers=2, "                         \
      "'scenarios.*.method=nccl'; may be repeated")                            \
    X(NODES, "nodes", "LIST", RF_AT(overrides.nodes),                          \
      "use these hosts: 'gpu[01-04],b7:4' (4 slots on b7)")                    \
    X(HOSTFILE, "hostfile", "FILE", RF_AT(overrides.hostfile),                 \
      "use the hosts of a host file (Open MPI, MPICH, DeepSpeed)")             \
    X(VERBOSE, "verbose", NULL, 0, "print more; given twice, every message",   \
      .letter = 'v')                                                           \
    X(QUIET, "quiet", NULL, RF_AT(quiet), "print only warnings and errors",    \
      .letter = 'q')                                                           \
    X(HELP, "help", NULL, 0, "print this help", .letter = 'h')                 \
    X(VERSION, "version", NULL, 0,                                             \
      "print the versions of the program and its libraries", .letter = 'V')

#define RF_AT(member) offsetof(struct rf_cli, member)

enum rf_cli_option_id {
#define X(ID, ...) RF_OPT_##ID,
    RF_OPTION_MAP(X) RF_OPTIONS
#undef X
};

/* The bit of an option in an option set. */
#define RF_OPT(ID) (UINT64_C(1) << RF_OPT_##ID)

struct rf_cli_option {
    const char *name;  /* without dashes */
    const char *value; /* name of its value in the help; NULL: no value;
                          "[…]": optional value, "[=…]": optional and only
                          after "=" */
    size_t at; /* offset in struct rf_cli of a string, or of a bool for an
                  option without a value; 0: the parser handles it */
    const char *help;
    char letter;               /* after one dash; 0: none */
    enum rf_report_form table; /* form of a report's table */
};

struct rf_cli_command {
    const char *name;
    const char *operands[2]; /* usage lines */
    size_t least, most;      /* number of operands */
    uint64_t options;        /* bits, see RF_OPT(); 0: no help page */
    const char *help;        /* one line */
    const char *example;     /* after "refit-coord" */
    void (*more)(FILE *to);  /* prints the rest of the help; NULL: none */
    bool talks_to_nodes;     /* and continues when its reader closes the pipe */
    bool may_allocate;       /* may ask Slurm for a job to run in */
};

extern const struct rf_cli_option rf_cli_options[RF_OPTIONS];
extern const struct rf_cli_command rf_cli_commands[RF_COMMANDS];

#endif
