/*
 * What many scenarios of a file share: "variables" and "defaults" of
 * cluster.json, put into the model and the scenarios before these are read.
 * What results keep, and everything after, has no variables and no defaults.
 */
#ifndef RF_COORDINATOR_CONFIG_DEFAULTS_H
#define RF_COORDINATOR_CONFIG_DEFAULTS_H

#include <jansson.h>

#include "common/err.h"
#include "common/json.h"

/*
 * Gives an object with "model" and "scenarios" of the document `root`, as far
 * as it has them, in which each string "$NAME" is replaced by that variable,
 * and each scenario has the keys of "defaults" that it does not have itself;
 * "train" and "infer" get theirs key by key. "written" is the list of scenarios
 * without defaults. `root` stays as it is; the result is the caller's.
 * RF_ERR_CONFIG names the place. Warns of variables that nothing uses.
 */
enum rf_status rf_defaults_resolve(const struct rf_jnode *root, json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif
