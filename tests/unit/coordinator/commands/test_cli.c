/* The command line: what is accepted, and what is refused with which words. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/cli_table.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_cli, rf_cli_free)

#define ARGS(...) ((const char *[]){"refit-coord", __VA_ARGS__, NULL})
#define ARGS_MAX 80

/* Copies, since getopt reorders; they live until the next call. */
static enum rf_status parse(const char *const *args, struct rf_cli *cli,
                            struct rf_err *err)
{
    /* Words that the parser drops are not in argv any more. */
    static char *argv[ARGS_MAX + 1], *owned[ARGS_MAX];
    int argc = 0;
    for (int i = 0; i < ARGS_MAX; i++) {
        free(owned[i]);
        owned[i] = NULL;
    }
    while (args[argc] != NULL) {
        argv[argc] = owned[argc] = rf_xstrdup(args[argc]);
        argc++;
    }
    argv[argc] = NULL;
    return rf_cli_parse(argc, argv, cli, err);
}

TEST(test_cli_a_file_alone_is_a_run)
{
    AUTO(rf_cli) cli;
    ck_assert_int_eq(parse(ARGS("c.json"), &cli, NULL), RF_OK);
    ck_assert_int_eq(cli.command, RF_CMD_RUN);
    ck_assert_str_eq(cli.config, "c.json");
    ck_assert_str_eq(cli.out, "results");
    ck_assert_int_eq(cli.level, RF_LOG_INFO);
}

TEST(test_cli_options_may_stand_anywhere)
{
    AUTO(rf_cli) cli;
    ck_assert_int_eq(
        parse(ARGS("run", "-s", "a*", "c.json", "-o", "d", "--scenario=b",
                   "--timeout", "90", "--strict", "-vv"),
              &cli, NULL),
        RF_OK);
    ck_assert_str_eq(cli.config, "c.json");
    ck_assert_str_eq(cli.out, "d");
    ck_assert_uint_eq(cli.n_globs, 2);
    ck_assert_str_eq(cli.globs[1], "b");
    ck_assert_uint_eq(cli.timeout_s, 90);
    ck_assert(cli.strict);
    ck_assert_int_eq(cli.level, RF_LOG_TRACE);
    ck_assert_str_eq(cli.argv[1], "run"); /* as called */
    ck_assert_str_eq(cli.argv[2], "-s");
}

TEST(test_cli_resume_names_its_folder)
{
    AUTO(rf_cli) cli;
    ck_assert_int_eq(parse(ARGS("c.json", "--resume", "old"), &cli, NULL),
                     RF_OK);
    ck_assert_str_eq(cli.resume, "old");
}

TEST(test_cli_takes_many_sets_and_still_sees_later_options)
{
    const char *args[ARGS_MAX] = {"refit-coord", "plan", "c.json"};
    struct rf_cli cli;
    struct rf_err err = {0};
    ck_assert_int_eq(parse(ARGS("check", "c.json", "--set", "a=1", "--hostfile",
                                "h", "--set", "b=2"),
                           &cli, NULL),
                     RF_OK);
    ck_assert_uint_eq(cli.overrides.n_sets, 2);
    ck_assert_str_eq(cli.overrides.sets[1], "b=2");
    ck_assert_str_eq(cli.overrides.hostfile, "h");
    rf_cli_free(&cli);
    for (int i = 3; i < ARGS_MAX - 2; i++) {
        args[i] = "--set=a=1";
    }
    args[ARGS_MAX - 2] = "--strict";
    assert_fails(parse(args, &cli, &err), RF_ERR_USAGE, err, "--strict");
}

TEST(test_cli_repeat_is_a_whole_number)
{
    static const char *const wrong[] = {"0", "1001", "2.5", "-1", "x", "3x"};
    struct rf_cli cli;
    struct rf_err err = {0};
    ck_assert_int_eq(parse(ARGS("c.json"), &cli, NULL), RF_OK);
    ck_assert_uint_eq(cli.repeat, 0);
    rf_cli_free(&cli);
    ck_assert_int_eq(
        parse(ARGS("rerun", "r.json", "--repeat", "1000"), &cli, NULL), RF_OK);
    ck_assert_uint_eq(cli.repeat, 1000);
    rf_cli_free(&cli);
    for (size_t i = 0; i < RF_ARRAY_SIZE(wrong); i++) {
        assert_fails(parse(ARGS("c.json", "--repeat", wrong[i]), &cli, &err),
                     RF_ERR_USAGE, err, "from 1 to 1000");
    }
    ck_assert_int_eq(parse(ARGS("plan", "c.json", "--repeat", "2"), &cli, &err),
                     RF_ERR_USAGE);
    ck_assert_int_eq(parse(ARGS("c.json", "--repeat", "2", "-n"), &cli, &err),
                     RF_ERR_USAGE);
}

TEST(test_cli_knows_every_command)
{
    for (unsigned c = 0; c < RF_COMMANDS; c++) {
        const struct rf_cli_command *command = &rf_cli_commands[c];
        const char *args[ARGS_MAX] = {"refit-coord", command->name};
        AUTO(rf_cli) cli;
        for (size_t i = 0; i < command->least; i++) {
            args[2 + i] = "x";
        }
        ck_assert_int_eq(parse(args, &cli, NULL), RF_OK);
        ck_assert_uint_eq(cli.command, c);
    }
}

TEST(test_cli_compare_takes_two_folders_and_a_threshold)
{
    AUTO(rf_cli) cli;
    ck_assert_int_eq(
        parse(ARGS("compare", "a", "b", "--threshold", "0.25"), &cli, NULL),
        RF_OK);
    ck_assert_uint_eq(cli.n_operands, 2);
    ck_assert_double_eq(cli.thresholds.of[RF_METRIC_TIME].worse, 0.25);
}

TEST(test_cli_help_and_version_need_no_file)
{
    struct rf_cli cli;
    ck_assert_int_eq(parse(ARGS("--help"), &cli, NULL), RF_OK);
    ck_assert_int_eq(cli.command, RF_CMD_HELP);
    ck_assert_int_eq(cli.topic, RF_CMD_HELP);
    rf_cli_free(&cli);
    ck_assert_int_eq(parse(ARGS("-V"), &cli, NULL), RF_OK);
    ck_assert_int_eq(cli.command, RF_CMD_VERSION);
    rf_cli_free(&cli);
}

TEST(test_cli_help_is_about_the_command_that_is_named)
{
    static const struct {
        const char *args[5];
        enum rf_command topic;
    } asked[] = {{{"plan", "--help"}, RF_CMD_PLAN},
                 {{"--help", "plan"}, RF_CMD_PLAN},
                 {{"run", "c.json", "-h"}, RF_CMD_RUN},
                 {{"c.json", "-h"}, RF_CMD_HELP},
                 {{"-o", "plan", "c.json", "-h"}, RF_CMD_HELP},
                 {{"help", "compare"}, RF_CMD_COMPARE},
                 {{"help"}, RF_CMD_HELP},
                 {{"megatron", "--help"}, RF_CMD_MEGATRON},
                 {{"plan", "--strict", "--help"}, RF_CMD_PLAN}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(asked); i++) {
        const char *args[7] = {"refit-coord"};
        AUTO(rf_cli) cli;
        memcpy(args + 1, asked[i].args, sizeof(asked[i].args));
        ck_assert_int_eq(parse(args, &cli, NULL), RF_OK);
        ck_assert_int_eq(cli.command, RF_CMD_HELP);
        ck_assert_int_eq(cli.topic, asked[i].topic);
    }
}

static const struct {
    const char *args[6];
    const char *text;
} wrong[] = {
    {{NULL}, "missing argument: \"run\" takes CLUSTER.json"},
    {{"plan"}, "missing argument: \"plan\" takes CLUSTER.json|MODEL.json"},
    {{"version", "x"}, "unexpected argument \"x\": \"version\" takes none"},
    {{"help", "plan", "x"}, "unexpected argument \"x\""},
    {{"pln", "c.json"}, "did you mean \"plan\""},
    {{"quux", "c.json"}, "no command or file \"quux\""},
    {{"help", "pln"}, "did you mean \"plan\""},
    {{"help", "c.json"}, "no command or file \"c.json\""},
    {{"a.json", "b.json"}, "unexpected argument \"b.json\""},
    {{"plan", "quux", "b.json"}, "unexpected argument \"b.json\""},
    {{"--nonsense", "a.json"}, "unknown option --nonsense"},
    {{"--iterations=3", "a.json"}, "--set 'scenarios.*.iterations=VALUE'"},
    {{"--tp=4", "a.json"}, "--set 'scenarios.*.train.tp=VALUE'"},
    {{"--repeats", "3", "a.json"}, "--repeats (did you mean --repeat?)"},
    {{"--resme=x", "a.json"}, "--resme=x (did you mean --resume?)"},
    {{"report", "d", "--latx"}, "--latx (did you mean --latex?)"},
    {{"-xy", "a.json"}, "unknown option -x"},
    {{"--json", "a.json", "-nz"}, "unknown option -z"},
    {{"a.json", "--dry-run=yes"}, "--dry-run=yes"},
    {{"a.json", "-o"}, "option -o requires a value"},
    {{"a.json", "-o", ""}, "--output: empty value"},
    {{"a.json", "--resume="}, "--resume: empty value"},
    {{"a.json", "-s", ""}, "--scenario: empty value"},
    {{"report", "d", "--html="}, "--html: empty value"},
    {{""}, "argument 1: empty"},
    {{"compare", "a", ""}, "argument 2: empty"},
    {{"a.json", "--timeout", "soon"}, "soon"},
    {{"a.json", "--timeout", "0"}, "--timeout"},
    {{"a.json", "--json"}, "--dry-run"},
    {{"a.json", "--full"}, "--dry-run"},
    {{"plan", "a.json", "-o", "x"}, "output"},
    {{"rerun", "a.json", "-s", "x"}, "scenario"},
    {{"report"}, "missing argument: \"report\" takes DIR..."},
    {{"report", "d", "--csv", "--latex"}, "--csv and --latex cannot be"},
    {{"report", "d", "--html", "p", "--json"}, "--json and --html cannot be"},
    {{"report", "d", "--threshold", "1"}, "needs --reference"},
    {{"report", "d", "--reference", "e"}, "--figures or --html"},
    {{"report", "d", "--figures", "f", "--csv"}, "cannot be combined"},
    {{"report", "d", "--alpa", "--json"}, "--json and --alpa cannot be"},
    {{"report", "d", "--nccl-tests", "--csv"}, "cannot be combined"},
    {{"report", "d", "--stage-v2", "--html", "p"}, "cannot be combined"},
    {{"import"}, "missing argument: \"import\" takes FILE..."},
    {{"import", "f", "--json"}, "--json does not apply to \"import\""},
    {{"report", "d", "--outliers", "f"}, "does not apply to \"report\""},
    {{"compare", "a", "b", "--outliers", "-", "--json"},
     "give --outliers a file"},
    {{"report", "d", "--drop-constant", "--json"}, "applies to tables only"},
    {{"compare", "a", "b", "--drop-constant"}, "does not apply to \"compare\""},
    {{"compare", "a", "b", "--figures", "f"}, "does not apply to"},
    {{"rerun"}, "missing argument: \"rerun\" takes RESULT.json"},
    {{"rerun", "a", "b"}, "\"b\": \"rerun\" takes RESULT.json"},
    {{"rerun", "a", "--resume", "d"}, "resume"},
    {{"report", "d", "--nodes", "a"}, "--nodes does not apply to \"report\""},
    {{"compare", "a", "b", "--set", "a=1"}, "--set does not apply"},
    {{"a.json", "--nodes", "a", "--hostfile", "h"}, "remove one"},
    {{"compare", "d"}, "\"compare\" takes REFERENCE NEW"},
    {{"compare", "a", "b", "--threshold", "-1"}, "threshold"},
    {{"compare", "a", "b", "--threshold", "nan"}, "threshold"},
    {{"compare", "a", "b", "--threshold", "tmie=5%"}, "mean \"time\""},
    {{"a.json", "--csv"}, "csv"},
    {{"a.json", "--resume", "d", "-o", "x"}, "remove --output"},
    {{"rerun", "a", "--trace", "-"}, "give --trace a file"},
    {{"predict", "--demo", "-s", "x"}, "--demo has no cluster file"},
    {{"predict", "a.json", "--explain"}, "needs --demo"},
    {{"predict", "--demo", "--explain", "--json"}, "--explain and --json"},
    {{"a.json", "--trace", "t", "-n"}, "a dry run measures nothing"},
    {{"a.json", "--output=results", "--resume", "d"}, "--resume"},
    {{"a.json", "-q", "-v"}, "--quiet"},
    {{"plan", "a.json", "-v", "--json"}, "--verbose"},
    {{"plan", "a.json", "-v", "--full"}, "--verbose"},
    {{"plan", "a.json", "--strict"}, "--strict does not apply to \"plan\""},
    {{"-vv", "plan", "a.json", "-q"}, "--verbose"},
};

LOOP_TEST(test_cli_refuses_with_a_reason, RF_ARRAY_SIZE(wrong))
{
    struct rf_cli cli;
    struct rf_err err = {0};
    const char *args[8] = {"refit-coord"};
    memcpy(args + 1, wrong[_i].args, sizeof(wrong[_i].args));
    assert_fails(parse(args, &cli, &err), RF_ERR_USAGE, err, wrong[_i].text);
}

TEST(test_cli_full_is_json)
{
    AUTO(rf_cli) cli;
    ck_assert_int_eq(parse(ARGS("plan", "a.json", "--full"), &cli, NULL),
                     RF_OK);
    ck_assert(cli.full && cli.json);
}

/* To be freed by the caller. */
static char *help_of(enum rf_command topic)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_cli_help(topic, file);
    fclose(file);
    return text;
}

static bool has_option(const char *help, const char *name)
{
    static const char ends[] = {' ', '\n', '['};
    bool has = false;
    for (size_t i = 0; i < sizeof(ends); i++) {
        AUTO_FREE char *word = rf_xasprintf("--%s%c", name, ends[i]);
        has = has || strstr(help, word) != NULL;
    }
    return has;
}

TEST(test_cli_help_of_a_command_has_the_options_that_it_takes)
{
    for (unsigned c = 0; c < RF_CMD_HELP; c++) {
        AUTO_FREE char *help = help_of(c);
        for (size_t i = 0; i < RF_OPTIONS; i++) {
            const struct rf_cli_option *option = &rf_cli_options[i];
            AUTO_FREE char *word = rf_xasprintf("--%s", option->name);
            const char *args[] = {"refit-coord", rf_cli_commands[c].name, word,
                                  option->value != NULL ? "1" : NULL, NULL};
            struct rf_err err = {0};
            AUTO(rf_cli) cli;
            bool refused = parse(args, &cli, &err) != RF_OK &&
                           strstr(err.text, "does not apply") != NULL;
            ck_assert_msg(has_option(help, option->name) == !refused, "%s %s",
                          args[1], word);
        }
    }
}

TEST(test_cli_help_has_usage_and_an_example_that_is_taken)
{
    char *help = help_of(RF_CMD_PREDICT);
    assert_says(help, "refit-coord predict --demo [SIZE]");
    free(help);
    for (unsigned c = 0; c < RF_CMD_HELP; c++) {
        AUTO_FREE char *example = rf_xstrdup(rf_cli_commands[c].example);
        const char *args[ARGS_MAX] = {"refit-coord"};
        size_t n = 1;
        AUTO(rf_cli) cli;
        for (char *word = strtok(example, " \\\n"); word != NULL;
             word = strtok(NULL, " \\\n")) {
            args[n++] = word;
        }
        ck_assert_int_eq(parse(args, &cli, NULL), RF_OK);
        ck_assert_uint_eq(cli.command, c);
    }
}

TEST(test_cli_help_without_a_command_is_one_screen_of_all)
{
    AUTO_FREE char *help = help_of(RF_CMD_HELP);
    size_t lines = 0;
    for (const char *c = help; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    ck_assert_msg(lines >= 24 && lines <= 40, "%zu lines", lines);
    for (size_t i = 0; i < RF_COMMANDS; i++) {
        AUTO_FREE char *line = rf_xasprintf("\n  %s ", rf_cli_commands[i].name);
        ck_assert_msg(strstr(help, line) != NULL, "%s", line);
    }
}
