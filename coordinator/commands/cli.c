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
#include "planner/scenario/spec_fields.h"

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

/* What getopt found, before the command is known. */
struct parse {
    struct rf_cli *cli;
    uint64_t seen; /* options */
    size_t cap_globs;
};

static enum rf_status number(const char *option, const char *text, double max,
                             double *out, struct rf_err *err)
{
    char *end;
    double value;
    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) ||
        value < 1 || value > max) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "%s %.40s: must be a number from 1 to %g", option,
                          text, max);
    }
    *out = value;
    return RF_OK;
}

static enum rf_status read_repeat(const char *text, uint32_t *out,
                                  struct rf_err *err)
{
    double value = 0;
    RF_TRY(number("--repeat", text, RF_RESULTS_MOST_REPEATS, &value, err));
    if (value > floor(value)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--repeat %.40s: must be an integer from 1 to %d",
                          text, RF_RESULTS_MOST_REPEATS);
    }
    *out = (uint32_t)value;
    return RF_OK;
}

/* Handles options that need more than setting a member of struct rf_cli. */
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
        status = number("--timeout", optarg, 1e7, &value, err);
        cli->timeout_s = (uint32_t)value;
        break;
    case RF_OPT_REPEAT:
        status = read_repeat(optarg, &cli->repeat, err);
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
    parse->seen |= UINT64_C(1) << id;
    if (option->value != NULL && option->value[0] == '[' && optarg == NULL) {
        *(const char **)member = "";
        return RF_OK;
    }
    if (option->value != NULL && optarg[0] == '\0') {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--%s: empty value; unset variable?", option->name);
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

/* The command's option closest to `word`, "--option" or "--option=value", or
 * NULL. Flags of Megatron-LM have priority where they are accepted. */
static const char *nearest_option(const struct rf_cli *cli, const char *word)
{
    const uint64_t taken = rf_cli_commands[cli->command].options;
    const char *names[RF_OPTIONS + 1] = {NULL};
    const char *nearest = NULL;
    char text[64];
    size_t n = 0;
    if (strncmp(word, "--", 2) != 0) {
        return NULL;
    }
    if (cli->megatron.values != NULL) {
        nearest = rf_megatron_nearest(word);
    }
    for (size_t i = 0; i < RF_OPTIONS; i++) {
        if ((taken >> i & 1) != 0) {
            names[n++] = rf_cli_options[i].name;
        }
    }
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return nearest != NULL ? nearest : rf_nearest_word(text, names);
}

/* The path for --set of a key of scenarios or of their sides, given as an
 * option; NULL: it is no key. Caller frees. */
static char *scenario_path(const struct rf_cli *cli, const char *word)
{
    char name[64];
    if (strncmp(word, "--", 2) != 0 || cli->megatron.values != NULL ||
        (rf_cli_commands[cli->command].options & RF_OPT(SET)) == 0) {
        return NULL;
    }
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return rf_spec_field_find(rf_spec_fields, name) != NULL
               ? rf_xasprintf("scenarios.*.%s", name)
           : rf_spec_field_find(rf_side_fields, name) != NULL
               ? rf_xasprintf("scenarios.*.train.%s", name)
               : NULL;
}

/* getopt_long() returned '?' or ':'. With several letters after one dash it has
 * not passed the word yet, so an unknown letter is named by itself. */
static enum rf_status bad_option(const struct rf_cli *cli, int result,
                                 const char *word, struct rf_err *err)
{
    const char *nearest = nearest_option(cli, word);
    bool known = optopt == 0 || option_of(optopt) != RF_OPTIONS;
    char *path;
    if (result == ':') {
        return rf_err_set(err, RF_ERR_USAGE, "option %s requires a value",
                          word);
    }
    path = known ? scenario_path(cli, word) : NULL;
    if (path != NULL) {
        rf_err_set(err, RF_ERR_USAGE,
                   "unknown option %s; cluster files have it: --set '%s=VALUE'",
                   word, path);
        free(path);
        return RF_ERR_USAGE;
    }
    if (known && nearest != NULL) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "unknown option %s (did you mean --%s?)", word,
                          nearest);
    }
    return known ? rf_err_set(err, RF_ERR_USAGE, "unknown option %s", word)
                 : rf_err_set(err, RF_ERR_USAGE, "unknown option -%c", optopt);
}

/* The first option of a set. */
static const char *first_of(uint64_t set)
{
    return rf_cli_options[__builtin_ctzll(set)].name;
}

static enum rf_status check_takers(const struct parse *parse,
                                   struct rf_err *err)
{
    const struct rf_cli_command *command =
        &rf_cli_commands[parse->cli->command];
    const uint64_t wrong = parse->seen & ~command->options;
    return wrong == 0 ? RF_OK
                      : rf_err_set(err, RF_ERR_USAGE,
                                   "--%s does not apply to \"%s\"; remove it",
                                   first_of(wrong), command->name);
}

#define C(ID) (1u << RF_CMD_##ID)
#define TABLES (RF_OPT(CSV) | RF_OPT(LATEX) | RF_OPT(MARKDOWN))
#define DOCUMENTS                                                              \
    (RF_OPT(JSON) | RF_OPT(HTML) | RF_OPT(FIGURES) | RF_OPT(ALPA) |            \
     RF_OPT(ARTIFACT) | RF_OPT(NCCL_TESTS) | RF_OPT(STAGE_V2))

/* One of `options` excludes `others`, or needs one of them. */
static const struct option_rule {
    uint64_t options, others;
    const char *why;
    unsigned commands; /* commands it applies to; 0: all */
    bool needs;
} rules[] = {
    {RF_OPT(RESUME), RF_OPT(OUTPUT),
     .why = "--resume continues in its folder; remove --output"},
    {RF_OPT(NODES), RF_OPT(HOSTFILE), .why = "both select nodes; remove one"},
    {RF_OPT(TRACE) | RF_OPT(REPEAT), RF_OPT(DRY_RUN),
     .why = "a dry run measures nothing; remove one"},
    {RF_OPT(QUIET), RF_OPT(VERBOSE), .why = "they contradict; remove one"},
    {RF_OPT(JSON) | RF_OPT(FULL), RF_OPT(DRY_RUN), .commands = C(RUN),
     .needs = true, .why = "needs --dry-run, or the command \"plan\""},
    {RF_OPT(VERBOSE), RF_OPT(JSON) | RF_OPT(FULL), .commands = C(PLAN),
     .why = "--verbose applies to text output only; remove one"},
    {TABLES | DOCUMENTS, TABLES | DOCUMENTS, .why = "choose one output format"},
    {RF_OPT(DROP_CONSTANT), DOCUMENTS,
     .why = "--drop-constant applies to tables only; remove one"},
    {RF_OPT(POOL), RF_OPT(ARTIFACT),
     .why = "an artifact has the runs as they are; remove --pool"},
    {RF_OPT(REFERENCE), RF_OPT(FIGURES) | RF_OPT(HTML), .needs = true,
     .why = "needs --figures or --html; for text, use \"compare\""},
    {RF_OPT(THRESHOLD), RF_OPT(REFERENCE), .commands = C(REPORT), .needs = true,
     .why = "needs --reference"},
    {RF_OPT(DEMO),
     RF_OPT(SCENARIO) | RF_OPT(SLOW) | RF_OPT(NODES) | RF_OPT(HOSTFILE),
     .why = "--demo has no cluster file; remove one"},
    {RF_OPT(EXPLAIN), RF_OPT(DEMO), .needs = true, .why = "needs --demo"},
    {RF_OPT(EXPLAIN), RF_OPT(JSON),
     .why = "--explain applies to text output only; remove one"},
};

static enum rf_status check_rule(const struct parse *parse,
                                 const struct option_rule *rule,
                                 struct rf_err *err)
{
    const uint64_t set = parse->seen & rule->options;
    const uint64_t first = set & -set;
    const uint64_t others = parse->seen & rule->others & ~first;
    const unsigned command = 1u << parse->cli->command;
    if (set == 0 || rule->needs == (others != 0) ||
        (rule->commands != 0 && (rule->commands & command) == 0)) {
        return RF_OK;
    }
    return rule->needs
               ? rf_err_set(err, RF_ERR_USAGE, "--%s: %s", first_of(first),
                            rule->why)
               : rf_err_set(err, RF_ERR_USAGE,
                            "--%s and --%s cannot be combined: %s",
                            first_of(first), first_of(others), rule->why);
}

static bool is_standard_output(const char *file)
{
    return file != NULL && strcmp(file, "-") == 0;
}

/* Checks the options for contradictions. */
static enum rf_status check_pairs(const struct parse *parse, struct rf_err *err)
{
    const struct rf_cli *cli = parse->cli;
    for (size_t i = 0; i < RF_ARRAY_SIZE(rules); i++) {
        RF_TRY(check_rule(parse, &rules[i], err));
    }
    if (cli->command == RF_CMD_RERUN && is_standard_output(cli->trace)) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "rerun prints its comparison to standard output; "
                          "give --trace a file");
    }
    if (cli->json && is_standard_output(cli->outliers)) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "--json prints to standard output; give --outliers a file");
    }
    return RF_OK;
}

/* Whether it can only be a command: a plain word, and no file. */
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
               : rf_err_set(err, RF_ERR_USAGE, "no command or file \"%.80s\"",
                            word);
}

static enum rf_status check_topic(struct rf_cli *cli, struct rf_err *err)
{
    cli->topic = command_of(cli->operands[0]);
    return cli->topic != RF_COMMANDS ? RF_OK
                                     : unknown_command(cli->operands[0], err);
}

/* The size may follow --demo as a separate argument. */
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
    const struct rf_cli_command *command = &rf_cli_commands[cli->command];
    const char *takes =
        command->operands[0] != NULL ? command->operands[0] : "none";
    const size_t n = cli->n_operands;
    if (cli->demo != NULL) {
        return check_demo_size(cli, err);
    }
    if (n < command->least) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "missing argument: \"%s\" takes %s", command->name,
                          takes);
    }
    if (n > command->most && cli->command == RF_CMD_RUN &&
        is_command_word(cli->operands[0])) { /* a misspelt one */
        return unknown_command(cli->operands[0], err);
    }
    if (n > command->most) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "unexpected argument \"%.80s\": \"%s\" takes %s",
                          cli->operands[command->most], command->name, takes);
    }
    if (n > 0 && cli->command == RF_CMD_HELP) {
        return check_topic(cli, err);
    }
    cli->config = n > 0 ? cli->operands[0] : NULL;
    cli->json |= cli->full; /* --full has no text form */
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
                              "argument %zu: empty; unset variable?",
                              cli->n_operands);
        }
    }
    cli->has_out = parse->seen & RF_OPT(OUTPUT);
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
    optind = 0; /* restarts getopt, also in tests */
    opterr = 0;
    while (status == RF_OK &&
           (value = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        status = value == '?' || value == ':'
                     ? bad_option(parse->cli, value, argv[optind - 1], err)
                     : take_option(parse, option_of(value), err);
    }
    return status;
}

/* Takes `word` as the command; false if it is none. */
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
    if (parse.seen & (RF_OPT(HELP) | RF_OPT(VERSION))) {
        out->command = parse.seen & RF_OPT(HELP) ? RF_CMD_HELP : RF_CMD_VERSION;
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
