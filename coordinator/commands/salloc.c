/* See salloc.h. salloc waits for the job, releases it when its command has
 * ended, however that came, and passes on the command's exit status. */
#include "coordinator/commands/salloc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/spawn.h"
#include "coordinator/commands/cli_table.h"
#include "coordinator/config/nodes/slurm_job.h"
#include "coordinator/launch/program.h"

static enum rf_status become_salloc(const struct rf_cli *cli,
                                    const json_t *options, struct rf_err *err)
{
    const char **args = NULL;
    char *self = rf_program_self();
    size_t n = 0, cap = 0, i;
    json_t *option;
    int error;
    RF_PUSH(args, n, cap, "salloc");
    json_array_foreach (options, i, option) {
        RF_PUSH(args, n, cap, json_string_value(option));
    }
    RF_PUSH(args, n, cap, self != NULL ? self : cli->argv[0]);
    for (int a = 1; a < cli->argc; a++) {
        RF_PUSH(args, n, cap, cli->argv[a]);
    }
    RF_PUSH(args, n, cap, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execvp("salloc", (char **)(uintptr_t)args);
    error = errno;
    free(args);
    free(self);
    return rf_err_errno(err, RF_ERR_LAUNCH, error, "cannot run salloc%s",
                        rf_spawn_limits(error));
}

enum rf_status rf_salloc(const struct rf_cli *cli, json_t *document,
                         const char *file, struct rf_err *err)
{
    struct rf_jnode root = rf_jnode_root(document, file);
    struct rf_jnode launch = rf_jnode_get(&root, "launch");
    struct rf_jnode method = rf_jnode_get(&launch, "method");
    const char *name = json_string_value(method.value);
    json_t *options = NULL;
    if (!rf_cli_commands[cli->command].may_allocate || cli->dry_run ||
        name == NULL || strcmp(name, "slurm") != 0 || rf_slurm_job_is_here()) {
        return RF_OK;
    }
    RF_TRY(rf_slurm_options(&root, &options, err));
    if (options == NULL) {
        return rf_jnode_fail(
            &method, err,
            "\"slurm\" needs a Slurm job to be in (SLURM_JOB_ID is not set): "
            "run this from a script of sbatch or as \"salloc -N2 refit-coord "
            "...\", or say in launch.slurm.options what job to ask for");
    }
    if (cli->config != NULL && strcmp(cli->config, "-") == 0) {
        return rf_jnode_fail(
            &method, err,
            "launch.slurm.options needs a file: salloc runs this command "
            "again, and standard input can be read only once");
    }
    return become_salloc(cli, options, err);
}
