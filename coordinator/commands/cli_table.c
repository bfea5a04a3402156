/* The tables of cli_table.h. */
#include "coordinator/commands/cli_table.h"

#include "coordinator/megatron/megatron_help.h"

#define C(command) (1u << (RF_CMD_##command))
#define MEASURERS (C(RUN) | C(RERUN) | C(MEGATRON))
#define PLANNERS (C(RUN) | C(PLAN) | C(PREDICT) | C(ADVISE))
#define READERS /* of a cluster file, in a result or by itself */              \
    (PLANNERS | C(CHECK) | C(RERUN) | C(MEGATRON))
#define ALL_COMMANDS (READERS | C(REPORT) | C(COMPARE))

#define AT(member) offsetof(struct rf_cli, member)

const struct rf_cli_option rf_cli_options[RF_OPTIONS] = {
    [RF_OPT_OUTPUT] =
        {"output", 'o', MEASURERS, "DIR", AT(out),
         "write results to DIR/<UTC time>-<name> (default: results)"},
    [RF_OPT_SCENARIO] = {"scenario", 's', PLANNERS, "GLOB", 0,
                         "select scenarios by name; may be repeated"},
    [RF_OPT_SLOW] = {"slow", 0, PLANNERS | C(CHECK), NULL, AT(slow),
                     "take scenarios that the file calls slow, too"},
    [RF_OPT_DRY_RUN] = {"dry-run", 'n', C(RUN), NULL, AT(dry_run),
                        "plan only, with --json or --full, too: launch "
                        "nothing, use no network"},
    [RF_OPT_RESUME] = {"resume", 0, C(RUN), "DIR", AT(resume),
                       "continue the unfinished run in DIR"},
    [RF_OPT_REPEAT] =
        {"repeat", 0, MEASURERS, "N", 0,
         "measure each scenario N times, each with new processes"},
    [RF_OPT_TIMEOUT] = {"timeout", 0, MEASURERS | C(CHECK), "S", 0,
                        "end the whole run after S seconds"},
    [RF_OPT_STRICT] = {"strict", 0, MEASURERS | C(CHECK), NULL, AT(strict),
                       "refuse workers of another build"},
    [RF_OPT_DEMO] = {"demo", 0, C(PREDICT), "[SIZE]", AT(demo),
                     "without a file: what an update of SIZE (140GB, 70B "
                     "parameters) takes over usual disks and links"},
    [RF_OPT_EXPLAIN] = {"explain", 0, C(PREDICT), NULL, AT(explain),
                        "with --demo: what handles are, and why to gather"},
    [RF_OPT_PRINT] =
        {"print", 0, C(MEGATRON), NULL, AT(print),
         "print the cluster file that the flags make, run nothing"},
    [RF_OPT_JSON] = {"json", 0, ALL_COMMANDS, NULL, AT(json), "print JSON",
                     .form = true},
    [RF_OPT_FULL] = {"full", 0, C(RUN) | C(PLAN), NULL, AT(full),
                     "print JSON with every rank's boxes and transfers"},
    [RF_OPT_CSV] = {"csv", 0, C(REPORT), NULL, 0, "print CSV", .form = true,
                    .table = RF_REPORT_CSV},
    [RF_OPT_LATEX] = {"latex", 0, C(REPORT), NULL, 0, "print LaTeX",
                      .form = true, .table = RF_REPORT_LATEX},
    [RF_OPT_MARKDOWN] = {"markdown", 0, C(REPORT), NULL, 0, "print Markdown",
                         .form = true, .table = RF_REPORT_MARKDOWN},
    [RF_OPT_HTML] =
        {"html", 0, C(REPORT), "FILE", AT(html),
         "write the report as one page to FILE (-: standard output)",
         .form = true},
    [RF_OPT_FIGURES] = {"figures", 0, C(REPORT), "DIR", AT(figures),
                        "draw figures for papers into DIR", .form = true},
    [RF_OPT_ALPA] = {"alpa", 0, C(REPORT), "[=FILE]", AT(alpa),
                     "print results of one tensor in the format of Alpa's "
                     "resharding benchmark, or write them to FILE",
                     .form = true},
    [RF_OPT_DROP_CONSTANT] = {"drop-constant", 0, C(REPORT), NULL,
                              AT(drop_constant),
                              "leave out columns that are the same in all "
                              "rows, and say once what they are"},
    [RF_OPT_POOL] = {"pool", 0, C(REPORT) | C(COMPARE), NULL, AT(pool),
                     "take several runs of a scenario as one with repeats"},
    [RF_OPT_REFERENCE] = {"reference", 0, C(REPORT), "DIR", AT(reference),
                          "draw the results beside these older ones"},
    [RF_OPT_THRESHOLD] = {"threshold", 0, C(REPORT) | C(COMPARE) | C(RERUN),
                          "LIMITS", 0,
                          "changes that a comparison reports (default: 10%), "
                          "also by metric: time=5%,memory=+10%-20%,ratio=0.1"},
    [RF_OPT_OUTLIERS] =
        {"outliers", 0, C(COMPARE), "FILE", AT(outliers),
         "write what is found to FILE as CSV, with what else differs"},
    [RF_OPT_TRACE] = {"trace", 0, MEASURERS, "FILE", AT(trace),
                      "run each scenario once more and write what every rank "
                      "did, for Perfetto (-: standard output)"},
    [RF_OPT_LOGS] = {"logs", 0, MEASURERS, NULL, AT(logs),
                     "keep a log of every rank, not only of those that wrote "
                     "something or failed"},
    [RF_OPT_EXPORT] =
        {"export", 0, C(RUN), "DIR", AT(export),
         "write the refitted model to DIR on the inference nodes"},
    [RF_OPT_SET] = {"set", 0, READERS, "PATH=VALUE", 0,
                    "set a member of the file: model.num_layers=2, "
                    "'scenarios.*.method=nccl'; may be repeated"},
    [RF_OPT_NODES] = {"nodes", 0, READERS, "LIST", AT(overrides.nodes),
                      "use these hosts: 'gpu[01-04],b7:4' (:slots)"},
    [RF_OPT_HOSTFILE] =
        {"hostfile", 0, READERS, "FILE", AT(overrides.hostfile),
         "use the hosts of a host file (Open MPI, MPICH, DeepSpeed)"},
    [RF_OPT_VERBOSE] = {"verbose", 'v', ALL_COMMANDS, NULL, 0,
                        "print more; twice: every message"},
    [RF_OPT_QUIET] = {"quiet", 'q', ALL_COMMANDS, NULL, AT(quiet),
                      "print only warnings and errors"},
    [RF_OPT_HELP] = {"help", 'h', ALL_COMMANDS, NULL, 0, "print this help"},
    [RF_OPT_VERSION] = {"version", 'V', ALL_COMMANDS, NULL, 0,
                        "print the versions of the program and its libraries"},
};

const struct rf_cli_command rf_cli_commands[RF_COMMANDS] = {
    [RF_CMD_RUN] = {"run",
                    {"CLUSTER.json"},
                    "measure the scenarios of a cluster file; may be left out",
                    "cluster.json -s 'split*' -o /data/refits"},
    [RF_CMD_PLAN] = {"plan",
                     {"CLUSTER.json|MODEL.json"},
                     "print what would move, or a model's size; launch nothing",
                     "plan cluster.json -v"},
    [RF_CMD_CHECK] = {"check",
                      {"CLUSTER.json"},
                      "reach every node; say what cannot work or looks wrong",
                      "check cluster.json --nodes 'gpu[01-04]'"},
    [RF_CMD_PREDICT] = {"predict",
                        {"CLUSTER.json [RESULT_DIR]...", "--demo [SIZE]"},
                        "predict times from links or from older results",
                        "predict cluster.json results"},
    [RF_CMD_ADVISE] = {"advise",
                       {"CLUSTER.json"},
                       "list meshes for the slots, the best first",
                       "advise cluster.json -s 'split*'"},
    [RF_CMD_REPORT] = {"report",
                       {"DIR..."},
                       "print results: a table, a page, figures, CSV, JSON",
                       "report results --html report.html"},
    [RF_CMD_COMPARE] = {"compare",
                        {"REFERENCE_DIR NEW_DIR"},
                        "compare two sets of results; find what became worse",
                        "compare baseline results --threshold 20%,memory=10%"},
    [RF_CMD_RERUN] = {"rerun",
                      {"RESULT.json"},
                      "run the scenario of a result again and compare",
                      "rerun split.json --nodes node-c,node-d"},
    [RF_CMD_MEGATRON] = {"megatron",
                         {"MEGATRON_FLAG..."},
                         "run what Megatron-LM's benchmark_refit.py would",
                         "megatron --refit-mode collocated --refit-method gloo "
                         "\\\n      --num-layers 4 --hidden-size 1024 "
                         "--num-attention-heads 8 \\\n      --seq-length 512 "
                         "--max-position-embeddings 512",
                         rf_megatron_help},
    [RF_CMD_HELP] = {"help", .help = "print this help, or a command's"},
    [RF_CMD_VERSION] = {"version", .help = "print the versions of the program "
                                           "and its libraries"},
};

bool rf_cli_is_common(const struct rf_cli_option *option)
{
    return option->commands == ALL_COMMANDS && !option->form;
}

bool rf_cli_takes(enum rf_command command, const struct rf_cli_option *option)
{
    return option->commands & (1u << command);
}
