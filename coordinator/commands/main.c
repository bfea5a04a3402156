/* refit-coord: selects the command. Each command has its own file. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/core_dumps.h"
#include "common/fd_limit.h"
#include "common/mem.h"
#include "common/stack_limit.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/cli_table.h"

static int (*const runs[])(struct rf_cli *cli) = {
#define X(ID, name, ...) rf_##name##_command,
    RF_COMMAND_MAP(X)
#undef X
};

static int dispatch(struct rf_cli *cli)
{
    const enum rf_command command = cli->dry_run ? RF_CMD_PLAN : cli->command;
    int code;
    if (!rf_cli_commands[command].talks_to_nodes) {
        return runs[command](cli);
    }
    cli->output = rf_stderr_writer_create(STDERR_FILENO);
    rf_stderr_writer_take_log(cli->output);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write() */
    code = runs[command](cli);
    /* It remains the log's sink: a hung launch may still log. */
    rf_stderr_writer_end(cli->output, RF_STDERR_WRITER_WAIT_MS);
    return code;
}

/* Keeps our sockets off standard descriptors that the caller has closed. Their
 * replacements cannot be written to, so lost output is still an error. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)open("/dev/null", O_RDONLY); /* takes the lowest, so fd */
        }
    }
}

/* Reports lost output in addition to any other error. */
static int close_output(int code)
{
    if (ferror(stdout) == 0 && fflush(stdout) == 0) {
        return code;
    }
    rf_error("cannot write to standard output");
    return code == RF_EXIT_OK ? RF_EXIT_FAILED : code;
}

static int run(int argc, char **argv)
{
    struct rf_cli cli;
    struct rf_err err = {0};
    int code;
    json_set_alloc_funcs(rf_xmalloc, free); /* no object is NULL */
    fill_standard_descriptors();
    rf_fd_limit_raise();
    rf_core_dumps_forbid();   /* it holds every node's key */
    signal(SIGXFSZ, SIG_IGN); /* exceeding RLIMIT_FSIZE is an error */
    if (rf_cli_parse(argc, argv, &cli, &err) != RF_OK) {
        bool about_all = cli.topic == RF_CMD_HELP;
        fprintf(stderr, "refit-coord: %s\nTry \"refit-coord %s%s--help\".\n",
                err.text, about_all ? "" : rf_cli_commands[cli.topic].name,
                about_all ? "" : " ");
        return RF_EXIT_USAGE;
    }
    rf_log_init(cli.level, NULL);
    code = dispatch(&cli);
    rf_cli_free(&cli);
    return close_output(code);
}

int main(int argc, char **argv)
{
    static struct rf_err err;
    if (rf_stack_limit_raise(&err) != RF_OK) {
        fprintf(stderr, "error: %s\n", err.text);
        return RF_EXIT_LAUNCH;
    }
    return run(argc, argv);
}
