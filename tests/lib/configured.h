/* A configuration and its model from the text of a cluster.json. */
#ifndef RF_TESTS_LIB_CONFIGURED_H
#define RF_TESTS_LIB_CONFIGURED_H

#include "coordinator/config.h"
#include "planner/model.h"

/* As `run` reads it, but without planning. Fails the test when it is bad; the
 * caller destroys both. */
void configured(const char *text, struct rf_config **config,
                struct rf_model **model);

#endif
