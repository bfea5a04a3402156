/* The record of a scenario as the description of the next run of it. */
#ifndef RF_COORDINATOR_STORE_RERUN_H
#define RF_COORDINATOR_STORE_RERUN_H

#include <jansson.h>

#include "coordinator/config/nodes/hosts.h"
#include "coordinator/scenario/scenario.h"

/*
 * Makes the cluster.json that runs `result`, read from `path`, again. `hosts`
 * take the places of the record's nodes in order; an empty list keeps them.
 * Secrets, which records do not keep, come from the environment. RF_ERR_CONFIG
 * for what is no record of a scenario, lacks a complete cluster or a plan, or
 * needs a secret that is not set, RF_ERR_USAGE for other numbers of `hosts`.
 */
enum rf_status rf_rerun_cluster(const json_t *result, const char *path,
                                const struct rf_hosts *hosts, json_t **out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Refuses, with what differs, a scenario whose plan is another than that of
 * `result`; warns where only the operations are. */
enum rf_status rf_rerun_check(const json_t *result, const char *path,
                              const struct rf_model *model,
                              const struct rf_scenario *scenario,
                              struct rf_err *err) RF_MUST_CHECK;

#endif
