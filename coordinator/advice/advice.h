/*
 * Advice about scenarios and about nodes that joined: a table of rules
 * (advice.c), with their conditions in advice_rules.c. Pure.
 */
#ifndef RF_COORDINATOR_ADVICE_ADVICE_H
#define RF_COORDINATOR_ADVICE_ADVICE_H

#include "coordinator/advice/findings.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* Applies the rules of thumb to one scenario's meshes (mesh_advice.h), and
 * reports their assumptions if weights are in GPU memory or the file has a
 * timeline. */
void rf_advise_scenario(const struct rf_scenario *scenario,
                        const struct rf_timeline *timeline,
                        struct rf_findings *out);

/* Adds a finding if a node's worker is not of our build: an error with
 * `strict`, else a warning. */
void rf_advise_build(const char *host, const struct rf_msg_hello *hello,
                     bool strict, struct rf_findings *out);

/* Checks the nodes' HELLOs, alone and against each other. `hellos` has one per
 * node of `config`, NULL if it has not joined. */
void rf_advise_nodes(const struct rf_config *config,
                     const struct rf_msg_hello *const *hellos,
                     struct rf_findings *out);

/* Checks one scenario against the nodes: processors, folders, methods, memory
 * and, if ranks listen, the addresses in cluster.json. */
void rf_advise_fit(const struct rf_scenario *scenario,
                   const struct rf_msg_hello *const *hellos,
                   struct rf_findings *out);

#endif
