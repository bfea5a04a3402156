/* The commands, one row each. */
#ifndef RF_COORDINATOR_COMMANDS_COMMANDS_H
#define RF_COORDINATOR_COMMANDS_COMMANDS_H

/* Time limit for the reader of standard error, at exit and before standard
 * output follows it. */
#define RF_STDERR_WRITER_WAIT_MS 5000

/* Options shared by several commands; RF_OPT() is in cli_table.h. */
#define RF_OPTS_COMMON                                                         \
    (RF_OPT(VERBOSE) | RF_OPT(QUIET) | RF_OPT(HELP) | RF_OPT(VERSION))
#define RF_OPTS_PRINT (RF_OPTS_COMMON | RF_OPT(JSON))
#define RF_OPTS_READ /* a cluster file, alone or in a result */                \
    (RF_OPTS_PRINT | RF_OPT(SET) | RF_OPT(NODES) | RF_OPT(HOSTFILE))
#define RF_OPTS_PLAN (RF_OPTS_READ | RF_OPT(SCENARIO) | RF_OPT(SLOW))
#define RF_OPTS_MEASURE                                                        \
    (RF_OPTS_READ | RF_OPT(OUTPUT) | RF_OPT(REPEAT) | RF_OPT(TIMEOUT) |        \
     RF_OPT(STRICT) | RF_OPT(TRACE) | RF_OPT(LOGS))

/*
 * X(ID, name, facts...): one command. The row and the command's file are its
 * whole definition. Its function is rf_<name>_command(); facts are members of
 * struct rf_cli_command (cli_table.h).
 */
#define RF_COMMAND_MAP(X)                                                      \
    X(RUN, run, .operands = {"CLUSTER.json"}, .least = 1, .most = 1,           \
      .help = "measure the scenarios of a cluster file (the default)",         \
      .example = "cluster.json -s 'split*' -o /data/refits",                   \
      .options = RF_OPTS_PLAN | RF_OPTS_MEASURE | RF_OPT(DRY_RUN) |            \
                 RF_OPT(RESUME) | RF_OPT(FULL) | RF_OPT(EXPORT),               \
      .talks_to_nodes = true, .may_allocate = true)                            \
    X(PLAN, plan, .operands = {"CLUSTER.json|MODEL.json"}, .least = 1,         \
      .most = 1,                                                               \
      .help = "print what would move, or a model's size; launch nothing",      \
      .example = "plan cluster.json -v",                                       \
      .options = RF_OPTS_PLAN | RF_OPT(FULL))                                  \
    X(CHECK, check, .operands = {"CLUSTER.json"}, .least = 1, .most = 1,       \
      .help = "contact every node; report errors and warnings",                \
      .example = "check cluster.json --nodes 'gpu[01-04]'",                    \
      .options = RF_OPTS_PLAN | RF_OPT(TIMEOUT) | RF_OPT(STRICT),              \
      .talks_to_nodes = true, .may_allocate = true)                            \
    X(PREDICT, predict,                                                        \
      .operands = {"CLUSTER.json [RESULT_DIR]...", "--demo [SIZE]"},           \
      .least = 1, .most = SIZE_MAX,                                            \
      .help = "predict times from links or from older results",                \
      .example = "predict cluster.json results",                               \
      .options = RF_OPTS_PLAN | RF_OPT(DEMO) | RF_OPT(EXPLAIN))                \
    X(ADVISE, advise, .operands = {"CLUSTER.json [RESULT_DIR]..."},            \
      .least = 1, .most = SIZE_MAX,                                            \
      .help = "rank meshes for these nodes, best first",                       \
      .example = "advise cluster.json -s 'split*'", .options = RF_OPTS_PLAN)   \
    X(REPORT, report, .operands = {"DIR..."}, .least = 1, .most = SIZE_MAX,    \
      .help = "print results as a table, web page, figures, CSV or JSON",      \
      .example = "report results --html report.html",                          \
      .options = RF_OPTS_PRINT | RF_OPT(CSV) | RF_OPT(LATEX) |                 \
                 RF_OPT(MARKDOWN) | RF_OPT(HTML) | RF_OPT(FIGURES) |           \
                 RF_OPT(ALPA) | RF_OPT(ARTIFACT) | RF_OPT(NCCL_TESTS) |        \
                 RF_OPT(STAGE_V2) | RF_OPT(DROP_CONSTANT) | RF_OPT(POOL) |     \
                 RF_OPT(REFERENCE) | RF_OPT(THRESHOLD))                        \
    X(COMPARE, compare, .operands = {"REFERENCE NEW"}, .least = 2, .most = 2,  \
      .help = "compare two sets of results; find regressions",                 \
      .example = "compare baseline results --threshold 20%,memory=10%",        \
      .options =                                                               \
          RF_OPTS_PRINT | RF_OPT(POOL) | RF_OPT(THRESHOLD) | RF_OPT(OUTLIERS)) \
    X(IMPORT, import, .operands = {"FILE..."}, .least = 1, .most = SIZE_MAX,   \
      .help = "make results of refits that another system measured",           \
      .example = "import measured.csv -o results",                             \
      .options = RF_OPTS_COMMON | RF_OPT(OUTPUT))                              \
    X(DELTA, delta, .operands = {"BEFORE_DIR AFTER_DIR"}, .least = 2,          \
      .most = 2,                                                               \
      .help = "print what a training step changed between two checkpoints",    \
      .example = "delta step-100 step-101", .options = RF_OPTS_PRINT)          \
    X(RERUN, rerun, .operands = {"RESULT.json"}, .least = 1, .most = 1,        \
      .help = "run the scenario of a result again and compare",                \
      .example = "rerun split.json --nodes node-c,node-d",                     \
      .options = RF_OPTS_MEASURE | RF_OPT(THRESHOLD), .talks_to_nodes = true)  \
    X(MEGATRON, megatron, .operands = {"MEGATRON_FLAG..."},                    \
      .help = "run the refit of Megatron-LM's benchmark_refit.py",             \
      .example = "megatron --refit-mode collocated --refit-method gloo "       \
                 "\\\n      --num-layers 4 --hidden-size 1024 "                \
                 "--num-attention-heads 8 \\\n      --seq-length 512 "         \
                 "--max-position-embeddings 512",                              \
      .more = rf_megatron_help, .options = RF_OPTS_MEASURE | RF_OPT(PRINT),    \
      .talks_to_nodes = true)                                                  \
    X(SCHEMA, schema, .operands = {"cluster|plan|result|run"}, .least = 1,     \
      .most = 1, .help = "print the JSON Schema of a file or of plans",        \
      .example = "schema cluster", .options = RF_OPTS_COMMON)                  \
    X(HELP, help, .operands = {"[COMMAND]"}, .most = 1,                        \
      .help = "print this help, or that of a command")                         \
    X(VERSION, version,                                                        \
      .help = "print the versions of the program and its libraries")

enum rf_command {
#define X(ID, ...) RF_CMD_##ID,
    RF_COMMAND_MAP(X) RF_COMMANDS
#undef X
};

struct rf_cli;

/* Each logs its errors and returns the exit code. */
#define X(ID, name, ...) int rf_##name##_command(struct rf_cli *cli);
RF_COMMAND_MAP(X)
#undef X

#endif
