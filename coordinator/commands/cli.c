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
#include "coordinator/commands/cli_table.h"
#include "coordinator/predict/demo.h"
#include "coordinator/store/results.h"

/* What getopt returns for an option without a letter. */
#define OPTION_VALUE 256

static enum rf_command command_of(const char *word)
{
    unsigned i = 0;
    while (i < RF_COMMANDS && strcmp(rf_cli_commands[i].name, word) != 0) {
        i++;
    }
    return i;
}

static enum rf_cli_option_id option_of(int value)
{
    unsigned i = 0;
    while (i < RF_OPTIONS && value != OPTION_VALUE + (int)i &&
           value != rf_cli_options[i].letter) {
        i++;
    }
    return i;
}

/* What getopt saw, before it is known which command takes it. */
struct parse {
    struct rf_cli *cli;
    bool seen[RF_OPTIONS];
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

/* Those that are not just put into a member of struct rf_cli. */
static enum rf_status take_value(struct parse *parse, enum rf_cli_option_id id,
                                 struct rf_err *err)
{
    struct rf_cli *cli = parse->cli;
    double value = 0;
    enum rf_status status = RF_OK;
    switch (id) {
    case RF_OPT_SCENARIO:
        RF_PUSH(cli->globs, cli->n_globs, parse->cap_globs, optarg);
        break;
    case RF_OPT_SET:
        RF_PUSH(cli->overrides.sets, cli->overrides.n_sets,
                cli->overrides.cap_sets, optarg);
        break;
    case RF_OPT_TIMEOUT:
        status = number("--timeout", optarg, 1, 1e7, &value, err);
        cli->timeout_s = (uint32_t)value;
        break;
    case RF_OPT_REPEAT:
        status = whole_number("--repeat", optarg, RF_RESULTS_MOST_REPEATS,
                              &cli->repeat, err);
        break;
    case RF_OPT_THRESHOLD:
        status = rf_thresholds_read(optarg, &cli->thresholds, err);
        break;
    case RF_OPT_VERBOSE:
        cli->level = cli->level == RF_LOG_INFO ? RF_LOG_DEBUG : RF_LOG_TRACE;
        break;
    default:
        cli->form = rf_cli_options[id].table;
        break;
    }
    return status;
}

static enum rf_status take_option(struct parse *parse, enum rf_cli_option_id id,
                                  struct rf_err *err)
{
    const struct rf_cli_option *option = &rf_cli_options[id];
    void *member = (char *)parse->cli + option->at;
    parse->seen[id] = true;
    if (option->value != NULL && option->value[0] == '[' && optarg == NULL) {
        *(const char **)member = "";
        return RF_OK;
    }
    if (option->value != NULL && optarg[0] == '\0') {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--%s: the value is empty; is a variable unset?",
                          option->name);
    }
    if (option->at == 0) {
        return take_value(parse, id, err);
    }
    if (option->value != NULL) {
        *(const char **)member = optarg;
    } else {
        *(bool *)member = true;
    }
    return RF_OK;
}

/* The option meant by `word`, "--option" or "--option=value"; else NULL. Flags
 * of Megatron-LM come first where they are taken. */
static const char *nearest_option(const struct rf_cli *cli, const char *word)
{
    const char *names[RF_OPTIONS + 1] = {NULL};
    const char *nearest = NULL;
    char text[64];
    if (strncmp(word, "--", 2) != 0) {
        return NULL;
    }
    if (cli->megatron.values != NULL) {
        nearest = rf_megatron_nearest(word);
    }
    for (size_t i = 0; i < RF_OPTIONS; i++) {
        names[i] = rf_cli_options[i].name;
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
    bool known = optopt == 0 || option_of(optopt) != RF_OPTIONS;
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
                                   struct rf_err *err)
{
    enum rf_command command = parse->cli->command;
    for (size_t i = 0; i < RF_OPTIONS; i++) {
        if (parse->seen[i] && !rf_cli_takes(command, &rf_cli_options[i])) {
            return rf_err_set(
                err, RF_ERR_USAGE, "--%s does not apply to \"%s\"; remove it",
                rf_cli_options[i].name, rf_cli_commands[command].name);
        }
    }
    return RF_OK;
}

/* A report has one form. */
static enum rf_status check_form(const struct parse *parse, struct rf_err *err)
{
    const struct rf_cli_option *form = NULL;
    for (size_t i = 0; i < RF_OPTIONS; i++) {
        if (!parse->seen[i] || !rf_cli_options[i].form) {
            continue;
        }
        if (form != NULL) {
            return rf_err_set(err, RF_ERR_USAGE,
                              "--%s and --%s cannot be combined: a report has "
                              "one form; remove one",
                              form->name, rf_cli_options[i].name);
        }
        form = &rf_cli_options[i];
    }
    if (parse->seen[RF_OPT_DROP_CONSTANT] && form != NULL &&
        form->table == RF_REPORT_TABLE) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--drop-constant is about the columns of a table, "
                          "not about --%s; remove one",
                          form->name);
    }
    if (parse->seen[RF_OPT_REFERENCE] && !parse->seen[RF_OPT_FIGURES] &&
        !parse->seen[RF_OPT_HTML]) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--reference is drawn beside the results: use it "
                          "with --figures or --html, or see \"compare\"");
    }
    if (parse->seen[RF_OPT_THRESHOLD] && !parse->seen[RF_OPT_REFERENCE]) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--threshold is about a comparison: add --reference, "
                          "or remove it");
    }
    return RF_OK;
}

static enum rf_status check_demo(const struct parse *parse, struct rf_err *err)
{
    static const enum rf_cli_option_id of_files[] = {
        RF_OPT_SCENARIO, RF_OPT_SLOW, RF_OPT_NODES, RF_OPT_HOSTFILE};
    for (size_t i = 0; i < RF_ARRAY_SIZE(of_files); i++) {
        if (parse->seen[RF_OPT_DEMO] && parse->seen[of_files[i]]) {
            return rf_err_set(err, RF_ERR_USAGE,
                              "--%s is about a cluster file, and --demo has "
                              "none; remove one",
                              rf_cli_options[of_files[i]].name);
        }
    }
    if (parse->seen[RF_OPT_EXPLAIN] &&
        (!parse->seen[RF_OPT_DEMO] || parse->seen[RF_OPT_JSON])) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--explain adds to the text of --demo: use them "
                          "together, without --json");
    }
    return RF_OK;
}

/* Options that contradict each other. */
static enum rf_status check_pairs(const struct parse *parse, struct rf_err *err)
{
    if (parse->seen[RF_OPT_RESUME] && parse->seen[RF_OPT_OUTPUT]) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--resume continues in its own folder; remove "
                          "--output");
    }
    if (parse->seen[RF_OPT_NODES] && parse->seen[RF_OPT_HOSTFILE]) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--nodes and --hostfile both say what the nodes are; "
                          "remove one");
    }
    if (parse->seen[RF_OPT_TRACE] && parse->seen[RF_OPT_DRY_RUN]) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--dry-run runs nothing that --trace could record; "
                          "remove one");
    }
    if (parse->seen[RF_OPT_REPEAT] && parse->seen[RF_OPT_DRY_RUN]) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--dry-run runs nothing that --repeat could repeat; "
                          "remove one");
    }
    if (parse->seen[RF_OPT_TRACE] && parse->cli->command == RF_CMD_RERUN &&
        strcmp(parse->cli->trace, "-") == 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "rerun prints its comparison on standard output; "
                          "name a file for --trace");
    }
    if (parse->seen[RF_OPT_OUTLIERS] && parse->seen[RF_OPT_JSON] &&
        strcmp(parse->cli->outliers, "-") == 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--json prints on standard output; name a file for "
                          "--outliers");
    }
    if (parse->seen[RF_OPT_QUIET] && parse->seen[RF_OPT_VERBOSE]) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "--quiet and --verbose cannot be combined; remove one");
    }
    if (parse->cli->command == RF_CMD_PLAN && parse->seen[RF_OPT_VERBOSE] &&
        (parse->seen[RF_OPT_JSON] || parse->seen[RF_OPT_FULL])) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--verbose adds to the text that --json and --full "
                          "replace; remove one of them");
    }
    return parse->cli->command == RF_CMD_REPORT    ? check_form(parse, err)
           : parse->cli->command == RF_CMD_PREDICT ? check_demo(parse, err)
                                                   : RF_OK;
}

/* Whether it can only be meant as a command: a plain word, and no file. */
static bool is_command_word(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz-") == strlen(text) &&
           access(text, F_OK) != 0;
}

static enum rf_status unknown_command(const char *word, struct rf_err *err)
{
    const char *names[RF_COMMANDS + 1] = {NULL};
    const char *nearest;
    for (size_t i = 0; i < RF_COMMANDS; i++) {
        names[i] = rf_cli_commands[i].name;
    }
    nearest = rf_nearest_word(word, names);
    return nearest != NULL
               ? rf_err_set(err, RF_ERR_USAGE,
                            "unknown command \"%.80s\" (did you mean "
                            "\"%s\"?)",
                            word, nearest)
               : rf_err_set(err, RF_ERR_USAGE,
                            "unknown command \"%.80s\", and no file has that "
                            "name",
                            word);
}

/* Too many operands: perhaps the first is a misspelt command. */
static enum rf_status too_many(const struct rf_cli *cli, struct rf_err *err)
{
    if (cli->command == RF_CMD_RUN && is_command_word(cli->operands[0])) {
        return unknown_command(cli->operands[0], err);
    }
    return rf_err_set(err, RF_ERR_USAGE,
                      "unexpected argument \"%.80s\" after \"%.80s\": one "
                      "CLUSTER.json at a time",
                      cli->operands[1], cli->operands[0]);
}

static enum rf_status check_topic(struct rf_cli *cli, struct rf_err *err)
{
    if (cli->n_operands > 0) {
        cli->topic = command_of(cli->operands[0]);
    }
    return cli->topic != RF_COMMANDS ? RF_OK
                                     : unknown_command(cli->operands[0], err);
}

/* The size may stand behind --demo as an argument of its own. */
static enum rf_status check_demo_size(struct rf_cli *cli, struct rf_err *err)
{
    const size_t sizes = cli->demo[0] == '\0' ? 1 : 0;
    if (cli->n_operands > sizes) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--demo takes one size and no file; remove "
                          "\"%.80s\"",
                          cli->operands[cli->n_operands - 1]);
    }
    if (sizes > 0) {
        cli->demo = cli->n_operands > 0 ? cli->operands[0] : RF_DEMO_SIZE;
    }
    return RF_OK;
}

static enum rf_status check_operands(struct rf_cli *cli, struct rf_err *err)
{
    size_t n = cli->n_operands;
    switch (cli->command) {
    case RF_CMD_HELP:
        return check_topic(cli, err);
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
        return check_demo_size(cli, err);
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
    size_t cap = 0;
    enum rf_status status;
    for (int i = optind; i < argc; i++) {
        RF_PUSH(cli->operands, cli->n_operands, cap, argv[i]);
        if (argv[i][0] == '\0') {
            return rf_err_set(err, RF_ERR_USAGE,
                              "argument %zu is empty; is a variable unset?",
                              cli->n_operands);
        }
    }
    cli->has_out = parse->seen[RF_OPT_OUTPUT];
    cli->level = cli->quiet ? RF_LOG_WARN : cli->level;
    status = check_takers(parse, err);
    RF_THEN(status, check_pairs(parse, err));
    return status != RF_OK ? status : check_operands(cli, err);
}

static enum rf_status take_options(struct parse *parse, int argc, char **argv,
                                   struct rf_err *err)
{
    struct option options[RF_OPTIONS + 1] = {{0}};
    char letters[2 * RF_OPTIONS + 2] = ":";
    size_t n = 1;
    enum rf_status status = RF_OK;
    int value;
    for (int i = 0; i < RF_OPTIONS; i++) {
        const struct rf_cli_option *option = &rf_cli_options[i];
        bool has_value = option->value != NULL;
        options[i] =
            (struct option){option->name,
                            !has_value                ? no_argument
                            : option->value[0] == '[' ? optional_argument
                                                      : required_argument,
                            NULL, OPTION_VALUE + i};
        if (option->letter != 0) {
            letters[n++] = option->letter;
        }
        if (option->letter != 0 && has_value) {
            letters[n++] = ':';
        }
    }
    optind = 0; /* starts afresh, also in tests */
    opterr = 0;
    while (status == RF_OK &&
           (value = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        status = value == '?' || value == ':'
                     ? bad_option(parse->cli, value, argv[optind - 1], err)
                     : take_option(parse, option_of(value), err);
    }
    return status;
}

/* Whether `word` is a command. */
static bool take_command(struct rf_cli *cli, const char *word)
{
    enum rf_command command = command_of(word);
    if (command == RF_COMMANDS) {
        return false;
    }
    cli->command = command;
    cli->topic = command;
    return true;
}

enum rf_status rf_cli_parse(int argc, char **argv, struct rf_cli *out,
                            struct rf_err *err)
{
    struct parse parse = {.cli = out};
    enum rf_status status = RF_OK;
    *out = (struct rf_cli){.topic = RF_CMD_HELP,
                           .out = "results",
                           .level = RF_LOG_INFO,
                           .thresholds = rf_thresholds_default(),
                           .argc = argc};
    out->argv = rf_xcalloc((size_t)argc + 1, sizeof(*out->argv));
    memcpy(out->argv, argv, (size_t)argc * sizeof(*out->argv));
    if (argc > 1 && take_command(out, argv[1]) &&
        out->command == RF_CMD_MEGATRON) {
        status = rf_megatron_take(&argc, argv, 2, &out->megatron, err);
    }
    RF_THEN(status, take_options(&parse, argc, argv, err));
    if (status == RF_OK && optind < argc && take_command(out, argv[optind])) {
        optind++;
    }
    if (parse.seen[RF_OPT_HELP] || parse.seen[RF_OPT_VERSION]) {
        out->command = parse.seen[RF_OPT_HELP] ? RF_CMD_HELP : RF_CMD_VERSION;
    } else {
        RF_THEN(status, take_operands(&parse, argc, argv, err));
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
