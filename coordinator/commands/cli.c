/*
 * The command line of refit-coord. The first operand may be a command;
 * otherwise it is the cluster file of `run`. Each command takes only its own
 * options: one that would be ignored is an error.
 */
#include "coordinator/commands/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/mem.h"
#include "coordinator/store/results.h"

enum {
    OPT_RESUME = 256,
    OPT_TIMEOUT,
    OPT_STRICT,
    OPT_JSON,
    OPT_FULL,
    OPT_CSV,
    OPT_LATEX,
    OPT_MARKDOWN,
    OPT_HTML,
    OPT_THRESHOLD,
    OPT_NODES,
    OPT_HOSTFILE,
    OPT_SET,
    OPT_TRACE,
    OPT_EXPORT,
    OPT_REPEAT,
    OPT_DEMO,
    OPT_PRINT,
    OPT_FIGURES,
    OPT_REFERENCE,
    OPT_ALPA,
    OPT_POOL,
    OPT_SLOW,
    OPT_DROP_CONSTANT,
    OPT_OUTLIERS,
    OPT_LOGS,
};

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"scenario", required_argument, NULL, 's'},
    {"dry-run", no_argument, NULL, 'n'},
    {"resume", required_argument, NULL, OPT_RESUME},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"json", no_argument, NULL, OPT_JSON},
    {"full", no_argument, NULL, OPT_FULL},
    {"csv", no_argument, NULL, OPT_CSV},
    {"latex", no_argument, NULL, OPT_LATEX},
    {"markdown", no_argument, NULL, OPT_MARKDOWN},
    {"html", required_argument, NULL, OPT_HTML},
    {"threshold", required_argument, NULL, OPT_THRESHOLD},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"hostfile", required_argument, NULL, OPT_HOSTFILE},
    {"set", required_argument, NULL, OPT_SET},
    {"export", required_argument, NULL, OPT_EXPORT},
    {"trace", required_argument, NULL, OPT_TRACE},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"demo", required_argument, NULL, OPT_DEMO},
    {"print", no_argument, NULL, OPT_PRINT},
    {"figures", required_argument, NULL, OPT_FIGURES},
    {"reference", required_argument, NULL, OPT_REFERENCE},
    {"alpa", no_argument, NULL, OPT_ALPA},
    {"pool", no_argument, NULL, OPT_POOL},
    {"slow", no_argument, NULL, OPT_SLOW},
    {"drop-constant", no_argument, NULL, OPT_DROP_CONSTANT},
    {"outliers", required_argument, NULL, OPT_OUTLIERS},
    {"logs", no_argument, NULL, OPT_LOGS},
    {"verbose", no_argument, NULL, 'v'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

#define C(command) (1u << (command))
#define ALL_COMMANDS                                                           \
    (C(RF_CMD_RUN) | C(RF_CMD_PLAN) | C(RF_CMD_CHECK) | C(RF_CMD_PREDICT) |    \
     C(RF_CMD_ADVISE) | C(RF_CMD_REPORT) | C(RF_CMD_COMPARE) |                 \
     C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON))

#define READERS /* of a cluster file, in a result or by itself */              \
    (C(RF_CMD_RUN) | C(RF_CMD_PLAN) | C(RF_CMD_CHECK) | C(RF_CMD_PREDICT) |    \
     C(RF_CMD_ADVISE) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON))

/* Which commands take an option. */
static const struct {
    int option;
    unsigned commands;
} takers[] = {
    {'o', C(RF_CMD_RUN) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {'s',
     C(RF_CMD_RUN) | C(RF_CMD_PLAN) | C(RF_CMD_PREDICT) | C(RF_CMD_ADVISE)},
    {'n', C(RF_CMD_RUN)},
    {OPT_RESUME, C(RF_CMD_RUN)},
    {OPT_TIMEOUT,
     C(RF_CMD_RUN) | C(RF_CMD_CHECK) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {OPT_STRICT,
     C(RF_CMD_RUN) | C(RF_CMD_CHECK) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {OPT_JSON, C(RF_CMD_RUN) | C(RF_CMD_PLAN) | C(RF_CMD_CHECK) |
                   C(RF_CMD_PREDICT) | C(RF_CMD_ADVISE) | C(RF_CMD_REPORT) |
                   C(RF_CMD_COMPARE) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {OPT_FULL, C(RF_CMD_RUN) | C(RF_CMD_PLAN)},
    {OPT_CSV, C(RF_CMD_REPORT)},
    {OPT_LATEX, C(RF_CMD_REPORT)},
    {OPT_MARKDOWN, C(RF_CMD_REPORT)},
    {OPT_HTML, C(RF_CMD_REPORT)},
    {OPT_FIGURES, C(RF_CMD_REPORT)},
    {OPT_REFERENCE, C(RF_CMD_REPORT)},
    {OPT_ALPA, C(RF_CMD_REPORT)},
    {OPT_POOL, C(RF_CMD_REPORT) | C(RF_CMD_COMPARE)},
    {OPT_DROP_CONSTANT, C(RF_CMD_REPORT)},
    {OPT_OUTLIERS, C(RF_CMD_COMPARE)},
    {OPT_LOGS, C(RF_CMD_RUN) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {OPT_THRESHOLD, C(RF_CMD_REPORT) | C(RF_CMD_COMPARE) | C(RF_CMD_RERUN)},
    {OPT_NODES, READERS},
    {OPT_HOSTFILE, READERS},
    {OPT_SET, READERS},
    {OPT_EXPORT, C(RF_CMD_RUN)},
    {OPT_TRACE, C(RF_CMD_RUN) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {OPT_REPEAT, C(RF_CMD_RUN) | C(RF_CMD_RERUN) | C(RF_CMD_MEGATRON)},
    {OPT_DEMO, C(RF_CMD_PREDICT)},
    {OPT_PRINT, C(RF_CMD_MEGATRON)},
    {OPT_SLOW, C(RF_CMD_RUN) | C(RF_CMD_PLAN) | C(RF_CMD_CHECK) |
                   C(RF_CMD_PREDICT) | C(RF_CMD_ADVISE)},
    {'v', ALL_COMMANDS},
    {'q', ALL_COMMANDS},
};

static const struct {
    const char *name;
    enum rf_command command;
} commands[] = {
    {"run", RF_CMD_RUN},           {"plan", RF_CMD_PLAN},
    {"check", RF_CMD_CHECK},       {"predict", RF_CMD_PREDICT},
    {"advise", RF_CMD_ADVISE},     {"report", RF_CMD_REPORT},
    {"compare", RF_CMD_COMPARE},   {"rerun", RF_CMD_RERUN},
    {"megatron", RF_CMD_MEGATRON}, {"help", RF_CMD_HELP},
    {"version", RF_CMD_VERSION},
};

/* What getopt saw, before it is known which command takes it. */
struct parse {
    struct rf_cli *cli;
    int seen[RF_ARRAY_SIZE(long_options)]; /* each once */
    size_t n_seen;
    size_t cap_globs;
};

static enum rf_status number(const char *option, const char *text, double min,
                             double max, double *out, struct rf_err *err)
{
    char *end;
    double value;
    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) ||
        value < min || value > max) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "%s %.40s: must be a number from %g to %g", option,
                          text, min, max);
    }
    *out = value;
    return RF_OK;
}

static enum rf_status whole_number(const char *option, const char *text,
                                   uint32_t max, uint32_t *out,
                                   struct rf_err *err)
{
    double value = 0;
    enum rf_status status = number(option, text, 1, max, &value, err);
    if (status == RF_OK && value > floor(value)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "%s %.40s: must be a whole number from 1 to %u",
                          option, text, max);
    }
    if (status == RF_OK) {
        *out = (uint32_t)value;
    }
    return status;
}

static enum rf_status take_report_option(struct rf_cli *cli, int option,
                                         struct rf_err *err)
{
    switch (option) {
    case OPT_CSV:
        cli->form = RF_REPORT_CSV;
        return RF_OK;
    case OPT_LATEX:
        cli->form = RF_REPORT_LATEX;
        return RF_OK;
    case OPT_MARKDOWN:
        cli->form = RF_REPORT_MARKDOWN;
        return RF_OK;
    case OPT_HTML:
        cli->html = optarg;
        cli->form = RF_REPORT_HTML;
        return RF_OK;
    case OPT_FIGURES:
        cli->figures = optarg;
        return RF_OK;
    case OPT_REFERENCE:
        cli->reference = optarg;
        return RF_OK;
    case OPT_ALPA:
        cli->alpa = true;
        return RF_OK;
    case OPT_POOL:
        cli->pool = true;
        return RF_OK;
    case OPT_OUTLIERS:
        cli->outliers = optarg;
        return RF_OK;
    case OPT_DROP_CONSTANT:
        cli->drop_constant = true;
        return RF_OK;
    default:
        return rf_thresholds_read(optarg, &cli->thresholds, err);
    }
}

/* Every option has a long name. */
static const struct option *long_option(int option)
{
    const struct option *o = long_options;
    while (o->val != option) {
        o++;
    }
    return o;
}

static enum rf_status take_option(struct parse *parse, int option,
                                  struct rf_err *err)
{
    struct rf_cli *cli = parse->cli;
    const struct option *known = long_option(option);
    double value = 0;
    enum rf_status status = RF_OK;
    if (known->has_arg == required_argument && optarg[0] == '\0') {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--%s: the value is empty; is a variable unset?",
                          known->name);
    }
    switch (option) {
    case 'o':
        cli->out = optarg;
        cli->has_out = true;
        break;
    case 's':
        RF_PUSH(cli->globs, cli->n_globs, parse->cap_globs, optarg);
        break;
    case 'n':
        cli->dry_run = true;
        break;
    case 'v':
        cli->level = cli->level == RF_LOG_INFO ? RF_LOG_DEBUG : RF_LOG_TRACE;
        break;
    case 'q':
        cli->quiet = true;
        cli->level = RF_LOG_WARN;
        break;
    case OPT_RESUME:
        cli->resume = optarg;
        break;
    case OPT_TIMEOUT:
        status = number("--timeout", optarg, 1, 1e7, &value, err);
        cli->timeout_s = (uint32_t)value;
        break;
    case OPT_NODES:
        cli->overrides.nodes = optarg;
        break;
    case OPT_HOSTFILE:
        cli->overrides.hostfile = optarg;
        break;
    case OPT_SET:
        RF_PUSH(cli->overrides.sets, cli->overrides.n_sets,
                cli->overrides.cap_sets, optarg);
        break;
    case OPT_EXPORT:
        cli->export = optarg;
        break;
    case OPT_TRACE:
        cli->trace = optarg;
        break;
    case OPT_REPEAT:
        status = whole_number("--repeat", optarg, RF_RESULTS_MOST_REPEATS,
                              &cli->repeat, err);
        break;
    case OPT_DEMO:
        cli->demo = optarg;
        break;
    case OPT_SLOW:
        cli->slow = true;
        break;
    case OPT_STRICT:
        cli->strict = true;
        break;
    case OPT_LOGS:
        cli->logs = true;
        break;
    case OPT_PRINT:
        cli->print = true;
        break;
    case OPT_JSON:
        cli->json = true;
        break;
    case OPT_FULL:
        cli->full = true;
        break;
    default:
        return take_report_option(cli, option, err);
    }
    return status;
}

/* The option meant by `word`, "--option" or "--option=value"; else NULL. Flags
 * of Megatron-LM come first where they are taken. */
static const char *nearest_option(const struct rf_cli *cli, const char *word)
{
    const char *names[RF_ARRAY_SIZE(long_options) + 1] = {NULL};
    const char *nearest = NULL;
    char text[64];
    if (strncmp(word, "--", 2) != 0) {
        return NULL;
    }
    if (cli->megatron.values != NULL) {
        nearest = rf_megatron_nearest(word);
    }
    for (size_t i = 0; long_options[i].name != NULL; i++) {
        names[i] = long_options[i].name;
    }
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return nearest != NULL ? nearest : rf_nearest_word(text, names);
}

/* getopt_long() gave '?' or ':'. Of several letters behind one dash it has not
 * passed the word yet, so that an unknown letter is named by itself. */
static enum rf_status bad_option(const struct rf_cli *cli, int result,
                                 const char *word, struct rf_err *err)
{
    const char *nearest = nearest_option(cli, word);
    bool known = optopt == 0; /* a long option */
    for (const struct option *o = long_options; o->name != NULL; o++) {
        known = known || o->val == optopt;
    }
    if (result == ':') {
        return rf_err_set(err, RF_ERR_USAGE, "option %s requires a value",
                          word);
    }
    if (known && nearest != NULL) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "unknown option %s (did you mean --%s?)", word,
                          nearest);
    }
    return known ? rf_err_set(err, RF_ERR_USAGE, "unknown option %s", word)
                 : rf_err_set(err, RF_ERR_USAGE, "unknown option -%c", optopt);
}

static enum rf_status check_takers(const struct parse *parse,
                                   const char *command, struct rf_err *err)
{
    for (size_t i = 0; i < parse->n_seen; i++) {
        for (size_t t = 0; t < RF_ARRAY_SIZE(takers); t++) {
            if (takers[t].option == parse->seen[i] &&
                !(takers[t].commands & C(parse->cli->command))) {
                return rf_err_set(err, RF_ERR_USAGE,
                                  "--%s does not apply to \"%s\"; remove it",
                                  long_option(parse->seen[i])->name, command);
            }
        }
    }
    return RF_OK;
}

static bool was_seen(const struct parse *parse, int option)
{
    for (size_t i = 0; i < parse->n_seen; i++) {
        if (parse->seen[i] == option) {
            return true;
        }
    }
    return false;
}

/* A report has one form. */
static enum rf_status check_form(const struct parse *parse, struct rf_err *err)
{
    static const int forms[] = {OPT_CSV,  OPT_JSON,    OPT_LATEX, OPT_MARKDOWN,
                                OPT_HTML, OPT_FIGURES, OPT_ALPA};
    int form = 0;
    for (size_t i = 0; i < RF_ARRAY_SIZE(forms); i++) {
        if (!was_seen(parse, forms[i])) {
            continue;
        }
        if (form != 0) {
            return rf_err_set(err, RF_ERR_USAGE,
                              "--%s and --%s cannot be combined: a report has "
                              "one form; remove one",
                              long_option(form)->name,
                              long_option(forms[i])->name);
        }
        form = forms[i];
    }
    if (was_seen(parse, OPT_DROP_CONSTANT) && form != 0 && form != OPT_CSV &&
        form != OPT_LATEX && form != OPT_MARKDOWN) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--drop-constant is about the columns of a table, "
                          "not about --%s; remove one",
                          long_option(form)->name);
    }
    if (was_seen(parse, OPT_REFERENCE) && form != OPT_FIGURES &&
        form != OPT_HTML) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--reference is drawn beside the results: use it "
                          "with --figures or --html, or see \"compare\"");
    }
    if (was_seen(parse, OPT_THRESHOLD) && !was_seen(parse, OPT_REFERENCE)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--threshold is about a comparison: add --reference, "
                          "or remove it");
    }
    return RF_OK;
}

/* Options that contradict each other. */
static enum rf_status check_pairs(const struct parse *parse, struct rf_err *err)
{
    if (was_seen(parse, OPT_RESUME) && was_seen(parse, 'o')) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--resume continues in its own folder; remove "
                          "--output");
    }
    if (was_seen(parse, OPT_NODES) && was_seen(parse, OPT_HOSTFILE)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--nodes and --hostfile both say what the nodes are; "
                          "remove one");
    }
    if (was_seen(parse, OPT_TRACE) && was_seen(parse, 'n')) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--dry-run runs nothing that --trace could record; "
                          "remove one");
    }
    if (was_seen(parse, OPT_REPEAT) && was_seen(parse, 'n')) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--dry-run runs nothing that --repeat could repeat; "
                          "remove one");
    }
    if (was_seen(parse, OPT_TRACE) && parse->cli->command == RF_CMD_RERUN &&
        strcmp(parse->cli->trace, "-") == 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "rerun prints its comparison on standard output; "
                          "name a file for --trace");
    }
    if (was_seen(parse, OPT_OUTLIERS) && was_seen(parse, OPT_JSON) &&
        strcmp(parse->cli->outliers, "-") == 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--json prints on standard output; name a file for "
                          "--outliers");
    }
    if (was_seen(parse, 'q') && was_seen(parse, 'v')) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "--quiet and --verbose cannot be combined; remove one");
    }
    if (parse->cli->command == RF_CMD_PLAN && was_seen(parse, 'v') &&
        (was_seen(parse, OPT_JSON) || was_seen(parse, OPT_FULL))) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--verbose adds to the text that --json and --full "
                          "replace; remove one of them");
    }
    return parse->cli->command == RF_CMD_REPORT ? check_form(parse, err)
                                                : RF_OK;
}

/* Whether it can only be meant as a command: a plain word, and no file. */
static bool is_command_word(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz-") == strlen(text) &&
           access(text, F_OK) != 0;
}

/* Too many operands: perhaps the first is a misspelt command. */
static enum rf_status too_many(const struct rf_cli *cli, struct rf_err *err)
{
    const char *names[RF_ARRAY_SIZE(commands) + 1] = {NULL};
    const char *nearest;
    for (size_t i = 0; i < RF_ARRAY_SIZE(commands); i++) {
        names[i] = commands[i].name;
    }
    nearest = rf_nearest_word(cli->operands[0], names);
    if (nearest != NULL) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "unknown command \"%.80s\" (did you mean \"%s\"?)",
                          cli->operands[0], nearest);
    }
    if (cli->command == RF_CMD_RUN && is_command_word(cli->operands[0])) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "unknown command \"%.80s\", and no file has that name; "
            "the commands are run, plan, check, predict, advise, report, "
            "compare, rerun and megatron",
            cli->operands[0]);
    }
    return rf_err_set(err, RF_ERR_USAGE,
                      "unexpected argument \"%.80s\" after \"%.80s\": one "
                      "CLUSTER.json at a time",
                      cli->operands[1], cli->operands[0]);
}

static enum rf_status check_operands(struct rf_cli *cli, struct rf_err *err)
{
    size_t n = cli->n_operands;
    switch (cli->command) {
    case RF_CMD_HELP:
    case RF_CMD_VERSION:
        return RF_OK;
    case RF_CMD_REPORT:
        return n >= 1 ? RF_OK
                      : rf_err_set(
                            err, RF_ERR_USAGE,
                            "report: missing DIR argument: name one or more "
                            "result folders");
    case RF_CMD_COMPARE:
        return n == 2 ? RF_OK
                      : rf_err_set(err, RF_ERR_USAGE,
                                   "compare: expected two result folders, "
                                   "REFERENCE_DIR and NEW_DIR, not %zu",
                                   n);
    case RF_CMD_RERUN:
        cli->config = n == 1 ? cli->operands[0] : NULL;
        return n == 1 ? RF_OK
                      : rf_err_set(err, RF_ERR_USAGE,
                                   "rerun: expected one file, RESULT.json, the "
                                   "result of a scenario, not %zu",
                                   n);
    case RF_CMD_MEGATRON:
        return n == 0 ? RF_OK
                      : rf_err_set(err, RF_ERR_USAGE,
                                   "megatron: unexpected argument \"%.80s\": "
                                   "it takes Megatron-LM's flags and options",
                                   cli->operands[0]);
    default:
        break;
    }
    if (cli->demo != NULL) {
        return n == 0 ? RF_OK
                      : rf_err_set(err, RF_ERR_USAGE,
                                   "--demo predicts without a file; remove "
                                   "\"%.80s\"",
                                   cli->operands[0]);
    }
    if (n == 0) {
        return rf_err_set(err, RF_ERR_USAGE, "missing CLUSTER.json argument");
    }
    if (n > 1 && cli->command != RF_CMD_PREDICT) {
        return too_many(cli, err);
    }
    cli->config = cli->operands[0];
    if ((cli->json || cli->full) && cli->command == RF_CMD_RUN &&
        !cli->dry_run) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--json and --full print a plan: use them with "
                          "\"plan\" or with --dry-run");
    }
    cli->json |= cli->full; /* there is no other form of it */
    return RF_OK;
}

static enum rf_status take_operands(struct parse *parse, int argc, char **argv,
                                    struct rf_err *err)
{
    struct rf_cli *cli = parse->cli;
    const char *name = "run";
    size_t cap = 0;
    enum rf_status status;
    if (optind < argc && cli->command == RF_CMD_RUN) {
        for (size_t i = 0; i < RF_ARRAY_SIZE(commands); i++) {
            if (strcmp(argv[optind], commands[i].name) == 0) {
                cli->command = commands[i].command;
                name = commands[i].name;
                optind++;
                break;
            }
        }
    }
    for (int i = optind; i < argc; i++) {
        RF_PUSH(cli->operands, cli->n_operands, cap, argv[i]);
        if (argv[i][0] == '\0') {
            return rf_err_set(err, RF_ERR_USAGE,
                              "argument %zu is empty; is a variable unset?",
                              cli->n_operands);
        }
    }
    status = check_takers(parse, name, err);
    RF_THEN(status, check_pairs(parse, err));
    return status != RF_OK ? status : check_operands(cli, err);
}

enum rf_status rf_cli_parse(int argc, char **argv, struct rf_cli *out,
                            struct rf_err *err)
{
    struct parse parse = {.cli = out};
    enum rf_status status = RF_OK;
    int option;
    *out = (struct rf_cli){.out = "results",
                           .level = RF_LOG_INFO,
                           .thresholds = rf_thresholds_default(),
                           .argc = argc};
    out->argv = rf_xcalloc((size_t)argc + 1, sizeof(*out->argv));
    memcpy(out->argv, argv, (size_t)argc * sizeof(*out->argv));
    if (argc > 1 && strcmp(argv[1], "megatron") == 0) {
        status = rf_megatron_take(&argc, argv, 2, &out->megatron, err);
    }
    optind = 0; /* starts afresh, also in tests */
    opterr = 0;
    while (status == RF_OK &&
           (option = getopt_long(argc, argv, ":o:s:nvqhV", long_options,
                                 NULL)) != -1) {
        if (option == '?' || option == ':') {
            status = bad_option(out, option, argv[optind - 1], err);
        } else if (option == 'h') {
            out->command = RF_CMD_HELP;
        } else if (option == 'V') {
            out->command = RF_CMD_VERSION;
        } else {
            if (!was_seen(&parse, option)) {
                parse.seen[parse.n_seen++] = option;
            }
            status = take_option(&parse, option, err);
        }
    }
    if (status == RF_OK && out->command == RF_CMD_RUN) {
        status = take_operands(&parse, argc, argv, err);
    }
    if (status != RF_OK) {
        rf_cli_free(out);
    }
    return status;
}

void rf_cli_free(struct rf_cli *cli)
{
    free(cli->operands);
    free(cli->globs);
    free(cli->overrides.sets);
    free(cli->argv);
    rf_megatron_args_free(&cli->megatron);
    cli->operands = NULL;
    cli->globs = NULL;
    cli->overrides.sets = NULL;
    cli->argv = NULL;
}
