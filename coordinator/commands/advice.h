/* What `check` has to say about the configuration and about nodes that have
 * joined. Pure. */
#ifndef RF_COORDINATOR_COMMANDS_ADVICE_H
#define RF_COORDINATOR_COMMANDS_ADVICE_H

#include <jansson.h>

#include "coordinator/commands/findings.h"
#include "coordinator/run/scenario.h"

/* Rules of thumb about one scenario's meshes; `timeline` may be NULL. */
void rf_advise_scenario(const struct rf_scenario *scenario,
                        const json_t *timeline, struct rf_findings *out);

/* Whether a node's worker is of our build; with `strict` it must be. */
void rf_advise_build(const char *host, const json_t *hello, bool strict,
                     struct rf_findings *out);

/* What a node said in HELLO: memory, methods, links. */
void rf_advise_node(const char *host, const json_t *hello,
                    struct rf_findings *out);

/* Whether nodes have the addresses that cluster.json gives them. */
void rf_advise_addresses(const struct rf_config *config,
                         const json_t *const *hellos, struct rf_findings *out);

/* Nodes against each other: machines, versions, link speeds, kernels.
 * `hellos[i]` may be NULL. */
void rf_advise_nodes(const char *const *hosts, const json_t *const *hellos,
                     uint32_t n, struct rf_findings *out);

/* One scenario against the nodes: methods, memory and processors. */
void rf_advise_fit(const struct rf_scenario *scenario,
                   const json_t *const *hellos, struct rf_findings *out);

#endif
