/* Reading cluster.json and its model. See load.h. */
#include "coordinator/commands/load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/spawn.h"
#include "coordinator/commands/cli_table.h"
#include "coordinator/config/nodes/slurm_job.h"
#include "coordinator/launch/program.h"
#include "planner/families/model_read.h"

bool rf_load_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum rf_status rf_load_model(const struct rf_config *config,
                             struct rf_model **out, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_root(config->model, config->file);
    const char *folder = rf_config_checkpoint(config);
    if (folder != NULL) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: $.model.checkpoint: %s is not on this machine, but this "
            "command needs its headers: mount the folder here under the same "
            "path, or run the command on a node; \"refit-coord run\" and "
            "\"check\" ask the nodes for the headers",
            config->file, folder);
    }
    snprintf(node.path, sizeof(node.path), "%s", config->model_path);
    return rf_model_from_json(&node, out, err);
}

/* salloc waits for the job, releases it when its command ends for any reason,
 * and passes on the command's exit status. */
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

/*
 * Only for commands with `may_allocate`, and only if launch.method of the
 * document is "slurm" and this process is in no job. With launch.slurm.options,
 * becomes salloc with them, which runs the same command line again inside its
 * job, and does not return. Without, fails with an error that says what to do.
 */
static enum rf_status allocate(const struct rf_cli *cli, json_t *document,
                               struct rf_err *err)
{
    struct rf_jnode root = rf_jnode_root(document, cli->config);
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
            "\"slurm\" needs a Slurm job (SLURM_JOB_ID is not set): run this "
            "in an sbatch script or as \"salloc -N NODES refit-coord ...\", "
            "or set launch.slurm.options to request a job");
    }
    if (cli->config != NULL && strcmp(cli->config, "-") == 0) {
        return rf_jnode_fail(&method, err,
                             "launch.slurm.options needs a cluster file, not "
                             "standard input: salloc runs this command again");
    }
    return become_salloc(cli, options, err);
}

enum rf_status rf_load(const struct rf_cli *cli, bool need_nodes,
                       struct rf_config **config, struct rf_model **model,
                       struct rf_err *err)
{
    json_t *document = NULL;
    enum rf_status status;
    RF_TRY(rf_config_read(cli->config, &cli->overrides, &document, err));
    status = allocate(cli, document, err);
    if (status != RF_OK) {
        json_decref(document);
        return status;
    }
    return rf_load_document(cli, document, cli->config, need_nodes, config,
                            model, err);
}

enum rf_status rf_load_document(const struct rf_cli *cli, json_t *document,
                                const char *file, bool need_nodes,
                                struct rf_config **config,
                                struct rf_model **model, struct rf_err *err)
{
    struct rf_config *loaded = NULL;
    enum rf_status status;
    RF_TRY(rf_config_from_json(document, file, need_nodes, &loaded, err));
    status = rf_config_select(loaded, cli->globs, cli->n_globs, cli->slow, err);
    if (status != RF_OK) {
        goto free_config;
    }
    if (cli->export != NULL) {
        status = rf_config_export(loaded, cli->export, err);
    }
    if (status == RF_OK &&
        (!need_nodes || rf_config_checkpoint(loaded) == NULL)) {
        status = rf_load_model(loaded, model, err);
    }
    if (status != RF_OK) {
        goto free_config;
    }
    *config = loaded;
    return RF_OK;
free_config:
    rf_config_destroy(loaded);
    return status;
}
