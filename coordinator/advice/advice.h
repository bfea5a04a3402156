/*
 * Advice about scenarios and about nodes that have joined: a table of rules
 * (advice.c), whose conditions are in advice_rules.c. Pure.
 */
#ifndef RF_COORDINATOR_ADVICE_ADVICE_H
#define RF_COORDINATOR_ADVICE_ADVICE_H

#include "coordinator/advice/findings.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* Rules of thumb about one scenario's meshes (mesh_advice.h), and what they
 * assume where weights are in GPU memory or the file has a timeline. */
void rf_advise_scenario(const struct rf_scenario *scenario,
                        const struct rf_timeline *timeline,
                        struct rf_findings *out);

/* Whether a node's worker is of our build; with `strict` it must be. */
void rf_advise_build(const char *host, const struct rf_msg_hello *hello,
                     bool strict, struct rf_findings *out);

/* What nodes said in HELLO, each by itself and against each other. `hellos` has
 * one per node of `config`; NULL: it has not joined. */
void rf_advise_nodes(const struct rf_config *config,
                     const struct rf_msg_hello *const *hellos,
                     struct rf_findings *out);

/* One scenario against the nodes: processors, folders, methods, memory and,
 * where ranks listen, the addresses of cluster.json. */
void rf_advise_fit(const struct rf_scenario *scenario,
                   const struct rf_msg_hello *const *hellos,
                   struct rf_findings *out);

#endif
