/*
 * The Slurm job of this process, as described by its environment (salloc(1),
 * sbatch(1)): "nodes": "slurm" of cluster.json. Also "launch.slurm": the job to
 * ask for outside one.
 */
#ifndef RF_COORDINATOR_CONFIG_NODES_SLURM_JOB_H
#define RF_COORDINATOR_CONFIG_NODES_SLURM_JOB_H

#include <stdbool.h>

#include "common/json.h"
#include "coordinator/config/nodes/hosts.h"

#define RF_SLURM_MAX_OPTIONS 64

/* Whether there is a job: SLURM_JOB_ID. */
bool rf_slurm_job_is_here(void);

/*
 * Adds the job's nodes with their slots, in Slurm's order. The slots of a node
 * are its GPUs (SLURM_GPUS_ON_NODE, SLURM_GPUS_PER_NODE), else the job's tasks
 * on it if the job was requested with tasks (SLURM_TASKS_PER_NODE with
 * SLURM_NTASKS or SLURM_NTASKS_PER_NODE), else its CPUs
 * (SLURM_JOB_CPUS_PER_NODE). Errors name the variable; hosts added before an
 * error stay.
 */
enum rf_status rf_slurm_job_hosts(struct rf_hosts *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Reads "options" of "launch.slurm" under the document's root: a list of salloc
 * options, borrowed from the document; NULL: none. */
enum rf_status rf_slurm_options(const struct rf_jnode *root, json_t **out,
                                struct rf_err *err) RF_MUST_CHECK;

/* The JSON Schema of "launch.slurm": a new reference. */
json_t *rf_slurm_schema(void);

#endif
