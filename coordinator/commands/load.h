/* What the commands read before they do anything: cluster.json and its model.
 */
#ifndef RF_COORDINATOR_COMMANDS_LOAD_H
#define RF_COORDINATOR_COMMANDS_LOAD_H

#include "coordinator/commands/cli.h"
#include "coordinator/config/config.h"
#include "planner/model/model.h"

/* The file of the command line, with what its options change in it and the
 * scenarios that -s selects, and its model; the caller destroys both. With
 * `need_nodes` a file without nodes is an error, and where only nodes have the
 * model's checkpoint, *model stays as it is. May ask Slurm for a job and start
 * anew inside it, with launch.slurm.options. */
enum rf_status rf_load(const struct rf_cli *cli, bool need_nodes,
                       struct rf_config **config, struct rf_model **model,
                       struct rf_err *err) RF_MUST_CHECK;

/* The same of a cluster file in memory, which is taken; `file` is what errors
 * call it, and gives the folder of relative paths. */
enum rf_status rf_load_document(const struct rf_cli *cli, json_t *document,
                                const char *file, bool need_nodes,
                                struct rf_config **config,
                                struct rf_model **model,
                                struct rf_err *err) RF_MUST_CHECK;

/* The model of a cluster file. RF_ERR_CONFIG also when only nodes have its
 * checkpoint. */
enum rf_status rf_load_model(const struct rf_config *config,
                             struct rf_model **out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
