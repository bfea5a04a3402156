/*
 * Settings shared by scenarios: "variables" and "defaults" of cluster.json,
 * inserted into the model and the scenarios before these are read. Results, and
 * all later code, see neither variables nor defaults.
 */
#ifndef RF_COORDINATOR_CONFIG_DEFAULTS_H
#define RF_COORDINATOR_CONFIG_DEFAULTS_H

#include <jansson.h>

#include "common/err.h"
#include "common/json.h"

/*
 * Returns an object with "model" and "scenarios" of the document `root`, if
 * present, in which each string "$NAME" is replaced by that variable, and each
 * scenario has the keys of "defaults" that it lacks; "train" and "infer",
 * or each pool of it, are merged key by key. "written" is the list of scenarios without defaults.
 * `root` stays as it is; the caller owns the result. RF_ERR_CONFIG names the
 * place. Warns of unused variables.
 */
enum rf_status rf_defaults_resolve(const struct rf_jnode *root, json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif
