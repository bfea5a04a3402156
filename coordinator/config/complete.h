/* cluster.json as a document that needs no other file. */
#ifndef RF_COORDINATOR_CONFIG_COMPLETE_H
#define RF_COORDINATOR_CONFIG_COMPLETE_H

#include <jansson.h>

#include "coordinator/config/config.h"

/*
 * A cluster.json that means the same wherever it is read: `model` is
 * described in place, paths are absolute, the defaults of "launch" and
 * "control" are filled in, and `scenario` is its only one. A new reference.
 */
json_t *rf_config_complete(const struct rf_config *config, json_t *model,
                           json_t *scenario);

#endif
