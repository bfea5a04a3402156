/* A configuration and its model from the text of a cluster.json, and HELLO of
 * its nodes. */
#ifndef RF_TESTS_LIB_CONFIGURED_H
#define RF_TESTS_LIB_CONFIGURED_H

#include "coordinator/config/config.h"
#include "coordinator/scenario/scenario.h"
#include "planner/model/model.h"
#include "tests/lib/auto_planner.h"
#include "transport/control/message_fields.h"

/* As `run` reads it, but without planning; single quotes stand for double ones
 * (quotes.h). Fails the test when it is bad; the caller destroys both. */
void configured(const char *text, struct rf_config **config,
                struct rf_model **model);
/* Likewise, without the model. */
struct rf_config *configured_only(const char *text);
/* Likewise, as from `file`; also without nodes where they are not needed. */
enum rf_status configured_read(const char *text, const char *file,
                               bool need_nodes, struct rf_config **config,
                               struct rf_err *err) RF_MUST_CHECK;
AUTO_POINTER(rf_config, rf_config_destroy)
AUTO_POINTER(rf_scenario, rf_scenario_destroy)

/* One scenario of a small model with experts on two nodes, "a" and "b", of
 * two slots each, planned. */
struct configured_pair {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario *scenario;
};

/* Fails the test when it cannot be planned. */
struct configured_pair configured_pair(const char *scenario);
void configured_pair_free(struct configured_pair *pair);
AUTO_STRUCT(configured_pair, configured_pair_free)

/* What a node says of itself, into `out`, which the caller frees, and returned.
 * NULL, as of a node that has not joined, stays NULL, and `out` empty. */
const struct rf_msg_hello *configured_hello(const char *text,
                                            struct rf_msg_hello *out);

#endif
