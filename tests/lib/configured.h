/* A configuration and its model from the text of a cluster.json. */
#ifndef RF_TESTS_LIB_CONFIGURED_H
#define RF_TESTS_LIB_CONFIGURED_H

#include "coordinator/case.h"
#include "coordinator/config.h"
#include "planner/model.h"

/* As `run` reads it, but without planning. Fails the test when it is bad; the
 * caller destroys both. */
void configured(const char *text, struct rf_config **config,
                struct rf_model **model);

/* The same for one scenario of a small model with experts on two nodes, "a" and
 * "b", of two slots each. */
void configured_pair(const char *scenario, struct rf_config **config,
                     struct rf_model **model);

/* The first scenario's case, planned; fails the test when it cannot be. The
 * caller destroys it. */
struct rf_case *configured_case(struct rf_config *config,
                                struct rf_model *model);

#endif
