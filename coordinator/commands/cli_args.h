/* The parsed command line, the input of every command. */
#ifndef RF_COORDINATOR_COMMANDS_CLI_ARGS_H
#define RF_COORDINATOR_COMMANDS_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/stderr_writer.h"
#include "coordinator/config/overrides.h"
#include "coordinator/megatron/megatron_flags.h"
#include "coordinator/reports/thresholds.h"
#include "coordinator/table/escape.h"

struct rf_cli {
    enum rf_command command;
    enum rf_command topic; /* help: the command asked about, or RF_CMD_HELP */
    const char *config;    /* CLUSTER.json; rerun: RESULT.json */
    const char **operands; /* report, compare: folders; import: files */
    size_t n_operands;
    const char **globs; /* -s */
    size_t n_globs;
    struct rf_overrides overrides; /* --set, --nodes, --hostfile */
    const char *out;               /* -o, default "results" */
    bool has_out;                  /* -o was given */
    const char *resume;
    const char *export; /* folder of --export, or NULL */
    const char *trace;  /* file of --trace, or NULL */
    const char *demo;   /* size of --demo, or NULL */
    const char *alpa;   /* file of --alpa; "": standard output; NULL: not
                           given */
    bool nccl_tests;    /* --nccl-tests */
    bool stage_v2;      /* --stage-v2 */
    bool dry_run, json, full;
    bool explain; /* --explain of --demo */
    bool print;   /* --print of megatron */
    bool slow;    /* --slow: slow scenarios, too */
    bool logs;    /* --logs */
    struct rf_megatron_args megatron;
    bool strict; /* --strict: refuse workers of another build */
    enum rf_log_level level;
    bool quiet;
    uint32_t timeout_s; /* 0: none */
    uint32_t repeat;    /* 0: not given */
    struct rf_thresholds thresholds;
    enum rf_report_form form;
    bool drop_constant;    /* --drop-constant of tables */
    bool pool;             /* --pool: several runs as one */
    const char *html;      /* file of --html */
    const char *figures;   /* folder of --figures, or NULL */
    const char *artifact;  /* folder of --artifact, or NULL */
    const char *reference; /* folder of --reference, or NULL */
    const char *outliers;  /* file of --outliers, or NULL */
    int argc; /* as called, before getopt reorders it, for results */
    char **argv;
    struct rf_stderr_writer *output; /* the log's sink; NULL: the command does
                                        not talk to nodes */
};

#endif
