/* Loading cluster.json and its model, the first step of most commands. */
#ifndef RF_COORDINATOR_COMMANDS_LOAD_H
#define RF_COORDINATOR_COMMANDS_LOAD_H

#include "coordinator/commands/cli.h"
#include "coordinator/config/config.h"
#include "planner/model/model.h"

/* Loads the cluster file and its model, with the command line's overrides and
 * the scenarios selected by -s; the caller destroys both. With `need_nodes` a
 * file without nodes is an error. If only nodes have the model's checkpoint,
 * *model stays as it is. May ask Slurm for a job with launch.slurm.options and
 * restart inside it. */
enum rf_status rf_load(const struct rf_cli *cli, bool need_nodes,
                       struct rf_config **config, struct rf_model **model,
                       struct rf_err *err) RF_MUST_CHECK;

/* The same for a cluster file in memory, which it takes. `file` names it in
 * errors and gives the folder of relative paths. */
enum rf_status rf_load_document(const struct rf_cli *cli, json_t *document,
                                const char *file, bool need_nodes,
                                struct rf_config **config,
                                struct rf_model **model,
                                struct rf_err *err) RF_MUST_CHECK;

/* Whether a file was expected and a folder was given. */
bool rf_load_is_folder(const char *path);

/* The model of a cluster file. RF_ERR_CONFIG also if only nodes have its
 * checkpoint. */
enum rf_status rf_load_model(const struct rf_config *config,
                             struct rf_model **out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
