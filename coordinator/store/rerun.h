/* Running a scenario again from its record. */
#ifndef RF_COORDINATOR_STORE_RERUN_H
#define RF_COORDINATOR_STORE_RERUN_H

#include <jansson.h>

#include "coordinator/config/nodes/hosts.h"
#include "coordinator/scenario/scenario.h"

/* Whether `result`, read from `path`, can run again: a scenario's record with a
 * complete cluster and a plan; else RF_ERR_CONFIG. */
enum rf_status rf_rerun_complete(const json_t *result, const char *path,
                                 struct rf_err *err) RF_MUST_CHECK;

/*
 * Makes a cluster.json that runs `result`, read from `path`, again. `hosts`
 * replace the record's nodes in order; an empty list keeps them. Secrets, which
 * records do not keep, come from the environment. RF_ERR_CONFIG if `result`
 * cannot run again or needs a secret that is not set; RF_ERR_USAGE if the
 * number of `hosts` differs.
 */
enum rf_status rf_rerun_cluster(const json_t *result, const char *path,
                                const struct rf_hosts *hosts, json_t **out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Refuses a scenario whose plan differs from that of `result`, and says where;
 * warns if only the operations differ. */
enum rf_status rf_rerun_check(const json_t *result, const char *path,
                              const struct rf_model *model,
                              const struct rf_scenario *scenario,
                              struct rf_err *err) RF_MUST_CHECK;

#endif
