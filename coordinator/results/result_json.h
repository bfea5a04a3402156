/* Result files as JSON; every field is defined in docs/RESULTS.md. */
#ifndef RF_COORDINATOR_RESULTS_RESULT_JSON_H
#define RF_COORDINATOR_RESULTS_RESULT_JSON_H

#include <jansson.h>

#include "coordinator/run/attempt.h"
#include "coordinator/commands/cli.h"

#define RF_SCHEMA_VERSION 1

/* What all results of a run have in common; borrowed. */
struct rf_result_run {
    const struct rf_config *config;
    const struct rf_model *model;
    const char *run_id;
    const struct rf_cli *cli;
    json_t *environment; /* array, one entry a node */
};

/* The self-contained record of one attempt. A new reference. */
json_t *rf_result_json(const struct rf_result_run *run,
                       const struct rf_attempt *attempt);

/* {"name", "version", "build"} and the argument list. New references. */
json_t *rf_result_tool(void);
json_t *rf_result_argv(const struct rf_cli *cli);

/* cluster.json as read, secrets replaced. A new reference. */
json_t *rf_result_configuration(const struct rf_config *config);

/* The machine and libraries of the coordinator itself. A new reference. */
json_t *rf_result_head(void);

/* A node's HELLO as an entry of `environment`. A new reference. */
json_t *rf_result_node(const char *host, const json_t *hello);

/* Whether an environment variable's name says that its value is a secret. */
bool rf_result_secret_name(const char *name);

#endif
